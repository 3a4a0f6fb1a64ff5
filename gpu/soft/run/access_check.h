// SPDX-License-Identifier: Apache-2.0
// The check mode: tells a program about accesses that the hardware would let pass. Memory instructions are preceded by
// one that looks at their addresses; a program decoded without it has none of them and pays nothing.
//
// Found are accesses of global memory that do not lie within one allocation, although the 2 MiB page is there, and
// reads of shared memory that nothing has written since the block began. The program goes on; what it cannot do (memory
// that is not mapped) is the fault that it is without the check.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "gpu/soft/code/inst.h"
#include "gpu/soft/memory/arena.h"
#include "gpu/soft/memory/lock_ranks.h"
#include "gpu/soft/memory/print_buffer.h"

namespace vgpud::soft {

class Grid;
struct Warp;

enum class CheckedAccess : uint8_t { kLoad, kStore, kAtomic };

// What a context found. Thread-safe.
class AccessCheck {
 public:
  // Reports that are told; more are only counted.
  static constexpr uint64_t kMostReports = 100;

  AccessCheck(const Arena& arena, PrintBuffer& print) : arena_(arena), print_(print) {}
  // `address` in global memory. The lanes of one instruction that do the same wrong are one report, of the first.
  void Global(const Warp& warp, const Inst* inst, uint32_t lane, uint64_t address, uint32_t bytes,
              CheckedAccess access);
  // `offset` inside the block's shared memory.
  void Shared(const Warp& warp, const Inst* inst, uint32_t lane, uint32_t offset, uint32_t bytes, CheckedAccess access);
  // The block wrote to its shared memory in a way that is not followed: all of it counts as written.
  void SharedUnknown(const Warp& warp);
  // A new grid, maybe where an old one was.
  void Begin(const Grid& grid);
  // An allocation that is about to be freed.
  void Freed(GpuVa address, uint64_t bytes);
  uint64_t reports() const;

 private:
  static constexpr size_t kMostFreed = 1024;
  // Which bytes of a block's shared memory have been written.
  struct Written {
    const Grid* grid = nullptr;
    uint32_t block[3] = {};
    std::vector<bool> bytes;
  };
  struct Range {
    uint64_t address;
    uint64_t bytes;
  };
  void Report(const Warp& warp, const Inst* inst, uint32_t lane, const std::string& what) REQUIRES(mutex_);
  Written& Of(const Warp& warp) REQUIRES(mutex_);
  std::string Where(uint64_t address) const REQUIRES(mutex_);

  const Arena& arena_;
  PrintBuffer& print_;
  mutable Mutex mutex_{lock_rank::kCheck};
  std::map<const std::byte*, Written> written_ GUARDED_BY(mutex_);  // by where a block's shared memory is
  std::deque<Range> freed_ GUARDED_BY(mutex_);
  uint64_t reports_ GUARDED_BY(mutex_) = 0;
  const Inst* last_inst_ GUARDED_BY(mutex_) = nullptr;  // of the last report,
  const Warp* last_warp_ GUARDED_BY(mutex_) = nullptr;  // whose other lanes are not told again
};

// Operand 0, imm and kAddress32 as of the memory instruction behind it; aux: MemSpace | CheckedAccess << 4; offset[1]:
// bytes per lane.
const Inst* OpCheckAccess(Warp& warp, const Inst* inst);
const Inst* OpSharedUnknown(Warp& warp, const Inst* inst);

}  // namespace vgpud::soft
