// The worlds of one GPU as the scheduler sees them: a slice page per VF and the executors behind it. Implements the
// verbs of a world switch with the protocol of base/slice_page.h. Scheduler thread only.
//
// A slot counts only while an executor that vgpud itself started stands behind it and its process lives: whatever
// else is written into a slice page makes nobody wait.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/mapping.h"
#include "base/slice_page.h"
#include "sched/latency_histogram.h"
#include "sched/world_backend.h"
#include "vgpud/executor_clock.h"

namespace vgpud {

class SliceWorld final : public WorldBackend {
 public:
  struct Executor {
    uint64_t generation = 0;
    pid_t pid = -1;
    UniqueFd pidfd;
    bool killed = false;
    ExecutorClock clock{};  // set by AddExecutor
    // What it had used when it was told to leave, or was first seen on the GPU after that: an executor that finds the
    // grant taken back while it enters says kRunning for a moment. None: it was not on the GPU then.
    std::optional<ExecutorClock::Times> when_told = {};
    bool helpers_marked = false;  // since it was told to leave
  };
  // An executor that was killed because it did not leave the GPU, and what it did since it was told to.
  struct Hang {
    pid_t pid = -1;
    Ns since_told{0};
    Ns computed{0};
    Ns waited{0};              // ready, and given no CPU
    bool out_of_time = false;  // not proven to hang: it has had excuses for as long as there are any
  };
  // Work done, as the VF's executors report it: for display, trusted for nothing. Grows only.
  struct Work {
    uint64_t kernels = 0;
    uint64_t warp_instructions = 0;
    uint64_t executor_preempts = 0;
  };
  // How long taking the GPU back took, of the turns that ended while an executor was on it.
  struct Latency {
    LatencyHistogram drain;    // from the revoke until the last executor was seen off the GPU
    LatencyHistogram overrun;  // from the end of the slice until then, of slices used up; a kernel that may finish too
  };
  struct Events {
    std::function<void(TimePoint)> at_boundary;  // changes take effect here
    std::function<void(VfId, const std::string&, const Hang&)> on_killed;
    std::function<void(VfId)> on_parked;
  };
  // `preempt_timeout`: computing time after which an executor that was told to leave has no excuse.
  SliceWorld(Ns preempt_timeout, Events events) : preempt_timeout_(preempt_timeout), events_(std::move(events)) {}

  // What VFs added from now on find in their slice page (SlicePage::scheduler_cpu).
  void SetSchedulerCpu(uint32_t one_more) { scheduler_cpu_ = one_more; }
  // A new VF, not in the rotation until Join. `page` maps a whole slice page.
  void Add(VfId vf, const std::string& name, Mapping page);
  // The following do nothing for an unknown VF.
  // `view`: the knobs, and whether it is paused; whether it is runnable is seen here.
  void Join(const VfView& view);
  void Change(const VfView& view);
  void SetParked(VfId vf, bool parked);
  void Remove(VfId vf);
  void AddExecutor(VfId vf, uint32_t slot, Executor executor);
  void RemoveExecutor(VfId vf, uint32_t slot, uint64_t generation);
  Work WorkOf(VfId vf);
  Latency LatencyOf(VfId vf) const;
  // Of each slice that was used up: from its end until the GPU was taken back.
  const LatencyHistogram& slice_ends() const { return slice_ends_; }
  // Turns begun so far, of all VFs.
  uint64_t turns() const { return turns_; }
  // Asks all executors to signal sched_event when they become ready, not only when they stop.
  void WatchForWork(bool watch);
  // Has a VF got work, or lost it, since the last TurnBoundary?
  bool WorkChanged() const;

  std::span<const VfView> TurnBoundary(TimePoint now) override;
  bool HasWork(VfId vf) override;
  void Load(VfId) override {}
  void Run(VfId vf, TimePoint deadline) override;
  void Finish(VfId vf) override;
  void Drain(VfId vf) override;
  void Save(VfId vf) override;
  void Flr(VfId vf) override;
  void Park(VfId vf) override;
  bool Complete(WsState state, VfId vf) override;
  bool Excused(VfId vf) override;

 private:
  struct Counter {
    uint64_t last = 0;
    uint64_t total = 0;
    void Read(const std::atomic<uint64_t>& word);
    void Read(const std::atomic<uint32_t>& word);
  };
  struct SlotCounters {
    Counter kernels, warp_instructions, preempts;
  };
  struct World {
    VfView view;
    std::string name;
    Mapping page;
    bool shown_runnable = false;  // by the last TurnBoundary
    bool joined = false;
    bool parked = false;
    uint32_t epoch = 0;
    Latency latency;
    uint64_t live = 0;  // bit per slot with an executor
    std::array<Executor, kMaxExecutors> executors;
    std::array<SlotCounters, kMaxExecutors> counters;
    SlicePage& slice_page() const { return *page.At<SlicePage>(0); }
  };
  World* Find(VfId vf) const;
  static bool HasWork(const World& world);
  static bool IsPaused(const World& world) { return world.view.paused || world.parked; }
  static bool IsRunning(const World& world, uint32_t slot);
  static void ReadCounters(World& world);
  // Does it stay on the GPU although it has had the time to leave?
  bool IsHung(World& world, uint32_t slot);
  void Kill(World& world, uint32_t slot, bool out_of_time);
  void EndDrain(World& world);
  void EndFinish(World& world);

  const Ns preempt_timeout_;
  const Events events_;
  uint32_t scheduler_cpu_ = 0;
  std::vector<std::unique_ptr<World>> worlds_;  // by VF number, with holes
  std::vector<VfView> views_;
  LatencyHistogram slice_ends_;
  uint64_t turns_ = 0;
  uint64_t deadline_ns_ = 0;
  uint64_t drain_started_ns_ = 0;
  bool draining_ = false;   // a drain has begun with an executor on the GPU and has not ended
  bool finishing_ = false;  // the same of a kernel that may finish
};

}  // namespace vgpud
