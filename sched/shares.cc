// SPDX-License-Identifier: Apache-2.0
#include "sched/shares.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <vector>

#include "sched/wheel.h"

namespace vgpud {
namespace {

struct ClassSum {
  double slices = 0;                        // of its groups with members, and of its VFs without a group
  std::array<double, kMaxGroups> groups{};  // slices of the members
};

class Tree {
 public:
  Tree(std::span<const VfView> vfs, const PolicyOptions& options, Ns base_slice)
      : options_(options), base_slice_(base_slice) {
    for (const VfView& vf : vfs) {
      if (!TakesPart(vf)) continue;
      ClassSum& c = classes_[vf.priority];
      any_[vf.priority] = true;
      if (vf.group == kNoGroup)
        c.slices += Slice(vf);
      else
        c.groups[vf.group] += Slice(vf);
    }
    for (ClassSum& c : classes_)
      for (uint8_t g = 0; g < kMaxGroups; ++g)
        if (c.groups[g] > 0) c.slices += GroupSlice(g);
  }

  bool TakesPart(const VfView& vf) const { return options_.idle == WhenIdle::kHold ? !vf.paused : vf.runnable; }
  double Slice(const VfView& vf) const {
    return static_cast<double>(Wheel::Slice(vf.weight, vf.slice, base_slice_).count());
  }
  // Of the whole.
  double Share(const VfView& vf) const {
    if (!TakesPart(vf)) return 0;
    const ClassSum& c = classes_[vf.priority];
    const double of_class = ClassShare(vf.priority) / c.slices;
    if (vf.group == kNoGroup) return of_class * Slice(vf);
    return of_class * GroupSlice(vf.group) * Slice(vf) / c.groups[vf.group];
  }

 private:
  double GroupSlice(uint8_t group) const {
    return static_cast<double>(Wheel::Slice(options_.group_weights[group], Ns{0}, base_slice_).count());
  }
  double ClassShare(uint8_t priority) const {
    const double floor = options_.floor_percent / 100.0;
    if (std::count(any_.begin() + priority + 1, any_.end(), true) > 0) return floor;
    return 1 - floor * static_cast<double>(std::count(any_.begin(), any_.begin() + priority, true));
  }

  const PolicyOptions& options_;
  const Ns base_slice_;
  std::array<ClassSum, kPriorities> classes_{};
  std::array<bool, kPriorities> any_{};
};

}  // namespace

uint64_t TreeShares(std::span<const VfView> vfs, const PolicyOptions& options, Ns base_slice, std::span<uint64_t> out) {
  const auto takes_part = [&](const VfView& vf) { return options.idle == WhenIdle::kHold ? !vf.paused : vf.runnable; };
  bool flat = true;
  std::optional<uint8_t> only;
  for (size_t i = 0; i < vfs.size() && flat; ++i) {
    out[i] = 0;
    if (!takes_part(vfs[i])) continue;
    flat = vfs[i].group == kNoGroup && only.value_or(vfs[i].priority) == vfs[i].priority;
    only = vfs[i].priority;
    out[i] = static_cast<uint64_t>(Wheel::Slice(vfs[i].weight, vfs[i].slice, base_slice).count());
  }
  if (flat) return std::accumulate(out.begin(), out.end(), uint64_t{0});
  const Tree tree(vfs, options, base_slice);
  for (size_t i = 0; i < vfs.size(); ++i)
    out[i] = static_cast<uint64_t>(tree.Share(vfs[i]) * static_cast<double>(kShareWhole));
  return std::accumulate(out.begin(), out.end(), uint64_t{0});
}

uint64_t ReserveShares(std::span<const VfView> vfs, const PolicyOptions& options, Ns base_slice,
                       std::span<uint64_t> out, ShareScratch& scratch) {
  const auto whole = static_cast<double>(kShareWhole);
  const auto parts = [&](uint32_t of_whole) { return whole * of_whole / kWhole; };
  auto& [open, tree, share] = scratch;
  open.assign(vfs.begin(), vfs.end());
  tree.resize(vfs.size());
  share.assign(vfs.size(), 0);
  double rest = whole;
  for (size_t i = 0; i < vfs.size(); ++i) {
    if (!vfs[i].runnable) continue;
    share[i] = parts(std::min(vfs[i].guarantee, vfs[i].limit));
    rest -= share[i];
  }
  // Each pass hands out what is left; VFs that reach their limit give the surplus to the next pass.
  for (bool again = true; again && rest > 0;) {
    again = false;
    const auto all = static_cast<double>(TreeShares(open, options, base_slice, tree));
    if (all == 0) break;
    const double given = rest;
    for (size_t i = 0; i < vfs.size(); ++i) {
      const double more = given * static_cast<double>(tree[i]) / all;
      const double room = parts(vfs[i].limit) - share[i];
      if (tree[i] != 0 && more >= room && vfs[i].limit < kWhole) {
        open[i].runnable = false;
        again = true;
      }
      const double takes = std::min(more, std::max(0.0, room));
      share[i] += takes;
      rest -= takes;
    }
  }
  bool anybody = false;
  for (size_t i = 0; i < vfs.size(); ++i) {
    out[i] = static_cast<uint64_t>(std::max(0.0, share[i]));
    anybody = anybody || vfs[i].runnable;
  }
  return anybody ? kShareWhole : 0;
}

}  // namespace vgpud
