// SPDX-License-Identifier: Apache-2.0
#include "vgpud/history/last_second.h"

#include <algorithm>

namespace vgpud::daemon {
namespace {

constexpr Ns kLength = std::chrono::seconds{1};

// The increase between two readings of a counter; 0 if it began anew.
uint64_t Between(uint64_t before, uint64_t after) { return std::max(before, after) - before; }

}  // namespace

const VfAccount* LastSecond::Seen::Of(uint64_t key) const {
  const auto found = std::ranges::lower_bound(vfs, key, {}, &FairnessWindow::Sample::key);
  return found != vfs.end() && found->key == key ? &found->account : nullptr;
}

void LastSecond::Look(TimePoint now, const GpuUseTimes& gpu, std::span<const FairnessWindow::Sample> vfs) {
  if (!looks_.empty() && now - looks_.back().at > kLength) looks_.clear();
  looks_.push_back({now, gpu, {vfs.begin(), vfs.end()}});
  std::ranges::sort(looks_.back().vfs, {}, &FairnessWindow::Sample::key);
  while (looks_.size() > 1 && now - looks_[1].at >= kLength) looks_.pop_front();
}

GpuRecent LastSecond::OfGpu() const {
  if (looks_.empty()) return {};
  const Seen &from = looks_.front(), &to = looks_.back();
  return {ToNs(to.at) - ToNs(from.at),
          {Between(from.gpu.run_ns, to.gpu.run_ns), Between(from.gpu.switch_ns, to.gpu.switch_ns),
           Between(from.gpu.idle_ns, to.gpu.idle_ns), Between(from.gpu.stall_ns, to.gpu.stall_ns)}};
}

VfRecent LastSecond::Of(uint64_t key) const {
  const VfAccount* const after = looks_.empty() ? nullptr : looks_.back().Of(key);
  if (after == nullptr) return {};
  const auto from =
      std::find_if(looks_.begin(), looks_.end(), [&](const Seen& seen) { return seen.Of(key) != nullptr; });
  const VfAccount& before = *from->Of(key);
  VfRecent recent{ToNs(looks_.back().at) - ToNs(from->at), {}};
  for (const AccountStatistic& row : kAccountStatistics)
    if (!row.about.gauge) recent.account.*row.value = Between(before.*row.value, after->*row.value);
  return recent;
}

}  // namespace vgpud::daemon
