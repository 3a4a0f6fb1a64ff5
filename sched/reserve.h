// Policy `reserve`: a guaranteed fraction of the GPU per VF, a limit, and the rest by weight.
//
// Guarantee g: while the VF has work it is owed g of the passing time. The VF that is owed a slice and whose next one
// is due first (passed time x g) goes first, whatever its priority class. What could not be kept within kWindow is
// dropped, an idle VF is owed nothing.
// Rest: as `strict` with idle = yield, among the VFs below their limit.
// Limit l: a token bucket, filled at rate l, that holds one slice and `burst`. A turn begins only when the bucket
// holds its slice, so no interval T gives a VF more than l x T + slice + burst + its overrun.
// An overrun is taken from the VF's guarantee or, in a turn of the rest, is debt; it always counts under the limit.
//
// Work conserving but for VFs at their limit: when only such VFs have work the GPU idles until Wake().
#pragma once

#include <set>
#include <utility>

#include "sched/policy.h"
#include "sched/rotation.h"

namespace vgpud {

class ReservePolicy final : public Policy {
 public:
  static constexpr Ns kWindow{100'000'000};
  explicit ReservePolicy(const PolicyOptions& options);

  std::optional<Pick> Choose(TimePoint now) override;
  void Ended(const Pick& pick, Ns used, TimePoint now) override;
  void SetOptions(const PolicyOptions& options, TimePoint now) override;
  Ns FullSlice(const VfView& vf) const override { return rotation_.FullSlice(vf); }
  uint64_t Entitled(std::span<const VfView> vfs, std::span<uint64_t> out) const override;
  // Of turns of the rest. An overrun in a turn of the guarantee is no debt here: the next such turn comes later.
  Ns Debt(VfId vf) const override { return rotation_.Debt(vf); }
  bool YieldsWhenIdle() const override { return true; }
  TimePoint Wake() const override;

 protected:
  void Changed(const VfView& vf, TimePoint now) override;
  void Clear(VfId vf) override;
  void Owe(VfId vf, Ns debt) override { rotation_.Owe(vf, debt); }
  uint64_t Rounds() const override { return rotation_.round(); }

 private:
  enum class In : uint8_t { kNone, kDue, kEarly, kCapped };
  using Queue = std::set<std::pair<TimePoint, uint32_t>>;
  struct Book {
    TimePoint guaranteed = TimePoint::min();  // up to here the guarantee is kept: grows by used / guarantee
    TimePoint limited = TimePoint::min();     // the bucket has been filling since then: grows by used / limit
    Queue::iterator at{};                     // unless in == kNone
    In in = In::kNone;
    bool ready = false;
    bool in_rotation = false;
  };

  Book& At(uint32_t vf);
  Queue* QueueOf(In in);
  void Put(uint32_t vf, In in, TimePoint key);
  void Leave(uint32_t vf);
  void Enter(uint32_t vf, TimePoint now);
  void Release(Queue& queue, TimePoint now);
  Ns BelowLimit(uint32_t vf, Ns slice, TimePoint now);

  PolicyOptions options_;
  Rotation rotation_;
  std::vector<Book> books_;  // by VF number
  // Nodes are moved between them, never allocated in a decision.
  Queue due_;                            // owed a slice, by when it is due
  Queue early_;                          // not owed one yet, by when it will be
  Queue capped_;                         // by when its bucket holds a slice
  std::vector<Queue::node_type> spare_;  // of VFs in no queue, by VF number
  bool open_guaranteed_ = false;
};

}  // namespace vgpud
