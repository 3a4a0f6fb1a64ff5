// SPDX-License-Identifier: Apache-2.0
// The slice pages: two pieces of shared memory per VF through which vgpud gives the GPU to the VF's executors and takes
// it back. Both are made by vgpud (base/slice_memory.h). The grant page is written by vgpud alone: everybody else has a
// descriptor that maps it read-only. The slot page is written by the VF's executors, each its own slot, and by
// vgpud-vf. Nothing in it is trusted for more than this VF's own time, and vgpud only reads it.
//
//   vgpud                                         executor (slot i)
//   deadline = t; grant = epoch | kRun; wake      state = kRunning; if !(grant & kRun) { state = kReady; wait }
//   ... slice ...                                 runs, looking at `grant` after every warp instruction
//   grant = epoch (run bit off)                   sees it, stops: state = kReady or kIdle; rings
//   waits until no slot is kRunning
//
// Both sides use seq_cst for grant and state: either the executor sees the revoke before it touches the GPU or vgpud
// sees kRunning and waits (store-buffer pattern).
//
// To ring is to add 1 to `bell` and to wake who sleeps on it (futex). vgpud reads the bell, looks at the slots, and
// sleeps only if the bell still says what it read. It sleeps on the bells it wants to hear and on no others: there is
// no descriptor and no queue, so nobody can take a ring away from it, block it, or wake it in somebody else's turn.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

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
  std::atomic<uint64_t> since_ns{0};  // CLOCK_MONOTONIC: when it last got work or ran out of it
  std::atomic<uint64_t> warp_instructions{0};
  std::atomic<uint64_t> kernels{0};  // kernels finished
  // Granted or on the GPU, and its GPU thread had no CPU: from the grant, or from getting work under one, until it was
  // on the GPU, and what it did not compute of the time there. Added up when it leaves.
  std::atomic<uint64_t> core_wait_ns{0};
  // What it did for its guest without a turn (gpu/exec/host_work.h): processor time, modules loaded, bytes of them.
  std::atomic<uint64_t> host_work_ns{0};
  std::atomic<uint64_t> module_loads{0};
  std::atomic<uint64_t> module_bytes{0};
};
static_assert(sizeof(ExecSlot) == 64);

inline constexpr uint32_t kSliceVersion = 7;  // of both pages, and of how processes get at them

struct GrantPage {
  static constexpr uint32_t kMagic = 0x43494c53;  // "SLIC"
  static constexpr uint32_t kRun = 1;             // low bit of grant; the rest counts grants (epoch)

  uint32_t magic = kMagic;
  uint32_t version = kSliceVersion;
  alignas(64) std::atomic<uint32_t> grant{0};  // futex: executors wait for kRun here
  std::atomic<uint64_t> deadline_ns{0};        // CLOCK_MONOTONIC end of the running slice; executors also stop by it
  // 1: vgpud wants to hear the bell when an executor stops or goes idle; 2: also when one becomes ready.
  alignas(64) std::atomic<uint32_t> notify{0};
  // 1 + the CPU that the scheduler thread is bound to, 0 = it is not: executors start their threads off it, so that
  // taking the GPU back never takes the core away that is needed to see it.
  std::atomic<uint32_t> scheduler_cpu{0};
  // The grant word under which nothing new may be started: what runs may finish, then the executor leaves (turns that
  // end without force). Any other value: no effect.
  std::atomic<uint32_t> finish{0};
  std::atomic<uint64_t> granted_ns{0};  // CLOCK_MONOTONIC: when the run bit was last set
  // 1: another VF waits for memory of the card: executors take theirs off it when they are not on the GPU
  // (gpu/exec/card_memory.h).
  std::atomic<uint32_t> make_room{0};
  // For the next vgpud: when vgpud-keep took the run bit back since there was none. 0: it did not have to.
  std::atomic<uint64_t> taken_back_ns{0};
  // When vgpud-keep last saw that there is no vgpud: what vgpud has said before of the use of the GPU is not so any
  // more.
  std::atomic<uint64_t> vgpud_gone_ns{0};
  // Futex: counts up when executors of other VFs have taken memory off the card for this one, which waits here.
  std::atomic<uint32_t> room{0};
};
inline constexpr uint64_t kGrantPageBytes = 4096;
static_assert(sizeof(GrantPage) <= kGrantPageBytes);

// For how long an executor was on the GPU: for its own guest, who may read it at any time. What its kernels failed
// with.
struct ExecClock {
  std::atomic<uint64_t> on_gpu_ns{0};    // added up when it leaves
  std::atomic<uint64_t> since_ns{0};     // CLOCK_MONOTONIC: when it came onto the GPU; 0: it is not there
  std::atomic<uint32_t> has_context{0};  // 1: its guest has done more than to ask what the GPU is
  // Kernels that failed: how many there were in the upper 16 bits, around and around, and in the lower ones the CUDA
  // error of the last. For the operator; an executor that does not know it leaves 0.
  std::atomic<uint32_t> faults{0};
};

// Memory of a card that has less than its VFs were promised: what the executor has of it, and how often it moved.
struct alignas(64) ExecMemory {
  std::atomic<uint64_t> on_card{0};   // bytes that could be taken off it
  std::atomic<uint64_t> off_card{0};  // bytes in the host's memory instead
  std::atomic<uint64_t> wanted{0};    // bytes for which it found no room in its turn; 0: it had some
  std::atomic<uint64_t> evictions{0};
  std::atomic<uint64_t> evicted_bytes{0};
  std::atomic<uint64_t> evicting_ns{0};
  std::atomic<uint64_t> returned_bytes{0};
  std::atomic<uint64_t> returning_ns{0};
};
static_assert(sizeof(ExecMemory) == 64);

struct SlotPage {
  alignas(64) std::atomic<uint32_t> bell{0};  // futex: vgpud sleeps here
  alignas(64) ExecSlot slots[kMaxExecutors];
  alignas(64) ExecClock clocks[kMaxExecutors];
  ExecMemory memory[kMaxExecutors];
};
inline constexpr uint64_t kSlotPageBytes = 12288;
static_assert(sizeof(SlotPage) <= kSlotPageBytes);
static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

inline bool IsGranted(const GrantPage& page) {
  return (page.grant.load(std::memory_order_seq_cst) & GrantPage::kRun) != 0;
}

inline std::optional<uint32_t> SchedulerCpu(const GrantPage& page) {
  const uint32_t one_more = page.scheduler_cpu.load();
  return one_more != 0 ? std::optional{one_more - 1} : std::nullopt;
}

// Costs a system call; wakes vgpud if it sleeps on this bell.
inline void Ring(SlotPage& page) {
  page.bell.fetch_add(1, std::memory_order_seq_cst);
  FutexWakeAll(&page.bell);
}

}  // namespace vgpud
