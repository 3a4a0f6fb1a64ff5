// SPDX-License-Identifier: Apache-2.0
// The VFs of all GPUs: makes, changes and ends them, and says what they did. What the control API acts on. Main thread
// only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "vgpud/config/config.h"
#include "vgpud/model/api_error.h"
#include "vgpud/model/report.h"
#include "vgpud/model/stats_report.h"
#include "vgpud/placement/waiting_room.h"
#include "vgpud/registry/served_gpu.h"
#include "vgpud/registry/vf_wish.h"
#include "vgpud/state/state_keeper.h"
#include "vgpud/tenants/tenants.h"
#include "vgpud/vf/adoption.h"
#include "vgpud/vf/vf.h"

namespace vgpud::daemon {

class VfRegistry {
 public:
  static constexpr const char* kDefinitionSuffix = ".json";  // of a VF's file in STATE_DIR/vfs
  // The GPUs with no VF. `around`: its configuration is resolved. Error: the policy can't be made of these settings.
  [[nodiscard]] static Result<std::unique_ptr<VfRegistry>> Make(const DaemonParts& around);
  ~VfRegistry();
  VfRegistry(const VfRegistry&) = delete;
  VfRegistry& operator=(const VfRegistry&) = delete;

  // From now on there are no new VFs; ends all, writes the history, then calls `done`.
  void Close(std::function<void()> done);

  template <class T>
  using Reply = std::function<void(ApiResult<T>)>;
  // --- lives ---
  // Makes the VFs again that were there when the last daemon ended, or goes on with their processes in `kept`, and
  // calls `done`. One that cannot be made is lost: listed with the reason, its definition kept, until somebody destroys
  // it. Once, before anything else.
  void Restore(KeptVfs kept, std::function<void()> done);
  // Before this process ends and leaves its VFs to the next: when all that was answered is on the disk, or after a
  // while.
  void Settle(std::function<void()> done);
  // It answers when the definition is on the disk, unless the VF is transient.
  void CreateVf(const VfWish& wish, Reply<VfReport> done);
  // The same, but where no GPU has room now it waits until one has (placement/waiting_room.h), if one could ever have
  // it. The answer ends the wait of a client that is gone.
  std::function<void()> CreateVfInTurn(const VfWish& wish, Reply<VfReport> done);
  void ResetVf(const std::string& name, Reply<VfReport> done);
  // `uuid` not empty: only if it is the VF of that UUID, and not another one of its name.
  void DestroyVf(const std::string& name, const std::string& uuid, Reply<VfReport> done);

  // --- changes (vf_changes.cc) ---
  // What creating it would do for the others, or why it would be refused. Nothing is done.
  ApiResult<ChangeReport> WeighVf(const VfWish& wish) const;
  // The same, if no other VF were there: could it ever be?
  ApiResult<ChangeReport> WeighVfAlone(const VfWish& wish) const;
  // All of `patch`, at one turn boundary of each GPU, or nothing. `dry_run`: answers what would change and changes
  // nothing.
  void Change(const SettingsPatch& patch, bool dry_run, Reply<ChangeReport> done);
  // The same, and answers with the VF or the GPU as well.
  void ChangeVf(const std::string& name, const VfPatch& patch, bool dry_run, Reply<ChangeReport> done);
  void ChangeGpu(const std::string& gpu, const GpuPatch& patch, bool dry_run, Reply<ChangeReport> done);
  // Whose it is from now on; an empty one: nobody's.
  ApiResult<VfReport> SetDomain(const std::string& name, const VfDomain& domain);

  // In the order of the configuration.
  const std::vector<std::unique_ptr<ServedGpu>>& gpus() const { return gpus_; }
  // By name. No name: the only one; where there are several the error names them.
  ApiResult<ServedGpu*> FindGpu(const std::string& name) const;
  // Calls `changed` whenever the settings of a GPU were, before that is answered.
  void OnSettings(std::function<void()> changed) { settings_changed_ = std::move(changed); }

  // --- tenants (limits/vf_limits.cc) ---
  // What they, and all VFs together, may have from now on; VFs that are there stay.
  void SetLimits(Tenants tenants, Tenant site);
  // The site, then those tenants that are configured, and those that VFs are of.
  std::vector<TenantReport> ListTenants() const;

  // --- reports (vf_reports.cc) ---
  ApiResult<VfReport> ShowVf(const std::string& name) const;
  std::vector<VfReport> ListVfs() const;
  // Of all VFs, or of `name` alone.
  // Of each GPU, or of `gpu` alone.
  void ReadStats(const std::string& name, const std::string& gpu, Reply<std::vector<StatsReport>> done);
  void DescribeGpu(ServedGpu& gpu, Reply<GpuReport> done);
  std::vector<GpuReport> ListGpus() const;
  const Topology* topology() const { return around_.topology; }  // null: not looked at
  // New VFs that wait for room.
  size_t waiting() const { return waiting_->size(); }
  // Brings the histories of all GPUs up to date.
  void RefreshHistories(const std::function<void()>& done);
  // In a line, for who looks at the service.
  std::string Summary() const;
  // Calls `done` when every scheduler thread has done something after this call.
  void AskSchedulers(const std::function<void()>& done);
  // What keeps guests from the host and from each other here, in force or not.
  Protections ListProtections() const;

 private:
  explicit VfRegistry(const DaemonParts& around);
  Result<void> MakeGpus();
  std::shared_ptr<Vf> Find(const std::string& name) const;
  static tl::unexpected<ApiError> NoSuchVf(const std::string& name);
  // `for_good`: an operator wants it gone, so that the next one of its name is another VF.
  void EndVf(const std::string& name, bool for_good, Reply<VfReport> done);
  // `name` has failed: it is made again, if it is one that outlives its processes or had no VM. Not twice in a minute.
  void Remake(const std::string& name);
  // When no VF is left but those whose processes can't be killed.
  void MaybeFinish();
  // `wanted`, if it is free.
  ApiResult<VfId> FreeId(const VfSpec& spec, VfId wanted = VfId{0}) const;
  void StartVf(VfId id, const Uuid& uuid, const VfSpec& spec, std::optional<Adoption::Ready> ready,
               Reply<VfReport> done);
  struct Wanted {
    std::shared_ptr<Vf> vf;
    VfView view;
  };
  // What of a request is about one GPU.
  struct Part {
    ServedGpu* gpu = nullptr;
    SettingsPatch patch;
    Settings after;
    std::vector<Wanted> vfs;
    Difference difference;
  };
  ApiResult<std::vector<Part>> Split(const SettingsPatch& patch) const;
  ApiResult<void> Weigh(Part* part) const;
  GpuThread::Change Carry(Part& part);
  // --- placement (vf_placement.cc) ---
  struct Located {
    VfId id{};
    ServedGpu* gpu = nullptr;
    VfSpec spec;      // as it will be there
    std::string why;  // there
  };
  // Where a new VF goes; not to one of `taken`.
  ApiResult<Located> Locate(const VfWish& wish, const WaitingRoom::Gpus& taken = {}) const;
  GpuRoom RoomOn(const ServedGpu& gpu) const;
  // --- limits (limits/vf_limits.cc) ---
  Amounts CostOf(const VfSpec& spec) const;
  Quota InForce(const Tenant& whose) const;
  Amounts UseOf(const Tenant& whose) const;
  // May it be made, as it would be, by its tenant's limits and by the site's? `alone`: if there were no other.
  std::optional<ApiError> WhyNotForTenant(const VfSpec& spec, bool alone) const;
  std::optional<ApiError> WhyNotForSite(const VfSpec& spec, bool alone) const;
  std::optional<ApiError> WhyNotInRam(const VfSpec& spec) const;
  std::optional<ApiError> WhyNotOneMore(const Tenant& whose, const VfSpec& spec, bool alone) const;
  // May all of them be so?
  ApiResult<void> CheckLimits(const std::vector<Part>& parts) const;
  // What it would do for the others there, or why it would be refused.
  ApiResult<Difference> WeighOn(const ServedGpu& gpu, VfId id, const VfSpec& spec) const;
  // Why not, if nobody else were there?
  std::optional<ApiError> NeverOn(const ServedGpu& gpu, const VfWish& wish) const;
  void Create(const Located& located, Reply<VfReport> done);
  uint64_t PriorityOf(const VfSpec& spec) const;
  bool TryInTurn(const VfWish& wish, const WaitingRoom::Gpus& taken, const Reply<VfReport>& done);
  // There may be room for those who wait.
  void LookForRoom();
  // --- definitions (vf_definitions.cc) ---
  struct Restoring;
  void RestoreNext(const std::shared_ptr<Restoring>& restoring);
  void RestoreOne(const VfDefinition& definition, const std::shared_ptr<Restoring>& restoring);
  void RestoreOne(const VfDefinition& definition, Adoption& adoption, std::function<void()> done);
  void Lose(const std::string& name, const std::string& uuid, const std::string& why, const VfSpec& spec = {});
  std::string DefinitionPath(const std::string& name) const;
  VfReport ReportLost(const std::string& name) const;
  // Each answers once, when the disk has it.
  void Keep(const Vf& vf, std::function<void(const Result<void>&)> done);
  void KeepChanged(const std::vector<Wanted>& changed, std::function<void(const Result<void>&)> done);
  void Forget(const std::string& name, Reply<VfReport> done);
  // Is it written down? One that ends with its domain only where its processes outlive this one.
  bool IsKept(const VfSpec& spec) const;
  Settings CurrentSettings(const ServedGpu& gpu) const;
  // May there be one more VF of so much memory?
  ApiResult<void> CheckVram(const ServedGpu& gpu, const VfSpec& spec) const;
  Uuid UuidFor(const std::string& name, const ServedGpu& gpu) const;
  void ReadStatsOf(ServedGpu& gpu, const std::string& name, std::function<void(StatsReport)> done);
  ApiResult<Difference> Weigh(const ServedGpu& gpu, const Settings& after, const SettingsPatch& patch) const;
  ApiResult<std::vector<Wanted>> ApplyTo(Settings* settings, const SettingsPatch& patch) const;
  void TellExpectedShares(const ServedGpu& gpu);
  // Ten times a second while a VF computes, twice while all are at rest.
  void ChargeOutsideTurns();
  void Charge(const std::vector<VfId>& ids, TimePoint now, const std::vector<VfAccount>& accounts);
  GpuReport ReportGpu(const ServedGpu& gpu) const;
  bool several() const { return gpus_.size() > 1; }
  ServedGpu& GpuOf(const Vf& vf) const;
  std::vector<VfId> IdsOn(const ServedGpu& gpu) const;

  const DaemonParts around_;
  std::vector<GpuConfig> configs_;  // of gpus_
  Tenants tenants_;
  Tenant site_;
  std::vector<std::unique_ptr<ServedGpu>> gpus_;  // at least one, in the order of the configuration
  std::map<VfId, std::shared_ptr<Vf>> vfs_;
  EventLoop::WatchPtr charge_timer_;
  EventLoop::WatchPtr finish_timer_;
  StateKeeper definitions_;
  struct Lost {
    std::string uuid;  // as far as it is known
    std::string why;
    VfSpec spec = {};  // as far as it is known
  };
  std::map<std::string, Lost> lost_;  // by name
  std::set<VfId> stuck_;              // being destroyed, and their processes can't be killed
  std::set<std::string> remaking_;    // by Remake: they have failed, and are being ended
  std::map<std::string, TimePoint> remade_;
  std::unique_ptr<WaitingRoom> waiting_;
  bool looks_for_room_ = false;  // soon
  std::function<void()> settings_changed_ = [] {};
  std::function<void()> closed_;  // set: no new VFs
  bool finished_ = false;
};

}  // namespace vgpud::daemon
