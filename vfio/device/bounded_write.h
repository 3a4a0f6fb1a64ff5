// SPDX-License-Identifier: Apache-2.0
// Writing to an eventfd whose description a client holds too. The client can clear O_NONBLOCK and fill the counter at
// any moment, also between our look and our write, so no check before the write can promise that it returns. A timer
// can.
#pragma once

#include <chrono>

namespace vgpud::vfio {

// A write that blocks ends after at most this long.
inline constexpr std::chrono::milliseconds kMostWriteWait{10};

// Adds 1 to `fd`. False when the write had to wait: whoever holds the other end wants that, and may do it again.
// Main thread only; it uses SIGALRM and the real-time interval timer of the process, and no other thread may take
// SIGALRM. Costs a system call more than the write once per kMostWriteWait.
[[nodiscard]] bool SignalWithoutWaiting(int fd);

}  // namespace vgpud::vfio
