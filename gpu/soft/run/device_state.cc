// SPDX-License-Identifier: Apache-2.0
// The small parts of a context, written out and read back.
#include "gpu/soft/run/device_state.h"

#include <time.h>

#include "gpu/soft/memory/pinned_blocks.h"
#include "gpu/soft/state/state_stream.h"

namespace vgpud::soft {

void PrintBuffer::Save(StateWriter& out) const {
  MutexLock lock(mutex_);
  out.Put<uint64_t>(capacity_);
  out.Put<uint64_t>(texts_.size());
  for (const Text& t : texts_) {
    out.Put<uint8_t>(t.to_stderr);
    out.PutText(t.text);
  }
}

void PrintBuffer::Load(StateReader& in) {
  const auto capacity = in.GetUpTo<size_t>(kMostCapacity, "print capacity");
  SetCapacity(capacity);
  const auto count = in.GetUpTo<uint64_t>(capacity, "number of printed texts");
  for (uint64_t n = 0; n < count && in.ok(); ++n) {
    const bool to_stderr = in.GetBool("kind of a printed text");
    Append(to_stderr, in.GetText(kMostCapacity, "length of a printed text"));
  }
}

void DeviceHeap::Save(StateWriter& out) const {
  MutexLock lock(mutex_);
  out.Put(wanted_);
  out.Put(bytes_);
  if (!ready()) return;
  out.Put(begin_);
  out.Put<uint64_t>(used_.size());
  for (const auto& [address, bytes] : used_) {
    out.Put(address - begin_);
    out.Put(bytes);
  }
}

void DeviceHeap::Load(StateReader& in, PinnedBlocks& pinned) {
  MutexLock lock(mutex_);
  wanted_ = in.Get<uint64_t>();
  bytes_ = in.Get<uint64_t>();
  if (!ready()) return;
  begin_ = in.Get<uint64_t>();
  if (in.ok() && !pinned.Take(GpuVa{begin_}, bytes_)) in.Bad("heap", begin_);
  const auto count = in.GetUpTo<uint64_t>(kMostAllocations, "number of heap allocations");
  uint64_t end = 0;
  for (uint64_t n = 0; n < count && in.ok(); ++n) {
    const auto at = in.GetUpTo<uint64_t>(bytes_, "place of a heap allocation");
    const auto bytes = in.GetUpTo<uint64_t>(bytes_ - at, "size of a heap allocation");
    if (at < end || at % kAlignment != 0 || bytes % kAlignment != 0 || bytes == 0) in.Bad("heap allocation", at);
    if (!in.ok()) return;
    if (at != end) AddFree(begin_ + end, at - end);
    used_[begin_ + at] = bytes;
    end = at + bytes;
  }
  if (end != bytes_) AddFree(begin_ + end, bytes_ - end);
}

uint64_t DeviceState::Clock() const {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec) + clock_shift_ns;
}

}  // namespace vgpud::soft
