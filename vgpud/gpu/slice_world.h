// SPDX-License-Identifier: Apache-2.0
// The worlds of one GPU as the scheduler sees them: the slice pages of each VF and the executors behind it. Implements
// the verbs of a world switch with the protocol of base/slice_page.h. Scheduler thread only.
//
// A slot counts only while an executor that vgpud itself started stands behind it and its process lives: whatever
// else is written into a slot page makes nobody wait.
#pragma once

#include <sys/types.h>

#include <array>
#include <bit>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/slice_memory.h"
#include "sched/latency_histogram.h"
#include "sched/world_backend.h"
#include "vgpud/gpu/channel_worker.h"
#include "vgpud/gpu/executor_clock.h"
#include "vgpud/gpu/leave_rule.h"
#include "vgpud/gpu/stolen_time.h"
#include "vgpud/model/stats.h"

namespace vgpud::daemon {

// Calls f with the number of each bit that is set.
template <class F>
void ForEachBit(uint64_t bits, F f) {
  for (; bits != 0; bits &= bits - 1) f(static_cast<uint32_t>(std::countr_zero(bits)));
}

class SliceWorld final : public WorldBackend {
 public:
  // What the counters of each slot said when they were last read.
  static constexpr size_t kSlotCounters = 7;
  static constexpr size_t kMoveCounters = 5;  // of memory that leaves the card
  using Counted = std::array<std::array<uint64_t, kSlotCounters>, kMaxExecutors>;
  struct Executor {
    uint64_t generation = 0;
    pid_t pid = -1;
    UniqueFd pidfd;
    bool killed = false;
    bool resumed = false;   // it was there before this vgpud: its counters go on where SetCounted said
    uint32_t threads = 1;   // that it was told to compute with
    ExecutorClock clock{};  // set by AddExecutor
    // Its clock counts since a while after it was told to leave, or since it was first seen on the GPU after that: an
    // executor that finds the grant taken back while it enters says kRunning for a moment.
    bool marked = false;
    // Its turn ended although it had not left: it had no CPU, so it did not compute either. It leaves when it has one.
    bool behind = false;
    uint64_t behind_seen_ns = 0;  // when it was last looked at since
    // What of it is on the GPU can be switched off without its help; null: it can't, or it has not said yet how.
    std::unique_ptr<ChannelWorker::Hold> channels{};
  };
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
      : preempt_timeout_(preempt_timeout), events_(std::move(events)), stolen_(std::move(stolen)) {}

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
  VfStats::Channels ChannelsOf(VfId vf) const;
  VfStats::Work WorkOf(VfId vf);
  VfStats::Latency LatencyOf(VfId vf) const;
  VfStats::Conduct ConductOf(VfId vf) const;
  VfStats::Late LateOf(VfId vf) const;
  // Of each slice that was used up: from its end until the GPU was taken back.
  const LatencyHistogram& slice_ends() const { return slice_ends_; }
  // Turns begun so far, of all VFs.
  uint64_t turns() const { return turns_; }
  Counted CountedOf(VfId vf) const;
  // The VF's counters had been read like this, at that time, by an earlier vgpud: they go on from there.
  void SetCounted(VfId vf, const Counted& counted, uint64_t at_ns);
  // Asks all executors to ring when they become ready, not only when they stop.
  void WatchForWork(bool watch);
  // Only those of `vf`.
  void WatchForWork(VfId vf, bool watch);
  // Somebody has woken us on this bell: a ring, also when it says what it said.
  void Woken(const std::atomic<uint32_t>* bell);
  // What the VF's bell says: to be asked before looking at its slots, and slept on after that. No word: it is muted for
  // now, its executors have rung too often, or there is no such VF.
  FutexWord Bell(VfId vf, TimePoint now);
  // Adds the bells of all VFs that may get work, without `but`, as far as `bells` has room. False: not of all.
  [[nodiscard]] bool AllBells(TimePoint now, std::vector<FutexWord>* bells, std::optional<VfId> but = {});
  // The same without `vf`, which has the GPU.
  void WatchOthers(VfId vf, bool watch);
  // Tells the executors of each VF whether another one waits for memory of the card.
  void ShareCard();
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
  Ns HostDelay(VfId vf) override;

 private:
  struct Counter {
    uint64_t last = 0;
    uint64_t total = 0;
    // False: it went back, or forward by more than `most`; that is not added.
    bool Read(uint64_t now, uint64_t most);
  };
  struct SlotCounters {
    Counter kernels, warp_instructions, preempts, host_work_ns, module_loads, module_bytes, core_wait_ns;
    std::array<Counter, kMoveCounters> moves;  // in the order of MovesOf
    uint64_t read_at_ns = 0;
    uint64_t host_work_at_ns = 0;  // when it was last seen to grow: a long load is counted at its end
    uint64_t core_wait_at_ns = 0;  // the same: a turn is counted at its end
    std::array<Counter*, kSlotCounters> All() {
      return {&kernels, &warp_instructions, &preempts, &host_work_ns, &module_loads, &module_bytes, &core_wait_ns};
    }
  };
  struct World {
    VfView view;
    std::string name;
    SliceMemory slices;
    bool shown_runnable = false;  // by the last TurnBoundary
    bool joined = false;
    bool parked = false;
    uint32_t epoch = 0;
    VfStats::Latency latency;
    VfStats::Conduct conduct;
    VfStats::Late late;
    uint64_t outside = 0;  // bit per slot that said kRunning at the last boundary, and there has been no turn since
    uint32_t heard = 0;    // of its bell
    bool woken = false;    // by it, since it was last listened to
    uint32_t rings = 0;    // heard since rings_since, and since its last turn began
    TimePoint rings_since{};
    uint64_t live = 0;  // bit per slot with an executor
    std::array<Executor, kMaxExecutors> executors;
    std::array<SlotCounters, kMaxExecutors> counters;
    VfStats::Channels channels;      // of executors that are gone
    std::vector<UniqueFd> replaced;  // pidfds of executors that were killed since another one got their slot
    GrantPage& grant_page() const { return slices.grant_page(); }
    const SlotPage& slot_page() const { return slices.slot_page(); }
  };
  World* Find(VfId vf) const;
  static bool HasWork(const World& world);
  // What the slots say at a turn boundary, when nobody has the GPU.
  static bool LookAtSlots(World& world);
  static bool IsPaused(const World& world) { return world.view.paused || world.parked; }
  static bool IsRunning(const World& world, uint32_t slot);
  static void Replace(World& world, Executor& executor);
  static void ReadCounters(World& world);
  static std::array<uint64_t, kMoveCounters> MovesOf(const ExecMemory& memory);
  static void ReadMoves(const ExecMemory& from, SlotCounters& to);
  // Of a time that is added up now and then; since it was last seen to grow, it grows by `threads` a nanosecond and
  // `more` at most.
  static bool ReadTime(uint64_t says, Counter& to, uint64_t& grew_at_ns, uint64_t threads, uint64_t more);
  static bool IsOff(const Executor& executor) { return executor.channels != nullptr && executor.channels->IsOff(); }
  // On the GPU, told to leave, and not gone by itself for a while: it is switched off, if that can be.
  void SwitchOff(World& world, uint32_t slot);
  static void AddCounts(VfStats::Channels& to, const Executor& executor);
  // What the kernel says of it since it was told to leave.
  LeaveFigures FiguresOf(World& world, Executor& executor);
  // Can it be asked to leave by this drain: it is on the GPU, lives and was not left behind?
  static bool MustLeave(const World& world, uint32_t slot);
  // Does it stay on the GPU although it has had the time to leave?
  bool IsHung(World& world, uint32_t slot);
  // Those that were left behind: have they left, do they go on?
  void LookBehind(World& world);
  // The drain that is over ended late.
  void CountLate(World& world);
  void Kill(World& world, uint32_t slot, bool out_of_time);
  void Mark(World& world, Executor& executor);
  // Computing time of all executors of the VF so far, and since the first of them was marked in this drain.
  static uint64_t CpuNs(const World& world);
  uint64_t OwnCpuNs(const World& world) const;
  void EndDrain(World& world);
  // Of the drain that is over: how long its last executors waited for a CPU that their VF did not use itself.
  Ns WaitedForCpu(World& world) const;
  void EndFinish(World& world);

  const Ns preempt_timeout_;
  const Events events_;
  StolenTime stolen_;  // since the first executor was marked in this drain
  uint32_t scheduler_cpu_ = 0;
  std::vector<std::unique_ptr<World>> worlds_;  // by VF number, with holes
  std::vector<VfView> views_;
  LatencyHistogram slice_ends_;
  uint64_t turns_ = 0;
  uint64_t deadline_ns_ = 0;
  uint64_t drain_started_ns_ = 0;
  Ns host_delay_{0};                   // of the turn that has ended last
  uint64_t switched_ = 0;              // bit per slot that was wanted off in this drain
  uint64_t given_more_ = 0;            // bit per slot that got more time in this drain
  uint64_t last_running_ = 0;          // bit per slot seen on the GPU when the drain was last looked at
  std::optional<uint64_t> vf_cpu_ns_;  // of the VF, when the first executor was marked in this drain
  bool draining_ = false;              // a drain has begun with an executor on the GPU and has not ended
  bool held_ = false;
  bool on_cpu_ = false;
  bool finishing_ = false;  // the same of a kernel that may finish
};

}  // namespace vgpud::daemon
