// SPDX-License-Identifier: Apache-2.0
// Owned file descriptors and the few kinds of them we make. O_CLOEXEC always; invalid is -1 (0 is a real fd).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vgpud {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    Reset(other.Release());
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int Release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

// A duplicate of `fd`.
[[nodiscard]] Result<UniqueFd> Dup(int fd);
// Shared memory of exactly `bytes`, zeroed, sealed against any later change of size.
[[nodiscard]] Result<UniqueFd> MakeSealedMemfd(const std::string& name, uint64_t bytes);
// Is `fd`, which another process sent, memory of exactly `bytes` whose size nobody can change any more? Mapping it is
// safe then: what is behind it stays. `what` names it in the error.
[[nodiscard]] Result<void> CheckSealedMemfd(int fd, uint64_t bytes, std::string_view what);
// Non-blocking eventfd counter.
[[nodiscard]] Result<UniqueFd> MakeEventFd();
// Adds 1. Never blocks: a full counter already means "signalled".
void SignalEventFd(int fd);
// Resets the counter. True when it had been signalled.
bool DrainEventFd(int fd);
// A pipe for a child's text: writing never blocks, a full one takes nothing. Reading does not block either.
struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
[[nodiscard]] Result<Pipe> MakePipe();
// A connected pair of AF_UNIX SOCK_SEQPACKET sockets.
struct SocketPair {
  UniqueFd a;
  UniqueFd b;
};
[[nodiscard]] Result<SocketPair> MakeSeqpacketPair();
// A listening AF_UNIX socket of `type` at `path` (mode 0600); an old socket file there is replaced, any other kind
// of file is an error, as is a path of 108 bytes or more.
[[nodiscard]] Result<UniqueFd> ListenUnix(const std::string& path, int type);
// Connects to the AF_UNIX socket at `path`.
[[nodiscard]] Result<UniqueFd> ConnectUnix(const std::string& path, int type);
// Has the other end of a stream socket closed, or said that it sends nothing more? True also while there is something
// left to read.
bool HasHungUp(int socket);
// Can the other end of a Unix stream socket not receive any more?
bool HasLeft(int socket);

}  // namespace vgpud
