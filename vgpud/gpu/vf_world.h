// SPDX-License-Identifier: Apache-2.0
// The world of one VF: its slice pages, the executors behind them, and what is counted of both. Scheduler thread only.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/slice_memory.h"
#include "sched/types.h"
#include "vgpud/gpu/channel_worker.h"
#include "vgpud/gpu/executor_clock.h"
#include "vgpud/gpu/slot_book.h"
#include "vgpud/model/stats.h"

namespace vgpud::daemon {

struct VfWorld {
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
    bool IsOff() const { return channels != nullptr && channels->IsOff(); }
  };
  // Threads of an executor beside those that compute: the one that serves its link, the loader, and one to spare.
  static constexpr uint32_t kOtherThreads = 3;

  GrantPage& grant_page() const { return slices.grant_page(); }
  const SlotPage& slot_page() const { return slices.slot_page(); }
  bool IsPaused() const { return view.paused || parked; }

  // One that still is in the slot is killed, and waited for wherever executors are: our vgpud-vf asks for the next only
  // when the last has ended.
  void AddExecutor(uint32_t slot, Executor executor);
  void RemoveExecutor(uint32_t slot);
  // True: those that were replaced have ended.
  bool ReplacedHaveEnded();

  bool IsRunning(uint32_t slot) const;
  bool HasWork() const;
  // Work since the first of those that have some, none since the last that had.
  Activity activity() const;
  // What the slots say at a turn boundary, when nobody has the GPU: is there work?
  bool LookAtSlots();
  // Can it be asked to leave by this drain: it is on the GPU, lives and was not left behind?
  bool MustLeave(uint32_t slot) const;
  // Does one that has or waits for a turn wait for memory of the card?
  bool WantsMemory() const;
  // How often its executors say that they have taken memory off the card. May be anything; what matters is that it
  // changes.
  uint64_t Evictions() const;
  // Those that wait for memory of the card look again.
  void TellRoom();
  // Computing time of all executors so far.
  uint64_t CpuNs() const;
  // The word of its bell, to wait for. Returns no word while the bell is muted because it rang too often.
  FutexWord Bell(TimePoint now);
  // Asks the executors to ring when they become ready, not only when they stop.
  void Watch(bool watch) { grant_page().notify.store(watch ? 2 : 1, std::memory_order_seq_cst); }
  // Shows its executors a turn until `deadline_ns`, and wakes them.
  void Grant(uint64_t deadline_ns);
  void ReadCounters() { conduct.bad_slots += book.Read(slot_page(), live); }
  VfStats::Channels ChannelCounts() const;
  // An executor goes, and what it has counted stays.
  void KeepChannelCounts(const Executor& executor);

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
  SlotBook book;
  VfStats::Channels channels;      // of executors that are gone
  std::vector<UniqueFd> replaced;  // pidfds of executors that were killed since another one got their slot
};

// Has the process behind this pidfd ended?
bool HasEnded(int pidfd);

}  // namespace vgpud::daemon
