// SPDX-License-Identifier: Apache-2.0
#include "vgpud/daemon.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "base/log.h"
#include "gpu/channels/driver_traits.h"
#include "vgpud/device/gpu_rungs.h"
#include "vgpud/host/cgroup_file.h"
#include "vgpud/host/let_in.h"
#include "vgpud/host/private_dir.h"
#include "vgpud/host/thread_priority.h"
#include "vgpud/model/api.h"
#include "vgpud/model/version.h"
#include "vgpud/service/notify.h"
#include "vgpud/tenants/users.h"

namespace vgpud::daemon {
namespace {

constexpr rlim_t kDescriptors = 64 * 1024;
constexpr Ns kMoverLimit = std::chrono::seconds{1};
// A child of a daemon that was killed while it made it holds the lock until it is a program of its own, or gives up.
constexpr Ns kLockLimit = std::chrono::seconds{1};
constexpr Ns kTryLockEvery = std::chrono::milliseconds{2};
constexpr size_t kMostMoves = 1024;  // processes that wait for their control group
constexpr size_t kMostKeptText = 64 * 1024;
constexpr const char* kUsualGroup = "vgpu";

// Every VF has several.
void AllowManyDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, kDescriptors));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void LogReload(const ApiResult<Configuration::Reloaded>& reloaded) {
  if (!reloaded) {
    LOG(kError, "reload: nothing is changed: {}", reloaded.error().error);
    return;
  }
  for (const ConfigChange& each : reloaded->now)
    LOG(kInfo, "reload: {}, from round {} on", each.Text(), reloaded->round.value_or(0));
  for (const ConfigChange& each : reloaded->at_restart)
    LOG(kWarning, "reload: {} takes effect when vgpud is started again", each.Text());
  LOG(kInfo, "reload: done, {} changed", reloaded->now.size());
}

// In vgpud-keep: of a GPU, whose settings vgpuctl set-gpu changes.
constexpr std::string_view kKeptGpu = "gpu/";
constexpr std::string_view kKeptSettings = "/settings";
std::string KeptSettings(std::string_view gpu) { return fmt::format("{}{}{}", kKeptGpu, gpu, kKeptSettings); }
// Of which GPU it is, if these are settings of one.
std::optional<std::string> GpuOfKept(std::string_view name) {
  if (!name.starts_with(kKeptGpu) || !name.ends_with(kKeptSettings)) return std::nullopt;
  if (name.size() < kKeptGpu.size() + kKeptSettings.size()) return std::nullopt;
  name.remove_prefix(kKeptGpu.size());
  name.remove_suffix(kKeptSettings.size());
  return std::string(name);
}

// Before VFs are promised any of it.
Result<void> FindGpu(const ExecStart& start, GpuConfig& gpu) {
  if (!gpu.gpu.is_cuda()) return {};
  gpu.facts = TRY(AskGpu(gpu.gpu, start));
  gpu.gpu.found = gpu.facts->mig_instance.empty() ? gpu.facts->address : gpu.facts->mig_instance;
  gpu.gpu.cuda_version = DriverVersionOf(*gpu.facts);
  gpu.facts->rungs = TryRungs(gpu.gpu, start);
  for (const GpuRung& rung : gpu.facts->rungs) {
    const char* const what = rung.name == kProgramTrial ? "running a" : "taking kernels away by";
    if (rung.works)
      LOG(kInfo, "gpu={} {} {}: works: {}", gpu.facts->name, what, rung.name, rung.what);
    else
      LOG(kWarning, "gpu={} {} {}: {}", gpu.facts->name, what, rung.name, rung.what);
  }
  gpu.facts->taken_away_by = gpu.gpu.cuda_rung = BestRung(gpu.facts->rungs);
  for (const GpuRung& rung : gpu.facts->rungs) {
    if (rung.name != kChannelsRung || !rung.works || gpu.gpu.cuda_rung.empty()) continue;
    gpu.scheduler.channel_turns = rm::DriverMajor();
    gpu.facts->taken_away_by += fmt::format("+{}", kChannelsRung);
  }
  if (gpu.gpu.cuda_rung.empty())
    return Fail(std::errc::not_supported,
                fmt::format("--gpu {}: its kernels can't be kept in turns: {}; see the log of "
                            "its driver (dmesg), or use the built-in GPU: vgpud --gpu soft",
                            gpu.gpu.gpu, gpu.facts->rungs.front().what));
  if (const GpuRung& program = gpu.facts->rungs.back(); !program.works)
    return Fail(std::errc::not_supported,
                fmt::format("--gpu {}: no program of a guest would run on it: in an executor's namespaces, user and "
                            "jail: {}; docs/first-contact.md has what each outcome means",
                            gpu.gpu.gpu, program.what));
  if (gpu.gpu_vram_bytes == 0) gpu.gpu_vram_bytes = gpu.facts->memory_bytes;
  if (!gpu.numa_node && gpu.facts->on_bus) gpu.numa_node = gpu.facts->on_bus->node;
  LOG(kInfo, "gpu={} address={} capability={} driver={} memory={} bytes, {} of them for each program's context",
      gpu.facts->name, gpu.facts->address, gpu.facts->capability, gpu.facts->driver, gpu.facts->memory_bytes,
      gpu.facts->context_bytes);
  return {};
}

// Those of VFs that a killed vgpud had and this one has not: whoever connects there would wait for nobody.
void RemoveLeftSockets(const std::string& folder, const Reports& reports) {
  std::set<std::string> vfs;
  for (const VfReport& each : reports.OfVfs()) vfs.insert(each.name);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string file = entry.path().filename();
    const std::string vf = file.substr(0, file.find('.'));
    if (entry.symlink_status(ignored).type() != std::filesystem::file_type::socket || vfs.contains(vf)) continue;
    LOG(kInfo, "{}: of a VF that is no more, removed", entry.path().string());
    ::unlink(entry.path().c_str());
  }
}

// The group that the configuration names. Else, if root made the socket itself, vgpu, where this host has it: a service
// manager has its own setting.
Result<void> LetGroupIn(const std::string& socket, const Config& config) {
  const bool named = !config.socket_group.empty();
  if (!named && (::geteuid() != 0 || config.passed.control >= 0)) return {};
  const auto group = FindGroup(named ? config.socket_group : kUsualGroup);
  if (!group) return named ? Result<void>(tl::unexpected(group.error())) : Result<void>{};
  const auto done = LetIn(socket, {.user = {}, .group = *group});
  if (named || done) return done;
  LOG(kWarning, "group {} can't use vgpuctl: {}", kUsualGroup, done.error().context);
  return {};
}

}  // namespace

Daemon::Daemon(const Told& told, ReadAgain read_again)
    : config_(told.config), told_(told), read_again_(std::move(read_again)) {}

Result<std::unique_ptr<Daemon>> Daemon::Start(const Told& told, ReadAgain read_again) {
  AllowManyDescriptors();
  Told found = told;
  const auto& config = found.config;
  const VfConfinement confinement = TRY(FindConfinement(config.exec_program, config.first_vf_user));
  const ExecStart start{config.exec_program, confinement};
  for (GpuConfig& gpu : found.config.gpus) TRY(FindGpu(start, gpu));
  std::unique_ptr<Daemon> daemon{new Daemon(found, std::move(read_again))};
  daemon->confinement_ = confinement;
  auto begun = daemon->Begin();
  if (begun) return daemon;
  if (daemon->keeper_ != nullptr && daemon->keeper_->is_taken_over()) {
    LOG(kError, "{}; the VFs of the vgpud before stay as they are, for one that starts", begun.error().context);
    ::_exit(1);
  }
  return tl::unexpected(begun.error());
}

Result<void> Daemon::Begin() {
  TRY(TakeRuntimeDir());
  TRY(Confine());
  TRY(OpenKeeper());
  TRY(Wire());
  Restore();
  return Serve();
}

Result<void> Daemon::OpenKeeper() {
  if (!config_.keep_vfs) return {};
  std::vector<Keeper::Kept> all;
  keeper_ = TRY(Keeper::Open(config_.runtime_dir, config_.keep_program, &all));
  TakeSettings(&all);
  kept_ = SortKept(std::move(all));
  return {};
}

void Daemon::TakeSettings(std::vector<Keeper::Kept>* all) {
  for (const Keeper::Kept& kept : *all) {
    const auto name = GpuOfKept(kept.name);
    if (!name) continue;
    const auto gpu = std::find_if(config_.gpus.begin(), config_.gpus.end(),
                                  [&name](const GpuConfig& each) { return each.name == *name; });
    if (gpu == config_.gpus.end()) {
      LOG(kWarning, "gpu={}: it is not served any more, what was changed live of its settings is forgotten", *name);
      keeper_->Forget(kept.name);
      continue;
    }
    std::string text(kMostKeptText, '\0');
    const ssize_t n = kept.fds.empty() ? 0 : ::pread(kept.fds[0].get(), text.data(), text.size(), 0);
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    const WithLive with = ApplyLive(gpu->settings, ValuesOfGpu(told_.values, *name), ReadLive(text));
    for (const std::string& line : with.left_out) LOG(kWarning, "gpu={}: {}", *name, line);
    gpu->settings = with.settings;
  }
  std::erase_if(*all, [](const Keeper::Kept& kept) { return GpuOfKept(kept.name).has_value(); });
}

void Daemon::KeepSettings() {
  if (keeper_ == nullptr) return;
  for (const auto& gpu : vfs_->gpus().all()) KeepSettingsOf(*gpu);
}

void Daemon::KeepSettingsOf(const ServedGpu& gpu) {
  const std::string name = KeptSettings(gpu.name());
  const std::string text = WriteLive(configuration_->LiveSettings(gpu));
  if (text.empty()) return keeper_->Forget(name);
  const auto file = MakeSealedMemfd("vgpu-settings", text.size());
  if (!file || ::pwrite(file->get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    LOG(kError, "gpu={}: what was changed of its settings is not kept: no memory for it", gpu.name());
    return;
  }
  const int fd = file->get();
  (void)keeper_->Store(name, {}, std::span{&fd, 1});
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
  const TimePoint end = Now() + kLockLimit;
  int locked = -1;
  while ((locked = ::flock(lock.get(), LOCK_EX | LOCK_NB)) != 0 && errno == EWOULDBLOCK && Now() < end)
    std::this_thread::sleep_for(kTryLockEvery);
  if (locked != 0) {
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
  // Before: where groups begin only root with all its rights can make any.
  cgroups_ = std::make_unique<CgroupTree>(CgroupTree::Host{.root = "/sys/fs/cgroup",
                                                           .self = ReadCgroupFile("/proc/self/cgroup"),
                                                           .pid = ::getpid(),
                                                           .id = CgroupIdOf(config_.runtime_dir)});
  if (cgroups_->leaves_daemon_in_root())
    if (const auto raised = RaiseOwnSession(); !raised) LOG(kWarning, "{}", raised.error().context);
  return GiveUpCapabilities(confinement_, config_.metrics_on_low_port());
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
  if (config_.keep_vfs) watches_.push_back(loop_.OnSignal(SIGUSR1, [this] { LeaveVfs(); }));
  watches_.push_back(loop_.OnSignal(SIGHUP, [this] { Reload(); }));
  mover_ = std::make_unique<Worker>("vgpud-mover", kMostMoves, *replies_);
  (void)RaiseOwnThread();
  (void)mover_->Post([] { (void)RaiseOwnThread(); });
  topology_ = ReadTopology();
  vfs_ = TRY(VfService::Make({loop_, *replies_, config_, confinement_, *cgroups_, *mover_, keeper_.get(), &topology_}));
  TRY(KeepCdiFile());
  calendar_world_ =
      std::make_unique<CalendarWorld>(vfs_->gpus(), vfs_->reports(), vfs_->changes(), config_.state_dir, *replies_);
  calendar_ = std::make_unique<CalendarKeeper>(loop_, calendar_world_->Parts());
  configuration_ = std::make_unique<Configuration>(vfs_->gpus(), vfs_->changes(), vfs_->limits(), told_, read_again_,
                                                   calendar_.get());
  configuration_->OnChange([this] { KeepSettings(); });
  for (const Protection& row : vfs_->reports().OfProtections())
    if (!row.in_force) LOG(kWarning, "protection {} is not in force: {}", row.name, row.why_not);
  return {};
}

Result<void> Daemon::KeepCdiFile() {
  if (config_.cdi_file.empty()) return {};
  cdi_ = TRY(CdiKeeper::Open(loop_, *replies_, config_.cdi_file, [this] {
    std::vector<CdiDevice::Vf> vfs;
    for (const VfReport& vf : vfs_->reports().OfVfs())
      if (!vf.channel_socket.empty()) vfs.push_back({vf.name, vf.channel_socket});
    return vfs;
  }));
  vfs_->OnTurnout([this] { cdi_->Changed(); });
  cdi_->Changed();
  return {};
}

void Daemon::Restore() {
  bool restored = false;
  vfs_->Restore(std::exchange(kept_, {}), [this, &restored] {
    restored = true;
    loop_.Stop();
  });
  while (!restored) loop_.Run();
  RemoveLeftSockets(config_.runtime_dir + "/vf", vfs_->reports());
  calendar_->Begin(config_.calendar, calendar_world_->Open());
}

Result<void> Daemon::Serve() {
  const Control::Served served(*vfs_);
  if (!config_.metrics_listen.empty() || config_.passed.metrics >= 0)
    metrics_ = TRY(Control::ServeMetrics(loop_, served, config_.metrics_listen, UniqueFd{config_.passed.metrics}));
  const std::string path = control::ControlSocketPath(config_.runtime_dir), own = control::OwnSocketPath(path);
  control_ = TRY(Control::Serve(loop_, served, path, configuration_.get(), UniqueFd{config_.passed.control}));
  TRY(LetGroupIn(path, config_));
  UniqueFd own_listener = TRY(ListenUnix(own, SOCK_STREAM));
  own_control_ = TRY(Control::Serve(loop_, served, own, configuration_.get(), std::move(own_listener)));
  return {};
}

Daemon::~Daemon() {
  service_.reset();
  control_.reset();
  own_control_.reset();
  metrics_.reset();
  configuration_.reset();
  calendar_.reset();
  if (calendar_world_ != nullptr) calendar_world_->Leave(kMoverLimit);
  calendar_world_.reset();
  vfs_.reset();
  cdi_.reset();
  if (mover_ != nullptr && !mover_->Leave(kMoverLimit))
    LOG(kWarning, "a process is still being moved into its control group: left at that");
  if (keeper_ != nullptr) keeper_->End();
  if (!lock_) return;
  const std::string path = control::ControlSocketPath(config_.runtime_dir);
  ::unlink(control::OwnSocketPath(path).c_str());
  // Of a service manager, which goes on listening there.
  if (config_.passed.control < 0) ::unlink(path.c_str());
  ::rmdir((config_.runtime_dir + "/vf").c_str());
  ::unlink((config_.runtime_dir + "/vgpud.lock").c_str());
}

void Daemon::Run() {
  std::string gpus;
  for (const auto& gpu : vfs_->gpus().all()) gpus += (gpus.empty() ? "" : ",") + gpu->name();
  LOG(kInfo, "serving gpu={} on {}", vfs_->gpus().all().size() == 1 ? config_.gpu.gpu : gpus,
      control::ControlSocketPath(config_.runtime_dir));
  for (const auto& gpu : vfs_->gpus().all())
    vfs_->chronicle().Add(
        {.kind = event_kind::kStarted,
         .gpu = gpu->name(),
         .text = fmt::format("vgpud {} serves it with policy {}", Version(), gpu->settings().policy)});
  if (!stopping_) NotifyReady(config_.ready_fd);
  service_ = ServiceReports::Start(loop_, {[this] { return vfs_->reports().Summary(); },
                                           [this](auto done) { vfs_->gpus().AskSchedulers(std::move(done)); }});
  if (!finished_) loop_.Run();
}

void Daemon::Reload() {
  if (stopping_) return;
  NotifyReloading();
  configuration_->Reload(false, [this](const ApiResult<Configuration::Reloaded>& reloaded) {
    LogReload(reloaded);
    if (!stopping_) NotifyReady(-1);
  });
}

void Daemon::Stop(const char* why) {
  if (std::exchange(stopping_, true)) return;
  LOG(kInfo, "stopping: {}", why);
  NotifyStopping();
  vfs_->Close([this] { Finish(); });
}

// As if it were killed, but for what is not on the disk yet.
void Daemon::LeaveVfs() {
  if (std::exchange(stopping_, true)) return;
  LOG(kInfo, "ending: the next vgpud goes on with the VFs");
  NotifyStopping();
  vfs_->Settle([this] { calendar_world_->WhenIdle([] { ::_exit(0); }); });
}

void Daemon::Finish() {
  // Not before the loop has looked at the sockets once more: the last answers are still to be sent.
  watches_.push_back(loop_.Timer([this] {
    finished_ = true;
    loop_.Stop();
  }));
  watches_.back()->Arm(Ns{0});
}

}  // namespace vgpud::daemon
