// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of a connection to the channel socket, and how many connections each may have.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <span>

#include "guest-driver-shim/include/uapi/vgpu_abi.h"

namespace vgpud::vfio {

// A process needs one per CUDA context. So neither one process nor one user can take all, and whoever connects for the
// first time finds room.
inline constexpr size_t kMaxConnections = VGPU_MAX_CHANNELS + 16;
inline constexpr size_t kMaxConnectionsPerUser = VGPU_MAX_CHANNELS + 8;
inline constexpr size_t kMaxConnectionsPerProcess = VGPU_MAX_CHANNELS / 2 + 8;
// A connection that has opened no channel after so long is closed.
inline constexpr std::chrono::seconds kOpenWithin{5};

struct Peer {
  uid_t uid = 0;
  pid_t pid = 0;         // when it connected, for logs; 0 when it lives in another PID namespace
  uint64_t process = 0;  // the same number for the same process; 0: the kernel cannot say
};
[[nodiscard]] Peer PeerOf(int socket);

// Why `peer` gets no connection beside those that are open; nullptr: it gets one.
[[nodiscard]] const char* WhyRefused(std::span<const Peer> open, const Peer& peer);

}  // namespace vgpud::vfio
