// The slice page: one memfd per VF through which vgpud gives the GPU to the VF's executors and takes it back.
// Owned by vgpud-vf, mapped by vgpud (the only writer of grant and deadline) and by the VF's executors (each the
// only writer of its own slot). No word in it is trusted for more than this VF's own time.
//
//   vgpud                                         executor (slot i)
//   deadline = t; grant = epoch | kRun; wake      state = kRunning; if !(grant & kRun) { state = kReady; wait }
//   ... slice ...                                 runs, looking at `grant` after every warp instruction
//   grant = epoch (run bit off)                   sees it, stops: state = kReady or kIdle; signals sched_event
//   waits until no slot is kRunning
//
// Both sides use seq_cst for grant and state: either the executor sees the revoke before it touches the GPU or vgpud
// sees kRunning and waits (store-buffer pattern).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.h"

namespace vgpud {

inline constexpr uint32_t kMaxExecutors = 64;  // = VGPU_MAX_CHANNELS: slot i belongs to channel i

enum class ExecState : uint32_t {
  kNone = 0,     // no executor in this slot
  kIdle = 1,     // nothing to run
  kReady = 2,    // has work, waits for the grant
  kRunning = 3,  // on the GPU
};

struct alignas(64) ExecSlot {
  std::atomic<uint32_t> state{0};  // ExecState; written by the executor (vgpud-vf resets it to kNone after its death)
  std::atomic<uint32_t> preempts{0};  // times it left the GPU with work left because the grant was revoked
  std::atomic<uint64_t> mbz{0};
  std::atomic<uint64_t> warp_instructions{0};
  std::atomic<uint64_t> kernels{0};  // kernels finished
  std::atomic<uint64_t> busy_ns{0};  // time between kRunning and leaving it, as the executor saw it
};
static_assert(sizeof(ExecSlot) == 64);

struct SlicePage {
  static constexpr uint32_t kMagic = 0x43494c53;  // "SLIC"
  static constexpr uint32_t kRun = 1;             // low bit of grant; the rest counts grants (epoch)

  uint32_t magic = kMagic;
  uint32_t version = 1;
  alignas(64) std::atomic<uint32_t> grant{0};  // futex: executors wait for kRun here
  std::atomic<uint64_t> deadline_ns{0};        // CLOCK_MONOTONIC end of the running slice; executors also stop by it
  // 1: vgpud wants sched_event signalled when an executor stops or goes idle; 2: also when one becomes ready.
  alignas(64) std::atomic<uint32_t> notify{0};
  // 1 + the CPU that the scheduler thread is bound to, 0 = it is not: executors keep their GPU threads off it, so that
  // taking the GPU back never takes the core away that is needed to see it.
  std::atomic<uint32_t> scheduler_cpu{0};
  // The grant word under which nothing new may be started: what runs may finish, then the executor leaves (turns that
  // end without force). Any other value: no effect.
  std::atomic<uint32_t> finish{0};
  alignas(64) ExecSlot slots[kMaxExecutors];
};
inline constexpr uint64_t kSlicePageBytes = 8192;
static_assert(sizeof(SlicePage) <= kSlicePageBytes);
static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

inline bool IsGranted(const SlicePage& page) {
  return (page.grant.load(std::memory_order_seq_cst) & SlicePage::kRun) != 0;
}

}  // namespace vgpud
