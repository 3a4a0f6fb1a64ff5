// SPDX-License-Identifier: Apache-2.0
// State of warps and CTAs while a grid runs. Everything that a world switch must keep is here, in memory, at each
// instruction boundary, so leaving a grid costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/soft/code/inst.h"
#include "gpu/soft/code/tensor_memory_form.h"
#include "gpu/soft/memory/block_pool.h"

namespace vgpud::soft {

class Grid;
struct Cta;

// Lanes of a warp that are at the same place. `frame` and `local` are the call depth.
struct Split {
  enum class State : uint8_t { kRun, kBarrier, kWarpSync, kCluster };  // kCluster: at the barrier of the cluster
  const Inst* pc;
  uint32_t mask;
  uint32_t frame;
  uint32_t local;
  State state;
  bool forced;      // kWarpSync: go on without the missing lanes
  uint8_t barrier;  // kBarrier
  uint32_t need;    // kWarpSync: lanes that must arrive
  uint64_t last_run;
};

struct Warp {
  std::byte* base[kBaseCount];
  uint32_t mask;      // lanes of the current split, 0 = none is current
  uint32_t live;      // lanes that have not exited
  const Inst* limit;  // the current split goes on while pc < limit
  const Inst* pc;
  std::byte* arena;
  uint64_t arena_bytes;
  const uint8_t* pages;  // one per 2 MiB of the arena: 0 = not mapped
  std::byte* shared;
  uint32_t shared_bytes;
  uint32_t local_stride;  // bytes of .local per lane
  uint32_t local_fixed;   // of these, for variables; the others are what alloca gives
  std::byte* local_memory;
  const std::byte* params;
  const ExtraOperand* extra;  // of the program
  uint32_t param_bytes;

  uint32_t frame;  // of the current split: bytes into stack
  uint32_t local;  // of the current split: bytes into each lane's local memory
  std::byte* stack;
  uint32_t stack_bytes;

  Cta* cta;
  Grid* grid;
  uint32_t index;           // in the CTA
  uint32_t at_cluster = 0;  // lanes that have arrived at the barrier of the cluster, which is not complete
  bool force_sync = false;
  bool yielded = false;
  bool sync_seen = false;
  uint32_t fairness = 0;
  uint32_t polls = 0;  // of last_poll, in a row
  const Inst* last_poll = nullptr;
  uint64_t selections = 0;
  uint64_t slice = 0;
  uint32_t split_count = 0;
  Split splits[kLanes + 1];  // all but the current one
};

struct Barrier {
  uint32_t arrived = 0;   // threads
  uint32_t expected = 0;  // 0 = all live threads of the CTA
  uint32_t count = 0;     // bar.red: threads whose predicate is true
  uint32_t voters = 0;
};

struct Cta {
  Cta() { peers[0] = this; }
  Cta(const Cta&) = delete;
  Cta& operator=(const Cta&) = delete;

  uint32_t id[3];
  uint32_t live_threads;
  uint32_t cursor = 0;  // warp whose turn it is
  uint64_t slice = 0;
  Barrier barriers[16];
  std::vector<Warp> warps;
  std::byte* shared = nullptr;
  uint64_t order = 0;  // in which the grid starts its CTAs: those of a cluster are neighbours
  // The CTAs of its cluster, by rank, resident together and run by one thread at a time.
  Cta* peers[kMostClusterCtas] = {};
  uint32_t cluster_size = 1;
  uint32_t cluster_arrived = 0;  // threads at the barrier of the cluster; of rank 0
  BlockPool::Region shared_memory;
  BlockPool::Region warp_memory;
  TensorMemory tensor;
  BlockPool::Region tensor_memory;
};

// Per-lane call header at the start of each frame but the kernel's. No pointers: kernels can see old frames in
// registers that they have not written, and a saved context may be read back anywhere.
struct FrameHeader {
  uint32_t return_pc[kLanes];  // index into Program::code
  uint32_t previous_frame[kLanes];
  uint32_t previous_local[kLanes];
};

// Selections without anything that waits until fairness applies all the same; a whole slice counts for several.
inline constexpr uint32_t kFairAnywayAfter = 4096;
inline constexpr uint32_t kSelectionsPerSlice = 512;

// --- warp.cc ---

// The guest's kernel did something wrong in lane `lane` at `inst`: the grid is over.
const Inst* RaiseFault(Warp& warp, const Inst* inst, CuStatus status, uint32_t lane, const std::string& what);
const Inst* RaiseAddressFault(Warp& warp, const Inst* inst, CuStatus status, uint32_t lane, uint64_t address,
                              uint32_t bytes, const char* access);

// Puts the current split away and makes the next one current. False: nothing can run (all wait, or all have exited).
bool Reselect(Warp& warp);

// The lanes of the current split that are not in `stay` continue at `other`.
const Inst* Diverge(Warp& warp, const Inst* stay_pc, uint32_t stay, const Inst* other, uint32_t other_mask);

// True if all lanes of `need` are here. False: the split now waits, the handler must return `inst`.
bool WarpSyncReady(Warp& warp, const Inst* inst, uint32_t need);

// Is `inst` one that a split in state kBarrier, or kCluster, can stand at?
bool WaitsAtBarrier(const Inst* inst);
bool WaitsForCluster(const Inst* inst);

// A warp that does the same one so often in a row probably waits for another: that one's turn.
inline constexpr uint32_t kPollsUntilYield = 32;

// Called by what a spin loop contains. Ends the current split's run when other splits wait for their turn.
inline void NoteSync(Warp& warp, const Inst* inst) {
  if (warp.split_count != 0) {
    warp.sync_seen = true;
    warp.limit = nullptr;
  }
  if (warp.last_poll != inst) {
    warp.last_poll = inst;
    warp.polls = 0;
  } else if (++warp.polls == kPollsUntilYield) {
    warp.polls = 0;
    warp.yielded = true;
    warp.limit = nullptr;
  }
}

OpRows ControlRows();

// Handlers that the decoder names itself.
const Inst* OpBranch(Warp&, const Inst*);
const Inst* OpBranchIf(Warp&, const Inst*);
const Inst* OpGuarded(Warp&, const Inst*);
const Inst* OpRounded(Warp&, const Inst*);  // Inst::aux: MXCSR rounding bits
const Inst* OpReturn(Warp&, const Inst*);
const Inst* OpExit(Warp&, const Inst*);
const Inst* OpCall(Warp&, const Inst*);
const Inst* OpLocalAddress(Warp&, const Inst*);
// Operands of 8 bytes. OpAlloca: 0 the address, 1 bytes; imm: alignment, a power of two. The others: what one gives and
// the other takes.
const Inst* OpAlloca(Warp&, const Inst*);
const Inst* OpStackSave(Warp&, const Inst*);
const Inst* OpStackRestore(Warp&, const Inst*);
const Inst* OpLoadCallParam(Warp&, const Inst*);
const Inst* OpStoreCallParam(Warp&, const Inst*);

}  // namespace vgpud::soft
