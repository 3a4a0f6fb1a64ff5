// SPDX-License-Identifier: Apache-2.0
// Does an executor that was told to leave the GPU hang, or was it given no CPU? Pure: figures of the kernel's accounts
// in, a verdict out.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vgpud::daemon {

// Since the executor was told to leave, of the thread that says most against it, or for it.
struct LeaveFigures {
  uint64_t elapsed_ns = 0;
  uint64_t cpu_ns = 0;     // computed; counts what a hypervisor took away meanwhile
  uint64_t waited_ns = 0;  // ready to run, and given no CPU
  uint64_t others_ns = 0;  // computed by other threads of its VF, which the waiting one could have had
  uint64_t stolen_ns = 0;  // taken by a hypervisor, as far as it says so
  bool ready = false;      // a thread has not slept: it computes, or waits for a CPU
  bool known = true;       // false: the accounts cannot be read
};

// What a hypervisor may have taken beyond what it says, where it is sure that the host gave too little.
inline constexpr uint64_t kStolenNs = 25'000'000;
// So much of a wait, or any theft, makes that sure.
inline constexpr uint64_t kSureNs = 1'000'000;
// So long a VF's other threads may be on the CPU that one waits for which has to leave: those that load modules may
// have been placed there, until the kernel moves them.
inline constexpr uint64_t kOwnWaitNs = 100'000'000;

// The wait that the host is to blame for.
inline uint64_t HostWaitNs(const LeaveFigures& f) { return f.waited_ns - std::min(f.waited_ns, f.others_ns); }
// Did the host provably take time from it?
inline bool WasDelayed(const LeaveFigures& f) { return f.stolen_ns != 0 || HostWaitNs(f) >= kSureNs; }
// Who computes for so long does not leave.
inline uint64_t MostComputedNs(const LeaveFigures& f, uint64_t timeout_ns) {
  return timeout_ns / 2 + f.stolen_ns + (WasDelayed(f) ? kStolenNs : 0);
}

enum class Leaving : uint8_t {
  kMayYet,   // nothing is proven
  kStarves,  // it waited for a CPU at least half of the time
  kHangs,
};

inline Leaving JudgeLeaving(const LeaveFigures& f, uint64_t timeout_ns) {
  if (f.cpu_ns >= MostComputedNs(f, timeout_ns)) return Leaving::kHangs;
  if (!f.known || f.elapsed_ns < timeout_ns / 2 + f.stolen_ns) return Leaving::kMayYet;
  if (!f.ready) return Leaving::kHangs;
  // It waits for a CPU that its own VF computes on.
  if (f.elapsed_ns >= std::max(timeout_ns, kOwnWaitNs) && f.others_ns >= f.waited_ns / 2) return Leaving::kHangs;
  return f.waited_ns >= f.elapsed_ns / 2 ? Leaving::kStarves : Leaving::kMayYet;
}

}  // namespace vgpud::daemon
