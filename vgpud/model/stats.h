// SPDX-License-Identifier: Apache-2.0
// What a scheduler thread counts, of each VF and of its GPU. Which figures of a VF clients see: model/vf_statistics.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "sched/account/account.h"
#include "sched/latency_histogram.h"
#include "vgpud/model/kernel_faults.h"

namespace vgpud::daemon {

struct VfStats {
  // Work done, as the VF's executors report it: for display, trusted for nothing. Grows only.
  struct Work {
    uint64_t kernels = 0;
    uint64_t warp_instructions = 0;
    uint64_t executor_preempts = 0;
    // Without a turn: processor time, modules loaded, bytes of their images.
    uint64_t host_work_ns = 0;
    uint64_t module_loads = 0;
    uint64_t module_bytes = 0;
    uint64_t core_wait_ns = 0;  // in its turns, without a CPU
    // Of a card that has less memory than was promised: what its executors moved off it and back, and how long it took.
    uint64_t evictions = 0;
    uint64_t evicted_bytes = 0;
    uint64_t evicting_ns = 0;
    uint64_t returned_bytes = 0;
    uint64_t returning_ns = 0;
    // Now: bytes on the card, and in the host's memory instead.
    uint64_t movable_bytes = 0;
    uint64_t moved_bytes = 0;
    KernelFaults faults;
  };
  // What the VF's executors did that ours do not: for the operator. Grows only.
  struct Conduct {
    uint64_t bad_slots = 0;    // states that there are not, counters that jump or go back: seen, and not believed
    uint64_t out_of_turn = 0;  // turn boundaries at which an executor had said for a whole turn that it was on the GPU,
                               // which was not its VF's
    uint64_t muted = 0;        // times that its bell rang so often that vgpud stopped listening for a while
  };
  // Turns that ended late, and why, as the kernel's accounts say of the executor that was the last to leave. Grows
  // only.
  struct Late {
    uint64_t turns = 0;  // more than kLate after the end of their slice
    uint64_t cpu_wait_ns = 0;
    uint64_t stolen_ns = 0;
    uint64_t computed_ns = 0;
    uint64_t slept_ns = 0;  // a lock, a page on its way
    uint64_t minor_faults = 0;
    uint64_t major_faults = 0;
    uint64_t left_behind = 0;  // turns that ended while an executor had not left, as it had no CPU
    uint64_t more_time = 0;    // turns in which an executor got more time to leave, as the host had taken some
  };
  static constexpr Ns kLate = std::chrono::milliseconds{5};
  // What was switched off because it did not leave by itself (docs/cuda-channels.md). Grows only.
  struct Channels {
    uint64_t offs = 0;       // executors, each time
    uint64_t newcomers = 0;  // channels made meanwhile, and held
    uint64_t refusals = 0;   // executors that could not be switched off or on any more
  };
  // How long taking the GPU back took, of the turns that ended while an executor was on it.
  struct Latency {
    LatencyHistogram drain;    // from the revoke until the last executor was seen off the GPU
    LatencyHistogram overrun;  // from the end of the slice until then, of slices used up; a kernel that may finish too
    LatencyHistogram channels_off;  // of each executor whose channels were switched off, since that was wanted
  };

  VfAccount account;
  VfTimes times;
  Work work;
  Latency latency;
  Conduct conduct;
  Late late;
  Channels channels;
  uint64_t debt_ns = 0;
};

// How the GPU was used, in ns.
struct GpuUseTimes {
  uint64_t run_ns = 0;
  uint64_t switch_ns = 0;
  uint64_t idle_ns = 0;
  uint64_t stall_ns = 0;
};
// All accounts of one GPU at one moment, and no more.
struct GpuAccounts {
  TimePoint at{};
  GpuUseTimes gpu;
  std::vector<VfAccount> vfs;  // in the order in which they were asked for
};
// What was counted during the last `window_ns`, about a second; 0: nothing is known yet.
struct GpuRecent {
  uint64_t window_ns = 0;
  GpuUseTimes use;
};
struct VfRecent {
  uint64_t window_ns = 0;
  VfAccount account;  // without gauges
  // The part of the time in which the VF had the GPU and did more than keep its turn, 0..1.
  double utilization() const {
    const uint64_t used = account.received_ns - std::min(account.received_ns, account.anticipated_ns);
    return window_ns == 0 ? 0 : std::min(1.0, static_cast<double>(used) / static_cast<double>(window_ns));
  }
};

// Of one GPU.
struct GpuStats {
  uint64_t now_ns = 0;
  uint64_t round = 0;
  uint64_t switch_ns = 0;
  uint64_t idle_ns = 0;
  uint64_t run_ns = 0;
  uint64_t stall_ns = 0;
  uint64_t leaving_ns = 0;  // of a turn that is just being ended: received or stall, not known yet
  uint64_t impossible_events = 0;
  LatencyHistogram switches;
  LatencyHistogram slice_ends;  // from the end of each slice that was used up until the GPU was taken back
  LatencyHistogram wake_ups;    // how late the scheduler thread's own timed waits returned
  Ns spin{0};                   // how long before the end of the present turn it stops sleeping
  bool fifo = false;
  std::vector<VfStats> vfs;  // in the order in which they were asked for
};

}  // namespace vgpud::daemon
