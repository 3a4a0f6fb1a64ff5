// SPDX-License-Identifier: Apache-2.0
// One VF as the daemon keeps it: where it is in its life, and its place in the rotation. Main thread.
//
//   starting --Hello, in the rotation--> ready <--> parked
//       \                                  |          |
//        +----- vgpud-vf ended ----------> failed <---+         closing: from any state, ends with destruction
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/slice_memory.h"
#include "vgpud/gpu/vf_ledger.h"
#include "vgpud/model/api_error.h"
#include "vgpud/model/definition.h"
#include "vgpud/model/report.h"
#include "vgpud/vf/cpu_account.h"
#include "vgpud/vf/executors.h"
#include "vgpud/vf/kept_vf.h"
#include "vgpud/vf/use_window.h"
#include "vgpud/vf/vf_server.h"
#include "vgpud/vf/vf_spawner.h"
#include "vgpud/vf/vf_surroundings.h"

namespace vgpud::daemon {

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
  // Back into the rotation with empty books of hangs; the function is reset as by FLR.
  void ResetByOperator(Reply<uint64_t> done);
  // The scheduler parked it.
  void OnParked();
  // Out of the rotation, then an orderly end of its processes, by force after a while. `closed` once, when the last has
  // ended; `stuck` once, when even force has not helped for a while, because somebody holds one in the kernel.
  void Close(std::function<void()> closed, std::function<void()> stuck);

  // Why its knobs cannot be changed, if so.
  std::optional<ApiError> Unchangeable() const;
  // Its knobs are these now. The caller tells the GPU. Only while it is not Unchangeable().
  void Adopt(const VfView& view);
  // Its memory, in steps (registry/memory_change.h). VfServer::SetQuotas:
  void SetQuotas(const VfMemory& quotas, VfServer::Answer done) { server_.SetQuotas(quotas, std::move(done)); }
  // Why its memory can't grow, if so.
  std::optional<ApiError> WhyNotMore() const;
  // It has been promised that, and new programs get it; all its processes together may take `limit` of the host.
  void Adopt(const VfMemory& memory, const VfMemory& limit);
  void SetDomain(VfDomain domain) { spec_.domain = std::move(domain); }
  // What its guest is told of its slice, and reports say.
  void SetExpectedShare(const ExpectedShare& expected);
  // A look at its account: its guest is told the part of the last second in which it had the GPU, and it gives way if
  // it computes too much outside of its turns, for which it may use `granted_cpus` processors on average.
  void Charge(const VfAccount& account, double granted_cpus, TimePoint now);
  const CpuAccount& cpu() const { return cpu_; }

  VfId id() const { return id_; }
  const std::string& gpu_name() const { return around_.gpu_name; }
  const VfSpec& spec() const { return spec_; }
  State state() const { return state_; }
  // Does it take part in sharing the GPU? Parked and paused ones do: they keep what was promised to them.
  bool Shares() const { return state_ != State::kFailed && state_ != State::kClosing; }
  // Its vgpud-vf ended, not by our judgement, while no VM used it: when it is made again nobody has lost a device.
  bool crashed_without_vm() const { return crashed_without_vm_; }
  VfSettings settings() const;
  VfDefinition definition() const { return {spec_, uuid_, Raw(id_), Path(".sock")}; }
  VfReport Report() const;
  // The programs that use it.
  std::vector<ProcessReport> Processes() const;

 private:
  Result<void> Launch();
  Result<void> GoOn(KeptVf kept);
  Result<void> OnMessage(vf_link::Kind kind, const Message& message);
  Result<void> OnHello(const Message& message);
  void OnServerEnded(const std::string& how, bool without_vm);
  // Its processes outlive this vgpud from here on.
  void Keep(uint32_t link_version);
  Result<void> Fill(KeptVf* kept);

  // --- transitions ---
  void JoinGpu();
  void OnJoined(uint64_t round);
  // The VF is lost: out of the rotation, its processes ended; it stays listed until somebody destroys it.
  void Lose(const std::string& why);
  void LeaveGpu();
  void AfterRemoval();
  void OnCloseDeadline();
  void MaybeClosed();
  void FinishStart(ApiResult<uint64_t> result);
  void ArmDeadline(Ns limit, std::function<void()> passed);

  void SendInfo();
  std::string Path(const char* suffix) const;
  uint64_t SliceUs() const;

  VfSurroundings& around_;
  const VfId id_;
  VfSpec spec_;
  const Uuid uuid_;
  ExpectedShare expected_;
  UseWindow use_;
  uint32_t gpu_percent_ = 0;
  VfStats past_;
  std::shared_ptr<VfLedger> ledger_;  // where VFs outlive this process
  SliceMemory slices_;                // its mappings go to the scheduler thread at Hello

  State state_ = State::kStarting;
  std::string reason_;
  bool in_gpu_ = false;  // known to the scheduler thread
  bool leaving_gpu_ = false;
  bool crashed_without_vm_ = false;
  bool close_forced_ = false;
  EventLoop::WatchPtr deadline_;  // of the start, later of the end
  Reply<uint64_t> started_;
  std::function<void()> closed_;
  std::function<void()> stuck_;

  const VfKeeping keeping_;
  VfSpawner spawner_;
  VfServer server_;
  Executors executors_;
  CpuAccount cpu_;
};

}  // namespace vgpud::daemon
