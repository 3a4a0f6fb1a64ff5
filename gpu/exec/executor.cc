// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/executor.h"

#include <immintrin.h>

#include <utility>

namespace vgpud {
namespace {

// Warp instructions between two looks at the other streams, the deadline and the I/O thread: some 100 us.
constexpr uint64_t kBudget = 8192;
// Looks at a lock that is busy, some microseconds, before its holder is taken to be off its CPU or at something long.
constexpr int kLooks = 200;

bool LockSoon(std::unique_lock<std::mutex>& lock) {
  for (int look = 0; look < kLooks; ++look) {
    if (lock.try_lock()) return true;
    _mm_pause();
  }
  return false;
}

}  // namespace

Executor::Executor(ChannelMemory memory, uint64_t vram_quota, Turn turn, Host host)
    : host_(std::move(host)),
      turn_(std::move(turn)),
      core_(memory, vram_quota,
            Core::Host{.interrupt = host_.interrupt,
                       .exclusive = [this] { WaitExclusive(); },
                       .unlocked = [this](const std::function<void()>& work) { WithoutLock(work); },
                       .make_gpu = host_.make_gpu,
                       .now_ns = host_.now_ns,
                       .drill = host_.drill,
                       .progress = host_.progress,
                       .memory = host_.memory,
                       .asks_before_loads = host_.asks_before_loads}) {
  turn_.SetIdle();
}

void Executor::WaitExclusive() {
  if (io_lock_ == nullptr || !in_step_) return;
  io_wants_ = true;
  step_over_.wait(*io_lock_, [&] { return !in_step_; });
  io_wants_ = false;
  work_.notify_one();
}

void Executor::WithoutLock(const std::function<void()>& work) {
  io_lock_->unlock();
  work();
  io_lock_->lock();
}

Core::Ring Executor::Consume(unsigned max) {
  Core::Ring ring = Core::Ring::kMore;
  for (unsigned i = 0; i < max && ring == Core::Ring::kMore; ++i) {
    Lock lock(mu_);
    io_lock_ = &lock;
    ring = core_.ConsumeOne();
    io_lock_ = nullptr;
    if (core_.HasJob()) jobs_.notify_one();
    if (MayCompute()) work_.notify_one();
  }
  return ring;
}

bool Executor::RingChanged() {
  Lock lock(mu_);
  return core_.RingChanged();
}

bool Executor::PrepareSleep() {
  Lock lock(mu_);
  core_.SetNeedWakeup(true);
  if (!core_.RingChanged()) return true;
  core_.SetNeedWakeup(false);
  return false;
}

void Executor::EndSleep() {
  Lock lock(mu_);
  core_.SetNeedWakeup(false);
}

bool Executor::CompletionsWaiting() {
  Lock lock(mu_);
  core_.FlushCompletions();
  return core_.CompletionsWaiting();
}

void Executor::AddBuffer(uint32_t id, GuestArea* area) {
  Lock lock(mu_);
  core_.AddBuffer(id, area);
}

void Executor::DropBuffer(uint32_t id) {
  Lock lock(mu_);
  step_over_.wait(lock, [&] { return !in_step_ || step_area_ != id; });
  core_.DropBuffer(id);
}

void Executor::Close() {
  Lock lock(mu_);
  io_lock_ = &lock;
  WaitExclusive();
  io_lock_ = nullptr;
  core_.Close();
}

std::optional<int64_t> Executor::TakeVramRequest() {
  Lock lock(mu_);
  return core_.vram().TakeRequest();
}

void Executor::OnVramReply(int64_t delta, bool ok, uint64_t vf_used) {
  Lock lock(mu_);
  core_.vram().OnReply(delta, ok, vf_used);
}

bool Executor::TakeLoadRequest() {
  Lock lock(mu_);
  return core_.TakeLoadRequest();
}

void Executor::OnLoadReply() {
  Lock lock(mu_);
  core_.OnLoadReply();
}

uint64_t Executor::TakeCodeRead() {
  Lock lock(mu_);
  return core_.TakeCodeRead();
}

bool Executor::HasWork() {
  Lock lock(mu_);
  return core_.HasJob() || core_.HasWorkForGpu();
}

uint32_t Executor::sticky_error() {
  Lock lock(mu_);
  return core_.sticky_error();
}

void Executor::Stop() {
  Lock lock(mu_);
  stopping_ = true;
  work_.notify_one();
  jobs_.notify_one();
}

void Executor::RunGpuThread() {
  for (;;) {
    {
      Lock lock(mu_);
      for (;; work_.wait(lock)) {
        if (stopping_) return;
        // Also after every wake-up: a reset may have taken the work away.
        if (!MayCompute()) turn_.SetIdle();
        if (!io_wants_ && MayCompute()) break;
      }
    }
    turn_.Announce();
    TakeTurn(turn_.AwaitGrant());
  }
}

bool Executor::RunJob() {
  Lock lock(mu_);
  if (!core_.HasJob()) return false;
  Core::Job& job = core_.TakeJob();
  step_over_.wait(lock, [&] { return !in_step_; });
  lock.unlock();
  auto result = core_.RunJob(job);
  if (host_.work != nullptr) {
    host_.work->CountLoad(job.image.size());
    host_.work->CountThread();
  }
  lock.lock();
  job.result = std::move(result);
  host_.progress();
  work_.notify_one();
  return true;
}

void Executor::RunLoader() {
  for (;;) {
    {
      Lock lock(mu_);
      jobs_.wait(lock, [&] { return stopping_ || core_.HasJob(); });
      if (stopping_) return;
    }
    RunJob();
  }
}

void Executor::TakeTurn(uint32_t grant) {
  Lock lock(mu_);
  if (!turn_.Enter(grant)) return;
  for (;;) {
    if (core_.JobPending() || io_wants_) return turn_.Leave(ExecState::kReady);
    Op* op = core_.NextForGpu();
    if (op == nullptr) return turn_.Leave(ExecState::kIdle);
    if (turn_.Over() || (turn_.Finishing() && !HasBegun(*op))) {
      turn_.CountPreempt();
      return turn_.Leave(ExecState::kReady);
    }
    if (!Step(lock, *op)) return;
  }
}

bool Executor::Step(Lock& lock, Op& op) {
  in_step_ = true;
  step_area_ = op.area;
  lock.unlock();
  Core::StepResult result = core_.RunStep(op, turn_.stop(), kBudget);
  turn_.CountInstructions(result.warp_instructions);
  bool cut = false;
  if (host_.drill != nullptr) {
    host_.drill->CountInstructions(result.warp_instructions);
    cut = host_.drill->Cut();
  }
  // Off the GPU first: nobody may wait for the lock while vgpud waits for us.
  if (turn_.stop().Stopped() || cut || !LockSoon(lock)) turn_.Leave(ExecState::kReady);
  if (!lock.owns_lock()) lock.lock();
  in_step_ = false;
  step_area_ = kNoArea;
  if (core_.FinishStep(op, std::move(result))) turn_.CountKernel();
  step_over_.notify_all();
  if (core_.TakeNews() && (core_.ring_waits() || core_.any_short())) host_.progress();
  if (turn_.on_gpu()) return true;
  if (core_.HasWorkForGpu()) {
    turn_.CountPreempt();
  } else {
    turn_.SetIdle();
  }
  return false;
}

}  // namespace vgpud
