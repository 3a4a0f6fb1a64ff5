// SPDX-License-Identifier: Apache-2.0
// The executor's side of the slice page protocol (base/slice_page.h): one slot, three states. Used by the GPU thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/slice_page.h"
#include "gpu/gpu.h"

namespace vgpud::exec {

class Turn {
 public:
  // `clock` is the slot's; `ring` rings the bell of the slot page; `now_ns` is CLOCK_MONOTONIC, `cpu_ns` the calling
  // thread's processor time.
  Turn(const GrantPage& page, ExecSlot& slot, ExecClock& clock, std::function<void()> ring,
       std::function<uint64_t()> now_ns, std::function<uint64_t()> cpu_ns = ThreadCpuNs)
      : page_(page),
        slot_(slot),
        clock_(clock),
        ring_(std::move(ring)),
        now_ns_(std::move(now_ns)),
        cpu_ns_(std::move(cpu_ns)) {}

  // Of the calling thread.
  static uint64_t ThreadCpuNs();

  // There is work: kReady, and vgpud hears of it if it asked to. Any thread, while the GPU thread rests.
  void Announce();
  // Sleeps until the grant word has the run bit and the slice takes something new; returns the word. May return a word
  // that has changed since: Enter finds out.
  uint32_t AwaitGrant();
  // Onto the GPU under `grant`. False when it was revoked meanwhile: nothing may be touched then.
  bool Enter(uint32_t grant);
  // True as soon as the slice is over: revoked, or past its deadline.
  bool Over() const;
  // The slice is over, but what runs may finish: nothing new may be started.
  bool Finishing() const { return IsFinishing(grant_); }
  StopWord stop() const { return {&page_.grant, grant_}; }
  // Off the GPU, to kIdle (nothing left to run: the turn is given away) or kReady. vgpud is told if it asked to be.
  void Leave(ExecState to);
  // Off the GPU there turned out to be nothing to do, or nothing for the GPU.
  void SetIdle();
  bool on_gpu() const { return on_gpu_; }
  // How long there was nothing to do before there was work again, the last time; 0 before that.
  uint64_t idle_ns() const { return idle_ns_; }

  // The guest process has a context, or none any more. Any thread.
  void SetContext(bool has) { clock_.has_context.store(has ? 1 : 0, std::memory_order_relaxed); }
  // The slice ended before the work did.
  void CountPreempt() { slot_.preempts.fetch_add(1, std::memory_order_relaxed); }
  // A kernel failed with this CUDA error, below 65536.
  void CountFault(uint32_t error) {
    const uint32_t before = clock_.faults.load(std::memory_order_relaxed);
    clock_.faults.store(((before >> 16) + 1) << 16 | (error & 0xffff), std::memory_order_relaxed);
  }
  void CountKernel() { slot_.kernels.fetch_add(1, std::memory_order_relaxed); }
  void CountInstructions(uint64_t n) { slot_.warp_instructions.fetch_add(n, std::memory_order_relaxed); }

 private:
  void SetState(ExecState state);
  bool PastDeadline() const;
  bool IsFinishing(uint32_t grant) const { return page_.finish.load(std::memory_order_seq_cst) == grant; }

  const GrantPage& page_;
  ExecSlot& slot_;
  ExecClock& clock_;
  std::function<void()> ring_;
  std::function<uint64_t()> now_ns_;
  std::function<uint64_t()> cpu_ns_;
  uint32_t grant_ = 0;
  uint64_t entered_ns_ = 0;
  uint64_t entered_cpu_ns_ = 0;
  uint64_t entry_wait_ns_ = 0;  // until then, of the time that it might have been on the GPU
  uint64_t left_ns_ = 0;
  uint64_t since_ns_ = 0;  // as in the slot
  uint64_t idle_since_ns_ = 0;
  uint64_t idle_ns_ = 0;
  ExecState state_ = ExecState::kNone;
  bool on_gpu_ = false;
};

}  // namespace vgpud::exec
