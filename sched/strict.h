// Policy `strict`: round robin in VF order with a fixed slice per VF (VfView::slice, or base slice x weight / 100).
// The end of a slice is forced. Every nanosecond over the slice is debt, repaid in full from the VF's next slices: they
// are shorter by it, and a VF that owes a whole slice or more is passed over and owes a slice less. A VF without work
// is passed over and earns nothing by it; one that runs out of work gives up the rest of its turn. Work conserving: a
// runnable VF is always found if there is one.
#pragma once

#include <vector>

#include "sched/policy.h"

namespace vgpud {

class StrictPolicy final : public Policy {
 public:
  static constexpr Ns kMinSlice{100'000};
  explicit StrictPolicy(Ns base_slice);

  std::optional<Pick> Next(std::span<const VfView> vfs, TimePoint now) override;
  void Ended(const Pick& pick, Ns used, TimePoint now) override;
  void Forget(VfId vf) override;
  Ns FullSlice(const VfView& vf) const override;
  Ns Debt(VfId vf) const override;
  bool YieldsWhenIdle() const override { return true; }
  uint64_t round() const override { return round_; }

 private:
  std::optional<Pick> OneTurnOfTheWheel(std::span<const VfView> vfs, size_t start, bool* somebody_runnable);
  void RepayWholeRounds(std::span<const VfView> vfs);
  Ns& DebtOf(VfId vf);

  Ns base_slice_;
  std::vector<Ns> debt_;     // by VF number
  uint64_t after_last_ = 0;  // VF number behind the last one that had its turn
  uint64_t round_ = 0;
};

}  // namespace vgpud
