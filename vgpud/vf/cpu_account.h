// SPDX-License-Identifier: Apache-2.0
// What a VF computes in its turns and outside of them: it gives way to the others once it has used up its budget for
// what it does outside. Main thread.
#pragma once

#include <cstdint>

#include "base/log.h"
#include "sched/account/account.h"
#include "vgpud/host/thread_priority.h"
#include "vgpud/vf/executors.h"
#include "vgpud/vf/outside_budget.h"
#include "vgpud/vf/vf_server.h"
#include "vgpud/vf/vf_spawner.h"
#include "vgpud/vf/vf_surroundings.h"

namespace vgpud::daemon {

class CpuAccount {
 public:
  // All outlive this.
  CpuAccount(const VfSurroundings& around, std::string vf, VfCgroup& cgroup, Executors& executors,
             const VfServer& server);

  // Looks at what it has computed since the last look. `granted_cpus`: so many processors it may use outside of its
  // turns on average. `had_gpu`: its guest is shown that it had the GPU lately.
  void Charge(const VfAccount& account, double granted_cpus, bool had_gpu, TimePoint now);

  // Of all its processes, since it was created.
  Ns used() const;
  const OutsideBudget& outside() const { return outside_; }
  // Since the last two looks: did it compute, in its turns or outside, more than nothing?
  bool computes() const { return computes_; }
  // It neither computes nor has the GPU, and nothing of what it did before is still counted against it.
  bool at_rest() const { return at_rest_; }
  // What its threads get that do not compute in its turns.
  OtherThreads WhatOthersGet() const;

 private:
  void SetPriorities(const VfAccount& account, TimePoint now);
  // Processor time of its turns since it had received `before`: all its GPU threads may compute.
  Ns InTurns(const VfAccount& account, uint64_t before) const;

  const VfSurroundings& around_;
  const std::string vf_;
  VfCgroup& cgroup_;
  Executors& executors_;
  const VfServer& server_;
  OutsideBudget outside_;
  struct Look {
    TimePoint at{};
    uint64_t received_ns = 0;
    Ns cpu{0};
  };
  Look last_;        // at all of it
  Look priorities_;  // when its threads were last given priorities
  bool computes_ = false;
  bool at_rest_ = false;
  LogLimiter limiter_{20};
};

}  // namespace vgpud::daemon
