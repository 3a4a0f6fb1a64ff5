// SPDX-License-Identifier: Apache-2.0
// The mutexes of this library, from the outside in. A channel has room for so many operations only, and the host has to
// make more: by ending work, for which a host function of the program may have to end first. So the first half are
// those of calls that need an operation of the channel while something of theirs must not change. No thread that runs
// host functions takes one of them for that. All others are held for moments.
#pragma once

#include "base/locks/mutex.h"

namespace vgpud::cuda {
// Of the library's calls, which are in no namespace and use this one.
using vgpud::Mutex;
using vgpud::MutexLock;
}  // namespace vgpud::cuda

namespace vgpud::cuda::lock_rank {

inline constexpr LockRank kInit{"the driver's start", 1, true};
inline constexpr LockRank kLinker{"a linker", 5, true};
inline constexpr LockRank kConditional{"the turn of a conditional node", 6, true};
inline constexpr LockRank kExecutable{"an executable graph", 10, true};
inline constexpr LockRank kLanes{"the launch of a graph", 12, true, true};
inline constexpr LockRank kOpenLibrary{"an open library or module", 15, true};
inline constexpr LockRank kKernel{"a kernel", 20, true};
inline constexpr LockRank kLibrary{"an image", 22, true};
inline constexpr LockRank kTextures{"all textures", 24, true};
inline constexpr LockRank kPool{"a memory pool", 26, true};
inline constexpr LockRank kMapped{"all mapped memory", 28, true};
inline constexpr LockRank kManaged{"all managed memory", 30, true};
inline constexpr LockRank kHostBlocks{"all host memory", 32, true};
inline constexpr LockRank kRegistered{"all registered memory", 34, true};
inline constexpr LockRank kImported{"all imported memory", 36, true};
inline constexpr LockRank kShared{"all shared memory", 38, true};
inline constexpr LockRank kPrint{"the output of kernels", 90, true};
inline constexpr LockRank kAsk{"the socket of a channel", 95, true};
inline constexpr LockRank kVersion{"the CUDA version of the hosts", 97, true};

inline constexpr LockRank kCaptures{"all captures", 100};
inline constexpr LockRank kUserObject{"a user object", 105};
inline constexpr LockRank kGraph{"a graph", 110, false, true};
inline constexpr LockRank kConditions{"all conditions", 112};
inline constexpr LockRank kPools{"the list of memory pools", 114};
inline constexpr LockRank kAdvice{"what was said of managed memory", 116};
inline constexpr LockRank kTurns{"turns", 125};
inline constexpr LockRank kSubmit{"the order of submissions", 130};
inline constexpr LockRank kHostFunctions{"all host functions", 135};
inline constexpr LockRank kDevice{"a device", 140};
inline constexpr LockRank kChannel{"a channel", 145};
inline constexpr LockRank kBacklog{"what the host has of streams", 148};
inline constexpr LockRank kGates{"the gates", 149};
inline constexpr LockRank kPayload{"a channel's payload", 150};
inline constexpr LockRank kEventSlots{"the event slots", 155};
inline constexpr LockRank kMarker{"a marker", 160};
inline constexpr LockRank kEvent{"an event", 162};
inline constexpr LockRank kOldLaunch{"the next launch of a kernel", 164};
inline constexpr LockRank kHandles{"a table of handles", 170};
inline constexpr LockRank kStorage{"what runtimes keep", 172};
inline constexpr LockRank kAttributes{"attributes of streams", 174};
inline constexpr LockRank kTrace{"what was said once", 180};

}  // namespace vgpud::cuda::lock_rank
