// SPDX-License-Identifier: Apache-2.0
// Host threads that help the one that runs grids. They belong to a context; they sleep while there is nothing to do.
// Their name is kGpuWorkerName (base/exec_link.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace vgpud::soft {

class WorkerPool {
 public:
  // `threads`: how many may run a job together, the caller among them; 1 = no helpers. They are started when first
  // needed, by the thread that needs them: name apart, they inherit what is set for it (CPUs, priority).
  explicit WorkerPool(uint32_t threads) : threads_(threads == 0 ? 1 : threads) {}
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  uint32_t threads() const { return threads_; }
  // Helpers that have been started so far.
  size_t started() const { return helpers_.size(); }
  // Calls job(true) here and job(false) on up to `threads` - 1 helpers at the same time, each with the floating-point
  // mode of the caller. Whoever has not begun when job(true) returns does not begin any more: a host without a free CPU
  // makes nobody wait. Returns when all that have begun are back. One caller at a time.
  void Run(uint32_t threads, const std::function<void(bool caller)>& job);

 private:
  enum State : uint32_t {
    kIdle,     // looks for a call, without sleeping
    kAsleep,   // sleeps until called
    kCalled,   // has a call it has not taken
    kBusy,     // in the job
    kAwaited,  // in the job, and the caller sleeps until it is back
    kQuit,
  };
  // Futex word and thread of a helper.
  struct alignas(64) Helper {
    std::atomic<uint32_t> state{kIdle};
    std::thread thread;
  };
  bool StartHelper();
  void HelperMain(Helper& helper);
  static bool AwaitCall(Helper& helper);
  static void Call(Helper& helper);
  static void AwaitReturn(Helper& helper);

  const uint32_t threads_;
  bool all_started_ = false;
  std::vector<std::unique_ptr<Helper>> helpers_;
  const std::function<void(bool)>* job_ = nullptr;
  uint32_t float_mode_ = 0;
};

}  // namespace vgpud::soft
