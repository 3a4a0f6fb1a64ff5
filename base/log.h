// SPDX-License-Identifier: Apache-2.0
// Logging to stderr: one line per event, key=value, the VF first. Whatever text a line is made of, guests' and clients'
// included, it stays one line of printable ASCII of bounded length: nobody can forge a line or send a terminal
// commands.
#pragma once

#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>

namespace vgpud {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

// Lines above this level are dropped. Default kInfo; VGPUD_LOG=error|warning|info|debug overrides it at start.
void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();
// The prefix of every line, "vgpud-vf[a]" for example. Set once at start, before threads exist.
void SetLogName(std::string_view name);
// The most that one event may say, in bytes as they are written; the rest is replaced by how much it was.
inline constexpr size_t kMaxLogText = 2048;
// `text` as the log shows it: \n, \t and \r, and \xNN for every other byte that is not printable ASCII, cut at
// kMaxLogText. Backslashes stay as they are, so that text which has passed here before does not change.
std::string EscapeForLog(std::string_view text);
// Writes one line. Any thread. Never blocks where stderr does not: what a full pipe did not take is counted, and the
// next line says how many were lost.
void LogLine(LogLevel level, std::string_view text);
// Writes a line that another process wrote: `origin` ("vf=a pid=7", ours) goes before it, so that it cannot be taken
// for one of this process.
void LogRelayed(std::string_view origin, std::string_view text);

// Gets each line before stderr is tried. `text` is escaped. `level`: empty for a line that another process wrote, and
// `origin` then says which. False: it is not taken. Any thread; it logs nothing itself.
using LogSink = bool (*)(std::optional<LogLevel> level, std::string_view origin, std::string_view text);
// Once at start, before threads exist.
void SetLogSink(LogSink sink);

// Lets `burst` lines through per second, then counts; for lines that a guest can trigger. One per call site and
// object, not shared between threads.
class LogLimiter {
 public:
  explicit LogLimiter(unsigned burst = 5) : burst_(burst) {}
  // True when this line may be written. `*suppressed` gets the number dropped since the last one written.
  bool Allow(unsigned* suppressed);

 private:
  unsigned burst_;
  unsigned used_ = 0;
  unsigned dropped_ = 0;
  long second_ = 0;
};

}  // namespace vgpud

#define LOG(level, ...)                                                       \
  do {                                                                        \
    if (::vgpud::LogLevel::level <= ::vgpud::GetLogLevel())                   \
      ::vgpud::LogLine(::vgpud::LogLevel::level, ::fmt::format(__VA_ARGS__)); \
  } while (false)

#define LOG_LIMITED(limiter, level, ...)                                                                    \
  do {                                                                                                      \
    unsigned log_suppressed = 0;                                                                            \
    if (::vgpud::LogLevel::level <= ::vgpud::GetLogLevel() && (limiter).Allow(&log_suppressed))             \
      ::vgpud::LogLine(::vgpud::LogLevel::level,                                                            \
                       ::fmt::format(__VA_ARGS__) +                                                         \
                           (log_suppressed ? ::fmt::format(" ({} like it dropped)", log_suppressed) : "")); \
  } while (false)
