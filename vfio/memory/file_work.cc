// SPDX-License-Identifier: Apache-2.0
#include "vfio/memory/file_work.h"

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/detached_thread.h"
#include "base/fd.h"

namespace vgpud::vfio {
namespace {

constexpr std::chrono::milliseconds kTryAgain{100};

struct Task {
  FileWork::Client client;
  std::function<void()> work;
  std::function<void()> done;
};

UniqueFd NewEventFd() {
  auto made = MakeEventFd();
  CHECK(made);
  return std::move(*made);
}

}  // namespace

// What the threads have of it: it lasts as long as the last of them.
struct FileWork::Shared {
  struct Queue {
    std::deque<Task> tasks;
    bool has_thread = false;
  };

  // Until nothing is left to do for `client`.
  void Run(const void* client) {
    std::unique_lock lock(mutex);
    for (;;) {
      const auto queue = queues.find(client);
      if (queue->second.tasks.empty()) {
        queues.erase(queue);
        return;
      }
      Task task = std::move(queue->second.tasks.front());
      queue->second.tasks.pop_front();
      lock.unlock();
      task.work();
      task.work = {};
      lock.lock();
      finished.push_back(std::move(task));
      SignalEventFd(wake.get());
    }
  }

  std::mutex mutex;
  std::map<const void*, Queue> queues;
  std::vector<Task> finished;
  const UniqueFd wake = NewEventFd();
};

FileWork::FileWork(EventLoop& loop)
    : shared_(std::make_shared<Shared>()),
      finished_(loop.OnReadable(shared_->wake.get(),
                                [this] {
                                  DrainEventFd(shared_->wake.get());
                                  std::vector<Task> finished;
                                  {
                                    const std::lock_guard lock(shared_->mutex);
                                    finished.swap(shared_->finished);
                                  }
                                  for (const Task& task : finished)
                                    if (task.done) task.done();
                                })),
      retry_(loop.Timer([this] { Retry(); })) {}

FileWork::~FileWork() = default;

void FileWork::Do(Client client, std::function<void()> work, std::function<void()> done) {
  {
    const std::lock_guard lock(shared_->mutex);
    Shared::Queue& queue = shared_->queues[client.get()];
    queue.tasks.push_back({std::move(client), std::move(work), std::move(done)});
    if (queue.has_thread) return;
  }
  Retry();
}

void FileWork::Retry() {
  const std::lock_guard lock(shared_->mutex);
  for (auto& [client, queue] : shared_->queues) {
    if (queue.has_thread) continue;
    queue.has_thread = StartDetachedThread("vgpu-files", [shared = shared_, client = client] { shared->Run(client); });
    if (!queue.has_thread) return retry_->Arm(kTryAgain);
  }
}

}  // namespace vgpud::vfio
