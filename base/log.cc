#include "base/log.h"

#include <unistd.h>

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

}  // namespace

void SetLogLevel(LogLevel level) { g_level = level; }
LogLevel GetLogLevel() { return g_level; }
void SetLogName(std::string_view name) { g_name = name; }

void LogLine(LogLevel level, std::string_view text) {
  const std::string line = fmt::format("{}: {}: {}\n", g_name, kNames[static_cast<int>(level)], text);
  // One write per line, so that lines of several processes on one stderr do not mix; a full pipe loses the line.
  [[maybe_unused]] const auto n = ::write(STDERR_FILENO, line.data(), line.size());
}

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
