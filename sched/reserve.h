// SPDX-License-Identifier: Apache-2.0
// Policy `reserve`: a guaranteed fraction of the GPU per VF, a limit, and the rest by weight.
//
// Guarantee g: while the VF has work it is owed g of the passing time. The VF that is owed a slice and whose next one
// is due first (passed time x g) goes first, whatever its priority class. What could not be kept within kWindow is
// dropped, an idle VF is owed nothing.
// Rest: as `strict` with idle = yield, among the VFs below their limit.
// Limit l: a token bucket, filled at rate l, that holds one slice and `burst`. A turn begins only when the bucket
// holds its slice, so no interval T gives a VF more than l x T + slice + burst + its overrun.
// A new guarantee or limit counts at once: what was received ahead of the old guarantee, and what the bucket holds,
// stay the same GPU time.
// An overrun is taken from the VF's guarantee or, in a turn of the rest, is debt; it always counts under the limit.
//
// Work conserving but for VFs at their limit: when only such VFs have work the GPU idles until Wake().
#pragma once

#include <vector>

#include "sched/alarms.h"
#include "sched/earliest.h"
#include "sched/policy.h"
#include "sched/rotation.h"
#include "sched/shares.h"

namespace vgpud {

class ReservePolicy final : public Policy {
 public:
  static constexpr Ns kWindow{100'000'000};  // and the longest slice that a VF of now has had, see longest_
  explicit ReservePolicy(const PolicyOptions& options);

  std::optional<Pick> Choose(TimePoint now) override;
  void Ended(const Pick& pick, Ns used, TimePoint now) override;
  void SetOptions(const PolicyOptions& options, TimePoint now) override;
  const PolicyOptions& options() const override { return options_; }
  Ns BaseSlice() const override { return rotation_.BaseSlice(); }
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
  // Neither goes beyond the ends of time. `by` is not negative.
  static TimePoint After(TimePoint from, Ns by) { return TimePoint::max() - by < from ? TimePoint::max() : from + by; }
  static TimePoint Before(TimePoint from, Ns by) { return TimePoint::min() + by > from ? TimePoint::min() : from - by; }
  struct Book {
    TimePoint guaranteed = TimePoint::min();  // up to here the guarantee is kept: grows by used / guarantee
    TimePoint limited = TimePoint::min();     // the bucket has been filling since then: grows by used / limit
    // What follows from the view and the base slice:
    Ns base{-1};   // the base slice that the rest is for
    Ns slice{0};   // the full one
    Ns period{0};  // slice / guarantee
    Ns refill{0};  // slice / limit
    Ns depth{0};   // (slice + burst) / limit
    uint32_t guarantee = 0;
    uint32_t limit = kWhole;
    // The last ones that were set, which `guaranteed` and `limited` are in units of; 0: none yet.
    uint32_t guaranteed_at = 0;
    uint32_t limited_at = 0;
    Ns longest{0};  // slice since the options, its weight or its fixed slice were set
    uint32_t weight = kDefaultWeight;
    Ns fixed{0};
    bool ready = false;
    bool in_rotation = false;  // as rotation_ was told last
    bool untold = false;       // in untold_
    TimePoint may_run() const { return limit < kWhole ? After(limited, refill) : TimePoint::min(); }
  };

  Book& Priced(uint32_t vf) {
    Book& book = books_[vf];
    if (book.base != rotation_.BaseSlice()) Price(vf);
    return book;
  }
  void Price(uint32_t vf);
  static void Rescale(Book& book, const VfView& vf, TimePoint now);
  void DropLongest(Book& book);
  void Enter(uint32_t vf, TimePoint now);
  void Tell(uint32_t vf, TimePoint now);
  static Ns Held(const Book& book, Ns slice, TimePoint now);
  void Grow(uint32_t count);

  PolicyOptions options_;
  Rotation rotation_;
  mutable ShareScratch scratch_;
  std::vector<Book> books_;  // by VF number
  // A VF with work and a guarantee is in one of them.
  Earliest due_;   // owed a slice, by when it is due
  Alarms unowed_;  // until it is owed one and its bucket holds it
  // Only a turn of the rest asks who is below the limit: rotation_ is told just before.
  std::vector<uint32_t> untold_;  // those that may have to leave it
  Alarms refilling_;              // those that left it, until their bucket holds a slice
  Ns longest_{0};                 // of all books
  bool open_guaranteed_ = false;
};

}  // namespace vgpud
