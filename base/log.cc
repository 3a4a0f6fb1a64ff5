// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>

namespace vgpud {
namespace {

constexpr std::string_view kNames[] = {"error", "warning", "info", "debug"};

LogLevel LevelFromEnvironment() {
  const char* wanted = std::getenv("VGPUD_LOG");
  if (wanted != nullptr)
    for (int i = 0; i < 4; ++i)
      if (kNames[i] == wanted) return static_cast<LogLevel>(i);
  return LogLevel::kInfo;
}

LogLevel g_level = LevelFromEnvironment();
std::string g_name = "vgpud";
LogSink g_sink = nullptr;
std::atomic<unsigned> g_lost{0};  // lines that stderr did not take since one was written

void AppendEscaped(std::string* out, unsigned char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
  }
  if (c >= 0x20 && c < 0x7f) {
    *out += static_cast<char>(c);
    return;
  }
  *out += "\\x";
  *out += kHex[c >> 4];
  *out += kHex[c & 15];
}

// One write per line, so that lines of several processes on one stderr do not mix.
void WriteToStderr(std::string_view origin, std::string_view text) {
  const unsigned lost = g_lost.exchange(0);
  const std::string line =
      fmt::format("{}: {}: {}{}\n", g_name, origin, text,
                  lost != 0 ? fmt::format(" ({} lines before this one were lost: nobody read them)", lost) : "");
  ssize_t n = 0;
  do {
    n = ::write(STDERR_FILENO, line.data(), line.size());
  } while (n < 0 && errno == EINTR);
  if (n < 0) g_lost += lost + 1;
}

void Write(std::optional<LogLevel> level, std::string_view origin, std::string_view text) {
  const std::string escaped = EscapeForLog(text);
  if (g_sink == nullptr || !g_sink(level, origin, escaped)) WriteToStderr(origin, escaped);
}

}  // namespace

void SetLogLevel(LogLevel level) { g_level = level; }
LogLevel GetLogLevel() { return g_level; }
void SetLogName(std::string_view name) { g_name = name; }
void SetLogSink(LogSink sink) { g_sink = sink; }

std::string EscapeForLog(std::string_view text) {
  std::string out;
  out.reserve(std::min(text.size(), kMaxLogText) + 32);
  for (size_t i = 0; i < text.size(); ++i) {
    if (out.size() + 4 > kMaxLogText) return out + fmt::format("... ({} bytes more)", text.size() - i);
    AppendEscaped(&out, static_cast<unsigned char>(text[i]));
  }
  return out;
}

void LogLine(LogLevel level, std::string_view text) { Write(level, kNames[static_cast<int>(level)], text); }
void LogRelayed(std::string_view origin, std::string_view text) { Write(std::nullopt, EscapeForLog(origin), text); }

bool LogLimiter::Allow(unsigned* suppressed) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  if (now.tv_sec != second_) {
    second_ = now.tv_sec;
    used_ = 0;
  }
  if (used_ >= burst_) {
    ++dropped_;
    return false;
  }
  ++used_;
  *suppressed = std::exchange(dropped_, 0);
  return true;
}

}  // namespace vgpud
