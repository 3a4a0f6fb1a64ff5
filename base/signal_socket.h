// SPDX-License-Identifier: Apache-2.0
// One-way signals between processes that do not trust each other: "look", not how often. A connected pair of sockets,
// each end with a description of its own, so that no flag and no lock of one side concerns the other, and both sides
// use MSG_DONTWAIT whatever their flags say. (An eventfd is one description for both: whoever clears its O_NONBLOCK and
// fills it stops the other for good. A pipe's reader waits for the lock under which its writer copies from memory that
// may never come.) A queue that is full says as much as one signal.
//
// Nobody can send the other way. Descriptors that somebody sends along are refused by the kernel since Linux 6.16;
// before, they end in whoever listens, who must therefore be the one that the sender may harm anyway.
#pragma once

#include "base/fd.h"

namespace vgpud {

struct SignalSocket {
  UniqueFd rings;    // for SendSignal
  UniqueFd listens;  // for TakeSignals
};
[[nodiscard]] Result<SignalSocket> MakeSignalSocket();

// Never waits; nothing when the other end is gone.
void SendSignal(int fd);

enum class Signals { kNone, kSome, kGone };
// Takes what has come; never waits, and not for ever while more comes. kGone: nothing will come any more, the
// descriptor will always be readable.
Signals TakeSignals(int fd);

}  // namespace vgpud
