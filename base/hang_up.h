// SPDX-License-Identifier: Apache-2.0
// Whether the other end of a stream socket has closed, or has at least said that it sends nothing more.
#pragma once

#include <poll.h>

namespace vgpud {

// True also while there is something left to read.
inline bool HasHungUp(int socket) {
  pollfd peer{socket, POLLRDHUP, 0};
  return ::poll(&peer, 1, 0) == 1;
}

}  // namespace vgpud
