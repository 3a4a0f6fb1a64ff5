#include "sched/reserve.h"

#include <algorithm>

#include "sched/shares.h"

namespace vgpud {
namespace {

__extension__ using Wide = __int128;

// `from` + `used` / (`rate` of kWhole), at most the end of time; a rate of 0 has no other end.
constexpr int64_t kFast = int64_t{1} << 62;  // nothing below it overflows

TimePoint After(TimePoint from, Ns used, uint32_t rate) {
  if (rate == 0) return TimePoint::max();
  if (used < Ns{kFast / kWhole} && from < TimePoint{Ns{kFast}}) return from + used * int64_t{kWhole} / int64_t{rate};
  const Wide end = Wide{from.time_since_epoch().count()} + Wide{used.count()} * kWhole / rate;
  return TimePoint{Ns{static_cast<int64_t>(std::min<Wide>(end, Ns::max().count()))}};
}
TimePoint Before(TimePoint from, Ns used, uint32_t rate) {
  if (rate == 0) return TimePoint::min();
  if (used < Ns{kFast / kWhole} && from > TimePoint{Ns{0}}) return from - used * int64_t{kWhole} / int64_t{rate};
  const Wide start = Wide{from.time_since_epoch().count()} - Wide{used.count()} * kWhole / rate;
  return TimePoint{Ns{static_cast<int64_t>(std::max<Wide>(start, Ns::min().count()))}};
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
  for (uint32_t vf = 0; vf < shown().size(); ++vf) {
    Leave(vf);
    Enter(vf, now);
  }
}

ReservePolicy::Book& ReservePolicy::At(uint32_t vf) {
  if (vf >= books_.size()) books_.resize(size_t{vf} + 1);
  return books_[vf];
}

ReservePolicy::Queue* ReservePolicy::QueueOf(In in) {
  Queue* const queues[] = {nullptr, &due_, &early_, &capped_};
  return queues[static_cast<size_t>(in)];
}

void ReservePolicy::Put(uint32_t vf, In in, TimePoint key) {
  Book& book = At(vf);
  book.in = in;
  if (spare_.size() < books_.size()) spare_.resize(books_.size());
  Queue::node_type node = std::move(spare_[vf]);
  if (!node) {
    Queue maker;
    maker.insert({key, vf});
    node = maker.extract(maker.begin());
  }
  node.value() = {key, vf};
  book.at = QueueOf(in)->insert(std::move(node)).position;
}

void ReservePolicy::Leave(uint32_t vf) {
  Book& book = At(vf);
  if (book.in == In::kNone) return;
  spare_[vf] = QueueOf(book.in)->extract(book.at);
  book.in = In::kNone;
}

// Into the queue where it belongs now.
void ReservePolicy::Enter(uint32_t vf, TimePoint now) {
  const VfView& view = shown()[vf];
  Book& book = At(vf);
  const Ns slice = FullSlice(view);
  const TimePoint may_run = view.limit < kWhole ? After(book.limited, slice, view.limit) : TimePoint::min();
  const bool in_rotation = book.ready && may_run <= now;
  if (in_rotation != book.in_rotation) rotation_.Set(view, in_rotation);
  book.in_rotation = in_rotation;
  if (!book.ready) return;
  if (may_run > now) return Put(vf, In::kCapped, may_run);
  if (view.guarantee == 0) return;
  book.guaranteed = std::max(book.guaranteed, now - kWindow);
  if (book.guaranteed > now) return Put(vf, In::kEarly, book.guaranteed);
  Put(vf, In::kDue, After(book.guaranteed, slice, view.guarantee));
}

void ReservePolicy::Release(Queue& queue, TimePoint now) {
  while (!queue.empty() && queue.begin()->first <= now) {
    const uint32_t vf = queue.begin()->second;
    Leave(vf);
    Enter(vf, now);
  }
}

void ReservePolicy::Changed(const VfView& vf, TimePoint now) {
  const uint32_t id = Raw(vf.vf);
  Leave(id);
  Book& book = At(id);
  if (vf.runnable && (!book.ready || vf.guarantee == 0)) book.guaranteed = std::max(book.guaranteed, now);
  book.ready = vf.runnable;
  rotation_.Set(vf, book.in_rotation);
  Enter(id, now);
}

void ReservePolicy::Clear(VfId vf) {
  rotation_.Clear(vf);
  Leave(Raw(vf));
  At(Raw(vf)) = Book{};
}

std::optional<Policy::Pick> ReservePolicy::Choose(TimePoint now) {
  Release(capped_, now);
  Release(early_, now);
  open_guaranteed_ = !due_.empty();
  std::optional<Pick> pick;
  if (open_guaranteed_) {
    const uint32_t vf = due_.begin()->second;
    pick = Pick{VfId{vf}, FullSlice(shown()[vf])};
  } else {
    pick = rotation_.Next();
  }
  if (pick) pick->slice = BelowLimit(Raw(pick->vf), pick->slice, now);
  return pick;
}

// Empties what the bucket of `vf` cannot hold, and cuts `slice` to what it holds.
Ns ReservePolicy::BelowLimit(uint32_t vf, Ns slice, TimePoint now) {
  const VfView& view = shown()[vf];
  if (view.limit >= kWhole) return slice;
  Book& book = At(vf);
  book.limited = std::max(book.limited, Before(now, FullSlice(view) + view.burst, view.limit));
  const Wide held = Wide{(now - book.limited).count()} * view.limit / kWhole;
  return std::clamp(slice, Ns{1}, std::max(Ns{1}, Ns{static_cast<int64_t>(held)}));
}

void ReservePolicy::Ended(const Pick& pick, Ns used, TimePoint now) {
  const uint32_t vf = Raw(pick.vf);
  const VfView& view = shown()[vf];
  Book& book = At(vf);
  Leave(vf);
  if (open_guaranteed_)
    book.guaranteed = After(book.guaranteed, used, view.guarantee);
  else
    rotation_.Ended(pick, used);
  if (view.limit < kWhole) book.limited = After(book.limited, used, view.limit);
  Enter(vf, now);
}

TimePoint ReservePolicy::Wake() const { return capped_.empty() ? TimePoint::max() : capped_.begin()->first; }

uint64_t ReservePolicy::Entitled(std::span<const VfView> vfs, std::span<uint64_t> out) const {
  return ReserveShares(vfs, options_, rotation_.BaseSlice(), out);
}

}  // namespace vgpud
