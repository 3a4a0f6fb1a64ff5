// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fcntl.h>
#include <fmt/core.h>
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

TEST(LogTest, EveryByteHasItsForm) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    char hex[8];
    snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(byte));
    const std::string expected = c == '\n'                   ? "\\n"
                                 : c == '\r'                 ? "\\r"
                                 : c == '\t'                 ? "\\t"
                                 : byte >= 32 && byte <= 126 ? std::string(1, c)
                                                             : hex;
    EXPECT_EQ(expected, EscapeForLog(std::string(1, c))) << byte;
  }
}

// Room is kept for the longest form of a byte, so that the text never passes its bound.
TEST(LogTest, TheCutIsSaidToTheByte) {
  EXPECT_EQ(2048u, kMaxLogText);
  EXPECT_EQ(std::string(2045, 'x'), EscapeForLog(std::string(2045, 'x')));
  EXPECT_EQ(fmt::format("{:x<2045}... (1 bytes more)", ""), EscapeForLog(std::string(2046, 'x')));
  EXPECT_EQ(fmt::format("{:x<2045}... (955 bytes more)", ""), EscapeForLog(std::string(3000, 'x')));
  std::string escaped;
  for (int i = 0; i < 512; ++i) escaped += "\\x01";
  EXPECT_EQ(escaped, EscapeForLog(std::string(512, '\x01')));
  EXPECT_EQ(escaped + "... (1 bytes more)", EscapeForLog(std::string(513, '\x01')));
}

TEST(LogTest, LevelsAreNamedAndBounded) {
  const LogLevel before = GetLogLevel();
  const char* const names[] = {"error", "warning", "info", "debug"};
  for (int level = 0; level < 4; ++level) {
    CapturedStderr log;
    SetLogLevel(static_cast<LogLevel>(level));
    LOG(kError, "{}", 1);
    LOG(kWarning, "{}", 2);
    LOG(kInfo, "{}", 3);
    LOG(kDebug, "{}", 4);
    std::string expected;
    for (int i = 0; i <= level; ++i) expected += fmt::format("vgpud: {}: {}\n", names[i], i + 1);
    EXPECT_EQ(expected, log.Read());
  }
  SetLogLevel(before);
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
