// SPDX-License-Identifier: Apache-2.0
// Who had the GPU for how long, and what each VF was entitled to. All figures only grow, so that any two snapshots
// give the shares of the time between them. Nanoseconds throughout.
//
// Received: from the grant to the last acknowledgement. Entitled: a turn boundary at which R are runnable opens an
// interval that ends at the next boundary; each VF is entitled to what Policy::Entitled says of it: by slices, groups,
// classes, guarantees and limits. Borrowed: the part of what was received that the VF owes to others being idle; had
// all VFs that are not paused had work, its share would have been smaller by this part. Unclaimed: what a VF was still
// entitled to when it had no more work. Nobody kept that from it and no policy saves it up, so it is no promise any
// more: what a VF was entitled to and wanted is entitled - unclaimed.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "sched/account/felt.h"
#include "sched/latency_histogram.h"
#include "sched/policy.h"
#include "sched/statistic.h"
#include "sched/types.h"

namespace vgpud {

struct VfAccount {
  uint64_t entitled_ns = 0;
  uint64_t received_ns = 0;
  uint64_t runnable_ns = 0;   // had work, running or waiting
  uint64_t waited_ns = 0;     // had work, somebody else (or the switch) had the GPU
  uint64_t borrowed_ns = 0;   // of received_ns
  uint64_t unclaimed_ns = 0;  // of entitled_ns
  uint64_t overrun_ns = 0;
  uint64_t worst_overrun_ns = 0;
  uint64_t slices = 0;
  uint64_t forced_preemptions = 0;  // turns that ended with work left
  uint64_t hangs = 0;               // turns that ended with an executor being killed
  uint64_t host_stalls = 0;         // turns that ended late because the host gave the VF no core: excused, and repaid
  uint64_t host_delay_ns = 0;       // shorter delays of the same kind, charged to nobody
  uint64_t anticipated_ns = 0;      // of received_ns: without work, and others had some
  // From a program's first launch to its last wait, and its parts (sched/felt.h).
  uint64_t active_ns = 0;
  uint64_t active_gpu_ns = 0;
  uint64_t active_thinking_ns = 0;
  uint64_t active_others_ns = 0;
  uint64_t active_switching_ns = 0;
  uint64_t active_stalled_ns = 0;
  uint64_t active_held_ns = 0;
};

struct AccountStatistic {
  Statistic about;
  uint64_t VfAccount::*value;
};
inline constexpr AccountStatistic kAccountStatistics[] = {
    {{.name = "entitled_ns",
      .metric = "entitled_seconds_total",
      .help = "GPU time that policy, weights and limits promised to the VF.",
      .column = "entitled_ns",
      .ns = true},
     &VfAccount::entitled_ns},
    {{.name = "received_ns",
      .metric = "received_seconds_total",
      .help = "GPU time that the VF had, from the grant to its last acknowledgement.",
      .column = "received_ns",
      .ns = true},
     &VfAccount::received_ns},
    {{.name = "borrowed_ns",
      .metric = "borrowed_seconds_total",
      .help = "Part of the received time that the VF had only because others were idle.",
      .column = "borrowed_ns",
      .ns = true},
     &VfAccount::borrowed_ns},
    {{.name = "unclaimed_ns",
      .metric = "unclaimed_seconds_total",
      .help = "Part of the entitled time that the VF did not claim: it had no more work.",
      .column = "unclaimed_ns",
      .ns = true},
     &VfAccount::unclaimed_ns},
    {{.name = "runnable_ns",
      .metric = "runnable_seconds_total",
      .help = "Time in which the VF had work, running or waiting.",
      .column = "runnable_ns",
      .ns = true},
     &VfAccount::runnable_ns},
    {{.name = "waited_ns",
      .metric = "waited_seconds_total",
      .help = "Time in which the VF had work and did not have the GPU.",
      .column = "waited_ns",
      .ns = true},
     &VfAccount::waited_ns},
    {{.name = "slices", .metric = "slices_total", .help = "Turns of the VF on the GPU.", .column = "turns"},
     &VfAccount::slices},
    {{.name = "forced_preemptions",
      .metric = "forced_preemptions_total",
      .help = "Turns that were ended while the VF still had work.",
      .column = "forced_preemptions"},
     &VfAccount::forced_preemptions},
    {{.name = "overrun_ns_total",
      .metric = "overrun_seconds_total",
      .help = "Time that the VF held the GPU beyond the ends of its slices.",
      .column = "overrun_ns",
      .ns = true},
     &VfAccount::overrun_ns},
    {{.name = "worst_overrun_ns",
      .metric = "worst_overrun_seconds",
      .help = "The longest overrun of a turn so far.",
      .column = "worst_overrun_ns",
      .ns = true,
      .gauge = true,
      .worst = true,
      .reported = false},
     &VfAccount::worst_overrun_ns},
    {{.name = "hangs",
      .metric = "hangs_total",
      .help = "Turns that ended with an executor being killed.",
      .column = "hangs"},
     &VfAccount::hangs},
    {{.name = "host_stalls",
      .metric = "host_stalls_total",
      .help = "Turns that ended late because the host gave the VF no CPU.",
      .column = "host_stalls"},
     &VfAccount::host_stalls},
    {{.name = "host_delay_ns_total",
      .metric = "host_delay_seconds_total",
      .help = "Time by which turns ended late because of the host, charged to nobody.",
      .ns = true},
     &VfAccount::host_delay_ns},
    {{.name = "anticipated_ns",
      .metric = "anticipated_seconds_total",
      .help =
          "Part of the received time in which the VF kept its turn without work, others waiting, as more was expected.",
      .ns = true},
     &VfAccount::anticipated_ns},
    {{.name = "active_ns",
      .metric = "active_seconds_total",
      .help = "Wall time from a program's first launch to its last wait.",
      .column = "active_ns",
      .ns = true},
     &VfAccount::active_ns},
    {{.name = "active_gpu_ns",
      .metric = "active_gpu_seconds_total",
      .help = "Part of the active time in which the VF had work and the GPU.",
      .column = "active_gpu_ns",
      .ns = true},
     &VfAccount::active_gpu_ns},
    {{.name = "active_thinking_ns",
      .metric = "active_thinking_seconds_total",
      .help = "Part of the active time in which the VF's programs had handed in no work.",
      .column = "active_thinking_ns",
      .ns = true},
     &VfAccount::active_thinking_ns},
    {{.name = "active_others_ns",
      .metric = "active_others_seconds_total",
      .help = "Part of the active time in which the VF had work and waited for the turns of others.",
      .column = "active_others_ns",
      .ns = true},
     &VfAccount::active_others_ns},
    {{.name = "active_switching_ns",
      .metric = "active_switching_seconds_total",
      .help = "Part of the active time in which the VF had work and waited for a switch or a wake-up.",
      .column = "active_switching_ns",
      .ns = true},
     &VfAccount::active_switching_ns},
    {{.name = "active_stalled_ns",
      .metric = "active_stalled_seconds_total",
      .help = "Part of the active time in which the host gave whoever had the turn no CPU.",
      .column = "active_stalled_ns",
      .ns = true},
     &VfAccount::active_stalled_ns},
    {{.name = "active_held_ns",
      .metric = "active_held_seconds_total",
      .help = "Part of the active time in which a limit or a pause kept the VF from the GPU.",
      .column = "active_held_ns",
      .ns = true},
     &VfAccount::active_held_ns},
};

// How long things took, turn by turn.
struct VfTimes {
  LatencyHistogram overrun;    // of each turn that used up its slice: beyond the slice
  LatencyHistogram turn_wait;  // of each turn: from its VF's last turn, or from when it got work, to it
  LatencyHistogram wake_wait;  // the same, only of turns before which the VF had no work
};

class Account {
 public:
  // A turn boundary: closes the running interval and opens one with the VFs runnable now. `activities`: of each of
  // `vfs`, or empty: nobody says.
  void Observe(std::span<const VfView> vfs, const Policy& policy, TimePoint now,
               std::span<const Activity> activities = {});
  // Observe is shown another policy from now on.
  void PolicyChanged() { shares_known_ = false; }
  // From now on the GPU is used like this; `vf` owns it when `use` is kRun.
  void Use(GpuUse use, VfId vf, TimePoint now);
  struct Turn {
    VfId vf{};
    Ns overrun{0};
    bool used_up = false;  // its slice
    bool forced = false;
    bool hung = false;
    bool stalled = false;
    Ns host_delay{0};  // of kLeave: kStall, neither received nor overrun
  };
  void Ended(const Turn& turn);
  // From taking the GPU back to the next VF's start.
  void Switched(Ns took) { switches_.Add(static_cast<uint64_t>(took.count())); }
  // `vf` kept its turn for `gap` without work, while others had some.
  void Waited(VfId vf, Ns gap) { At(vf).account.anticipated_ns += static_cast<uint64_t>(std::max(Ns{0}, gap).count()); }
  // The VF on the GPU had no work from `from` to `to`.
  void Gap(TimePoint from, TimePoint to) { felt_.Gap(from, to); }
  // At the boundary at which `vf` gets a turn: what became of its time since its turn before.
  FeltTimes SinceLastTurn(VfId vf) { return felt_.Taken(vf); }
  // Brings the figures up to `now`, those of active time up to the last boundary, without changing anything else.
  // Before reading.
  void Advance(TimePoint now);
  void Forget(VfId vf);

  // Zeroes for a VF never seen.
  VfAccount Of(VfId vf) const;
  const VfTimes& TimesOf(VfId vf) const;
  const LatencyHistogram& switches() const { return switches_; }
  uint64_t switch_ns() const { return use_ns_[static_cast<size_t>(GpuUse::kSwitch)]; }
  uint64_t idle_ns() const { return use_ns_[static_cast<size_t>(GpuUse::kIdle)]; }
  uint64_t run_ns() const { return use_ns_[static_cast<size_t>(GpuUse::kRun)]; }
  uint64_t stall_ns() const { return use_ns_[static_cast<size_t>(GpuUse::kStall)]; }
  uint64_t leave_ns() const { return use_ns_[static_cast<size_t>(GpuUse::kLeave)]; }

 private:
  struct Entitled {
    VfId vf{};
    uint64_t share = 0;
    bool runnable = false;
  };
  struct Vf {
    VfAccount account;
    std::optional<TimePoint> waiting_since;
    bool had_work = false;  // at the last boundary, and no turn has ended without work since
    bool woke = false;      // it had none before it began to wait
    double own_part = 1;    // of what it receives now: the rest is borrowed
    int64_t claim_ns = 0;   // entitled - received since it got work
  };
  Vf& At(VfId vf);
  static void DropClaim(Vf& vf);
  void Receive(uint64_t ns);
  bool SharesHold(std::span<const VfView> vfs, const Policy& policy) const;
  void ObserveWaits(std::span<const VfView> vfs, std::span<const Activity> activities, TimePoint before, TimePoint now);
  void ObserveShares(std::span<const VfView> vfs, const Policy& policy);
  void ObserveOwnParts(std::span<const VfView> vfs, const Policy& policy);

  std::vector<Vf> vfs_;             // by VF number
  std::vector<VfTimes> times_;      // by VF number; apart, as every boundary looks at all of vfs_
  std::vector<Entitled> runnable_;  // and those entitled without having work
  std::vector<uint64_t> shares_;
  std::vector<VfView> all_busy_;  // of ObserveOwnParts
  std::vector<uint64_t> busy_shares_;
  uint64_t total_share_ = 0;
  // What the shares were asked for. They take long to find out, and most boundaries change nothing.
  std::vector<VfView> shares_of_;
  PolicyOptions shares_with_;
  Ns shares_base_{0};
  bool shares_known_ = false;
  std::optional<TimePoint> use_start_;
  GpuUse use_ = GpuUse::kIdle;
  VfId user_{};
  std::array<uint64_t, 5> use_ns_{};  // that of kLeave: of the present turn
  LatencyHistogram switches_;
  FeltAccount felt_;
};

}  // namespace vgpud
