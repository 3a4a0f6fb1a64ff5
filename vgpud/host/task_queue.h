// SPDX-License-Identifier: Apache-2.0
// Work handed from one thread to another: a list behind a mutex, and a way to say there is some.
#pragma once

#include <pthread.h>

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace vgpud::daemon {

// A mutex whose holder runs at the priority of the most urgent waiter: the scheduler thread must never wait for a
// main thread that is not given a core.
class PiMutex {
 public:
  PiMutex() {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  ~PiMutex() { pthread_mutex_destroy(&mutex_); }
  PiMutex(const PiMutex&) = delete;
  PiMutex& operator=(const PiMutex&) = delete;
  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_;
};

// Any thread posts, one thread runs.
class TaskQueue {
 public:
  using Task = std::function<void()>;
  // `wake`: wakes the thread that runs them. Any thread calls it.
  explicit TaskQueue(std::function<void()> wake) : wake_(std::move(wake)) {}
  // `wake_fd`: an eventfd that the running thread sleeps on; outlives this.
  explicit TaskQueue(int wake_fd) : TaskQueue([wake_fd] { SignalEventFd(wake_fd); }) {}
  void Post(Task task);
  // Runs what was posted before the call, in order.
  void RunAll();
  bool empty() const { return !pending_.load(std::memory_order_acquire); }

 private:
  const std::function<void()> wake_;
  PiMutex mutex_;
  std::atomic<bool> pending_{false};
  std::vector<Task> tasks_;
};

}  // namespace vgpud::daemon
