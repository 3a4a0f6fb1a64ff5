#include "vgpud/daemon.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "vgpud/control_api.h"
#include "vgpud/readiness.h"

namespace vgpud {
namespace {

tl::unexpected<ApiError> NoSuchVf(const std::string& name) {
  return ApiFail(404, fmt::format("there is no vf \"{}\" (see: vgpuctl list)", name));
}

// mkdir -p; only what is created gets the mode.
Result<void> MakeDirs(const std::string& path, mode_t mode) {
  for (size_t end = 1; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) return FailErrno(fmt::format("cannot create {}", part));
  }
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0 || !S_ISDIR(st.st_mode))
    return Fail(std::errc::not_a_directory, fmt::format("{} is not a directory", path));
  return {};
}

}  // namespace

Daemon::Daemon(const Config& config) : config_(config) {}

Result<std::unique_ptr<Daemon>> Daemon::Start(const Config& config) {
  std::unique_ptr<Daemon> daemon{new Daemon(config)};
  TRY(daemon->TakeRuntimeDir());
  TRY(daemon->Wire());
  return daemon;
}

Result<void> Daemon::TakeRuntimeDir() {
  TRY(MakeDirs(config_.runtime_dir + "/vf", 0755));
  const std::string path = config_.runtime_dir + "/vgpud.lock";
  UniqueFd lock{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!lock) return FailErrno(fmt::format("cannot open {}", path));
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

Result<void> Daemon::Wire() {
  sched_event_ = TRY(MakeEventFd());
  replies_event_ = TRY(MakeEventFd());
  replies_ = std::make_unique<TaskQueue>(replies_event_.get());
  watches_.push_back(loop_.OnReadable(replies_event_.get(), [this] {
    DrainEventFd(replies_event_.get());
    replies_->RunAll();
  }));
  for (const int signal : {SIGTERM, SIGINT})
    watches_.push_back(loop_.OnSignal(signal, [this, signal] { Stop(signal == SIGTERM ? "SIGTERM" : "SIGINT"); }));
  gpu_ = std::make_unique<GpuThread>(
      config_.scheduler,
      GpuThread::Events{
          .on_killed =
              [timeout = config_.scheduler.switcher.preempt_timeout](VfId, const std::string& name, pid_t pid) {
                LOG(kError, "vf={}: executor pid={} did not leave the GPU within {} us of the revoke: killed", name,
                    pid, timeout / std::chrono::microseconds{1});
              },
          .on_parked =
              [this](VfId vf) {
                if (const auto it = vfs_.find(vf); it != vfs_.end()) it->second->OnParked();
              }},
      sched_event_.get(), *replies_);
  around_ = std::make_unique<VfSurroundings>(VfSurroundings{loop_, *gpu_, sched_event_.get(), config_.runtime_dir,
                                                            config_.gpu, config_.vf_program, config_.exec_program,
                                                            config_.event_budgets});
  control_ = TRY(Control::Serve(loop_, *this, control::ControlSocketPath(config_.runtime_dir)));
  return {};
}

Daemon::~Daemon() {
  control_.reset();
  vfs_.clear();
  gpu_.reset();
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
  if (vfs_.empty()) return loop_.Stop();
  for (const auto& [id, vf] : std::map(vfs_))
    DestroyVf(vf->spec().name, [this](const ApiResult<VfReport>&) {
      if (vfs_.empty()) loop_.Stop();
    });
}

std::shared_ptr<Vf> Daemon::Find(const std::string& name) const {
  for (const auto& [id, vf] : vfs_)
    if (vf->spec().name == name) return vf;
  return nullptr;
}

std::optional<VfId> Daemon::FreeId() const {
  uint32_t id = 0;
  for (const auto& [used, vf] : vfs_)
    if (Raw(used) == id) ++id;
  if (id >= control::kMaxVfs) return std::nullopt;
  return VfId{id};
}

void Daemon::CreateVf(const VfSpec& spec, Reply<VfReport> done) {
  if (stopping_) return done(ApiFail(503, "vgpud is stopping"));
  if (Find(spec.name) != nullptr)
    return done(ApiFail(
        409, fmt::format("a vf \"{}\" exists already; destroy it first or take another name", spec.name), "name"));
  const auto id = FreeId();
  if (!id)
    return done(ApiFail(409, fmt::format("there are {} vfs already, the most that one GPU takes", control::kMaxVfs)));
  auto vf = std::make_shared<Vf>(*around_, *id, spec);
  vfs_.emplace(*id, vf);
  vf->Start([this, done, name = spec.name, weak = std::weak_ptr<Vf>(vf)](ApiResult<uint64_t> started) {
    const auto self = weak.lock();
    if (started && self != nullptr) return done(self->Report());
    done(tl::unexpected(started ? ApiError{500, "the vf is gone", {}} : started.error()));
    // A VF that never served is not kept.
    if (self != nullptr && self->state() == Vf::State::kFailed)
      loop_.Post([this, name] { DestroyVf(name, [](const ApiResult<VfReport>&) {}); });
  });
}

void Daemon::ChangeVf(const std::string& name, const VfPatch& patch, Reply<Changed> done) {
  const auto vf = Find(name);
  if (vf == nullptr) return done(NoSuchVf(name));
  vf->Apply(patch, [done, vf](ApiResult<Vf::Changed> changed) {
    if (!changed) return done(tl::unexpected(changed.error()));
    done(Changed{vf->Report(), changed->changes, changed->round});
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

void Daemon::DestroyVf(const std::string& name, Reply<VfReport> done) {
  const auto vf = Find(name);
  if (vf == nullptr) return done(NoSuchVf(name));
  if (vf->state() == Vf::State::kClosing)
    return done(ApiFail(409, fmt::format("vf \"{}\" is being destroyed already", name)));
  const VfId id = vf->id();
  // Not inside the callback that found the last process gone: that one still belongs to the VF.
  vf->Close([this, id, done] {
    loop_.Post([this, id, done] {
      const auto it = vfs_.find(id);
      if (it == vfs_.end()) return;
      const VfReport report = it->second->Report();
      vfs_.erase(it);
      done(report);
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
    const VfReport report = vf->Report();
    ids.push_back(id);
    reports.push_back({report.name, report.weight, report.slice_us, {}});
  }
  if (!name.empty() && ids.empty()) return done(NoSuchVf(name));
  gpu_->ReadStats(std::move(ids), [done, reports = std::move(reports)](const GpuThread::Stats& stats) {
    StatsReport all{stats, reports};
    for (size_t i = 0; i < all.vfs.size(); ++i) all.vfs[i].stats = stats.vfs[i];
    done(all);
  });
}

void Daemon::DescribeGpu(Reply<GpuReport> done) {
  gpu_->ReadStats({}, [this, done](const GpuThread::Stats& stats) {
    done(GpuReport{
        .name = config_.gpu + "0",
        .kind = config_.gpu,
        .base_slice_us = static_cast<uint64_t>(config_.scheduler.base_slice.count() / 1000),
        .preempt_timeout_us = static_cast<uint64_t>(config_.scheduler.switcher.preempt_timeout.count() / 1000),
        .vfs = static_cast<uint32_t>(vfs_.size()),
        .fifo = stats.fifo});
  });
}

}  // namespace vgpud
