// SPDX-License-Identifier: Apache-2.0
#include "tests/adversary/adversary.h"

#include <fmt/core.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "base/clock.h"

namespace vgpud::adversary {

Target ReadTarget() {
  Target target;
  const char* directory = std::getenv("VGPUD_LIBEXEC");
  std::ifstream file(fmt::format("{}/target", directory == nullptr ? "." : directory));
  file >> target.attack >> target.daemon;
  return target;
}

void Say(std::string_view text) {
  const std::string line = fmt::format("{}\n", text);
  [[maybe_unused]] const auto n = ::write(STDERR_FILENO, line.data(), line.size());
}

void Report(std::string_view call, long result) {
  const char* name = strerrorname_np(errno);
  Say(result >= 0 ? fmt::format("attack: {}: ALLOWED", call)
                  : fmt::format("attack: {}: refused with {}", call, name == nullptr ? "?" : name));
}

void Nap(long milliseconds) {
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

void FloodLog(Lines lines) {
  uint64_t number = 0;
  for (const uint64_t end = MonotonicNs() + 2'000'000'000; MonotonicNs() < end;) {
    std::string text;
    while (text.size() < 4000) text += fmt::format("flood {}\n", lines == Lines::kAlike ? 0 : ++number);
    [[maybe_unused]] const auto n = ::write(STDERR_FILENO, text.data(), text.size());
  }
}

std::string_view OptionOf(int argc, char** argv, std::string_view name) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == name && i + 1 < argc) return argv[i + 1];
    if (word.size() > name.size() && word.substr(0, name.size()) == name && word[name.size()] == '=')
      return word.substr(name.size() + 1);
  }
  return {};
}

void Idle() {
  for (;;) Nap(1000);
}

void RunReal(const char* variable, char** arguments) {
  if (const char* program = std::getenv(variable); program != nullptr) ::execv(program, arguments);
  Say(fmt::format("attack: the program of {} does not start", variable));
  ::_exit(9);
}

}  // namespace vgpud::adversary
