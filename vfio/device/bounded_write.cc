// SPDX-License-Identifier: Apache-2.0
#include "vfio/device/bounded_write.h"

#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "base/check.h"

namespace vgpud::vfio {
namespace {

// Shared with the signal handler, which runs on the same thread.
//   `writing` is set before the timer is looked at, and while it is set the handler leaves the timer running: a write
//   that blocks is interrupted by the first tick behind the moment it blocked.
std::atomic<bool> writing{false};
std::atomic<bool> ticking{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void SetTimer(std::chrono::microseconds every) {
  const timeval time{0, every.count()};
  const itimerval timer{time, time};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

// That it interrupts is all it is for. Nothing is being written: nothing to guard.
void OnTick(int) {
  if (writing) return;
  const int error = errno;
  SetTimer(std::chrono::microseconds{0});
  ticking = false;
  errno = error;
}

void HandleTicks() {
  struct sigaction action {};
  action.sa_handler = &OnTick;  // without SA_RESTART: the write returns EINTR
  CHECK(::sigaction(SIGALRM, &action, nullptr) == 0);
}

}  // namespace

bool SignalWithoutWaiting(int fd) {
  static const bool handled = (HandleTicks(), true);
  (void)handled;
  writing = true;
  if (!ticking) {
    ticking = true;
    SetTimer(kMostWriteWait);
  }
  const uint64_t one = 1;
  const ssize_t n = ::write(fd, &one, sizeof one);
  // A write that need not wait is never interrupted. EAGAIN: the counter is full, which says as much as one more.
  const bool waited = n < 0 && errno == EINTR;
  writing = false;
  return !waited;
}

}  // namespace vgpud::vfio
