// SPDX-License-Identifier: Apache-2.0
// What is simulated: one GPU, its VFs and what their guests do, and what the operator changes on the way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sched/options.h"
#include "sched/types.h"
#include "tools/sim/distribution.h"

namespace vgpud::tools {

struct GpuModel {
  std::string name = "gpu0";
  std::string policy = "strict";
  PolicyOptions options;
  std::vector<std::string> groups;  // names, by group number
  uint64_t vram_bytes = 0;          // 0 = not counted
  Distribution switch_cost = Distribution::Fixed(Ns{50'000});
  Distribution resume_cost = Distribution::Fixed(Ns{0});  // instead, when the VF that ran last runs again
  // From the forced end to a free GPU. Work goes on meanwhile.
  Distribution preempt_latency = Distribution::Fixed(Ns{20'000});
  bool preempts_at_kernel_end = false;  // a running kernel can't be stopped, only killed
  Distribution reset_cost = Distribution::Fixed(Ns{1'000'000});
  Ns preempt_timeout{10'000'000};
  uint32_t hang_limit = 3;
  Ns hang_window = std::chrono::seconds{60};
  bool take_back_alone = false;  // a VF that nobody waits for is taken off the GPU at the end of its slice all the same
};

enum class Arrival : uint8_t {
  kNone,     // alive, never works
  kAlways,   // never without work
  kBursty,   // works, sleeps when that is done, works...
  kPoisson,  // work comes at a rate, whether or not the work before is done
};

struct Hours {  // of the day; from > to goes over midnight
  Ns from{0};
  Ns to{0};
};

struct VfSpec {
  std::string name;
  VfView view;  // number and knobs
  uint64_t vram_bytes = 0;
  Arrival arrival = Arrival::kAlways;
  Distribution work = Distribution::Fixed(Ns{10'000'000});  // GPU time of a burst
  Distribution sleep = Distribution::Fixed(Ns{90'000'000});
  double rate = 1;             // bursts per second (kPoisson)
  std::optional<Hours> hours;  // when work may come; kAlways ends with them, a burst is finished
  Distribution kernel = Distribution::Fixed(Ns{1'000'000});
  Distribution overrun = Distribution::Fixed(Ns{0});  // over the preempt latency, at a forced end
  double overrun_chance = 1;
  std::optional<Distribution> hang_every;                         // GPU time between hangs
  Distribution restart = Distribution::Fixed(Ns{1'000'000'000});  // from being killed to new work
};

enum class ChangeAction : uint8_t { kNone, kJoin, kLeave, kPause, kResume, kReset };

// Takes effect at the first turn boundary at or after `at`.
struct Change {
  Ns at{0};  // since the start
  VfId vf{};
  ChangeAction action = ChangeAction::kNone;
  std::optional<uint32_t> weight{};
  std::optional<Ns> slice{};
  std::optional<uint32_t> guarantee{};
  std::optional<uint32_t> limit{};
};

struct Workload {
  GpuModel gpu;
  std::vector<VfSpec> vfs;      // by VF number
  std::vector<Change> changes;  // in order of time; a VF whose first action is kJoin is not there before
  Ns duration = std::chrono::seconds{60};
  Ns time_of_day{0};  // when it begins
  uint64_t seed = 1;
};

}  // namespace vgpud::tools
