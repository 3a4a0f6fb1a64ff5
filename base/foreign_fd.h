// SPDX-License-Identifier: Apache-2.0
// Descriptors that another process has sent, and sockets to such processes. Closing one can take as long as that
// process likes: a socket that lingers, a file whose file system asks a server first, and a socket in whose queue such
// a descriptor waits. So these are closed by threads that nobody waits for.
#pragma once

#include <cstddef>
#include <utility>

#include "base/fd.h"

namespace vgpud {

// Closes `fd` on another thread once StartClosers() has been called, and at once before. Any thread.
void CloseElsewhere(UniqueFd fd);

// From now on CloseElsewhere() does not wait. Its threads start when there is something to close, at most kMostClosers;
// they take no signals. Call it once, at start.
inline constexpr size_t kMostClosers = 8;
void StartClosers();

// So many descriptors wait to be closed that whoever sent them should be read from no more. Any thread.
inline constexpr size_t kManyToClose = 256;
[[nodiscard]] bool ManyToClose();
// How many wait, those that a thread is at not included.
[[nodiscard]] size_t WaitingToClose();

// A descriptor of that kind, owned.
class ForeignFd {
 public:
  ForeignFd() = default;
  explicit ForeignFd(int fd) : fd_(fd) {}
  explicit ForeignFd(UniqueFd fd) : fd_(std::move(fd)) {}
  ForeignFd(ForeignFd&&) noexcept = default;
  ForeignFd& operator=(ForeignFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::move(other.fd_);
    }
    return *this;
  }
  ~ForeignFd() { Reset(); }

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  const UniqueFd& unique() const { return fd_; }
  void Reset() {
    if (fd_) CloseElsewhere(std::move(fd_));
  }
  // For a descriptor that the caller knows closes at once.
  UniqueFd Trust() { return std::move(fd_); }

 private:
  UniqueFd fd_;
};

// Lets nobody send descriptors to `socket` (AF_UNIX) any more; a listening one hands that down to its connections.
// False when the kernel cannot (before Linux 6.16): then they arrive and have to be closed.
bool RefuseFds(int socket);

// Is `fd`, which another process sent, the watch of a system call filter (seccomp_unotify(2))? Asks the kernel alone,
// and no file system.
[[nodiscard]] bool IsFilterWatch(int fd);

}  // namespace vgpud
