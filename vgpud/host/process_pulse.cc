// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/process_pulse.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <charconv>

namespace vgpud::daemon {
namespace {

// Fields of proc(5) behind the name, which may itself have blanks and brackets: state is the first of them.
constexpr int kState = 0, kUserTicks = 11, kSystemTicks = 12, kThreads = 17;

}  // namespace

std::optional<Watchdog::Pulse> ParsePulse(std::string_view stat, long ticks_per_second) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || ticks_per_second <= 0) return std::nullopt;
  stat.remove_prefix(name_end + 1);
  Watchdog::Pulse pulse;
  uint64_t ticks = 0;
  for (int field = 0; field <= kThreads; ++field) {
    if (stat.empty() || stat[0] != ' ') return std::nullopt;
    stat.remove_prefix(1);
    const std::string_view word = stat.substr(0, stat.find(' '));
    if (word.empty()) return std::nullopt;
    if (field == kState) pulse.runnable = word == "R";
    if (field == kUserTicks || field == kSystemTicks || field == kThreads) {
      uint64_t value = 0;
      if (std::from_chars(word.data(), word.data() + word.size(), value).ec != std::errc{}) return std::nullopt;
      (field == kThreads ? pulse.threads : ticks) += value;
    }
    stat.remove_prefix(word.size());
  }
  pulse.computed = Ns{static_cast<int64_t>(ticks) * (1'000'000'000 / ticks_per_second)};
  return pulse;
}

ProcessPulse::ProcessPulse(pid_t pid)
    : stat_(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC)) {}

Watchdog::Pulse ProcessPulse::Read() const {
  std::array<char, 1024> text;
  const ssize_t n = ::pread(stat_.get(), text.data(), text.size(), 0);
  if (n <= 0) return {};
  return ParsePulse({text.data(), static_cast<size_t>(n)}, ::sysconf(_SC_CLK_TCK)).value_or(Watchdog::Pulse{});
}

}  // namespace vgpud::daemon
