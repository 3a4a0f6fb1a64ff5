#include "vgpud/daemon.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "sched/knobs.h"
#include "vgpud/cgroup_file.h"
#include "vgpud/control_api.h"
#include "vgpud/private_dir.h"
#include "vgpud/readiness.h"
#include "vgpud/thread_priority.h"

namespace vgpud {
namespace {

constexpr rlim_t kDescriptors = 64 * 1024;
constexpr Ns kMoverLimit = std::chrono::seconds{1};
constexpr Ns kChargeEvery = std::chrono::milliseconds{100};
constexpr Ns kCloseHistoryLimit = std::chrono::seconds{2};
constexpr size_t kMostMoves = 1024;  // processes that wait for their control group

tl::unexpected<ApiError> NoSuchVf(const std::string& name) {
  return ApiFail(404, fmt::format("there is no vf \"{}\" (see: vgpuctl list)", name));
}

void LogHang(const std::string& vf, const SliceWorld::Hang& hang) {
  const auto us = [](Ns time) { return time / std::chrono::microseconds{1}; };
  LOG(kError,
      "vf={}: executor pid={} did not leave the GPU: {} us after it was told to it had computed for {} us and "
      "waited for a CPU for {} us{}: killed",
      vf, hang.pid, us(hang.since_told), us(hang.computed), us(hang.waited),
      hang.out_of_time ? ", out of excuses"
      : hang.asleep    ? ", it slept"
                       : "");
}

// Every VF has several.
void AllowManyDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, kDescriptors));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Daemon::Daemon(const Config& config) : config_(config), settings_(config.settings) {}

Result<std::unique_ptr<Daemon>> Daemon::Start(const Config& config) {
  AllowManyDescriptors();
  std::unique_ptr<Daemon> daemon{new Daemon(config)};
  TRY(daemon->TakeRuntimeDir());
  TRY(daemon->Confine());
  TRY(daemon->Wire());
  return daemon;
}

Result<void> Daemon::TakeRuntimeDir() {
  constexpr const char* kWhat = "runtime directory";
  constexpr const char* kOption = "--runtime-dir";
  const UniqueFd directory = TRY(OpenPrivateDir(config_.runtime_dir, 0755, kWhat, kOption));
  TRY(OpenPrivateDir(config_.runtime_dir + "/vf", 0755, kWhat, kOption));
  const std::string path = config_.runtime_dir + "/vgpud.lock";
  auto opened = OpenPrivateFile(directory, "vgpud.lock");
  if (!opened)
    return Fail(opened.error().code, fmt::format("{} {}: {}", kWhat, config_.runtime_dir, opened.error().context));
  UniqueFd lock = std::move(*opened);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    std::array<char, 32> pid{};
    const ssize_t n = ::pread(lock.get(), pid.data(), pid.size() - 1, 0);
    return Fail(
        std::errc::device_or_resource_busy,
        fmt::format("another vgpud (pid {}) serves {}; stop it or give this one another --runtime-dir",
                    n > 0 ? std::string(pid.data(), std::strcspn(pid.data(), "\n")) : "unknown", config_.runtime_dir));
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(lock.get(), 0) != 0 || ::pwrite(lock.get(), pid.data(), pid.size(), 0) < 0)
    return FailErrno(fmt::format("cannot write {}", path));
  lock_ = std::move(lock);
  return {};
}

Result<void> Daemon::Confine() {
  confinement_ = TRY(FindConfinement(config_.exec_program, config_.first_vf_user));
  // Before: where groups begin only root with all its rights can make any.
  cgroups_ = std::make_unique<CgroupTree>(CgroupTree::Host{.root = "/sys/fs/cgroup",
                                                           .self = ReadCgroupFile("/proc/self/cgroup"),
                                                           .pid = ::getpid(),
                                                           .id = CgroupIdOf(config_.runtime_dir)});
  return GiveUpCapabilities(confinement_, config_.metrics_on_low_port());
}

Protections Daemon::ListProtections() const {
  Protections all = ProtectionsOf(confinement_);
  for (Protection& row : cgroups_->Describe()) all.push_back(std::move(row));
  return all;
}

Result<void> Daemon::Wire() {
  replies_event_ = TRY(MakeEventFd());
  replies_ = std::make_unique<TaskQueue>(replies_event_.get());
  watches_.push_back(loop_.OnReadable(replies_event_.get(), [this] {
    DrainEventFd(replies_event_.get());
    replies_->RunAll();
  }));
  for (const int signal : {SIGTERM, SIGINT})
    watches_.push_back(loop_.OnSignal(signal, [this, signal] { Stop(signal == SIGTERM ? "SIGTERM" : "SIGINT"); }));
  mover_ = std::make_unique<Worker>("vgpud-mover", kMostMoves, *replies_);
  (void)RaiseOwnThread();
  (void)mover_->Post([] { (void)RaiseOwnThread(); });
  for (const Protection& row : ListProtections())
    if (!row.in_force) LOG(kWarning, "protection {} is not in force: {}", row.name, row.why_not);
  gpu_ = std::make_unique<GpuThread>(
      config_.scheduler, TRY(MakePolicy(settings_.policy, settings_.options)),
      GpuThread::Events{
          .on_killed = [](VfId, const std::string& name, const SliceWorld::Hang& hang) { LogHang(name, hang); },
          .on_parked =
              [this](VfId vf) {
                if (const auto it = vfs_.find(vf); it != vfs_.end()) it->second->OnParked();
              },
          .on_left = [this](VfId vf, const GpuThread::VfStats& last) { telemetry_->Left(vf, last); }},
      *replies_);
  telemetry_ = std::make_unique<Telemetry>(
      loop_, *gpu_, *replies_,
      Telemetry::Options{.state_dir = config_.state_dir, .write_every = config_.history_interval, .unix_seconds = {}});
  around_ = std::make_unique<VfSurroundings>(VfSurroundings{
      loop_, *gpu_, config_.runtime_dir, config_.gpu, config_.soft_gpu_threads, config_.vf_program,
      config_.exec_program, confinement_, config_.event_budgets, *cgroups_, *mover_, [this] { TellOutlooks(); }});
  charge_timer_ = loop_.Timer([this] { ChargeOutsideTurns(); });
  if (!config_.metrics_listen.empty()) metrics_ = TRY(Control::ServeMetrics(loop_, *this, config_.metrics_listen));
  control_ = TRY(Control::Serve(loop_, *this, control::ControlSocketPath(config_.runtime_dir)));
  return {};
}

Daemon::~Daemon() {
  control_.reset();
  metrics_.reset();
  vfs_.clear();
  gpu_.reset();
  if (telemetry_ != nullptr) telemetry_->Leave(kCloseHistoryLimit);
  if (mover_ != nullptr && !mover_->Leave(kMoverLimit))
    LOG(kWarning, "a process is still being moved into its control group: left at that");
  if (!lock_) return;
  ::unlink(control::ControlSocketPath(config_.runtime_dir).c_str());
  ::rmdir((config_.runtime_dir + "/vf").c_str());
  ::unlink((config_.runtime_dir + "/vgpud.lock").c_str());
}

void Daemon::Run() {
  LOG(kInfo, "serving gpu={} on {}", config_.gpu, control::ControlSocketPath(config_.runtime_dir));
  NotifyReady(config_.ready_fd);
  loop_.Run();
}

void Daemon::Stop(const char* why) {
  if (std::exchange(stopping_, true)) return;
  LOG(kInfo, "stopping: {}", why);
  NotifyStopping();
  if (vfs_.empty()) return Finish();
  // A VF that is being destroyed already ends as it would have.
  for (const auto& [id, vf] : std::map(vfs_)) EndVf(vf->spec().name, false, [](const ApiResult<VfReport>&) {});
}

void Daemon::Finish() {
  telemetry_->Finish([this] {
    // Not before the loop has looked at the sockets once more: the last answers are still to be sent.
    watches_.push_back(loop_.Timer([this] { loop_.Stop(); }));
    watches_.back()->Arm(Ns{0});
  });
}

std::shared_ptr<Vf> Daemon::Find(const std::string& name) const {
  for (const auto& [id, vf] : vfs_)
    if (vf->spec().name == name) return vf;
  return nullptr;
}

ApiResult<VfId> Daemon::FreeId(const VfSpec& spec) const {
  if (stopping_) return ApiFail(503, "vgpud is stopping");
  if (Find(spec.name) != nullptr)
    return ApiFail(409, fmt::format("a vf \"{}\" exists already; destroy it first or take another name", spec.name),
                   "name");
  uint32_t id = 0;
  for (const auto& [used, vf] : vfs_)
    if (Raw(used) == id) ++id;
  if (id >= control::kMaxVfs)
    return ApiFail(409, fmt::format("there are {} vfs already, the most that one GPU takes", control::kMaxVfs));
  return VfId{id};
}

Settings Daemon::CurrentSettings() const {
  Settings settings{settings_, {}};
  for (const auto& [id, vf] : vfs_)
    if (vf->Shares()) settings.vfs.push_back(vf->settings());
  return settings;
}

ApiResult<Difference> Daemon::Weigh(const Settings& after) const {
  const Settings before = CurrentSettings();
  if (const auto ok = CheckChange(before, after, gpu_->switch_cost()); !ok) return ApiFail(409, ok.error().context);
  return Compare(before, after);
}

// Every VF's own guest and reports are told its slice and share, after anything that may have changed them.
void Daemon::TellOutlooks() {
  const Settings settings = CurrentSettings();
  const std::vector<Outlook> outlooks = Foresee(settings);
  for (size_t i = 0; i < outlooks.size(); ++i) vfs_.at(settings.vfs[i].view.vf)->SetOutlook(outlooks[i]);
}

void Daemon::ChargeOutsideTurns() {
  if (vfs_.empty()) return;
  charge_timer_->Arm(kChargeEvery);
  std::vector<VfId> ids;
  for (const auto& [id, vf] : vfs_) ids.push_back(id);
  gpu_->ReadAccounts(ids, [this, ids](TimePoint now, const std::vector<VfAccount>& accounts) {
    const double all = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)) * config_.outside_turns_percent / 100;
    for (size_t i = 0; i < ids.size(); ++i)
      if (const auto it = vfs_.find(ids[i]); it != vfs_.end())
        it->second->ChargeOutsideTurns(accounts[i], all / static_cast<double>(ids.size()), now);
  });
}

ApiResult<ChangeReport> Daemon::WeighVf(const VfSpec& spec) const {
  const auto id = FreeId(spec);
  if (!id) return tl::unexpected(id.error());
  Settings after = CurrentSettings();
  VfSettings vf{spec.name, spec.view};
  vf.view.vf = *id;
  after.vfs.insert(
      std::find_if(after.vfs.begin(), after.vfs.end(), [&](const VfSettings& other) { return other.view.vf > *id; }),
      vf);
  auto difference = Weigh(after);
  if (!difference) {
    Settings plain = after;
    VfPatch given;
    for (VfSettings& other : plain.vfs)
      if (other.view.vf == *id) {
        other.view = VfView{};
        other.view.vf = *id;
      }
    for (const KnobRow& row : Knobs())
      if (row.per_vf && KnobOf(spec.view, row.knob) != KnobOf(VfView{}, row.knob))
        given.knobs.push_back({row.knob, KnobOf(spec.view, row.knob)});
    difference.error().field = FieldToBlame(plain, *id, given, gpu_->switch_cost());
    return tl::unexpected(difference.error());
  }
  return ChangeReport{{}, {}, std::move(*difference), {}};
}

void Daemon::CreateVf(const VfSpec& spec, Reply<VfReport> done) {
  const auto id = FreeId(spec);
  if (!id) return done(tl::unexpected(id.error()));
  if (const auto weighed = WeighVf(spec); !weighed) return done(tl::unexpected(weighed.error()));
  const Uuid uuid = telemetry_->UuidFor(spec.name);
  auto vf = std::make_shared<Vf>(*around_, *id, uuid, spec);
  if (vfs_.empty()) charge_timer_->Arm(kChargeEvery);
  vfs_.emplace(*id, vf);
  telemetry_->Joined(*id, spec.name, uuid);
  TellOutlooks();
  vf->Start([this, done, name = spec.name, weak = std::weak_ptr<Vf>(vf)](ApiResult<uint64_t> started) {
    const auto self = weak.lock();
    if (started && self != nullptr) return done(self->Report());
    done(tl::unexpected(started ? ApiError{500, "the vf is gone", {}} : started.error()));
    // A VF that never served is not kept.
    if (self != nullptr && self->state() == Vf::State::kFailed)
      loop_.Post([this, name] { EndVf(name, false, [](const ApiResult<VfReport>&) {}); });
  });
}

// The VFs that are changed, with their new knobs.
ApiResult<std::vector<Daemon::Wanted>> Daemon::ApplyTo(Settings* settings, const SettingsPatch& patch) const {
  if (patch.gpu) Apply(*patch.gpu, settings->gpu);
  std::vector<Wanted> all;
  for (const auto& [name, vf_patch] : patch.vfs) {
    const auto vf = Find(name);
    if (vf == nullptr) return NoSuchVf(name);
    if (const auto why_not = vf->Unchangeable()) return tl::unexpected(*why_not);
    Wanted wanted{vf, vf->spec().view};
    Apply(vf_patch, wanted.view);
    for (VfSettings& other : settings->vfs) {
      if (other.view.vf != vf->id()) continue;
      const bool parked = other.view.paused && !vf->spec().view.paused;
      other.view = wanted.view;
      other.view.paused |= parked;
    }
    all.push_back(std::move(wanted));
  }
  return all;
}

// Of the part that is refused without the others as well; empty: only together are they wrong.
std::string Daemon::BlamedField(const SettingsPatch& patch) const {
  const Settings before = CurrentSettings();
  const Ns cost = gpu_->switch_cost();
  const bool alone = patch.vfs.size() + patch.gpu.has_value() == 1;
  const auto refused = [&](const SettingsPatch& part) {
    Settings after = before;
    return alone || !ApplyTo(&after, part) || !CheckChange(before, after, cost);
  };
  if (patch.gpu && refused({patch.gpu, {}})) return FieldToBlame(before, *patch.gpu, cost);
  for (const auto& [name, vf_patch] : patch.vfs)
    if (refused({{}, {{name, vf_patch}}})) return FieldToBlame(before, Find(name)->id(), vf_patch, cost);
  return {};
}

void Daemon::Change(const SettingsPatch& patch, bool dry_run, Reply<ChangeReport> done) {
  Settings after = CurrentSettings();
  const auto vfs = ApplyTo(&after, patch);
  if (!vfs) return done(tl::unexpected(vfs.error()));
  auto difference = Weigh(after);
  if (!difference) {
    difference.error().field = BlamedField(patch);
    return done(tl::unexpected(difference.error()));
  }
  ChangeReport report{{}, {}, std::move(*difference), {}};
  if (dry_run) return done(report);
  GpuThread::Change change;
  if (settings_.policy != after.gpu.policy)
    change.policy = *MakePolicy(after.gpu.policy, after.gpu.options);
  else if (patch.gpu)
    change.options = after.gpu.options;
  settings_ = after.gpu;
  for (const Wanted& wanted : *vfs) {
    wanted.vf->Adopt(wanted.view);
    change.vfs.push_back(wanted.view);
  }
  TellOutlooks();
  gpu_->Apply(std::move(change), [done, report](uint64_t round) mutable {
    report.round = round;
    done(report);
  });
}

void Daemon::ChangeVf(const std::string& name, const VfPatch& patch, bool dry_run, Reply<ChangeReport> done) {
  Change({{}, {{name, patch}}}, dry_run, [done, vf = Find(name)](ApiResult<ChangeReport> change) {
    if (change) change->vf = vf->Report();
    done(std::move(change));
  });
}

void Daemon::ChangeGpu(const GpuPatch& patch, bool dry_run, Reply<ChangeReport> done) {
  Change({patch, {}}, dry_run, [this, done](ApiResult<ChangeReport> change) {
    if (change) change->gpu = ReportGpu();
    done(std::move(change));
  });
}

void Daemon::ResetVf(const std::string& name, Reply<VfReport> done) {
  const auto vf = Find(name);
  if (vf == nullptr) return done(NoSuchVf(name));
  vf->ResetByOperator([done, vf](ApiResult<uint64_t> round) {
    if (!round) return done(tl::unexpected(round.error()));
    done(vf->Report());
  });
}

void Daemon::DestroyVf(const std::string& name, Reply<VfReport> done) { EndVf(name, !stopping_, std::move(done)); }

void Daemon::EndVf(const std::string& name, bool for_good, Reply<VfReport> done) {
  const auto vf = Find(name);
  if (vf == nullptr) return done(NoSuchVf(name));
  if (vf->state() == Vf::State::kClosing)
    return done(ApiFail(409, fmt::format("vf \"{}\" is being destroyed already", name)));
  const VfId id = vf->id();
  // Not inside the callback that found the last process gone: that one still belongs to the VF.
  vf->Close([this, id, for_good, done] {
    loop_.Post([this, id, for_good, done] {
      const auto it = vfs_.find(id);
      if (it == vfs_.end()) return;
      telemetry_->Removed(id, for_good);
      const VfReport report = it->second->Report();
      vfs_.erase(it);
      done(report);
      if (stopping_ && vfs_.empty()) Finish();
    });
  });
}

ApiResult<VfReport> Daemon::ShowVf(const std::string& name) const {
  const auto vf = Find(name);
  if (vf == nullptr) return NoSuchVf(name);
  return vf->Report();
}

std::vector<VfReport> Daemon::ListVfs() const {
  std::vector<VfReport> reports;
  for (const auto& [id, vf] : vfs_) reports.push_back(vf->Report());
  return reports;
}

void Daemon::ReadStats(const std::string& name, Reply<StatsReport> done) {
  std::vector<VfId> ids;
  std::vector<VfStatsReport> reports;
  for (const auto& [id, vf] : vfs_) {
    if (!name.empty() && vf->spec().name != name) continue;
    ids.push_back(id);
    reports.push_back({vf->Report(), {}, 0});
  }
  if (!name.empty() && ids.empty()) return done(NoSuchVf(name));
  gpu_->ReadStats(ids, [this, done, ids, reports = std::move(reports)](GpuThread::Stats stats) mutable {
    for (size_t i = 0; i < reports.size(); ++i) {
      // Of this life of the VF alone, as its processors are; in its turns all GPU threads may compute.
      const uint64_t in_turns = stats.vfs[i].account.received_ns * reports[i].vf.gpu_threads;
      reports[i].cpu_outside_turns_ns = reports[i].vf.cpu_ns - std::min(reports[i].vf.cpu_ns, in_turns);
    }
    telemetry_->AddPast(ids, &stats);
    StatsReport all{.gpu = stats,
                    .vfs = reports,
                    .keys = {},
                    .windows = telemetry_->Fairness(),
                    .history = telemetry_->history_state(),
                    .traced_turns = gpu_->trace().appended(),
                    .trace_capacity = gpu_->trace().capacity(),
                    .protections = ListProtections()};
    for (size_t i = 0; i < all.vfs.size(); ++i) {
      all.vfs[i].stats = stats.vfs[i];
      all.keys.push_back(telemetry_->KeyOf(ids[i]));
    }
    done(all);
  });
}

void Daemon::ReadReport(const std::string& day, Reply<std::vector<History::Day>> done) {
  telemetry_->Report(day, [done](HistoryKeeper::Days days) {
    days ? done(std::move(*days)) : done(ApiFail(503, days.error().context));
  });
}

void Daemon::ReadDay(const std::string& day, Reply<std::vector<History::Day>> done) {
  telemetry_->ReadDay(day, [done](HistoryKeeper::Days days) {
    days ? done(std::move(*days)) : done(ApiFail(503, days.error().context));
  });
}

void Daemon::DescribeGpu(Reply<GpuReport> done) {
  gpu_->ReadStats({}, [this, done](const GpuThread::Stats&) { done(ReportGpu()); });
}

GpuReport Daemon::ReportGpu() const {
  return {.name = GpuName(),
          .kind = config_.gpu,
          .settings = settings_,
          .preempt_timeout_us = static_cast<uint64_t>(config_.scheduler.switcher.preempt_timeout.count() / 1000),
          .switch_cost = gpu_->switch_cost(),
          .vfs = static_cast<uint32_t>(vfs_.size()),
          .fifo = gpu_->is_fifo(),
          .protections = ListProtections()};
}

}  // namespace vgpud
