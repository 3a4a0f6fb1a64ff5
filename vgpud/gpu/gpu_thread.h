// SPDX-License-Identifier: Apache-2.0
// The scheduler thread of one GPU: owns policy, switcher and worlds, and sleeps to the nanosecond. Everything public
// is for the main thread; `done` callbacks come back on the main thread (TaskQueue `replies`).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/slice_memory.h"
#include "sched/policy.h"
#include "sched/switcher.h"
#include "vgpud/gpu/slice_world.h"
#include "vgpud/gpu/waiter.h"
#include "vgpud/host/task_queue.h"
#include "vgpud/model/stats.h"

namespace vgpud::daemon {

class VfLedger;

class GpuThread {
 public:
  struct Options {
    Switcher::Options switcher;
    Waiter::Options waiter;
    std::string thread_name = "sched-gpu0";  // 15 characters count
    size_t trace_slices = 65'536;            // the last turns that are remembered: more than a minute of slices of 1 ms
    // Executors tell their channels, which are switched off where one does not leave by itself; the driver's version.
    std::optional<uint32_t> channel_turns = {};
    bool on_cpu = false;       // executors compute on the host's processors (SliceWorld::ComputesOnCpu)
    bool shares_card = false;  // VFs take memory of the card from each other (docs/oversubscription.md)
  };
  // All run on the main thread.
  struct Events {
    std::function<void(VfId, const std::string& name, const SliceWorld::Hang&)> on_killed;
    std::function<void(VfId)> on_parked;                     // unless a Reinstate has been asked for since
    std::function<void(VfId, const VfStats&)> on_left = {};  // it is out of the rotation: its last figures
  };
  // `replies` outlives this.
  GpuThread(const Options& options, std::unique_ptr<Policy> policy, Events events, TaskQueue& replies);
  // Ends the running turn and the thread.
  ~GpuThread();
  GpuThread(const GpuThread&) = delete;
  GpuThread& operator=(const GpuThread&) = delete;

  // Round at which a change took effect. Changes take effect in the order of the calls.
  using Done = std::function<void(uint64_t round)>;
  // `view`: its knobs, and whether it is paused. Its executors are added after this. With a `ledger` its figures are
  // written there from now on, after each of its turns and a little later those of others' turns; what the ledger says
  // already is gone on with: debt, round, and whether it is parked; the figures themselves are the past.
  void AddVf(const VfView& view, const std::string& name, SliceMemory slices, Done done,
             std::shared_ptr<VfLedger> ledger = nullptr);
  // From now on no turn begins, until Release: so that VFs that come one after another begin together.
  void Hold();
  void Release();
  // All of it at the same turn boundary.
  struct Change {
    std::unique_ptr<Policy> policy = {};        // with its options: debts, rounds and what is known of the VFs go over
    std::optional<PolicyOptions> options = {};  // of the policy that stays
    std::vector<VfView> vfs = {};               // one that is paused now loses the GPU at once
  };
  void Apply(Change change, Done done);
  // Ends the VF's turn, if it has it, and takes it out.
  void RemoveVf(VfId vf, Done done);
  // Puts a parked VF back into the rotation.
  void Reinstate(VfId vf, Done done);
  // From now on `slot` of the VF counts.
  void AddExecutor(VfId vf, uint32_t slot, SliceWorld::Executor executor);
  void RemoveExecutor(VfId vf, uint32_t slot, uint64_t generation);
  // Do executors have to tell their channels?
  bool channel_turns() const { return options_.channel_turns.has_value(); }
  // How those of that executor are switched off. Only where channel_turns().
  void AddChannels(VfId vf, uint32_t slot, uint64_t generation, ChannelSource source);
  // All accounts are of one moment. The rest, which is much to copy, is added VF by VF, while there is time until the
  // running slice ends and at turn boundaries.
  void ReadStats(std::vector<VfId> vfs, std::function<void(const GpuStats&)> done);
  // The accounts alone: little work for the scheduler thread, for those who look often.
  void ReadAccounts(std::vector<VfId> vfs, std::function<void(const GpuAccounts&)> done);
  // The last turns. Any thread.
  const SliceTrace& trace() const { return trace_; }
  // Does the thread run with SCHED_FIFO? Any thread.
  bool is_fifo() const { return fifo_.load(); }
  // The processor that it is bound to, if it is. Any thread.
  std::optional<int> own_cpu() const {
    const int cpu = own_cpu_.load();
    return cpu >= 0 ? std::optional{cpu} : std::nullopt;
  }
  // What a switch from one VF to the next has cost on average so far; 0 before the first. Any thread.
  Ns switch_cost() const { return Ns{switch_cost_ns_.load(std::memory_order_relaxed)}; }

 private:
  void Main();
  void Prepare();
  void Wait();
  void WaitForWork();
  // Of a turn: until `next`, or the VF rings.
  void WaitForTurn(TimePoint next);
  void WaitForOthers(TimePoint next);
  void WaitForMore(TimePoint next);
  void WakeUp();
  // Of bells_.
  void Woken(std::optional<size_t> bell);
  struct Collection {
    std::vector<VfId> vfs;
    std::function<void(const GpuStats&)> done;
    GpuStats stats;   // with room for all
    size_t next = 0;  // of vfs: the first one of which only the account is there
  };
  void Collect(std::shared_ptr<Collection> collection);
  bool TimeToCollect() const;
  // One VF of the oldest collection; false: there is none.
  bool CollectOne();
  void CollectVf(VfId vf, VfStats* stats);
  VfStats LastOf(VfId vf, TimePoint now);
  void Parked(VfId vf, const std::function<void(VfId)>& on_parked);
  using BoundaryTask = std::function<void(TimePoint now)>;
  void AtBoundary(BoundaryTask task);
  void OnBoundary(TimePoint now);
  void TakeTheGpuFrom(VfId vf);
  void Answer(const Done& done);
  // Once for each turn that has ended: into the ledgers.
  void WriteLedgers();
  void WriteLedger(VfId vf, TimePoint now);

  const Options options_;
  TaskQueue& replies_;
  const std::function<void(VfId, const VfStats&)> on_left_;
  std::atomic<uint32_t> calls_{0};           // of WakeUp: the bell that the other threads ring
  std::unique_ptr<ChannelWorker> channels_;  // outlives the worlds
  // Scheduler thread only.
  uint32_t calls_seen_ = 0;
  FutexWord bell_;  // of the VF that had the GPU when it was asked
  std::vector<FutexWord> bells_;
  Waiter waiter_;
  std::unique_ptr<Policy> policy_;
  SliceWorld world_;
  SliceTrace trace_;  // written there, read anywhere
  Switcher switcher_;
  std::vector<BoundaryTask> at_boundary_;
  std::vector<std::shared_ptr<Collection>> collecting_;
  std::vector<uint64_t> pardons_done_;              // by VF number
  std::vector<std::shared_ptr<VfLedger>> ledgers_;  // by VF number
  uint64_t ledger_turns_ = 0;                       // that are in them
  VfId ledger_vf_{};                                // which had the GPU then
  TimePoint busy_since_{};
  WsState waited_in_ = WsState::kOff;

  std::vector<uint64_t> pardons_asked_;  // by VF number; main thread

  TaskQueue tasks_;
  std::atomic<int64_t> switch_cost_ns_{0};
  std::atomic<bool> fifo_{false};
  std::atomic<int> own_cpu_{-1};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace vgpud::daemon
