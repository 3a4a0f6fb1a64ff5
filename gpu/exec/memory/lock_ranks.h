// SPDX-License-Identifier: Apache-2.0
// The mutexes of an executor in the order in which they are taken; those of the soft GPU come after them
// (gpu/soft/memory/lock_ranks.h), those of base last.
#pragma once

#include "base/locks/mutex.h"

namespace vgpud::exec::lock_rank {

inline constexpr LockRank kExecutor{"an executor", 10};
// Whoever drops an area waits for the job inside of it, with the one above: the job may wait for nobody.
inline constexpr LockRank kInside{"the inside of a guest's area", 20};
inline constexpr LockRank kWorkers{"the starter of threads", 30};

}  // namespace vgpud::exec::lock_rank
