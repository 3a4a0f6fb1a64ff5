// SPDX-License-Identifier: Apache-2.0
#include "sched/trace.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace vgpud {
namespace {

constexpr std::string_view kNames[] = {"slice end", "yield", "revoke", "hang"};

TimePoint FromNs(uint64_t ns) { return TimePoint{Ns{static_cast<int64_t>(ns)}}; }

}  // namespace

std::string_view TurnEndName(TurnEnd reason) {
  const auto i = static_cast<size_t>(reason);
  return i < std::size(kNames) ? kNames[i] : "unknown";
}

SliceTrace::SliceTrace(size_t capacity)
    : mask_(std::bit_ceil(std::max<size_t>(capacity, 1)) - 1), entries_(std::make_unique<Entry[]>(mask_ + 1)) {}

void SliceTrace::Append(const SliceRecord& record) {
  const uint64_t sequence = appended_.load(std::memory_order_relaxed);
  Entry& e = entries_[sequence & mask_];
  e.stamp.store(2 * sequence + 1, std::memory_order_relaxed);
  e.vf_and_reason.store(uint64_t{Raw(record.vf)} << 8 | static_cast<uint64_t>(record.reason),
                        std::memory_order_release);
  e.start.store(ToNs(record.start), std::memory_order_release);
  e.end.store(ToNs(record.end), std::memory_order_release);
  e.switch_time.store(static_cast<uint64_t>(record.switch_time.count()), std::memory_order_release);
  e.host_delay.store(static_cast<uint64_t>(record.host_delay.count()), std::memory_order_release);
  e.thought.store(static_cast<uint64_t>(record.thought.count()), std::memory_order_release);
  e.waited.store(static_cast<uint64_t>(record.waited.count()), std::memory_order_release);
  e.round.store(record.round, std::memory_order_release);
  e.stamp.store(2 * sequence + 2, std::memory_order_release);
  appended_.store(sequence + 1, std::memory_order_release);
}

bool SliceTrace::Read(uint64_t sequence, SliceRecord* record) const {
  const Entry& e = entries_[sequence & mask_];
  if (e.stamp.load(std::memory_order_acquire) != 2 * sequence + 2) return false;
  const uint64_t vf_and_reason = e.vf_and_reason.load(std::memory_order_acquire);
  SliceRecord read;
  read.sequence = sequence;
  read.vf = VfId{static_cast<uint32_t>(vf_and_reason >> 8)};
  read.reason = static_cast<TurnEnd>(vf_and_reason & 0xff);
  read.start = FromNs(e.start.load(std::memory_order_acquire));
  read.end = FromNs(e.end.load(std::memory_order_acquire));
  read.switch_time = Ns{static_cast<int64_t>(e.switch_time.load(std::memory_order_acquire))};
  read.host_delay = Ns{static_cast<int64_t>(e.host_delay.load(std::memory_order_acquire))};
  read.thought = Ns{static_cast<int64_t>(e.thought.load(std::memory_order_acquire))};
  read.waited = Ns{static_cast<int64_t>(e.waited.load(std::memory_order_acquire))};
  read.round = e.round.load(std::memory_order_acquire);
  if (e.stamp.load(std::memory_order_relaxed) != 2 * sequence + 2) return false;
  *record = read;
  return true;
}

SliceTrace::Reader::Reader(const SliceTrace& trace) : trace_(&trace) {
  const uint64_t appended = trace.appended();
  next_ = appended - std::min<uint64_t>(appended, trace.capacity());
}

bool SliceTrace::Reader::Next(SliceRecord* record) {
  for (;;) {
    const uint64_t appended = trace_->appended();
    if (next_ == appended) return false;
    if (appended - next_ > trace_->capacity()) {
      const uint64_t oldest = appended - trace_->capacity();
      lost_ += oldest - next_;
      next_ = oldest;
    }
    if (trace_->Read(next_++, record)) return true;
    ++lost_;  // overwritten while it was read
  }
}

}  // namespace vgpud
