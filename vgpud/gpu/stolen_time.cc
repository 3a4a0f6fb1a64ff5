// SPDX-License-Identifier: Apache-2.0
#include "vgpud/gpu/stolen_time.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace vgpud::daemon {
namespace {

// cpuN user nice system idle iowait irq softirq steal
constexpr int kFieldsBefore = 7;

}  // namespace

std::vector<uint64_t> StolenTime::Read() const {
  std::vector<uint64_t> ticks;
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) {
    if (line.starts_with("cpu ")) continue;
    std::istringstream fields(line);
    std::string name;
    fields >> name;
    uint64_t value = 0;
    for (int i = 0; i <= kFieldsBefore; ++i) fields >> value;
    ticks.push_back(fields ? value : 0);
  }
  return ticks;
}

uint64_t StolenTime::MostSinceMark() const {
  const std::vector<uint64_t> now = Read();
  // Processors come and go: places that mean another one now.
  if (now.size() != marked_.size()) return 0;
  uint64_t most = 0;
  for (size_t i = 0; i < now.size(); ++i) most = std::max(most, now[i] - std::min(now[i], marked_[i]));
  const auto tick_ns = 1'000'000'000u / static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  return most == 0 ? 0 : (most + 1) * tick_ns;
}

}  // namespace vgpud::daemon
