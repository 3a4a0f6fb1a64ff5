// The composition root: builds and wires everything in start-up order, and is what the control API acts on. Main
// thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "vgpud/config.h"
#include "vgpud/control/control.h"
#include "vgpud/stats_report.h"
#include "vgpud/vf.h"

namespace vgpud {

class Daemon {
 public:
  // Takes the runtime directory (one daemon per directory), makes the GPU and serves the control socket. An error
  // leaves nothing behind.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> Start(const Config& config);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Serves until SIGTERM or SIGINT, then ends all VFs and removes the sockets.
  void Run();

  template <class T>
  using Reply = std::function<void(ApiResult<T>)>;
  void CreateVf(const VfSpec& spec, Reply<VfReport> done);
  // What creating it would do for the others, or why it would be refused. Nothing is done.
  ApiResult<ChangeReport> WeighVf(const VfSpec& spec) const;
  // All of `patch` at one turn boundary, or nothing. `dry_run`: answers what would change and changes nothing.
  void Change(const SettingsPatch& patch, bool dry_run, Reply<ChangeReport> done);
  // The same, and answers with the VF or the GPU as well.
  void ChangeVf(const std::string& name, const VfPatch& patch, bool dry_run, Reply<ChangeReport> done);
  void ChangeGpu(const GpuPatch& patch, bool dry_run, Reply<ChangeReport> done);
  void ResetVf(const std::string& name, Reply<VfReport> done);
  void DestroyVf(const std::string& name, Reply<VfReport> done);
  ApiResult<VfReport> ShowVf(const std::string& name) const;
  std::vector<VfReport> ListVfs() const;
  // Of all VFs, or of `name` alone.
  void ReadStats(const std::string& name, Reply<StatsReport> done);
  void DescribeGpu(Reply<GpuReport> done);
  // What was used on `day` (day.h), up to now.
  void ReadReport(const std::string& day, Reply<std::vector<History::Day>> done);
  // The same as far as the history has it.
  void ReadDay(const std::string& day, Reply<std::vector<History::Day>> done);
  // The turns of the last `length`.
  std::shared_ptr<TraceDump> DumpTrace(Ns length) const { return telemetry_->DumpTrace(GpuName(), length); }

 private:
  explicit Daemon(const Config& config);
  Result<void> TakeRuntimeDir();
  Result<void> Confine();
  Result<void> Wire();
  void Stop(const char* why);
  // The end of Stop, when the last VF is gone.
  void Finish();
  std::shared_ptr<Vf> Find(const std::string& name) const;
  // `for_good`: an operator wants it gone, so that the next one of its name is another VF.
  void EndVf(const std::string& name, bool for_good, Reply<VfReport> done);
  ApiResult<VfId> FreeId(const VfSpec& spec) const;
  Settings CurrentSettings() const;
  ApiResult<Difference> Weigh(const Settings& after) const;
  struct Wanted {
    std::shared_ptr<Vf> vf;
    VfView view;
  };
  ApiResult<std::vector<Wanted>> ApplyTo(Settings* settings, const SettingsPatch& patch) const;
  std::string BlamedField(const SettingsPatch& patch) const;
  void TellOutlooks();
  // Ten times a second while there are VFs.
  void ChargeOutsideTurns();
  GpuReport ReportGpu() const;
  // What keeps guests from the host and from each other here, in force or not.
  Protections ListProtections() const;
  std::string GpuName() const { return config_.gpu + "0"; }

  const Config config_;
  GpuSettings settings_;
  VfConfinement confinement_;
  UniqueFd lock_;
  UniqueFd replies_event_;
  EventLoop loop_;
  std::unique_ptr<TaskQueue> replies_;
  std::unique_ptr<CgroupTree> cgroups_;
  std::unique_ptr<Worker> mover_;
  std::unique_ptr<GpuThread> gpu_;
  std::unique_ptr<Telemetry> telemetry_;
  std::unique_ptr<VfSurroundings> around_;
  std::map<VfId, std::shared_ptr<Vf>> vfs_;
  std::unique_ptr<Control> control_;
  std::unique_ptr<Control> metrics_;
  std::vector<EventLoop::WatchPtr> watches_;
  EventLoop::WatchPtr charge_timer_;
  bool stopping_ = false;
};

}  // namespace vgpud
