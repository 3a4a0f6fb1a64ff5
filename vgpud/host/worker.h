// SPDX-License-Identifier: Apache-2.0
// A thread for what may take long: disks that hang, files of the kernel that wait. Tasks run there in order; the loop's
// thread never waits for them. Main thread, but for what is said otherwise.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "vgpud/host/task_queue.h"

namespace vgpud::daemon {

class Worker {
 public:
  using Task = std::function<void()>;
  // At most `most` tasks wait. `replies`: where what comes after a task runs; outlives this and a thread that was left
  // behind (Leave).
  Worker(std::string name, size_t most, TaskQueue& replies);
  // Runs what waits, then ends the thread: where that must not take long, Leave first.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs `task` on the worker's thread, then `after`, if there is one, on the main thread. False: too many wait
  // already, and nothing is done.
  [[nodiscard]] bool Post(Task task, Task after = nullptr);
  // Tasks that wait or run.
  size_t waiting() const;
  // For how long the task that runs has been running; 0: none does.
  Ns busy(TimePoint now) const;
  // Waits until all is done, at most so long. False: it is not; the thread is left behind with what it holds, and
  // nothing that it does afterwards is heard of.
  bool Leave(Ns limit);

 private:
  struct Shared;
  static void Run(const std::shared_ptr<Shared>& shared);
  const std::shared_ptr<Shared> shared_;
  bool left_ = false;
};

}  // namespace vgpud::daemon
