// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libnvidia-ml/use_history.h"

#include <algorithm>

namespace vgpud::nvml {
namespace {

// As long as NVML remembers at most, and what comes sooner says no more than what is there.
constexpr uint64_t kRememberUs = 2'000'000;
constexpr uint64_t kStepUs = 5'000;

}  // namespace

void UseHistory::Add(const vgpu_status& status, uint64_t unix_us) {
  if (!looks_.empty() && (unix_us < looks_.back().unix_us || status.now_ns < looks_.back().now_ns)) looks_.clear();
  if (looks_.size() > 1 && unix_us - looks_[looks_.size() - 2].unix_us < kStepUs) looks_.pop_back();
  Look look{.unix_us = unix_us, .now_ns = status.now_ns, .gpu_ns = {}};
  pids_.clear();
  for (const vgpu_status_channel& channel : status.channel) {
    if (channel.id == 0) break;
    if ((channel.flags & VGPU_STATUS_CONTEXT) == 0) continue;
    look.gpu_ns[channel.id] = channel.gpu_ns;
    pids_[channel.id] = channel.pid;
  }
  looks_.push_back(std::move(look));
  while (looks_.size() > 2 && looks_[1].unix_us + kRememberUs < unix_us) looks_.pop_front();
}

std::vector<UseHistory::Use> UseHistory::Since(uint64_t unix_us) const {
  std::map<unsigned, unsigned> percents;  // by pid
  for (const auto& [id, pid] : pids_) {
    const auto first = std::find_if(looks_.begin(), looks_.end(), [unix_us, id = id](const Look& l) {
      return l.unix_us >= unix_us && l.gpu_ns.count(id) != 0;
    });
    if (first == looks_.end() || first->now_ns >= looks_.back().now_ns) continue;
    const uint64_t length = looks_.back().now_ns - first->now_ns;
    const uint64_t before = first->gpu_ns.at(id), now = looks_.back().gpu_ns.at(id);
    if (now < before) continue;
    unsigned& most = percents[pid];
    most = std::max(most, static_cast<unsigned>((std::min(now - before, length) * 100 + length / 2) / length));
  }
  std::vector<Use> uses;
  for (const auto& [pid, percent] : percents) uses.push_back({pid, percent});
  return uses;
}

}  // namespace vgpud::nvml
