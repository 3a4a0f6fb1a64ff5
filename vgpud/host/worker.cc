// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/worker.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace vgpud::daemon {

// Kept by both threads, so that one that hangs can be left behind.
struct Worker::Shared {
  struct Item {
    Task task, after;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> items;
  bool running = false;
  TimePoint since{};  // of what runs
  bool stop = false;
  TaskQueue* replies;  // nullptr: left behind
  size_t most;
  std::thread thread;
};

Worker::Worker(std::string name, size_t most, TaskQueue& replies) : shared_(std::make_shared<Shared>()) {
  shared_->most = most;
  shared_->replies = &replies;
  // Signals are for the main thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  shared_->thread = std::thread([shared = shared_] { Run(shared); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(shared_->thread.native_handle(), name.substr(0, 15).c_str());
}

Worker::~Worker() {
  if (left_) return;
  {
    const std::lock_guard lock{shared_->mutex};
    shared_->stop = true;
  }
  shared_->changed.notify_all();
  shared_->thread.join();
}

void Worker::Run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock{shared->mutex};
  for (;;) {
    shared->changed.wait(lock, [&] { return shared->stop || !shared->items.empty(); });
    if (shared->items.empty()) return;
    Shared::Item item = std::move(shared->items.front());
    shared->items.pop_front();
    shared->running = true;
    shared->since = Now();
    lock.unlock();
    item.task();
    item.task = nullptr;
    lock.lock();
    shared->running = false;
    if (shared->replies != nullptr && item.after) shared->replies->Post(std::move(item.after));
    shared->changed.notify_all();
  }
}

bool Worker::Post(Task task, Task after) {
  {
    const std::lock_guard lock{shared_->mutex};
    if (left_ || shared_->items.size() >= shared_->most) return false;
    shared_->items.push_back({std::move(task), std::move(after)});
  }
  shared_->changed.notify_all();
  return true;
}

size_t Worker::waiting() const {
  const std::lock_guard lock{shared_->mutex};
  return shared_->items.size() + (shared_->running ? 1 : 0);
}

Ns Worker::busy(TimePoint now) const {
  const std::lock_guard lock{shared_->mutex};
  return shared_->running ? now - shared_->since : Ns{0};
}

bool Worker::Leave(Ns limit) {
  if (left_) return false;
  std::unique_lock lock{shared_->mutex};
  if (shared_->changed.wait_for(lock, limit, [&] { return shared_->items.empty() && !shared_->running; })) return true;
  left_ = true;
  shared_->items.clear();
  shared_->replies = nullptr;
  shared_->stop = true;
  lock.unlock();
  shared_->thread.detach();
  return false;
}

}  // namespace vgpud::daemon
