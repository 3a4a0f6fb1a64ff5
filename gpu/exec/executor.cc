// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/executor.h"

#include <immintrin.h>

#include <chrono>
#include <utility>

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

class Executor::IoCall {
 public:
  explicit IoCall(Executor& executor) REQUIRES(executor.mu_) : executor_(executor) { executor_.io_calls_ = true; }
  ~IoCall() {
    executor_.mu_.AssertHeld();
    executor_.io_calls_ = false;
  }
  IoCall(const IoCall&) = delete;

 private:
  Executor& executor_;
};

Executor::Executor(ChannelMemory memory, uint64_t vram_quota, Turn turn, Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      turn_(std::move(turn)),
      engine_(memory, vram_quota,
              ChannelEngine::Callbacks{.interrupt = callbacks_.interrupt,
                                       .exclusive =
                                           [this] {
                                             mu_.AssertHeld();
                                             WaitExclusive();
                                           },
                                       .unlocked =
                                           [this](const std::function<void()>& work) {
                                             mu_.AssertHeld();
                                             WithoutLock(work);
                                           },
                                       .make_gpu = callbacks_.make_gpu,
                                       .now_ns = callbacks_.now_ns,
                                       .drill = callbacks_.drill,
                                       .progress = callbacks_.progress,
                                       .memory = callbacks_.memory,
                                       .asks_before_loads = callbacks_.asks_before_loads,
                                       .context = [this](bool has) { turn_.SetContext(has); }}) {
  turn_.SetIdle();
}

void Executor::WaitExclusive() {
  if (!io_calls_ || !in_step_) return;
  io_wants_ = true;
  while (in_step_) step_over_.Wait(mu_);
  io_wants_ = false;
  WakeGpuThread();
}

void Executor::WithoutLock(const std::function<void()>& work) {
  mu_.unlock();
  work();
  mu_.lock();
}

bool Executor::LockSoon() NO_THREAD_SAFETY_ANALYSIS {
  for (int look = 0; look < kLooks; ++look) {
    if (mu_.try_lock()) return true;
    _mm_pause();
  }
  return false;
}

ChannelEngine::Ring Executor::Consume(unsigned max) {
  ChannelEngine::Ring ring = ChannelEngine::Ring::kMore;
  for (unsigned i = 0; i < max && ring == ChannelEngine::Ring::kMore; ++i) {
    MutexLock lock(mu_);
    {
      const IoCall call(*this);
      ring = engine_.ConsumeOne();
    }
    if (engine_.HasJob()) jobs_.NotifyOne();
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

bool Executor::CompletionsWaiting() {
  MutexLock lock(mu_);
  engine_.FlushCompletions();
  return engine_.CompletionsWaiting();
}

bool Executor::WaitsForValues() {
  MutexLock lock(mu_);
  return engine_.WaitsForValues();
}

void Executor::AddBuffer(uint32_t id, GuestArea* area) {
  MutexLock lock(mu_);
  engine_.AddBuffer(id, area);
}

void Executor::DropBuffer(uint32_t id) {
  MutexLock lock(mu_);
  {
    const IoCall call(*this);
    WaitExclusive();
  }
  engine_.DropBuffer(id);
}

uint32_t Executor::buffer_part() {
  MutexLock lock(mu_);
  return engine_.buffer_part();
}

void Executor::Close() {
  MutexLock lock(mu_);
  {
    const IoCall call(*this);
    WaitExclusive();
  }
  engine_.Close();
}

std::optional<int64_t> Executor::TakeVramRequest() {
  MutexLock lock(mu_);
  return engine_.vram().TakeRequest();
}

void Executor::OnVramReply(int64_t delta, bool ok, uint64_t vf_used) {
  MutexLock lock(mu_);
  engine_.vram().OnReply(delta, ok, vf_used);
}

bool Executor::TakeLoadRequest() {
  MutexLock lock(mu_);
  return engine_.TakeLoadRequest();
}

void Executor::OnLoadReply() {
  MutexLock lock(mu_);
  engine_.OnLoadReply();
}

uint64_t Executor::TakeCodeRead() {
  MutexLock lock(mu_);
  return engine_.TakeCodeRead();
}

bool Executor::HasWork() {
  MutexLock lock(mu_);
  return engine_.HasJob() || engine_.HasWorkForGpu();
}

bool Executor::GpuThreadRests() {
  MutexLock lock(mu_);
  return gpu_rests_;
}

uint32_t Executor::sticky_error() {
  MutexLock lock(mu_);
  return engine_.sticky_error();
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
    if (callbacks_.card == nullptr) continue;
    MutexLock lock(mu_);
    MakeRoom();
  }
}

void Executor::Rest() {
  if (callbacks_.card == nullptr) return work_.Wait(mu_);
  work_.WaitFor(mu_, kLookForWishes);
  if (!stopping_ && !MayCompute()) MakeRoom();
}

void Executor::MakeRoom() {
  if (callbacks_.card == nullptr) return;
  Evictable* const memory = engine_.evictable();
  const bool has_work = engine_.HasWorkForGpu();
  if (memory != nullptr && callbacks_.card->MustLeave(*memory, has_work)) callbacks_.card->Leave(*memory);
  callbacks_.card->Tell(memory, has_work);
}

Executor::Memory Executor::BringMemory() {
  const uint64_t end = callbacks_.now_ns() + kWaitForRoomNs;
  for (bool let_go = false;; let_go = true) {
    Evictable* const memory = callbacks_.card != nullptr ? engine_.evictable() : nullptr;
    if (memory == nullptr || memory->off_card() == 0) return let_go ? Memory::kLookAgain : Memory::kThere;
    const auto back = callbacks_.card->BringBack(*memory, turn_.stop());
    if (!back) {
      engine_.Lose(back.error());
      return Memory::kLookAgain;
    }
    if (*back == Evictable::Back::kAll) return let_go ? Memory::kLookAgain : Memory::kThere;
    if (turn_.Over() || io_wants_ || stopping_ || callbacks_.now_ns() >= end) {
      LeaveGpu(ExecState::kReady);
      return Memory::kMissing;
    }
    mu_.unlock();
    callbacks_.await_room();
    mu_.lock();
  }
}

bool Executor::RunJob() {
  MutexLock lock(mu_);
  if (!engine_.HasJob()) return false;
  ChannelEngine::Job& job = engine_.TakeJob();
  while (in_step_) step_over_.Wait(mu_);
  mu_.unlock();
  auto result = engine_.RunJob(job);
  if (callbacks_.work != nullptr) {
    callbacks_.work->CountLoad(job.module != nullptr ? job.code_bytes : job.image.size());
    callbacks_.work->CountThread();
  }
  mu_.lock();
  job.result = std::move(result);
  callbacks_.progress();
  WakeGpuThread();
  return true;
}

void Executor::RunLoader() {
  for (;;) {
    {
      MutexLock lock(mu_);
      while (!stopping_ && !engine_.HasJob()) jobs_.Wait(mu_);
      if (stopping_) return;
    }
    RunJob();
  }
}

// False: there is nothing for the GPU, or the turn is over.
bool Executor::Linger() {
  const uint64_t once = engine_.TakeInterrupted() ? callbacks_.linger_woken_ns : callbacks_.linger_ns;
  const uint64_t patience = comes_soon_ ? callbacks_.linger_most_ns : once;
  const uint64_t end = callbacks_.now_ns() + patience;
  lingers_ = true;
  engine_.SetNeedWakeup(false);
  const auto over = [&] {
    mu_.AssertHeld();
    return stopping_ || io_wants_ || engine_.JobPending() || turn_.Over() || turn_.Finishing() ||
           callbacks_.now_ns() >= end;
  };
  auto ring = ChannelEngine::Ring::kEmpty;
  while (!over()) {
    ring = engine_.ConsumeOne(true);
    if (ring == ChannelEngine::Ring::kMore) continue;
    if (engine_.HasWorkForGpu() || ring == ChannelEngine::Ring::kWaiting) break;
    mu_.unlock();
    for (int i = 0; i < kPauses; ++i) _mm_pause();
    mu_.lock();
  }
  lingers_ = false;
  if (!engine_.HasWorkForGpu() && callbacks_.now_ns() >= end) in_vain_ns_ = patience;
  engine_.SetNeedWakeup(io_sleeps_);
  if (ring == ChannelEngine::Ring::kWaiting || (io_sleeps_ && engine_.RingChanged())) callbacks_.progress();
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
    comes_soon_ = looked + turn_.idle_ns() <= callbacks_.linger_most_ns;
  for (bool lingered = callbacks_.linger_ns == 0;;) {
    if (engine_.JobPending() || io_wants_) return LeaveGpu(ExecState::kReady);
    Op* op = engine_.NextForGpu();
    if (op == nullptr && !lingered) {
      lingered = !Linger();
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
  ChannelEngine::StepResult result = engine_.RunStep(op, turn_.stop(), kBudget);
  turn_.CountInstructions(result.warp_instructions);
  if (result.fault) turn_.CountFault(static_cast<uint32_t>(result.status));
  bool cut = false;
  if (callbacks_.drill != nullptr) {
    callbacks_.drill->CountInstructions(result.warp_instructions);
    cut = callbacks_.drill->Cut();
  }
  // Off the GPU first: nobody may wait for the lock, or for memory to be given back, while vgpud waits for us.
  const bool gives_back = result.fault || (result.done && op.grid != nullptr && op.grid->held_bytes() > kMuch);
  if (turn_.stop().Stopped() || cut || gives_back || !LockSoon()) {
    engine_.WaitUntilGpuIdle();
    turn_.Leave(ExecState::kReady);
    mu_.lock();
  }
  in_step_ = false;
  if (callbacks_.card != nullptr) callbacks_.card->Computed();
  if (engine_.FinishStep(op, std::move(result))) turn_.CountKernel();
  step_over_.NotifyAll();
  if (engine_.TakeNews() && (engine_.ring_waits() || engine_.any_short())) callbacks_.progress();
  if (turn_.on_gpu()) return true;
  engine_.TellRoom();
  if (engine_.HasWorkForGpu()) {
    turn_.CountPreempt();
  } else {
    turn_.SetIdle();
  }
  return false;
}

}  // namespace vgpud::exec
