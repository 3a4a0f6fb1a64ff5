// SPDX-License-Identifier: Apache-2.0
// Threads of this library's own, and moments in which a thread of the program runs nothing of the program's. Signals
// are for the program's own threads, at moments of its own.
#pragma once

#include <pthread.h>

#include <csignal>
#include <exception>
#include <thread>
#include <utility>

namespace vgpud::cuda {

// No signal handler runs in this thread while it lives, nor in threads that are made meanwhile.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// For a thread that calls functions of the program: their own faults are handled as the program wants.
inline void LetFaultsThrough() {
  sigset_t faults;
  sigemptyset(&faults);
  for (const int each : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigaddset(&faults, each);
  pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

// Runs `body` in a thread that gets no signals. False: the system has no more threads, or no memory for one.
template <class Body>
bool StartThread(std::thread* thread, Body body) {
  const SignalsBlocked blocked;
  try {
    *thread = std::thread(std::move(body));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace vgpud::cuda
