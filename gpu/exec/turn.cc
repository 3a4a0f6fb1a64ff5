// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/turn.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/futex.h"

namespace vgpud::exec {
namespace {

// How long to sleep when the slice takes nothing new and the grant has not been taken back: then nobody may write the
// word that we sleep on, only move the deadline.
constexpr uint64_t kDeadlineRecheckNs = 1'000'000;

}  // namespace

uint64_t Turn::ThreadCpuNs() {
  timespec t{};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return 0;
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

bool Turn::PastDeadline() const {
  const uint64_t deadline = page_.deadline_ns.load(std::memory_order_relaxed);
  return deadline != 0 && now_ns_() >= deadline;
}

void Turn::SetState(ExecState state) {
  const auto has_work = [](ExecState s) { return s == ExecState::kReady || s == ExecState::kRunning; };
  if (has_work(state) != has_work(std::exchange(state_, state))) {
    const uint64_t now = now_ns_();
    since_ns_ = now;
    slot_.since_ns.store(now, std::memory_order_relaxed);
    if (has_work(state)) {
      idle_ns_ = idle_since_ns_ == 0 ? 0 : now - idle_since_ns_;
    } else {
      idle_since_ns_ = now;
    }
  }
  slot_.state.store(static_cast<uint32_t>(state), std::memory_order_seq_cst);
}

void Turn::Announce() {
  if (state_ == ExecState::kReady) return;
  SetState(ExecState::kReady);
  if (page_.notify.load(std::memory_order_seq_cst) == 2) ring_();
}

uint32_t Turn::AwaitGrant() {
  for (;;) {
    const uint32_t grant = page_.grant.load(std::memory_order_seq_cst);
    const bool runs = (grant & GrantPage::kRun) != 0;
    if (runs && !PastDeadline() && !IsFinishing(grant)) return grant;
    FutexWait(&page_.grant, grant, runs ? now_ns_() + kDeadlineRecheckNs : 0);
  }
}

bool Turn::Enter(uint32_t grant) {
  SetState(ExecState::kRunning);
  if (page_.grant.load(std::memory_order_seq_cst) != grant) {
    SetState(ExecState::kReady);
    // vgpud may have seen kRunning and be waiting for us.
    if (page_.notify.load(std::memory_order_seq_cst) != 0) ring_();
    return false;
  }
  grant_ = grant;
  on_gpu_ = true;
  entered_ns_ = now_ns_();
  clock_.since_ns.store(entered_ns_, std::memory_order_relaxed);
  entered_cpu_ns_ = cpu_ns_();
  // One that has been on the GPU since left for a reason of its own.
  const uint64_t might = std::max(page_.granted_ns.load(std::memory_order_relaxed), since_ns_);
  entry_wait_ns_ = might > left_ns_ && might < entered_ns_ ? entered_ns_ - might : 0;
  return true;
}

bool Turn::Over() const { return stop().Stopped() || PastDeadline(); }

void Turn::Leave(ExecState to) {
  left_ns_ = now_ns_();
  const uint64_t on_gpu = left_ns_ - entered_ns_, computed = cpu_ns_() - entered_cpu_ns_;
  slot_.core_wait_ns.fetch_add(entry_wait_ns_ + on_gpu - std::min(on_gpu, computed), std::memory_order_relaxed);
  clock_.on_gpu_ns.fetch_add(on_gpu, std::memory_order_relaxed);
  clock_.since_ns.store(0, std::memory_order_relaxed);
  on_gpu_ = false;
  SetState(to);
  if (page_.notify.load(std::memory_order_seq_cst) != 0) ring_();
}

void Turn::SetIdle() {
  if (state_ == ExecState::kIdle) return;
  SetState(ExecState::kIdle);
  if (page_.notify.load(std::memory_order_seq_cst) != 0) ring_();
}

}  // namespace vgpud::exec
