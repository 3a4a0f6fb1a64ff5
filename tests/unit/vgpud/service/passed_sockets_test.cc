// SPDX-License-Identifier: Apache-2.0
// Each case in a process of its own, where descriptor 3 and what follows are what a service manager passed.
#include "vgpud/service/passed_sockets.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "tests/scratch_dir.h"

namespace vgpud::daemon {
namespace {

class PassedSocketsTest : public testing::Test {
 protected:
  static UniqueFd Tcp(int family, bool listens) {
    UniqueFd fd{::socket(family, SOCK_STREAM, 0)};
    if (listens) ::listen(fd.get(), 1);
    return fd;
  }
  UniqueFd Unix(const std::string& name) const { return std::move(*ListenUnix(directory_ + "/" + name, SOCK_STREAM)); }
  // What a process says that was started with `fds` from 3 on.
  static std::string Started(const std::vector<int>& fds, const std::string& count, bool for_it = true,
                             const std::function<std::string(const PassedSockets&)>& look = {}) {
    Pipe said = *MakePipe();
    const int above = ::fcntl(said.write.get(), F_DUPFD, 64);
    std::vector<int> copies;
    for (const int fd : fds) copies.push_back(::fcntl(fd, F_DUPFD, 64));
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (size_t i = 0; i < copies.size(); ++i) ::dup2(copies[i], 3 + static_cast<int>(i));
      ::setenv("LISTEN_FDS", count.c_str(), 1);
      ::setenv("LISTEN_PID", std::to_string(for_it ? ::getpid() : 1).c_str(), 1);
      const auto sockets = TakePassedSockets();
      std::string text = !sockets ? sockets.error().context
                                  : std::to_string(sockets->control) + " " + std::to_string(sockets->metrics);
      if (sockets && look) text = look(*sockets);
      if (::getenv("LISTEN_FDS") != nullptr) text += " and passes it on";
      [[maybe_unused]] const auto n = ::write(above, text.data(), text.size());
      ::_exit(0);
    }
    for (const int fd : copies) ::close(fd);
    ::close(above);
    ::waitpid(pid, nullptr, 0);
    char text[512];
    const ssize_t n = ::read(said.read.get(), text, sizeof text);
    return n > 0 ? std::string(text, static_cast<size_t>(n)) : "";
  }
  const ScratchDir scratch_;
  const std::string directory_ = scratch_.path();
};

TEST_F(PassedSocketsTest, EachIsKnownByWhatItIs) {
  const UniqueFd control = Unix("c"), four = Tcp(AF_INET, true), six = Tcp(AF_INET6, true);
  EXPECT_EQ("3 -1", Started({control.get()}, "1"));
  EXPECT_EQ("4 3", Started({four.get(), control.get()}, "2"));
  EXPECT_EQ("3 4", Started({control.get(), six.get()}, "2"));
  EXPECT_EQ("-1 -1", Started({control.get()}, "1", false)) << "they are for another process";
  EXPECT_EQ("-1 -1", Started({}, "0"));
  EXPECT_EQ("-1 -1", Started({}, "x"));
}

TEST_F(PassedSocketsTest, TheyDoNotBlockAndStayHere) {
  const UniqueFd control = Unix("c");
  ASSERT_EQ(0, ::fcntl(control.get(), F_SETFL, 0));
  EXPECT_EQ("right", Started({control.get()}, "1", true, [](const PassedSockets& sockets) {
              const bool right = (::fcntl(sockets.control, F_GETFL) & O_NONBLOCK) != 0 &&
                                 (::fcntl(sockets.control, F_GETFD) & FD_CLOEXEC) != 0;
              return std::string(right ? "right" : "wrong");
            }));
}

TEST_F(PassedSocketsTest, WhatCannotBeServedIsRefused) {
  const UniqueFd one = Unix("1"), two = Unix("2"), silent = Tcp(AF_INET, false);
  const UniqueFd packets = std::move(*ListenUnix(directory_ + "/3", SOCK_SEQPACKET));
  const Pipe pipe = *MakePipe();
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != text.npos; };
  EXPECT_TRUE(has(Started({one.get(), two.get()}, "2"), "descriptor 4 is the second one"));
  for (const int fd : {silent.get(), packets.get(), pipe.read.get()})
    EXPECT_TRUE(has(Started({fd}, "1"), "descriptor 3 is no listening stream socket"));
  EXPECT_TRUE(has(Started({}, "1000000"), "makes no sense"));
}

TEST_F(PassedSocketsTest, ThePathMustBeWhereClientsLook) {
  const UniqueFd control = Unix("c");
  EXPECT_TRUE(CheckListensAt(control.get(), directory_ + "/c"));
  const auto other = CheckListensAt(control.get(), directory_ + "/d");
  ASSERT_FALSE(other);
  EXPECT_NE(std::string::npos, other.error().context.find(directory_ + "/d")) << other.error().context;
  EXPECT_FALSE(CheckListensAt(Tcp(AF_INET, true).get(), directory_ + "/c"));
}

}  // namespace
}  // namespace vgpud::daemon
