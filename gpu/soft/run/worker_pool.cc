// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/run/worker_pool.h"

#include <sys/prctl.h>
#include <xmmintrin.h>

#include <algorithm>
#include <system_error>

#include "base/exec_link.h"
#include "base/futex.h"
#include "base/log.h"
#include "gpu/soft/run/spin.h"

namespace vgpud::soft {

WorkerPool::~WorkerPool() {
  for (const auto& helper : helpers_) {
    if (helper->state.exchange(kQuit) == kAsleep) FutexWakeAll(&helper->state);
    helper->thread.join();
  }
}

bool WorkerPool::StartHelper() {
  auto helper = std::make_unique<Helper>();
  try {
    helper->thread = std::thread([this, h = helper.get()] { HelperMain(*h); });
  } catch (const std::system_error& e) {
    LOG(kWarning, "no thread for worker {} of {}: {}; kernels run on those there are", helpers_.size() + 2, threads_,
        e.what());
    return false;
  }
  helpers_.push_back(std::move(helper));
  return true;
}

void WorkerPool::Run(uint32_t threads, const std::function<void(bool)>& job) {
  const uint32_t wanted = std::min(threads, threads_) - 1;
  while (!all_started_ && helpers_.size() < wanted) all_started_ = !StartHelper();
  const size_t called = std::min<size_t>(wanted, helpers_.size());
  job_ = &job;
  float_mode_ = _mm_getcsr() & ~_MM_EXCEPT_MASK;
  for (size_t n = 0; n < called; ++n) Call(*helpers_[n]);
  job(true);
  for (size_t n = 0; n < called; ++n) AwaitReturn(*helpers_[n]);
}

void WorkerPool::Call(Helper& helper) {
  if (helper.state.exchange(kCalled) == kAsleep) FutexWakeAll(&helper.state);
}

// Takes the call back if the helper has not begun.
void WorkerPool::AwaitReturn(Helper& helper) {
  uint32_t state = kCalled;
  if (helper.state.compare_exchange_strong(state, kIdle)) return;
  if (SpinUntil([&] { return helper.state.load(std::memory_order_acquire) != kBusy; })) return;
  state = kBusy;
  if (!helper.state.compare_exchange_strong(state, kAwaited)) return;
  while (helper.state.load(std::memory_order_acquire) == kAwaited) FutexWait(&helper.state, kAwaited);
}

// False: it is time to end.
bool WorkerPool::AwaitCall(Helper& helper) {
  for (;;) {
    SpinUntil([&] { return helper.state.load(std::memory_order_relaxed) != kIdle; });
    uint32_t state = kIdle;
    if (helper.state.compare_exchange_strong(state, kAsleep)) state = kAsleep;
    while (state == kAsleep) {
      FutexWait(&helper.state, kAsleep);
      state = helper.state.load(std::memory_order_relaxed);
    }
    if (state == kQuit) return false;
    if (state == kCalled && helper.state.compare_exchange_strong(state, kBusy)) return true;
  }
}

void WorkerPool::HelperMain(Helper& helper) {
  ::prctl(PR_SET_NAME, exec_link::kGpuWorkerName);
  while (AwaitCall(helper)) {
    _mm_setcsr(float_mode_);
    (*job_)(false);
    uint32_t state = kBusy;
    if (helper.state.compare_exchange_strong(state, kIdle)) continue;
    // kAwaited
    helper.state.store(kIdle);
    FutexWakeAll(&helper.state);
  }
}

}  // namespace vgpud::soft
