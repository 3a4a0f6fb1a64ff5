// SPDX-License-Identifier: Apache-2.0
// Policy `strict`: round robin in VF order with a fixed slice per VF (VfView::slice, or base slice x weight / 100),
// ended by force. Every nanosecond over the slice is debt, repaid from the VF's next slices (sched/wheel.h), also
// after idle times. Unused time is no credit. Priority classes and groups as in sched/rotation.h.
//
// idle = yield: a VF without work is passed over, one that runs out of work gives up the rest of its turn. Work
// conserving: a runnable VF is always found if there is one.
// idle = hold: every VF that is not paused has its turn, with or without work, so that no VF can see in its own turns
// what the others do. Not work conserving.
#pragma once

#include "sched/policy.h"
#include "sched/rotation.h"

namespace vgpud {

class StrictPolicy : public Policy {
 public:
  explicit StrictPolicy(Ns base_slice);
  explicit StrictPolicy(const PolicyOptions& options);

  std::optional<Pick> Choose(TimePoint now) override;
  void Ended(const Pick& pick, Ns used, TimePoint now) override;
  void SetOptions(const PolicyOptions& options, TimePoint now) override;
  const PolicyOptions& options() const override { return options_; }
  Ns BaseSlice() const override { return rotation_.BaseSlice(); }
  Ns FullSlice(const VfView& vf) const override;
  uint64_t Entitled(std::span<const VfView> vfs, std::span<uint64_t> out) const override;
  Ns Debt(VfId vf) const override;
  // nullopt: with groups, or beside a more important class.
  std::optional<Ns> WakeBound(std::span<const VfView> vfs, VfId vf) const override;
  bool YieldsWhenIdle() const override { return options_.idle == WhenIdle::kYield; }
  bool NeverIdles() const override { return YieldsWhenIdle(); }

 protected:
  void Changed(const VfView& vf, TimePoint now) override;
  void Clear(VfId vf) override;
  void Owe(VfId vf, Ns debt) override;
  uint64_t Rounds() const override { return rotation_.round(); }

 private:
  PolicyOptions options_;
  Rotation rotation_;
};

}  // namespace vgpud
