// SPDX-License-Identifier: Apache-2.0
#include "sched/policy.h"

#include <algorithm>

namespace vgpud {
namespace {

VfView Absent(size_t vf) {
  VfView view;
  view.vf = VfId{static_cast<uint32_t>(vf)};
  view.paused = true;
  return view;
}

}  // namespace

std::optional<Policy::Pick> Policy::Next(std::span<const VfView> vfs, TimePoint now) {
  Show(vfs, now);
  return Choose(now);
}

void Policy::Grow(size_t count) {
  while (shown_.size() < count) shown_.push_back(Absent(shown_.size()));
}

void Policy::ShowOne(const VfView& vf, TimePoint now) {
  VfView& known = shown_[Raw(vf.vf)];
  if (known == vf) return;
  known = vf;
  Changed(vf, now);
}

void Policy::Show(std::span<const VfView> vfs, TimePoint now) {
  if (!vfs.empty()) Grow(Raw(vfs.back().vf) + size_t{1});
  size_t next = 0;
  for (const VfView& vf : vfs) {
    for (; next < Raw(vf.vf); ++next) ShowOne(Absent(next), now);
    ShowOne(vf, now);
    next = Raw(vf.vf) + size_t{1};
  }
  for (; next < shown_.size(); ++next) ShowOne(Absent(next), now);
}

void Policy::Forget(VfId vf, TimePoint now) {
  if (Raw(vf) >= shown_.size()) return;
  ShowOne(Absent(Raw(vf)), now);
  Clear(vf);
}

void Policy::Resume(const VfView& vf, Ns debt, uint64_t round, TimePoint now) {
  Grow(Raw(vf.vf) + size_t{1});
  ShowOne(vf, now);
  if (debt > Ns{0}) Owe(vf.vf, debt);
  rounds_before_ += round - std::min(round, this->round());
}

void Policy::TakeOver(const Policy& before, TimePoint now) {
  Grow(before.shown_.size());
  for (const VfView& vf : before.shown_) {
    ShowOne(vf, now);
    if (const Ns debt = before.Debt(vf.vf); debt > Ns{0}) Owe(vf.vf, debt);
  }
  rounds_before_ = before.round() + 1;
}

}  // namespace vgpud
