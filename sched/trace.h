// SPDX-License-Identifier: Apache-2.0
// What the GPU did, turn by turn: a ring of fixed size that always holds the latest records. Lock-free: one thread
// appends, any number of readers follow at their own pace without slowing it. A reader that was overtaken knows how
// many records it lost. No clock, no I/O.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "sched/types.h"

namespace vgpud {

// Why a turn ended.
enum class TurnEnd : uint8_t {
  kSliceEnd,  // its time was over
  kYield,     // it had no work left
  kRevoke,    // the operator took the GPU back
  kHang,      // it did not leave the GPU and was reset
};
std::string_view TurnEndName(TurnEnd reason);

// One turn of one VF, from the moment it was let run to its last acknowledgement.
struct SliceRecord {
  uint64_t sequence = 0;  // from 0 without gaps; given by SliceTrace
  VfId vf{};
  TurnEnd reason = TurnEnd::kSliceEnd;
  TimePoint start{};
  TimePoint end{};
  Ns switch_time{0};   // the world switch that led to this turn; it ended at `start`
  Ns host_delay{0};    // by which the host made it end later; not charged
  Ns thought{0};       // since the VF's turn before: without work ...
  Ns waited{0};        // ... and with work, for others, switches, a host without a core, or its limit
  uint64_t round = 0;  // of the policy
  bool operator==(const SliceRecord&) const = default;
};

class SliceTrace {
 public:
  // Keeps the last `capacity` records, rounded up to a power of two; 72 bytes each.
  explicit SliceTrace(size_t capacity);

  // Appends `record`; its `sequence` is ignored. One thread only. Never waits, never fails: the oldest record goes.
  void Append(const SliceRecord& record);
  // Records appended so far. Any thread.
  uint64_t appended() const { return appended_.load(std::memory_order_acquire); }
  size_t capacity() const { return mask_ + 1; }

  // Reads in the order of appending, from the oldest record that the ring holds when the reader is made. Used by one
  // thread at a time; must not outlive the trace.
  class Reader {
   public:
    explicit Reader(const SliceTrace& trace);
    // The next record; false when the reader has seen all of them.
    bool Next(SliceRecord* record);
    // Records that were overwritten before this reader came to them. Grows only.
    uint64_t lost() const { return lost_; }

   private:
    const SliceTrace* trace_;
    uint64_t next_;
    uint64_t lost_ = 0;
  };

 private:
  // A seqlock of its own: `stamp` is 2n + 1 while record n is written and 2n + 2 once it stands, 0 before. The words
  // are stored with release and loaded with acquire, so that who reads a word of record n sees a stamp of at least 2n
  // + 1.
  struct Entry {
    std::atomic<uint64_t> stamp;
    std::atomic<uint64_t> vf_and_reason;
    std::atomic<uint64_t> start;
    std::atomic<uint64_t> end;
    std::atomic<uint64_t> switch_time;
    std::atomic<uint64_t> host_delay;
    std::atomic<uint64_t> thought;
    std::atomic<uint64_t> waited;
    std::atomic<uint64_t> round;
  };
  bool Read(uint64_t sequence, SliceRecord* record) const;

  const size_t mask_;
  const std::unique_ptr<Entry[]> entries_;
  std::atomic<uint64_t> appended_{0};
};

}  // namespace vgpud
