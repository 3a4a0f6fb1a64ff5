// SPDX-License-Identifier: Apache-2.0
// The worlds of one GPU as the scheduler sees them: the slice pages of each VF and the executors behind it. Implements
// the verbs of a world switch with the protocol of base/slice_page.h. Scheduler thread only.
//
// A slot counts only while an executor that vgpud itself started stands behind it and its process lives: whatever
// else is written into a slot page makes nobody wait.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/slice_memory.h"
#include "sched/latency_histogram.h"
#include "sched/world_backend.h"
#include "vgpud/gpu/drain_watch.h"
#include "vgpud/gpu/stolen_time.h"
#include "vgpud/gpu/vf_world.h"
#include "vgpud/model/stats.h"

namespace vgpud::daemon {

class SliceWorld final : public WorldBackend {
 public:
  using Executor = VfWorld::Executor;
  // An executor that was killed because it did not leave the GPU, and what it did since it was told to.
  struct Hang {
    pid_t pid = -1;
    Ns since_told{0};
    Ns computed{0};
    Ns waited{0};              // ready, and given no CPU
    bool asleep = false;       // it did neither
    bool out_of_time = false;  // not proven to hang: it has had excuses for as long as there are any
  };
  struct Events {
    std::function<void(TimePoint)> at_boundary;  // changes take effect here
    std::function<bool()> wants_boundary = {};   // are there any?
    std::function<void(VfId, const std::string&, const Hang&)> on_killed;
    std::function<void(VfId)> on_parked;
  };
  // `preempt_timeout`: time after which an executor that was told to leave and has not has no excuse, unless the host
  // provably took CPU time from it.
  SliceWorld(Ns preempt_timeout, Events events, StolenTime stolen = StolenTime())
      : preempt_timeout_(preempt_timeout), events_(std::move(events)), drain_(std::move(stolen)) {}

  // While it is held nobody is shown to have work: no turn begins.
  void Hold(bool held) { held_ = held; }
  // What VFs added from now on find in their grant page (GrantPage::scheduler_cpu).
  void SetSchedulerCpu(uint32_t one_more) { scheduler_cpu_ = one_more; }
  // A new VF, not in the rotation until Join.
  void Add(VfId vf, const std::string& name, SliceMemory slices);
  // The following do nothing for an unknown VF.
  // `view`: the knobs, and whether it is paused; whether it is runnable is seen here.
  void Join(const VfView& view);
  void Change(const VfView& view);
  void SetParked(VfId vf, bool parked);
  void Remove(VfId vf);
  // One that still is in the slot is killed, and waited for wherever executors are: our vgpud-vf asks for the next only
  // when the last has ended.
  void AddExecutor(VfId vf, uint32_t slot, Executor executor);
  void RemoveExecutor(VfId vf, uint32_t slot, uint64_t generation);
  // How the channels of that executor are switched off; it may be gone already.
  void SetChannels(VfId vf, uint32_t slot, uint64_t generation, std::unique_ptr<ChannelWorker::Hold> channels);
  // What is counted of the VF.
  VfStats::Work WorkOf(VfId vf);
  VfStats::Channels ChannelsOf(VfId vf) const { return Find(vf) ? Find(vf)->ChannelCounts() : VfStats::Channels{}; }
  VfStats::Latency LatencyOf(VfId vf) const { return Find(vf) ? Find(vf)->latency : VfStats::Latency{}; }
  VfStats::Conduct ConductOf(VfId vf) const { return Find(vf) ? Find(vf)->conduct : VfStats::Conduct{}; }
  VfStats::Late LateOf(VfId vf) const { return Find(vf) ? Find(vf)->late : VfStats::Late{}; }
  // Of each slice that was used up: from its end until the GPU was taken back.
  const LatencyHistogram& slice_ends() const { return slice_ends_; }
  // Turns begun so far, of all VFs.
  uint64_t turns() const { return turns_; }
  SlotBook::Counted CountedOf(VfId vf) const { return Find(vf) ? Find(vf)->book.counted() : SlotBook::Counted{}; }
  // The VF's counters had been read like this, at that time, by an earlier vgpud: they go on from there.
  void SetCounted(VfId vf, const SlotBook::Counted& counted, uint64_t at_ns) {
    if (VfWorld* world = Find(vf)) world->book.SetCounted(counted, at_ns);
  }
  // Asks all executors, but those of `but`, to ring when they become ready, not only when they stop.
  void WatchForWork(bool watch, std::optional<VfId> but = {});
  // Only those of `vf`.
  void WatchForWork(VfId vf, bool watch);
  // Somebody has woken us on this bell: a ring, also when it says what it said.
  void Woken(const std::atomic<uint32_t>* bell);
  // What the VF's bell says: to be asked before looking at its slots, and slept on after that. No word: it is muted for
  // now, its executors have rung too often, or there is no such VF.
  FutexWord Bell(VfId vf, TimePoint now);
  // Adds the bells of all VFs that may get work, without `but`, as far as `bells` has room. False: not of all.
  [[nodiscard]] bool AllBells(TimePoint now, std::vector<FutexWord>* bells, std::optional<VfId> but = {});
  // Tells the executors of each VF whether another one waits for memory of the card, and those that wait when others
  // have taken some off it.
  void ShareCard();
  // Does any VF wait for some, as ShareCard saw it last? Then all ring when they have made room.
  bool someone_wants_memory() const { return someone_wants_memory_; }
  // Before the first turn: executors compute on this host's processors, so one that has none does nothing, and a turn
  // may end without it.
  void ComputesOnCpu() { on_cpu_ = true; }
  // Has a VF got work, or lost it, since the last TurnBoundary?
  bool WorkChanged() const;

  std::span<const VfView> TurnBoundary(TimePoint now) override;
  Activity ActivityOf(VfId vf) override;
  bool HasWork(VfId vf) override;
  void Load(VfId) override {}
  void Run(VfId vf, TimePoint deadline) override;
  bool MayStay(VfId vf) override;
  void SetDeadline(VfId vf, TimePoint end, bool stops) override;
  void Finish(VfId vf) override;
  void Drain(VfId vf) override;
  void Save(VfId vf) override;
  void Flr(VfId vf) override;
  void Park(VfId vf) override;
  bool Complete(WsState state, VfId vf) override;
  bool Excused(VfId vf) override;
  bool LeaveBehind(VfId vf) override;
  Ns HostDelay(VfId) override { return host_delay_; }

 private:
  VfWorld* Find(VfId vf) const { return Raw(vf) < worlds_.size() ? worlds_[Raw(vf)].get() : nullptr; }
  // On the GPU, told to leave, and not gone by itself for a while: it is switched off, if that can be.
  void SwitchOff(VfWorld& world, uint32_t slot);
  // Does it stay on the GPU although it has had the time to leave?
  bool IsHung(VfWorld& world, uint32_t slot);
  // Those that were left behind: have they left, do they go on?
  void LookBehind(VfWorld& world);
  void Kill(VfWorld& world, uint32_t slot, bool out_of_time);
  void EndDrain(VfWorld& world);

  const Ns preempt_timeout_;
  const Events events_;
  DrainWatch drain_;
  uint32_t scheduler_cpu_ = 0;
  std::vector<std::unique_ptr<VfWorld>> worlds_;  // by VF number, with holes
  std::vector<VfView> views_;
  LatencyHistogram slice_ends_;
  uint64_t turns_ = 0;
  uint64_t deadline_ns_ = 0;
  Ns host_delay_{0};        // of the turn that has ended last
  uint64_t evictions_ = 0;  // of all VFs, when ShareCard looked last
  bool someone_wants_memory_ = false;
  bool held_ = false;
  bool on_cpu_ = false;
  bool finishing_ = false;  // a kernel that may finish is on the GPU
};

}  // namespace vgpud::daemon
