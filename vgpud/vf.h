// One VF as the daemon keeps it: its vgpud-vf process and link, its executors, its place in the rotation. Main thread.
//
//   starting --Hello, in the rotation--> ready <--> parked
//       \                                  |          |
//        +----- vgpud-vf ended ----------> failed <---+         closing: from any state, ends with destruction
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/log.h"
#include "base/message.h"
#include "base/vf_link.h"
#include "vgpud/child.h"
#include "vgpud/control_json.h"
#include "vgpud/gpu_thread.h"
#include "vgpud/uuid.h"

namespace vgpud {

// What a VF needs from its daemon. Outlives all VFs.
struct VfSurroundings {
  EventLoop& loop;
  GpuThread& gpu;
  int sched_event;
  std::string runtime_dir;
  std::string gpu_kind;
  uint32_t soft_gpu_threads;
  std::string vf_program;
  std::string exec_program;
  EventBudgets event_budgets;
  std::function<void()> on_turnout;  // a VF has joined or left those who share the GPU
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
  // Why its knobs cannot be changed, if so.
  std::optional<ApiError> Unchangeable() const;
  // Its knobs are these now. The caller tells the GPU. Only while it is not Unchangeable().
  void Adopt(const VfView& view);
  // What its guest is told of its slice, and reports say.
  void SetOutlook(const Outlook& outlook);
  // Back into the rotation with empty books of hangs; the function is reset as by FLR.
  void ResetByOperator(Reply<uint64_t> done);
  // Out of the rotation, then an orderly end of its processes, by force after a while. `closed` once.
  void Close(std::function<void()> closed);
  // The scheduler parked it.
  void OnParked();

  VfId id() const { return id_; }
  VfSettings settings() const;
  // Does it take part in sharing the GPU? Parked and paused ones do: they keep what was promised to them.
  bool Shares() const { return state_ != State::kFailed && state_ != State::kClosing; }
  const VfSpec& spec() const { return spec_; }
  State state() const { return state_; }
  VfReport Report() const;

 private:
  struct Executor {
    Executor(Child c, uint32_t number) : child(std::move(c)), channel(number) {}
    Child child;
    uint32_t channel;
    bool told_to_exit = false;
    EventLoop::WatchPtr ended;
    EventLoop::WatchPtr too_long;
  };
  Result<void> Launch();
  void OnLink();
  Result<void> OnMessage(const Message& message);
  Result<void> OnHello(const Message& message);
  Result<void> OnNeedExecutor(const Message& message);
  Result<void> OnChannelClosed(const Message& message);
  Result<void> OnClient(const Message& message);
  Result<void> OnUsage(const Message& message);
  Result<void> OnEvents(const Message& message);
  Result<void> StartExecutor(const vf_link::Executor& wanted);
  void OnExecutorEnded(uint64_t generation);
  void OnProcessEnded();
  void Fail(const std::string& why);
  void FinishStart(ApiResult<uint64_t> result);
  void SendInfo();
  void LeaveGpu();
  void AfterRemoval();
  void MaybeClosed();
  std::string Path(const char* suffix) const;
  uint64_t SliceUs() const;

  VfSurroundings& around_;
  const VfId id_;
  VfSpec spec_;
  Outlook outlook_;
  State state_ = State::kStarting;
  std::string reason_;
  const Uuid uuid_;
  UniqueFd link_;
  std::unique_ptr<Child> process_;
  EventLoop::WatchPtr link_watch_;
  EventLoop::WatchPtr process_watch_;
  EventLoop::WatchPtr deadline_;                             // of the start, later of the end
  std::map<uint64_t, std::shared_ptr<Executor>> executors_;  // by generation
  bool in_gpu_ = false;                                      // known to the scheduler thread
  bool leaving_gpu_ = false;
  bool client_connected_ = false;
  uint64_t vram_used_ = 0;
  vf_link::Events events_;
  LogLimiter limiter_{20};
  Reply<uint64_t> started_;
  std::function<void()> closed_;
};

}  // namespace vgpud
