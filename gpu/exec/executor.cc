// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/executor.h"

#include <immintrin.h>

#include <chrono>
#include <utility>

#include "gpu/exec/card_memory.h"
#include "gpu/exec/host_work.h"

namespace vgpud::exec {
namespace {

// Warp instructions between two looks at the other streams, the deadline and the I/O thread: some 100 us.
constexpr uint64_t kBudget = 8192;
// Looks at a lock that is busy, some microseconds, before its holder is taken to be off its CPU or at something long.
constexpr int kLooks = 200;
// Between two looks whether another VF waits for memory, when there is nothing to do.
constexpr std::chrono::milliseconds kLookForWishes{20};
// So long a turn waits for room, before vgpud hears of it.
constexpr uint64_t kWaitForRoomNs = 10'000'000;
// Memory of a kernel that takes a millisecond or two to give back.
constexpr uint64_t kMuch = 64 << 20;
// Between two looks into the ring, part of a microsecond in which others may have the lock.
constexpr int kPauses = 8;

}  // namespace

Executor::Executor(ChannelMemory memory, uint64_t vram_quota, Turn turn, ChannelCallbacks callbacks)
    : turn_(std::move(turn)), engine_(memory, vram_quota, std::move(callbacks)) {
  turn_.SetIdle();
}

void Executor::WaitUntilAlone() {
  if (!in_step_) return;
  io_wants_ = true;
  while (in_step_) step_over_.Wait(mu_);
  io_wants_ = false;
  WakeGpuThread();
}

void Executor::TellContext() {
  if (const auto has = engine_.TakeContextChange()) turn_.SetContext(*has);
}

bool Executor::LockSoon() NO_THREAD_SAFETY_ANALYSIS {
  for (int look = 0; look < kLooks; ++look) {
    if (mu_.try_lock()) return true;
    _mm_pause();
  }
  return false;
}

ChannelEngine::Ring Executor::ConsumeOne() {
  ChannelEngine::Ring ring = engine_.ConsumeOne(!in_step_);
  if (ring == ChannelEngine::Ring::kAlone) {
    WaitUntilAlone();
    ring = engine_.ConsumeOne();
  }
  if (ring != ChannelEngine::Ring::kCopy) return ring;
  const UnlockedCopy copy = engine_.copy();
  mu_.unlock();
  copy.Run();
  mu_.lock();
  return ChannelEngine::Ring::kPart;
}

ChannelEngine::Ring Executor::Consume(unsigned max) {
  ChannelEngine::Ring ring = ChannelEngine::Ring::kMore;
  for (unsigned i = 0; i < max && ring == ChannelEngine::Ring::kMore; ++i) {
    MutexLock lock(mu_);
    ring = ConsumeOne();
    TellContext();
    if (engine_.loader().HasJob()) jobs_.NotifyOne();
    if (MayCompute()) WakeGpuThread();
  }
  return ring;
}

void Executor::WakeGpuThread() {
  if (MayCompute() && !io_wants_ && std::exchange(gpu_rests_, false)) turn_.Announce();
  work_.NotifyOne();
}

bool Executor::RingChanged() {
  MutexLock lock(mu_);
  return !lingers_ && engine_.RingChanged();
}

bool Executor::PrepareSleep() {
  MutexLock lock(mu_);
  engine_.SetNeedWakeup(!lingers_);
  io_sleeps_ = lingers_ || !engine_.RingChanged();
  if (!io_sleeps_) engine_.SetNeedWakeup(false);
  return io_sleeps_;
}

void Executor::EndSleep() {
  MutexLock lock(mu_);
  io_sleeps_ = false;
  engine_.SetNeedWakeup(false);
}

void Executor::DropBuffer(uint32_t id) {
  MutexLock lock(mu_);
  WaitUntilAlone();
  engine_.DropBuffer(id);
}

void Executor::Close() {
  MutexLock lock(mu_);
  WaitUntilAlone();
  engine_.Close();
}

bool Executor::GpuThreadRests() {
  MutexLock lock(mu_);
  return gpu_rests_;
}

void Executor::Stop() {
  MutexLock lock(mu_);
  stopping_ = true;
  work_.NotifyOne();
  jobs_.NotifyOne();
}

void Executor::RunGpuThread() {
  for (;;) {
    {
      MutexLock lock(mu_);
      for (;; Rest()) {
        gpu_rests_ = false;
        if (stopping_) return;
        // Also after every wake-up: a reset may have taken the work away.
        if (!MayCompute()) turn_.SetIdle();
        if (!io_wants_ && MayCompute()) break;
        gpu_rests_ = true;
      }
    }
    turn_.Announce();
    TakeTurn(turn_.AwaitGrant());
    if (callbacks().card == nullptr) continue;
    MutexLock lock(mu_);
    MakeRoom();
  }
}

void Executor::Rest() {
  if (callbacks().card == nullptr) return work_.Wait(mu_);
  work_.WaitFor(mu_, kLookForWishes);
  if (!stopping_ && !MayCompute()) MakeRoom();
}

void Executor::MakeRoom() {
  if (callbacks().card == nullptr) return;
  Evictable* const memory = engine_.evictable();
  const bool has_work = engine_.HasWorkForGpu();
  if (memory != nullptr && callbacks().card->MustLeave(*memory, has_work)) callbacks().card->Leave(*memory);
  callbacks().card->Tell(memory, has_work);
}

Executor::Memory Executor::BringMemory() {
  const uint64_t end = callbacks().now_ns() + kWaitForRoomNs;
  for (bool let_go = false;; let_go = true) {
    Evictable* const memory = callbacks().card != nullptr ? engine_.evictable() : nullptr;
    if (memory == nullptr || memory->off_card() == 0) return let_go ? Memory::kLookAgain : Memory::kThere;
    const auto back = callbacks().card->BringBack(*memory, turn_.stop());
    if (!back) {
      engine_.Lose(back.error());
      return Memory::kLookAgain;
    }
    if (*back == Evictable::Back::kAll) return let_go ? Memory::kLookAgain : Memory::kThere;
    if (turn_.Over() || io_wants_ || stopping_ || callbacks().now_ns() >= end) {
      LeaveGpu(ExecState::kReady);
      return Memory::kMissing;
    }
    mu_.unlock();
    callbacks().await_room();
    mu_.lock();
  }
}

bool Executor::RunJob() {
  MutexLock lock(mu_);
  if (!engine_.loader().HasJob()) return false;
  LoadJob& job = engine_.loader().Take();
  while (in_step_) step_over_.Wait(mu_);
  mu_.unlock();
  auto result = engine_.loader().Run(job);
  if (callbacks().work != nullptr) {
    callbacks().work->CountLoad(job.module != nullptr ? job.code_bytes : job.image.size());
    callbacks().work->CountThread();
  }
  mu_.lock();
  job.result = std::move(result);
  callbacks().progress();
  WakeGpuThread();
  return true;
}

void Executor::RunLoader() {
  for (;;) {
    {
      MutexLock lock(mu_);
      while (!stopping_ && !engine_.loader().HasJob()) jobs_.Wait(mu_);
      if (stopping_) return;
    }
    RunJob();
  }
}

// False: there is nothing for the GPU, or the turn is over.
bool Executor::Linger() {
  const uint64_t once = engine_.TakeInterrupted() ? callbacks().linger_woken_ns : callbacks().linger_ns;
  const uint64_t patience = comes_soon_ ? callbacks().linger_most_ns : once;
  const uint64_t end = callbacks().now_ns() + patience;
  lingers_ = true;
  engine_.SetNeedWakeup(false);
  const auto over = [&] {
    mu_.AssertHeld();
    return stopping_ || io_wants_ || engine_.loader().Pending() || turn_.Over() || turn_.Finishing() ||
           callbacks().now_ns() >= end;
  };
  auto ring = ChannelEngine::Ring::kEmpty;
  while (!over()) {
    ring = engine_.ConsumeBrief();
    if (ring == ChannelEngine::Ring::kMore) continue;
    if (engine_.HasWorkForGpu() || ring == ChannelEngine::Ring::kWaiting) break;
    mu_.unlock();
    for (int i = 0; i < kPauses; ++i) _mm_pause();
    if (LockSoon()) continue;
    // Off the GPU first: memory that the I/O thread frees may take it much longer than vgpud waits for us.
    engine_.WaitUntilGpuIdle();
    turn_.Leave(ExecState::kReady);
    mu_.lock();
    break;
  }
  lingers_ = false;
  TellContext();
  if (!engine_.HasWorkForGpu() && callbacks().now_ns() >= end) in_vain_ns_ = patience;
  engine_.SetNeedWakeup(io_sleeps_);
  if (ring == ChannelEngine::Ring::kWaiting || (io_sleeps_ && engine_.RingChanged())) callbacks().progress();
  return engine_.HasWorkForGpu();
}

void Executor::LeaveGpu(ExecState to) {
  if (engine_.GpuBusy()) {
    in_step_ = true;
    mu_.unlock();
    engine_.WaitUntilGpuIdle();
    mu_.lock();
    in_step_ = false;
    step_over_.NotifyAll();
  }
  turn_.Leave(to);
}

void Executor::TakeTurn(uint32_t grant) {
  MutexLock lock(mu_);
  if (!turn_.Enter(grant)) return;
  if (const uint64_t looked = std::exchange(in_vain_ns_, 0); looked != 0)
    comes_soon_ = looked + turn_.idle_ns() <= callbacks().linger_most_ns;
  for (bool lingered = callbacks().linger_ns == 0;;) {
    if (engine_.loader().Pending() || io_wants_) return LeaveGpu(ExecState::kReady);
    Op* op = engine_.NextForGpu();
    if (op == nullptr && !lingered) {
      lingered = !Linger();
      if (!turn_.on_gpu()) return HasLeft();
      continue;
    }
    if (op == nullptr) return LeaveGpu(ExecState::kIdle);
    if (const Memory memory = BringMemory(); memory == Memory::kMissing) {
      return;
    } else if (memory == Memory::kLookAgain) {
      continue;
    }
    if (turn_.Over() || (turn_.Finishing() && !HasBegun(*op))) {
      turn_.CountPreempt();
      return LeaveGpu(ExecState::kReady);
    }
    if (!Step(*op)) return;
  }
}

bool Executor::Step(Op& op) {
  in_step_ = true;
  engine_.TellRoom();
  engine_.FindBehind(op, !turn_.Finishing());
  mu_.unlock();
  StepResult result = engine_.RunStep(op, turn_.stop(), kBudget);
  turn_.CountInstructions(result.warp_instructions);
  if (result.fault) turn_.CountFault(static_cast<uint32_t>(result.status));
  // Off the GPU first: nobody may wait for the lock, or for memory to be given back, while vgpud waits for us.
  const bool gives_back = result.fault || (result.done && op.grid != nullptr && op.grid->held_bytes() > kMuch);
  if (turn_.stop().Stopped() || result.stopped || gives_back || !LockSoon()) {
    engine_.WaitUntilGpuIdle();
    turn_.Leave(ExecState::kReady);
    mu_.lock();
  }
  in_step_ = false;
  if (callbacks().card != nullptr) callbacks().card->Computed();
  if (engine_.FinishStep(op, std::move(result))) turn_.CountKernel();
  step_over_.NotifyAll();
  if (engine_.TakeNews() && (engine_.ring_waits() || engine_.any_short())) callbacks().progress();
  if (turn_.on_gpu()) return true;
  engine_.TellRoom();
  HasLeft();
  return false;
}

void Executor::HasLeft() {
  if (engine_.HasWorkForGpu()) {
    turn_.CountPreempt();
  } else {
    turn_.SetIdle();
  }
}

}  // namespace vgpud::exec
