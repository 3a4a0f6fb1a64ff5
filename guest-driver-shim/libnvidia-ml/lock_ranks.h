// SPDX-License-Identifier: Apache-2.0
// The mutexes of this library. Under none of them is another taken but in this order.
#pragma once

#include "base/locks/mutex.h"

namespace vgpud::nvml::lock_rank {

inline constexpr LockRank kLibrary{"the library", 10, true};  // its first Init asks all virtual functions
inline constexpr LockRank kDevice{"a device", 20};
inline constexpr LockRank kSets{"sets of events", 30};

}  // namespace vgpud::nvml::lock_rank
