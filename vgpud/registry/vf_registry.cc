// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/vf_registry.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "vgpud/model/api.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kChargeEvery = std::chrono::milliseconds{100};
constexpr Ns kChargeAtRest = std::chrono::milliseconds{500};  // each look at a VF costs files
constexpr Ns kCloseHistoryLimit = std::chrono::seconds{2};
constexpr Ns kCloseDefinitionsLimit = std::chrono::seconds{2};

}  // namespace

VfRegistry::VfRegistry(const DaemonParts& around)
    : around_(around), definitions_(around.config.state_dir + "/vfs", kDefinitionSuffix, around.replies) {}

Result<std::unique_ptr<VfRegistry>> VfRegistry::Make(const DaemonParts& around) {
  std::unique_ptr<VfRegistry> registry{new VfRegistry(around)};
  TRY(registry->MakeGpus());
  return registry;
}

Result<void> VfRegistry::MakeGpus() {
  CHECK(!around_.config.gpus.empty());
  const ServedGpu::Events events{
      .on_parked =
          [this](VfId vf) {
            if (const auto it = vfs_.find(vf); it != vfs_.end()) it->second->OnParked();
          },
      .on_failed = [this](const std::string& name) { around_.loop.Post([this, name] { Remake(name); }); },
      .on_turnout = [this](const ServedGpu& gpu) { TellExpectedShares(gpu); }};
  configs_ = around_.config.gpus;
  tenants_ = around_.config.tenants;
  site_ = around_.config.site;
  if (configs_.empty()) configs_.push_back(around_.config);
  WaitingRoom::Gpus names;
  for (GpuConfig& config : configs_) {
    config.scheduler.waiter.nth_cpu = static_cast<uint32_t>(gpus_.size());
    if (config.name != kUnnamedGpu) config.scheduler.thread_name = "sched-" + config.name;
    gpus_.push_back(TRY(ServedGpu::Make(around_, config, events)));
    names.insert(config.name);
  }
  waiting_ = std::make_unique<WaitingRoom>(std::move(names));
  charge_timer_ = around_.loop.Timer([this] { ChargeOutsideTurns(); });
  return {};
}

VfRegistry::~VfRegistry() {
  vfs_.clear();
  for (const auto& gpu : gpus_) gpu->EndThread();
  definitions_.Leave(kCloseDefinitionsLimit);
  for (const auto& gpu : gpus_) gpu->telemetry().Leave(kCloseHistoryLimit);
}

void VfRegistry::Close(std::function<void()> done) {
  closed_ = std::move(done);
  waiting_->LookAgain();
  MaybeFinish();
  // A VF that is being destroyed already ends as it would have.
  for (const auto& [id, vf] : std::map(vfs_)) EndVf(vf->spec().name, false, [](const ApiResult<VfReport>&) {});
}

void VfRegistry::MaybeFinish() {
  if (!closed_ || vfs_.size() != stuck_.size() || std::exchange(finished_, true)) return;
  Settle(closed_);
}

void VfRegistry::Settle(std::function<void()> done) {
  // What was answered is on the disk; for the rest there is a limit.
  const auto once = std::make_shared<std::function<void()>>([this, done = std::move(done)] {
    const auto left = std::make_shared<size_t>(gpus_.size());
    for (const auto& gpu : gpus_)
      gpu->telemetry().Finish([left, done] {
        if (--*left == 0) done();
      });
  });
  const auto go_on = [once] {
    if (const auto then = std::exchange(*once, nullptr)) then();
  };
  finish_timer_ = around_.loop.Timer(go_on);
  finish_timer_->Arm(kCloseDefinitionsLimit);
  definitions_.WhenIdle(go_on);
}

std::shared_ptr<Vf> VfRegistry::Find(const std::string& name) const {
  for (const auto& [id, vf] : vfs_)
    if (vf->spec().name == name) return vf;
  return nullptr;
}

ServedGpu& VfRegistry::GpuOf(const Vf& vf) const {
  const auto gpu =
      std::find_if(gpus_.begin(), gpus_.end(), [&](const auto& each) { return each->name() == vf.gpu_name(); });
  CHECK(gpu != gpus_.end());
  return **gpu;
}

// A VF that was on another GPU when the last daemon ended is the same one.
Uuid VfRegistry::UuidFor(const std::string& name, const ServedGpu& gpu) const {
  std::optional<Uuid> elsewhere;
  for (const auto& each : gpus_) {
    const auto known = each->telemetry().KnownUuid(name);
    if (known && each.get() == &gpu) return *known;
    if (known) elsewhere = known;
  }
  return elsewhere.value_or(RandomUuid());
}

tl::unexpected<ApiError> VfRegistry::NoSuchVf(const std::string& name) {
  return ApiFail(ErrorKind::kNotFound, fmt::format("there is no vf \"{}\" (see: vgpuctl list)", name));
}

ApiResult<VfId> VfRegistry::FreeId(const VfSpec& spec, VfId wanted) const {
  if (closed_) return ApiFail(ErrorKind::kUnavailable, "vgpud is stopping");
  if (Find(spec.name) != nullptr)
    return ApiFail(ErrorKind::kConflict,
                   fmt::format("a vf \"{}\" exists already; destroy it first or take another name", spec.name), "name");
  if (lost_.contains(spec.name))
    return ApiFail(ErrorKind::kConflict,
                   fmt::format("{}; only then can another one have its name", ReportLost(spec.name).reason), "name");
  if (Raw(wanted) < control::kMaxVfs && !vfs_.contains(wanted)) return wanted;
  uint32_t id = 0;
  for (const auto& [used, vf] : vfs_)
    if (Raw(used) == id) ++id;
  if (id >= control::kMaxVfs)
    return ApiFail(ErrorKind::kConflict,
                   fmt::format("there are {} vfs already, the most that one vgpud takes", control::kMaxVfs));
  return VfId{id};
}

// Every VF's own guest and reports are told its slice and share, after anything that may have changed them.
void VfRegistry::TellExpectedShares(const ServedGpu& gpu) {
  LookForRoom();
  const Settings settings = CurrentSettings(gpu);
  const std::vector<ExpectedShare> expected = ExpectedShares(settings);
  for (size_t i = 0; i < expected.size(); ++i) vfs_.at(settings.vfs[i].view.vf)->SetExpectedShare(expected[i]);
}

void VfRegistry::ChargeOutsideTurns() {
  if (vfs_.empty()) return;
  const bool at_rest = std::all_of(vfs_.begin(), vfs_.end(), [](const auto& each) { return each.second->at_rest(); });
  charge_timer_->Arm(at_rest ? kChargeAtRest : kChargeEvery);
  for (const auto& gpu : gpus_) {
    const std::vector<VfId> ids = IdsOn(*gpu);
    if (ids.empty()) continue;
    gpu->thread().ReadAccounts(
        ids, [this, ids](TimePoint now, const std::vector<VfAccount>& accounts) { Charge(ids, now, accounts); });
  }
}

void VfRegistry::Charge(const std::vector<VfId>& ids, TimePoint now, const std::vector<VfAccount>& accounts) {
  const double all = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)) * around_.config.outside_turns_percent / 100;
  const double each = all / static_cast<double>(std::max<size_t>(vfs_.size(), 1));
  for (size_t i = 0; i < ids.size(); ++i)
    if (const auto it = vfs_.find(ids[i]); it != vfs_.end()) {
      it->second->ShowUse(accounts[i], now);
      it->second->ChargeOutsideTurns(accounts[i], each, now);
    }
  bool some_give_way = false, nobody_else = true;
  for (const auto& [id, vf] : vfs_) {
    some_give_way |= vf->gives_way();
    nobody_else &= vf->gives_way() || !vf->computes();
  }
  around_.cgroups.SetGivesWay(some_give_way && nobody_else);
}

std::vector<VfId> VfRegistry::IdsOn(const ServedGpu& gpu) const {
  std::vector<VfId> ids;
  for (const auto& [id, vf] : vfs_)
    if (vf->gpu_name() == gpu.name()) ids.push_back(id);
  return ids;
}

void VfRegistry::StartVf(VfId id, const Uuid& uuid, const VfSpec& spec, std::optional<Adoption::Ready> ready,
                         Reply<VfReport> done) {
  const auto found = FindGpu(spec.gpu);
  if (!found) return done(tl::unexpected(found.error()));
  ServedGpu& gpu = **found;
  auto vf = std::make_shared<Vf>(gpu.of_vfs(), id, uuid, spec);
  if (vfs_.empty()) charge_timer_->Arm(kChargeEvery);
  vfs_.emplace(id, vf);
  gpu.telemetry().Joined(id, spec.name, uuid, ready ? std::optional{ready->past} : std::nullopt, spec.tenant);
  gpu.telemetry().SetDomain(id, spec.domain);
  vf->SetPast(gpu.telemetry().PastOf(id));
  TellExpectedShares(gpu);
  auto there = [this, done, name = spec.name, weak = std::weak_ptr<Vf>(vf)](ApiResult<uint64_t> started) {
    const auto self = weak.lock();
    if (started && self != nullptr) return done(self->Report());
    done(tl::unexpected(started ? ApiError{ErrorKind::kFailed, "the vf is gone", {}} : started.error()));
    // A VF that never served is not kept.
    if (self != nullptr && self->state() == Vf::State::kFailed)
      around_.loop.Post([this, name] { EndVf(name, false, [](const ApiResult<VfReport>&) {}); });
  };
  if (ready)
    vf->Resume(std::move(ready->kept), std::move(ready->slices), std::move(ready->ledger), std::move(there));
  else
    vf->Start(std::move(there));
}

void VfRegistry::ResetVf(const std::string& name, Reply<VfReport> done) {
  const auto vf = Find(name);
  if (vf == nullptr) return done(NoSuchVf(name));
  vf->ResetByOperator([done, vf](ApiResult<uint64_t> round) {
    if (!round) return done(tl::unexpected(round.error()));
    done(vf->Report());
  });
}

void VfRegistry::DestroyVf(const std::string& name, const std::string& uuid, Reply<VfReport> done) {
  const auto vf = Find(name);
  if (!uuid.empty() && (vf == nullptr || vf->Report().uuid != uuid))
    return done(ApiFail(ErrorKind::kConflict,
                        fmt::format("vf \"{}\" is not the one of uuid {}: nothing was done", name, uuid), "uuid"));
  remaking_.erase(name);
  remade_.erase(name);
  if (vf == nullptr && lost_.contains(name)) return Forget(name, std::move(done));
  const bool forget = vf != nullptr && IsKept(vf->spec()) && vf->state() != Vf::State::kClosing && closed_ == nullptr;
  if (!forget) return EndVf(name, closed_ == nullptr, std::move(done));
  // Answered when both are over.
  const auto ended = std::make_shared<std::optional<ApiResult<VfReport>>>();
  const auto forgotten = std::make_shared<std::optional<ApiResult<void>>>();
  const auto answer = [ended, forgotten, done = std::move(done)] {
    if (!*ended || !*forgotten) return;
    if (**ended && !**forgotten) return done(tl::unexpected((*forgotten)->error()));
    done(**ended);
  };
  Forget(name, [forgotten, answer](const ApiResult<VfReport>& gone) {
    *forgotten = gone ? ApiResult<void>() : ApiResult<void>(tl::unexpected(gone.error()));
    answer();
  });
  EndVf(name, true, [ended, answer](ApiResult<VfReport> gone) {
    *ended = std::move(gone);
    answer();
  });
}

void VfRegistry::EndVf(const std::string& name, bool for_good, Reply<VfReport> done) {
  const auto vf = Find(name);
  if (vf == nullptr) return done(NoSuchVf(name));
  if (vf->state() == Vf::State::kClosing)
    return done(ApiFail(ErrorKind::kConflict, fmt::format("vf \"{}\" is being destroyed already", name)));
  const VfId id = vf->id();
  // Answered once: when it is gone, or when it is known that it can't be for now.
  const auto answer = std::make_shared<Reply<VfReport>>(std::move(done));
  // Not inside the callback that found the last process gone: that one still belongs to the VF.
  const auto closed = [this, id, for_good, answer] {
    around_.loop.Post([this, id, for_good, answer] {
      const auto it = vfs_.find(id);
      if (it == vfs_.end()) return;
      GpuOf(*it->second).telemetry().Removed(id, for_good);
      const VfReport report = it->second->Report();
      vfs_.erase(it);
      stuck_.erase(id);
      LookForRoom();
      if (const auto reply = std::exchange(*answer, nullptr)) reply(report);
      MaybeFinish();
    });
  };
  const auto stuck = [this, id, name, answer] {
    stuck_.insert(id);
    if (const auto reply = std::exchange(*answer, nullptr))
      reply(
          ApiFail(ErrorKind::kFailed,
                  fmt::format("vf \"{}\": its processes do not end although they were killed, something outside holds "
                              "them in the kernel; it is gone when they end (see vgpud's log)",
                              name)));
    MaybeFinish();
  };
  vf->Close(closed, stuck);
}

}  // namespace vgpud::daemon
