// SPDX-License-Identifier: Apache-2.0
#include "vgpud/service/journal.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/fd.h"
#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

TEST(JournalFieldsTest, WhatALineBeginsWithBecomesFields) {
  EXPECT_EQ(
      "PRIORITY=4\nSYSLOG_IDENTIFIER=vgpud\nVGPU_VF=a\nVGPU_CHANNEL=3\nMESSAGE=vf=a channel=3 slow=1 pid=7: it is\n",
      JournalFields(LogLevel::kWarning, "warning", "vf=a channel=3 slow=1 pid=7: it is"));
  EXPECT_EQ("PRIORITY=3\nSYSLOG_IDENTIFIER=vgpud\nVGPU_VF=a\nMESSAGE=vf=a: gone\n",
            JournalFields(LogLevel::kError, "error", "vf=a: gone"));
  EXPECT_EQ("PRIORITY=6\nSYSLOG_IDENTIFIER=vgpud\nMESSAGE=the VF vf=a\n",
            JournalFields(LogLevel::kInfo, "info", "the VF vf=a"));
  EXPECT_EQ("PRIORITY=7\nSYSLOG_IDENTIFIER=vgpud\nMESSAGE=\n", JournalFields(LogLevel::kDebug, "debug", ""));
}

TEST(JournalFieldsTest, WhatAnotherProcessSaysNamesNobodyElse) {
  EXPECT_EQ("PRIORITY=6\nSYSLOG_IDENTIFIER=vgpud\nVGPU_VF=a\nVGPU_PID=7\nMESSAGE=vf=a pid=7: vf=b pid=1 forged\n",
            JournalFields(std::nullopt, "vf=a pid=7", "vf=b pid=1 forged"));
}

// In a process of its own, since a log goes where it goes for good.
TEST(JournalTest, LinesGoToTheJournalWhereStderrIsOneAndElseToStderr) {
  const ScratchDir directory;
  const std::string path = directory.path() + "/socket";
  UniqueFd journal{::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  ASSERT_EQ(0, ::bind(journal.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at));
  Pipe log = *MakePipe();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(log.write.get(), STDERR_FILENO);
    struct stat st {};
    ::fstat(STDERR_FILENO, &st);
    ::setenv("JOURNAL_STREAM", "1:1", 1);
    if (LogToJournal(path)) ::_exit(1);
    LOG(kInfo, "first");
    ::setenv("JOURNAL_STREAM", fmt::format("{}:{}", st.st_dev, st.st_ino).c_str(), 1);
    if (!LogToJournal(path)) ::_exit(2);
    LOG(kInfo, "second\nPRIORITY=0");
    ::unlink(path.c_str());
    LOG(kInfo, "third");
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(0, status);
  char text[512];
  ssize_t n = ::read(log.read.get(), text, sizeof text);
  EXPECT_EQ("vgpud: info: first\nvgpud: info: third\n",
            std::string(text, static_cast<size_t>(std::max<ssize_t>(n, 0))));
  n = ::recv(journal.get(), text, sizeof text, 0);
  EXPECT_EQ("PRIORITY=6\nSYSLOG_IDENTIFIER=vgpud\nMESSAGE=second\\nPRIORITY=0\n",
            std::string(text, static_cast<size_t>(std::max<ssize_t>(n, 0))));
  EXPECT_LT(::recv(journal.get(), text, sizeof text, 0), 0) << "one line";
}

}  // namespace
}  // namespace vgpud::daemon
