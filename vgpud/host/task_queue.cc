// SPDX-License-Identifier: Apache-2.0
#include "vgpud/host/task_queue.h"

#include <mutex>

namespace vgpud::daemon {

void TaskQueue::Post(Task task) {
  {
    const std::lock_guard lock{mutex_};
    tasks_.push_back(std::move(task));
    pending_.store(true, std::memory_order_release);
  }
  wake_();
}

void TaskQueue::RunAll() {
  if (empty()) return;
  std::vector<Task> tasks;
  {
    const std::lock_guard lock{mutex_};
    tasks.swap(tasks_);
    pending_.store(false, std::memory_order_release);
  }
  for (const Task& task : tasks) task();
}

}  // namespace vgpud::daemon
