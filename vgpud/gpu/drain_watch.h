// SPDX-License-Identifier: Apache-2.0
// What is seen of a drain, the one under way or the last: since when, who was on the GPU, and what the kernel's
// accounts say of those who were told to leave. Scheduler thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "vgpud/gpu/leave_rule.h"
#include "vgpud/gpu/stolen_time.h"
#include "vgpud/gpu/vf_world.h"

namespace vgpud::daemon {

class DrainWatch {
 public:
  explicit DrainWatch(StolenTime stolen) : stolen_(std::move(stolen)) {}

  // Before the VF is told to leave; `now_ns` is when.
  void Begin(uint64_t now_ns);
  // The VF has been told: who is on the GPU?
  void See(VfWorld& world);
  // Those that were on the GPU when it was last looked at: a bit for each slot.
  void SetRunning(uint64_t slots) { last_running_ = slots; }
  // It has ended. False: it had before, or nobody was on the GPU.
  bool End() { return std::exchange(under_way_, false); }
  bool under_way() const { return under_way_; }
  uint64_t started_ns() const { return started_ns_; }

  // From now on its clock counts.
  void Mark(VfWorld& world, VfWorld::Executor& executor);
  // What the kernel says of it since it was told to leave.
  LeaveFigures FiguresOf(VfWorld& world, VfWorld::Executor& executor);
  // True, once: the executor in this slot gets more time than others.
  bool GiveMoreTime(uint32_t slot) { return SetBit(slot, &given_more_); }
  // True, once: the executor in this slot is to be switched off.
  bool SwitchOff(uint32_t slot) { return SetBit(slot, &switched_); }
  bool is_switched(uint32_t slot) const { return (switched_ >> slot & 1) != 0; }
  uint64_t switched() const { return switched_; }
  // How long the last executors waited for a CPU that their VF did not use itself.
  Ns WaitedForCpu(const VfWorld& world) const;
  // It has ended late: why?
  void CountLate(VfWorld& world) const;

 private:
  static bool SetBit(uint32_t slot, uint64_t* bits) {
    return (std::exchange(*bits, *bits | uint64_t{1} << slot) >> slot & 1) == 0;
  }
  // Computing time of all executors since the first of them was marked.
  uint64_t OwnCpuNs(const VfWorld& world) const;

  StolenTime stolen_;  // since the first executor was marked
  uint64_t started_ns_ = 0;
  bool under_way_ = false;             // it has begun with an executor on the GPU and has not ended
  uint64_t switched_ = 0;              // bit per slot that was wanted off
  uint64_t given_more_ = 0;            // bit per slot that got more time
  uint64_t last_running_ = 0;          // bit per slot seen on the GPU when it was last looked at
  std::optional<uint64_t> vf_cpu_ns_;  // of the VF, when the first executor was marked
};

}  // namespace vgpud::daemon
