// SPDX-License-Identifier: Apache-2.0
// One VF as the daemon keeps it: its vgpud-vf process and link, its executors, its place in the rotation. Main thread.
//
//   starting --Hello, in the rotation--> ready <--> parked
//       \                                  |          |
//        +----- vgpud-vf ended ----------> failed <---+         closing: from any state, ends with destruction
#pragma once

#include <sched.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/jail/syscall_watch.h"
#include "base/log.h"
#include "base/message.h"
#include "base/slice_memory.h"
#include "base/vf_link.h"
#include "vgpud/device/gpu_choice.h"
#include "vgpud/gpu/gpu_thread.h"
#include "vgpud/gpu/vf_ledger.h"
#include "vgpud/host/child.h"
#include "vgpud/host/child_log.h"
#include "vgpud/host/confinement.h"
#include "vgpud/host/thread_priority.h"
#include "vgpud/host/vf_cgroup.h"
#include "vgpud/host/worker.h"
#include "vgpud/model/api_error.h"
#include "vgpud/model/definition.h"
#include "vgpud/model/report.h"
#include "vgpud/model/uuid.h"
#include "vgpud/vf/kept_vf.h"
#include "vgpud/vf/outside_budget.h"
#include "vgpud/vf/server_link.h"
#include "vgpud/vf/use_window.h"

namespace vgpud::daemon {

// What a VF needs from its daemon. Outlives all VFs.
struct VfSurroundings {
  EventLoop& loop;
  GpuThread& gpu;
  std::string gpu_name;
  std::string runtime_dir;
  const GpuChoice& choice;
  uint32_t soft_gpu_threads;
  std::string soft_gpu_capability;
  std::string vf_program;
  std::string exec_program;
  VfConfinement confinement;
  EventBudgets event_budgets;
  bool client_memory;
  const CgroupTree& cgroups;
  Worker& mover;                                         // puts processes into groups
  Keeper* keeper;                                        // null: VFs end with this process
  std::function<void(const std::string& vf)> on_failed;  // one that served
  std::function<void()> on_turnout;                      // a VF has joined or left those who share the GPU
  std::optional<cpu_set_t> processors = {};              // near the GPU, for its processes; none: all
  std::shared_ptr<LogBudget> logs = std::make_shared<LogBudget>();
};

class Vf : public std::enable_shared_from_this<Vf> {
 public:
  enum class State { kStarting, kReady, kParked, kFailed, kClosing };
  template <class T>
  using Reply = std::function<void(ApiResult<T>)>;

  Vf(VfSurroundings& around, VfId id, const Uuid& uuid, const VfSpec& spec);
  ~Vf();
  Vf(const Vf&) = delete;
  Vf& operator=(const Vf&) = delete;

  // Starts vgpud-vf; `done` when the VF is in the rotation and its sockets take clients, or why not.
  void Start(Reply<uint64_t> done);
  // Goes on with the processes of a VF that an earlier vgpud has left; they have been found right (adoption.h).
  void Resume(KeptVf kept, SliceMemory slices, std::shared_ptr<VfLedger> ledger, Reply<uint64_t> done);
  // What was counted before this scheduler began. Before Start and Resume.
  void SetPast(const VfStats& past) { past_ = past; }
  // Why its knobs cannot be changed, if so.
  std::optional<ApiError> Unchangeable() const;
  // Its knobs are these now. The caller tells the GPU. Only while it is not Unchangeable().
  void Adopt(const VfView& view);
  // What its guest is told of the part of the last second in which it had the GPU; from looks at its account.
  void ShowUse(const VfAccount& account, TimePoint now);
  void SetDomain(VfDomain domain) { spec_.domain = std::move(domain); }
  // What its guest is told of its slice, and reports say.
  void SetExpectedShare(const ExpectedShare& expected);
  // Back into the rotation with empty books of hangs; the function is reset as by FLR.
  void ResetByOperator(Reply<uint64_t> done);
  // Out of the rotation, then an orderly end of its processes, by force after a while. `closed` once, when the last has
  // ended; `stuck` once, when even force has not helped for a while, because somebody holds one in the kernel.
  void Close(std::function<void()> closed, std::function<void()> stuck);
  // Looks at what it has computed outside of its turns since the last look. `granted_cpus`: so many processors it may
  // use for that on average.
  void ChargeOutsideTurns(const VfAccount& account, double granted_cpus, TimePoint now);
  // Since the last two looks: does it give way, and did it compute, in its turns or outside, more than nothing?
  bool gives_way() const { return outside_.over(); }
  bool computes() const { return computes_; }
  // It neither computes nor has the GPU, and nothing of what it did before is still counted against it.
  bool at_rest() const { return at_rest_; }
  // Its vgpud-vf ended, not by our judgement, while no VM used it: when it is made again nobody has lost a device.
  bool crashed_without_vm() const { return crashed_without_vm_; }
  // The scheduler parked it.
  void OnParked();

  VfId id() const { return id_; }
  const std::string& gpu_name() const { return around_.gpu_name; }
  VfSettings settings() const;
  VfDefinition definition() const;
  // Does it take part in sharing the GPU? Parked and paused ones do: they keep what was promised to them.
  bool Shares() const { return state_ != State::kFailed && state_ != State::kClosing; }
  const VfSpec& spec() const { return spec_; }
  uint64_t revision() const { return RevisionOf(ToText(uuid_), spec_.view); }
  State state() const { return state_; }
  VfReport Report() const;

 private:
  struct Executor {
    Executor(Child c, uint32_t number) : child(std::move(c)), channel(number) {}
    Child child;
    uint32_t channel;
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
  Result<void> Launch();
  // What it writes to stderr goes into log_.
  // Confined, in the VF's control group, its stderr in our log. `log`: a copy of its reading end, if somebody keeps it.
  Result<Child> SpawnChild(Child::Spec spec, UniqueFd* log);
  Result<void> MoveIntoGroup(const Child& child);
  void MakeLink(UniqueFd socket, uint64_t asked = 0);
  void AddExecutor(uint64_t generation, const std::shared_ptr<Executor>& executor, UniqueFd pidfd);
  // vf_resume.cc
  Result<void> WatchSyscalls(UniqueFd watch);
  void KeepSelf(uint32_t link_version);
  Result<void> Adopt(KeptVf kept);
  Result<void> OnChannel(const Message& message);
  Result<void> OnInStep(const Message& message);
  void ExpectExit(Executor& executor);
  Result<void> OnMessage(vf_link::Kind kind, const Message& message);
  Result<void> OnHello(const Message& message);
  Result<void> OnNeedExecutor(const Message& message);
  Result<void> OnChannelClosed(const Message& message);
  Result<void> OnKillExecutor(const Message& message);
  Result<void> OnClient(const Message& message);
  Result<void> OnUsage(const Message& message);
  Result<void> OnEvents(const Message& message);
  Result<void> OnWatched(const Message& message);
  void JoinGpu();
  // Starts one, or says that there will be none.
  Result<void> GiveExecutor(const vf_link::Executor& wanted);
  Result<void> StartExecutor(const vf_link::Executor& wanted);
  // Its control files, once it has handed them over.
  void AwaitChannels(uint64_t generation, Executor& executor, ChannelOffer offer);
  void OnHandOver(uint64_t generation);
  void ResumeChannels(uint64_t generation, const Executor& executor, const ChannelFiles& channels);
  void OnExecutorEnded(uint64_t generation);
  // Gives its GPU threads their priority, as soon as they are there.
  void RaiseThreadsOf(uint64_t generation);
  Ns CpuTime() const;
  // vf_outside.cc
  void EndThreadStorms();
  void SetPriorities(const VfAccount& account, TimePoint now);
  OtherThreads WhatOthersGet() const;
  void OnProcessEnded();
  void Fail(const std::string& why);
  ServerReport ReportServer() const;
  void FinishStart(ApiResult<uint64_t> result);
  void SendInfo();
  void LeaveGpu();
  void AfterRemoval();
  void OnCloseDeadline();
  void MaybeClosed();
  std::string Path(const char* suffix) const;
  uint64_t SliceUs() const;

  VfSurroundings& around_;
  const VfId id_;
  VfSpec spec_;
  ExpectedShare expected_;
  State state_ = State::kStarting;
  std::string reason_;
  const Uuid uuid_;
  SliceMemory slices_;  // its mappings go to the scheduler thread at Hello
  UniqueFd grant_fd_;   // of the pages: for executors
  UniqueFd slots_fd_;
  std::shared_ptr<VfLedger> ledger_;  // where VFs outlive this process
  VfStats past_;
  UniqueFd log_fd_;        // of vgpud-vf, until it is kept
  bool adopting_ = false;  // vgpud-vf has been asked what an earlier vgpud knew
  std::unique_ptr<SyscallWatch> syscalls_;
  ChildLog log_;
  VfCgroup cgroup_;
  UseWindow use_;
  uint32_t gpu_percent_ = 0;
  OutsideBudget outside_;
  Ns charged_cpu_{0};  // at the last look
  uint64_t charged_received_ns_ = 0;
  bool computes_ = false;
  bool at_rest_ = false;
  TimePoint charged_at_{};
  struct Priorities {
    TimePoint at{};
    uint64_t received_ns = 0;
  };
  Priorities priorities_;             // when its threads were last given them
  Ns ended_cpu_{0};                   // what processes that have ended had used
  std::unique_ptr<ServerLink> link_;  // while vgpud-vf lives
  ServerReport last_of_server_;       // when it is gone
  std::unique_ptr<Child> process_;
  EventLoop::WatchPtr process_watch_;
  EventLoop::WatchPtr deadline_;                             // of the start, later of the end
  std::map<uint64_t, std::shared_ptr<Executor>> executors_;  // by generation
  uint64_t last_generation_ = 0;
  bool in_gpu_ = false;  // known to the scheduler thread
  bool leaving_gpu_ = false;
  // What vgpud-vf says of now. When it is gone, so is what it had.
  struct Present {
    bool client_connected = false;
    uint64_t vram_used = 0;
    uint64_t host_memory_used = 0;
  };
  Present present_;
  bool crashed_without_vm_ = false;
  vf_link::Events events_;
  LogLimiter limiter_{20};
  Reply<uint64_t> started_;
  std::function<void()> closed_;
  std::function<void()> stuck_;
  bool close_forced_ = false;
};

}  // namespace vgpud::daemon
