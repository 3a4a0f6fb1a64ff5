// SPDX-License-Identifier: Apache-2.0
// A process with a kernel that beats, for gpu_probe: it looks at what its driver makes of objects (gpu/channels), and
// does what the prober tells it through shared memory.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/channels/rm_objects.h"

namespace gpucheck {

enum class Task : int { kNone, kRun, kCopy, kLaunchLatency };
enum class State : int { kBegins, kReady, kRuns, kDone };

// In shared memory, one for each worker.
struct WorkerBoard {
  std::atomic<Task> task{Task::kNone};
  std::atomic<State> state{State::kBegins};
  std::atomic<uint64_t> result{0};  // of the last task: a digest, ns, or bytes per second
  std::atomic<uint32_t> rounds{0};  // of kRun: 0 for one that never ends
  std::atomic<uint64_t> looks{0};   // how often the worker has looked at its kernel and written down its beats
  std::atomic<uint32_t> objects{0};
  std::atomic<uint32_t> changes{0};  // goes up before and after `seen` is written
  vgpud::rm::Object seen[4096];
  alignas(4096) uint64_t page[512] = {};  // the word that ends the kernel, and its beats: memory that the GPU sees

  uint64_t beats() const { return __atomic_load_n(&page[1], __ATOMIC_RELAXED); }
};

class Worker {
 public:
  // Starts the process. It dies with this one.
  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // False: it failed or has died, or not within `seconds`.
  bool Await(State state, double seconds);
  void Tell(Task task, uint32_t rounds = 0);
  // What its driver has made so far.
  vgpud::rm::ClientChannels Channels() const;
  // Kills it. Seconds until it was gone; negative: it is not after `limit`.
  double Kill(double limit);
  // Returns when the worker has written down beats that it looked for after this was called. False: not within a while.
  bool AwaitLook() const;
  double BeatsPerSecond(double seconds) const;

  WorkerBoard& board() { return *board_; }
  const WorkerBoard& board() const { return *board_; }
  int pidfd() const { return pidfd_; }

 private:
  WorkerBoard* board_;
  pid_t pid_;
  int pidfd_;
};

}  // namespace gpucheck
