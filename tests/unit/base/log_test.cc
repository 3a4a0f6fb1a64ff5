// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/fd.h"

namespace vgpud {
namespace {

// What is written to stderr while it lives goes into a pipe.
class CapturedStderr {
 public:
  CapturedStderr() : before_(::dup(STDERR_FILENO)) { ::dup2(pipe_.write.get(), STDERR_FILENO); }
  ~CapturedStderr() { ::dup2(before_.get(), STDERR_FILENO); }
  std::string Read() {
    std::string text(64 * 1024, 0);
    const ssize_t n = ::read(pipe_.read.get(), text.data(), text.size());
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return text;
  }

 private:
  Pipe pipe_ = *MakePipe();
  UniqueFd before_;
};

TEST(LogTest, OnlyPrintableAsciiComesOut) {
  EXPECT_EQ("a b~", EscapeForLog("a b~"));
  EXPECT_EQ("a\\nb\\r\\tc", EscapeForLog("a\nb\r\tc"));
  EXPECT_EQ("\\x1b[2J", EscapeForLog("\x1b[2J"));
  EXPECT_EQ("\\x00\\x7f", EscapeForLog(std::string_view("\0\x7f", 2)));
  EXPECT_EQ("\\xc3( \\xe2\\x80\\xae \\xc2\\x9b", EscapeForLog("\xc3\x28 \xe2\x80\xae \xc2\x9b"));
}

TEST(LogTest, WhatIsEscapedAlreadyStaysAsItIs) {
  const std::string once = EscapeForLog("path\\x \n \x80");
  EXPECT_EQ(once, EscapeForLog(once));
}

TEST(LogTest, LongTextIsCutAndTheCutIsSaid) {
  const std::string text = EscapeForLog(std::string(1'000'000, '\n'));
  EXPECT_LE(text.size(), kMaxLogText + 32);
  EXPECT_NE(std::string::npos, text.find("... (")) << text.substr(text.size() - 40);
  EXPECT_EQ(std::string(kMaxLogText - 4, 'x'), EscapeForLog(std::string(kMaxLogText - 4, 'x')));
}

TEST(LogTest, TextOfAGuestCannotMakeALine) {
  CapturedStderr log;
  LogLine(LogLevel::kError, "kernel k: assertion `x`\nvgpud: error: vf=good: parked\n");
  EXPECT_EQ("vgpud: error: kernel k: assertion `x`\\nvgpud: error: vf=good: parked\\n\n", log.Read());
}

TEST(LogTest, ARelayedLineBeginsWithWhereItComesFrom) {
  CapturedStderr log;
  LogRelayed("vf=bad pid=7", "vgpud: error: vf=good: parked");
  EXPECT_EQ("vgpud: vf=bad pid=7: vgpud: error: vf=good: parked\n", log.Read());
}

TEST(LogTest, AFullPipeLosesLinesAndTheNextOneSaysHowMany) {
  CapturedStderr log;
  const std::string line(kMaxLogText - 100, 'x');
  for (int i = 0; i < 100; ++i) LogLine(LogLevel::kInfo, line);  // 64 KiB are far fewer
  (void)log.Read();
  LogLine(LogLevel::kInfo, "room again");
  EXPECT_NE(std::string::npos, log.Read().find("room again (6")) << "some 67 lines did not fit";
}

}  // namespace
}  // namespace vgpud
