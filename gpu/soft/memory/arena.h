// SPDX-License-Identifier: Apache-2.0
// Device memory: one reserved range, an allocator over it, and the 2 MiB page map that kernel accesses are checked by.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/guarded_memory.h"
#include "gpu/gpu.h"

namespace vgpud::soft {

class StateReader;
class StateWriter;

class Arena {
 public:
  // Reserves `bytes` (rounded up to 2 MiB) of address space between inaccessible pages; memory is taken from the host
  // page by page when touched.
  explicit Arena(uint64_t bytes);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  static constexpr uint64_t kGranule = 512;
  // What Alloc(bytes) takes.
  static uint64_t Rounded(uint64_t bytes) { return (bytes + kGranule - 1) / kGranule * kGranule; }

  // First fit, 512-byte aligned. `pinned`: not to be given back by Free (module globals).
  GpuResult<GpuVa> Alloc(uint64_t bytes, bool pinned);
  // Bytes given back; nullopt if `address` is not the start of an allocation of that kind.
  std::optional<uint64_t> Free(GpuVa address, bool pinned);
  // Inside one live allocation?
  bool Contains(GpuVa address, uint64_t bytes) const;
  bool empty() const { return used_.empty(); }
  struct Allocation {
    GpuVa address;
    uint64_t bytes;  // as asked for
  };
  // The live allocation with the highest start that is not above `address`.
  std::optional<Allocation> LastUpTo(GpuVa address) const;

  std::byte* Host(GpuVa address) { return memory() + (Raw(address) - base_va()); }
  std::byte* memory() const { return memory_.data(); }
  uint64_t bytes() const { return bytes_; }
  const uint8_t* pages() const { return page_mapped_.data(); }
  static uint64_t base_va();

  // --- arena_state.cc ---
  // Which ranges are taken; what is in them.
  void SaveBlocks(StateWriter& out) const;
  void SaveContents(StateWriter& out) const;
  // Into a fresh arena.
  void LoadBlocks(StateReader& in);
  void LoadContents(StateReader& in);
  // Address and size, as asked for, of the pinned allocations.
  std::map<uint64_t, uint64_t> Pinned() const;

 private:
  struct Block {
    uint64_t bytes;  // rounded
    uint64_t asked;
    bool pinned;
  };
  void MapPages(uint64_t offset, uint64_t bytes, int delta);

  GuardedMemory memory_;
  uint64_t bytes_ = 0;
  std::map<uint64_t, Block> used_;  // by offset
  std::map<uint64_t, uint64_t> free_;
  std::vector<uint32_t> page_users_;
  std::vector<uint8_t> page_mapped_;
};

}  // namespace vgpud::soft
