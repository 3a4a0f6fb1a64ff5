// SPDX-License-Identifier: Apache-2.0
// The mutexes of the soft GPU in the order in which they are taken; those of the executor
// (gpu/exec/memory/lock_ranks.h) come before them, those of base after. All are held for moments.
#pragma once

#include "base/locks/mutex.h"

namespace vgpud::soft::lock_rank {

inline constexpr LockRank kShift{"the sets of a grid", 200};
inline constexpr LockRank kLaunches{"what a kernel has launched", 210};
inline constexpr LockRank kCheck{"what the check mode has found", 220};
inline constexpr LockRank kProfile{"what the profile mode has counted", 230};
inline constexpr LockRank kFault{"the fault of a grid", 240};
inline constexpr LockRank kHeap{"the heap of kernels", 250};
inline constexpr LockRank kPrint{"the output of kernels", 260};
inline constexpr LockRank kBlocks{"the memory of blocks", 270};
inline constexpr LockRank kArena{"device memory", 280};
inline constexpr LockRank kShared{"memory shared with the host", 290};
inline constexpr LockRank kMapped{"memory that is mapped", 300};

}  // namespace vgpud::soft::lock_rank
