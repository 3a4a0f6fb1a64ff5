// SPDX-License-Identifier: Apache-2.0
// What became of a VF's wall time while a program of its own was at work: from the first launch to the last wait.
// Beside Account, which knows only the time in which a VF has work: a program that launches, waits and thinks has none
// while it thinks, and what others' turns cost it after that is seen here.
//
// An active VF is, at any moment, on the GPU with work, thinking (its programs have handed in nothing), or has work and
// waits: for others' turns, for a switch or a wake-up, for a host that gives no core, or because its limit or an
// operator keeps it from the GPU. Thinking counts once it has ended: after a program's last wait there is none.
// Nanoseconds; figures only grow, at turn boundaries.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sched/types.h"

namespace vgpud {

// What the GPU does at any moment. Received times + kSwitch + kIdle + kStall + kLeave = wall time. kLeave: a VF has
// been told to leave or its slice is over; what of that time it received and what was a kStall is known when it has
// left.
enum class GpuUse : uint8_t { kIdle, kSwitch, kRun, kLeave, kStall };

enum class Felt : uint8_t { kGpu, kThinking, kOthers, kSwitching, kStalled, kHeld };
inline constexpr size_t kFeltKinds = 6;
using FeltTimes = std::array<uint64_t, kFeltKinds>;  // by Felt

// What a VF's programs do, as they say it.
struct Activity {
  bool program = true;                 // there is one
  TimePoint since = TimePoint::max();  // it has had work, or none, as it now has; beyond now: nobody says
};

class FeltAccount {
 public:
  // From now on the GPU is used like this, by `owner` when `use` is kRun or kLeave.
  void Use(GpuUse use, VfId owner, TimePoint now);
  // The VF on the GPU had no work from `from` to `to`, within its turn.
  void Gap(TimePoint from, TimePoint to);
  // Of the last kLeave: for so long the host gave its VF no core.
  void HostDelay(Ns delay) { host_delay_ = delay; }
  // A turn boundary. `activities`: of each of `vfs`, or empty: nobody says.
  void Observe(std::span<const VfView> vfs, std::span<const Activity> activities, TimePoint now);
  void Forget(VfId vf);
  // The last one.
  TimePoint boundary() const { return boundary_; }
  // Zeroes for a VF never seen.
  FeltTimes Of(VfId vf) const;
  // What has been added since the last call, or the beginning.
  FeltTimes Taken(VfId vf);

 private:
  struct Segment {
    TimePoint from;
    TimePoint to;
    GpuUse use;
    VfId owner;
  };
  struct Vf {
    FeltTimes times{};
    FeltTimes taken{};         // of times
    uint64_t thinking_ns = 0;  // that has not ended
    bool active = false;
    bool had_work = false;  // at the last boundary
  };
  static constexpr VfId kNoVf{UINT32_MAX};
  Vf& At(VfId vf);
  bool HadGpu(VfId vf) const;  // since the last boundary
  void ObserveOne(const VfView& view, const Activity& activity, TimePoint now);
  // [from, to) with work, except for the gaps of its own turn.
  void AddWork(Vf& vf, VfId id, TimePoint from, TimePoint to);

  std::vector<Vf> vfs_;                                // by VF number
  std::vector<Segment> segments_;                      // since the last boundary, the last one open
  std::vector<std::pair<TimePoint, TimePoint>> gaps_;  // the same, of whoever has the GPU
  FeltTimes all_waiting_{};  // what the time since then is worth to who had work throughout and never the GPU
  TimePoint boundary_{};
  Ns host_delay_{0};
};

}  // namespace vgpud
