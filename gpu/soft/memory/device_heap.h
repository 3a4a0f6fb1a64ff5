// SPDX-License-Identifier: Apache-2.0
// The heap that malloc and free of kernels work on: a range of device memory. Its book-keeping is not in that memory,
// so a kernel that writes where it should not cannot break it. Allocate and Free may be called by several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "base/host_memory.h"
#include "base/ids.h"
#include "base/result.h"
#include "gpu/soft/memory/lock_ranks.h"

namespace vgpud::soft {

class PinnedBlocks;
class StateReader;
class StateWriter;

class DeviceHeap {
 public:
  static constexpr uint64_t kDefaultBytes = 8 << 20;
  static constexpr uint64_t kAlignment = 16;
  // Allocations that are alive at once: what a guest may make the host keep about them is bounded.
  static constexpr size_t kMostAllocations = 2'000'000;

  // `host`: what the book-keeping takes; nullptr: without a limit.
  explicit DeviceHeap(HostMemory* host = nullptr) : host_(host) {}
  // The size that the next Give() should have.
  void SetBytes(uint64_t bytes) { wanted_ = bytes; }
  uint64_t wanted_bytes() const { return wanted_; }
  // The memory to hand out. Once.
  void Give(GpuVa address, uint64_t bytes);
  bool ready() const { return bytes_ != 0; }

  // 0: nothing of that size is free, or there is no host memory to keep a record of it. Aligned to `alignment`, a power
  // of two, and to kAlignment.
  uint64_t Allocate(uint64_t bytes, uint64_t alignment = kAlignment);
  // False: `address` is nothing that Allocate returned.
  bool Free(uint64_t address);
  // Is it inside the memory to hand out, whether handed out or not?
  bool Covers(uint64_t address, uint64_t bytes) const {
    return address >= begin_ && bytes <= bytes_ && address - begin_ <= bytes_ - bytes;
  }
  // device_state.cc; Load into a fresh one.
  void Save(StateWriter& out) const;
  void Load(StateReader& in, PinnedBlocks& pinned);

 private:
  void AddFree(uint64_t address, uint64_t bytes) REQUIRES(mutex_);
  void RemoveFree(std::map<uint64_t, uint64_t>::iterator it) REQUIRES(mutex_);

  // What the host keeps about an allocation and the free ranges around it.
  static constexpr uint64_t kPerAllocation = 512;
  HostMemory* const host_;
  mutable Mutex mutex_{lock_rank::kHeap};
  uint64_t wanted_ = kDefaultBytes;
  uint64_t begin_ = 0;
  uint64_t bytes_ = 0;
  std::map<uint64_t, uint64_t> used_ GUARDED_BY(mutex_);  // address -> bytes
  std::map<uint64_t, uint64_t> free_ GUARDED_BY(mutex_);
  std::set<std::pair<uint64_t, uint64_t>> by_size_ GUARDED_BY(mutex_);  // of free_: bytes, address
};

}  // namespace vgpud::soft
