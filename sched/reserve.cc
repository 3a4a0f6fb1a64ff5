// SPDX-License-Identifier: Apache-2.0
#include "sched/reserve.h"

#include <algorithm>
#include <utility>

namespace vgpud {
namespace {

__extension__ using Wide = __int128;

// The time in which `used` is earned at `rate` of kWhole; a rate of 0 takes until the end of time.
enum class Round { kDown, kUp };
template <Round round>
Ns Earning(Ns used, uint32_t rate) {
  if (rate == 0) return Ns::max();
  const int64_t up = round == Round::kUp ? int64_t{rate} - 1 : 0;
  constexpr Ns kFast{(Ns::max().count() - kWhole) / kWhole};  // nothing up to it overflows
  if (used <= kFast) return (used * int64_t{kWhole} + Ns{up}) / int64_t{rate};
  const Wide time = (Wide{used.count()} * kWhole + up) / rate;
  return Ns{static_cast<int64_t>(std::min<Wide>(time, Ns::max().count()))};
}

// A time in which something is earned at rate `old`, at rate `rate`.
template <Round round>
Ns AtRate(Ns time, uint32_t old, uint32_t rate) {
  const Wide up = round == Round::kUp ? Wide{rate} - 1 : Wide{0};
  return Ns{static_cast<int64_t>(std::min<Wide>((Wide{time.count()} * old + up) / rate, Ns::max().count()))};
}

}  // namespace

ReservePolicy::ReservePolicy(const PolicyOptions& options) : options_(options) {
  options_.idle = WhenIdle::kYield;
  rotation_.SetOptions(options_);
}

void ReservePolicy::SetOptions(const PolicyOptions& options, TimePoint now) {
  options_ = options;
  options_.idle = WhenIdle::kYield;
  rotation_.SetOptions(options_);
  longest_ = Ns{0};
  for (Book& book : books_) book.longest = Ns{0};
  for (uint32_t vf = 0; vf < books_.size(); ++vf) {
    Enter(vf, now);
    Tell(vf, now);
  }
}

// A guarantee is rounded in favour of the VF and a limit against it, a nanosecond per turn at most.
void ReservePolicy::Price(uint32_t vf) {
  Book& book = books_[vf];
  const VfView& view = shown()[vf];
  book.base = rotation_.BaseSlice();
  book.slice = FullSlice(view);
  book.period = Earning<Round::kDown>(book.slice, view.guarantee);
  book.refill = Earning<Round::kUp>(book.slice, view.limit);
  book.depth = Earning<Round::kUp>(book.slice + view.burst, view.limit);
  book.guarantee = view.guarantee;
  book.limit = view.limit;
}

// A VF that is not shown for a while has neither, which is not a change of what its books are in units of.
void ReservePolicy::Rescale(Book& book, const VfView& vf, TimePoint now) {
  if (vf.guarantee > 0) {
    const uint32_t old = std::exchange(book.guaranteed_at, vf.guarantee);
    if (old != 0 && old != vf.guarantee && book.guaranteed > now)
      book.guaranteed = After(now, AtRate<Round::kDown>(book.guaranteed - now, old, vf.guarantee));
  }
  if (vf.limit == book.limit) return;
  if (book.limit < kWhole) book.limited = std::max(book.limited, Before(now, book.depth));
  if (vf.limit >= kWhole || vf.limit == 0) return;
  const uint32_t old = std::exchange(book.limited_at, vf.limit);
  if (old == 0 || old == vf.limit) return;
  if (book.limited > now)
    book.limited = After(now, AtRate<Round::kUp>(book.limited - now, old, vf.limit));
  else
    book.limited = Before(now, AtRate<Round::kDown>(now - book.limited, old, vf.limit));
}

void ReservePolicy::DropLongest(Book& book) {
  if (std::exchange(book.longest, Ns{0}) < longest_) return;
  longest_ = Ns{0};
  for (const Book& other : books_) longest_ = std::max(longest_, other.longest);
}

// Into the queue where it belongs now.
void ReservePolicy::Enter(uint32_t vf, TimePoint now) {
  Book& book = Priced(vf);
  const TimePoint may_run = book.may_run();
  if (may_run > now && book.in_rotation && !book.untold) {
    book.untold = true;
    untold_.push_back(vf);
  }
  if (!book.ready || book.guarantee == 0) {
    due_.Remove(vf);
    unowed_.Remove(vf);
    return;
  }
  book.guaranteed = std::max(book.guaranteed, now - kWindow - longest_);
  const TimePoint owed = std::max(book.guaranteed, may_run);
  if (owed <= now) {
    unowed_.Remove(vf);
    due_.Set(vf, After(book.guaranteed, book.period));
  } else {
    due_.Remove(vf);
    unowed_.Set(vf, owed);
  }
}

// Whether it is in the rotation now.
void ReservePolicy::Tell(uint32_t vf, TimePoint now) {
  Book& book = books_[vf];
  const TimePoint may_run = book.may_run();
  const bool below = may_run <= now;
  const bool in_rotation = book.ready && below;
  if (in_rotation != book.in_rotation) rotation_.SetReady(VfId{vf}, in_rotation);
  book.in_rotation = in_rotation;
  if (book.ready && !below)
    refilling_.Set(vf, may_run);
  else
    refilling_.Remove(vf);
}

void ReservePolicy::Grow(uint32_t count) {
  books_.resize(count);
  due_.Grow(count);
  unowed_.Grow(count);
  refilling_.Grow(count);
  untold_.reserve(books_.capacity());
}

void ReservePolicy::Changed(const VfView& vf, TimePoint now) {
  const uint32_t id = Raw(vf.vf);
  if (id >= books_.size()) Grow(id + 1);
  Book& book = books_[id];
  if (vf.runnable && (!book.ready || vf.guarantee == 0)) book.guaranteed = std::max(book.guaranteed, now);
  book.ready = vf.runnable;
  book.base = Ns{-1};
  Rescale(book, vf, now);
  if (book.weight != vf.weight || book.fixed != vf.slice) DropLongest(book);
  book.weight = vf.weight;
  book.fixed = vf.slice;
  rotation_.Set(vf, book.in_rotation);
  Enter(id, now);
  Tell(id, now);
}

void ReservePolicy::Clear(VfId vf) {
  rotation_.Clear(vf);
  const uint32_t id = Raw(vf);
  if (id >= books_.size()) return;
  due_.Remove(id);
  unowed_.Remove(id);
  refilling_.Remove(id);
  Book& book = books_[id];
  DropLongest(book);
  const bool untold = book.untold;
  book = Book{};
  book.untold = untold;
}

std::optional<Policy::Pick> ReservePolicy::Choose(TimePoint now) {
  unowed_.Ring(now, [&](uint32_t vf) { Enter(vf, now); });
  open_guaranteed_ = !due_.empty();
  std::optional<Pick> pick;
  if (open_guaranteed_) {
    const uint32_t vf = due_.first();
    pick = Pick{VfId{vf}, Priced(vf).slice};
  } else {
    refilling_.Ring(now, [&](uint32_t vf) { Tell(vf, now); });
    for (const uint32_t vf : untold_) {
      books_[vf].untold = false;
      Tell(vf, now);
    }
    untold_.clear();
    pick = rotation_.Next();
  }
  if (!pick) return pick;
  Book& book = Priced(Raw(pick->vf));
  book.longest = std::max(book.longest, pick->slice);
  longest_ = std::max(longest_, pick->slice);
  if (book.limit >= kWhole) return pick;
  book.limited = std::max(book.limited, Before(now, book.depth));
  if (pick->slice > book.slice || book.may_run() > now) pick->slice = Held(book, pick->slice, now);
  return pick;
}

// `slice`, cut to what the bucket holds.
Ns ReservePolicy::Held(const Book& book, Ns slice, TimePoint now) {
  const Wide held = Wide{(now - book.limited).count()} * book.limit / kWhole;
  return std::clamp(slice, Ns{1}, std::max(Ns{1}, Ns{static_cast<int64_t>(held)}));
}

void ReservePolicy::Ended(const Pick& pick, Ns used, TimePoint now) {
  const uint32_t vf = Raw(pick.vf);
  Book& book = books_[vf];
  if (open_guaranteed_ && book.guarantee > 0)
    book.guaranteed = After(book.guaranteed, Earning<Round::kDown>(used, book.guarantee));
  else if (!open_guaranteed_)
    rotation_.Ended(pick, used);
  if (book.limit < kWhole) book.limited = After(book.limited, Earning<Round::kUp>(used, book.limit));
  Enter(vf, now);
}

TimePoint ReservePolicy::Wake() const { return refilling_.Earliest(); }

uint64_t ReservePolicy::Entitled(std::span<const VfView> vfs, std::span<uint64_t> out) const {
  return ReserveShares(vfs, options_, rotation_.BaseSlice(), out, scratch_);
}

}  // namespace vgpud
