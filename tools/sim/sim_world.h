// SPDX-License-Identifier: Apache-2.0
// The GPU of a simulation: answers the verbs of a world switch in virtual time, with the costs of the GPU's model and
// the guests' own work. Checks by itself that no two worlds ever run.
#pragma once

#include <functional>
#include <queue>
#include <vector>

#include "sched/world_backend.h"
#include "tools/sim/load.h"
#include "tools/sim/workload.h"

namespace vgpud::tools {

class SimWorld final : public WorldBackend {
 public:
  struct Events {
    std::function<void(VfId)> on_demand_changed;  // a VF became runnable, or is no longer
    std::function<void(VfId)> on_run;             // it is put on the GPU
    std::function<void(VfId)> on_left;            // its books may be forgotten; at a turn boundary
    std::function<void(VfId)> on_reset;           // an operator reset it
  };
  // What became of one VF.
  struct VfStats {
    Ns served{0};          // on the GPU, doing its work
    Ns worst_wait{0};      // the longest that it was runnable and not on the GPU
    Ns turns_waited{0};    // all waits together ...
    uint64_t turns = 0;    // ... before so many turns
    Ns present{0};         // joined, so far
    uint64_t kernels = 0;  // by the mean length of its kernels
    bool parked = false;
  };

  // `workload` must outlive the world.
  SimWorld(const Workload& workload, uint64_t seed, TimePoint start);
  void SetEvents(Events events) { events_ = std::move(events); }

  // Lets time pass up to `now`. Never past NextEvent().
  void AdvanceTo(TimePoint now);
  // When something happens that the switcher should look at. `others`: so is work of VFs that are not on the GPU.
  TimePoint NextEvent(bool others) const;
  // Takes effect at the next turn boundary.
  void Request(const Change& change) { requested_.push_back(change); }

  TimePoint now() const { return now_; }
  // The VFs that are there, in VF order, as they are now.
  std::span<const VfView> views() const { return views_; }
  const VfView& view(VfId vf) const { return vfs_[Raw(vf)].view; }
  bool runnable(VfId vf) const { return vfs_[Raw(vf)].view.runnable; }
  // Since when `vf` has been runnable, or not, without a break.
  TimePoint unchanged_since(VfId vf) const { return vfs_[Raw(vf)].unchanged_since; }
  VfStats StatsOf(VfId vf) const;
  size_t size() const { return vfs_.size(); }
  size_t runnable_count() const { return runnable_count_; }
  // By how much the last turn that ended was too long.
  Ns overrun() const { return overrun_; }

  std::span<const VfView> TurnBoundary(TimePoint now) override;
  Activity ActivityOf(VfId vf) override { return {.program = true, .since = unchanged_since(vf)}; }
  bool HasWork(VfId vf) override;
  void Load(VfId vf) override;
  void Run(VfId vf, TimePoint deadline) override;
  bool MayStay(VfId vf) override;
  void SetDeadline(VfId vf, TimePoint end, bool stops) override;
  void Finish(VfId vf) override;
  void Drain(VfId vf) override;
  void Save(VfId vf) override;
  void Flr(VfId vf) override;
  void Park(VfId vf) override;
  bool Complete(WsState state, VfId vf) override;
  bool Excused(VfId) override { return false; }

 private:
  struct Vf {
    Vf(const VfSpec& s, Random work, Random leaving, TimePoint midnight)
        : spec(&s), load(s, work, midnight), random(leaving) {}
    const VfSpec* spec;
    tools::Load load;
    Random random;  // of how it leaves the GPU: what it wants is the same however often it has to
    VfView view;
    bool joined = false;
    bool held = false;  // by the operator
    bool hung = false;
    Ns until_hang{0};
    TimePoint unchanged_since{};
    TimePoint waiting_since{};
    TimePoint joined_at{};
    VfStats stats;
  };
  struct Wake {
    TimePoint at{};
    uint32_t vf = 0;
    bool operator>(const Wake& other) const { return at != other.at ? at > other.at : vf > other.vf; }
  };
  Vf& At(VfId vf) { return vfs_[Raw(vf)]; }
  void Schedule(Vf& vf);
  void Refresh(Vf& vf, TimePoint at);
  void Work(Ns length);
  void Apply(const Change& change);
  void Join(Vf& vf);
  void Leave(Vf& vf);
  void RebuildViews();
  Ns RestOfKernel(Vf& vf);
  Ns DrainTime(Vf& vf);
  void EndTurn();

  const Workload& workload_;
  Events events_;
  Random random_;  // of the GPU
  std::vector<Vf> vfs_;
  std::vector<VfView> views_;
  std::vector<size_t> view_of_;  // place in views_, by VF number
  std::vector<Change> requested_;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
  size_t runnable_count_ = 0;
  TimePoint now_;
  TimePoint verb_done_ = TimePoint::max();
  std::optional<VfId> running_;  // on the GPU, from Run to Save, Flr or Park
  std::optional<VfId> last_;     // whose context the GPU holds
  TimePoint deadline_{};         // the end of the slice, as far as it is known
  bool finishing_ = false;
  Ns overrun_{0};
};

}  // namespace vgpud::tools
