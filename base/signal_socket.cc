// SPDX-License-Identifier: Apache-2.0
#include "base/signal_socket.h"

#include <sys/socket.h>

#include <cerrno>

// <asm/socket.h> of Linux 6.16.
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

namespace vgpud {
namespace {

// More than the socket's buffer holds.
constexpr int kMostAtOnce = 512;

}  // namespace

Result<SignalSocket> MakeSignalSocket() {
  SocketPair pair = TRY(MakeSeqpacketPair());
  if (::shutdown(pair.a.get(), SHUT_RD) != 0) return FailErrno("signal socket: shutdown");
  const int no = 0;
  (void)::setsockopt(pair.b.get(), SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no);  // where the kernel knows it
  return SignalSocket{std::move(pair.a), std::move(pair.b)};
}

void SendSignal(int fd) {
  const char any = 1;
  (void)!::send(fd, &any, sizeof any, MSG_DONTWAIT | MSG_NOSIGNAL);
}

Signals TakeSignals(int fd) {
  Signals found = Signals::kNone;
  for (int taken = 0; taken < kMostAtOnce; ++taken) {
    char any[8];
    const ssize_t n = ::recv(fd, any, sizeof any, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return found;
    if (n <= 0) return found == Signals::kSome ? found : Signals::kGone;
    found = Signals::kSome;
  }
  return found;
}

}  // namespace vgpud
