// SPDX-License-Identifier: Apache-2.0
// The executors of one VF: one process for each channel that vgpud-vf asks one for, known to the scheduler thread from
// its start to its end. Main thread.
//
//   asked for by vgpud-vf --> runs --told to exit, in time or by force--> ended
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mapping.h"
#include "base/message.h"
#include "base/vf_link.h"
#include "vgpud/gpu/channel_files.h"
#include "vgpud/host/child.h"
#include "vgpud/host/process_pulse.h"
#include "vgpud/host/thread_priority.h"
#include "vgpud/model/process_report.h"
#include "vgpud/model/vf_spec.h"
#include "vgpud/vf/kept_vf.h"
#include "vgpud/vf/vf_spawner.h"
#include "vgpud/vf/vf_surroundings.h"

namespace vgpud::daemon {

class Executors {
 public:
  struct Events {
    // Tells vgpud-vf: kExecutor with its descriptors, or kExecutorFailed.
    std::function<Result<void>(const vf_link::Executor&, std::span<const int> fds)> answer;
    std::function<void()> on_fault;          // one ended that was not told to
    std::function<void()> on_ended;          // one ended
    std::function<OtherThreads()> priority;  // what threads get that do not compute in turns
  };
  // `around` and `spawner` outlive this. `spec`: the name and the memory of the VF.
  Executors(const VfSurroundings& around, VfSpawner& spawner, VfKeeping keeping, VfId id, const VfSpec& spec,
            Events events);

  // The VF is known to the scheduler thread: from now on there may be executors, which get these pages.
  void Open(UniqueFd grant_page, UniqueFd slot_page);
  // What new ones may take together with the others.
  void SetMemory(const VfMemory& memory) { memory_ = memory; }
  // From now on there are no new ones.
  void Refuse() { refuses_ = true; }
  // Goes on with those that an earlier vgpud has left; vgpud-vf has to say of each that it knows it, until InStep.
  [[nodiscard]] Result<void> Adopt(KeptVf& kept);

  // What vgpud-vf says of them. An error: it broke the protocol.
  [[nodiscard]] Result<void> OnNeeded(const Message& message);
  [[nodiscard]] Result<void> OnChannelClosed(const Message& message);
  [[nodiscard]] Result<void> OnKill(const Message& message);
  [[nodiscard]] Result<void> OnChannel(const Message& message);
  [[nodiscard]] Result<void> OnInStep(const Message& message);

  bool empty() const { return executors_.empty(); }
  uint32_t size() const { return static_cast<uint32_t>(executors_.size()); }
  // Of each: the program, its executor, memory and time. Not whose VF it is.
  std::vector<ProcessReport> Processes() const;
  // Processor time of those that are there and of those that were.
  Ns cpu_time() const;
  void KillAll();
  // Kills all; that is no fault of theirs.
  void EndAll();
  // Does not wait for their ends.
  void AbandonAll();
  // Kills those that have more threads than any needs, where no control group limits them.
  void EndThreadStorms();
  // Their threads get `what`, but for those that compute in turns only: of one that has computed for longer than
  // `allowed` since the last such look, all do. `watch`: such looks go on.
  void SetPriorities(const OtherThreads& what, Ns allowed, bool watch);

 private:
  struct Executor {
    Executor(Child c, uint32_t number) : child(std::move(c)), channel(number) {}
    Child child;
    uint32_t channel;
    uint32_t program = 0;  // its pid, as it says; 0: not known yet
    bool told_to_exit = false;
    ProcessPulse pulse{child.pid()};
    int looks_for_threads = 0;
    Ns gpu_threads_time{0};      // at the last look
    bool spares_threads = true;  // its GPU threads compute in its turns alone
    EventLoop::WatchPtr find_threads;
    EventLoop::WatchPtr ended;
    EventLoop::WatchPtr too_long;
    UniqueFd hand_over, board;  // until its channels are known
    EventLoop::WatchPtr tells;
    bool confirmed = true;  // false: of an earlier vgpud, and vgpud-vf has not said yet that it knows it
  };
  // Starts one, or says that there will be none.
  Result<void> Give(const vf_link::Executor& wanted);
  Result<void> Start(const vf_link::Executor& wanted);
  Child::Spec ProcessFor(int link, int nested_channel, const ChannelOffer& offer) const;
  Executor& Add(uint64_t generation, Child child, uint32_t channel, UniqueFd pidfd, bool confirmed);
  // Its control files, once it has handed them over.
  void AwaitChannels(uint64_t generation, Executor& executor, ChannelOffer offer);
  void OnHandOver(uint64_t generation);
  void ResumeChannels(uint64_t generation, const Executor& executor, const ChannelFiles& channels);
  void ExpectExit(Executor& executor);
  void OnEnded(uint64_t generation);
  // Gives its GPU threads their priority, as soon as they are there.
  void RaiseThreadsOf(uint64_t generation);
  // Adds an event about one of them to the chronicle.
  void Tell(const char* kind, pid_t pid, std::string text) const;

  const VfSurroundings& around_;
  VfSpawner& spawner_;
  const VfKeeping keeping_;
  const VfId id_;
  const VfSpec spec_;
  VfMemory memory_;
  const Events events_;
  UniqueFd grant_page_, slot_page_;
  Mapping slots_;  // read-only
  bool open_ = false;
  bool refuses_ = false;
  bool adopting_ = false;                   // vgpud-vf has been asked what an earlier vgpud knew
  std::map<uint64_t, Executor> executors_;  // by generation
  uint64_t last_generation_ = 0;
  Ns ended_cpu_{0};  // what those that have ended had used
  LogLimiter limiter_{20};
};

}  // namespace vgpud::daemon
