// SPDX-License-Identifier: Apache-2.0
// Runs a workload through the scheduler that vgpud runs (Switcher, Policy, Account) in virtual time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sched/account/account.h"
#include "sched/trace.h"
#include "tools/sim/workload.h"

namespace vgpud::tools {

struct VfOutcome {
  VfId vf{};
  std::string name;
  uint32_t weight = 0;
  Ns slice{0};  // its full slice at the end
  VfAccount account;
  Ns debt{0};
  uint64_t kernels = 0;
  Ns served{0};   // of what it received, spent on its work
  Ns present{0};  // how long it was there
  Ns worst_wait{0};
  Ns mean_wait{0};
  LatencyHistogram wake_wait;    // VfTimes
  std::optional<Ns> wake_bound;  // Policy::WakeBound at the end
  double share_error_1s = 0;
  double share_error_60s = 0;
  double lag_of_bound = -1;  // -1: not judged
  bool parked = false;
};

struct Outcome {
  std::string policy;
  std::vector<VfOutcome> vfs;
  Ns wall{0};
  uint64_t run_ns = 0;
  uint64_t switch_ns = 0;
  uint64_t idle_ns = 0;
  Ns served{0};
  Ns idle_with_work{0};  // nobody ran although somebody was runnable: limits, or idle = hold
  uint64_t turns = 0;
  uint64_t rounds = 0;
  uint64_t impossible_events = 0;
  double jain = -1;
  double share_error_1s = 0;
  double share_error_60s = 0;
  double lag_of_bound = -1;
  Ns worst_wait{0};
  double Utilisation() const { return static_cast<double>(served.count()) / static_cast<double>(wall.count()); }
};

// Where a simulation begins: all times of its trace are counted from here.
inline constexpr TimePoint kSimulationStart{std::chrono::hours{24}};

// The same workload, policy and seed give the same outcome. `on_turn`, if set, is given every turn in order; no turn
// is ever lost. Fails if the policy does not exist or refuses the settings.
Result<Outcome> Simulate(const Workload& workload, const std::string& policy, uint64_t seed,
                         const std::function<void(const SliceRecord&)>& on_turn = nullptr);

}  // namespace vgpud::tools
