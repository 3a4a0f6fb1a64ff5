// SPDX-License-Identifier: Apache-2.0
// What changes to VFs and GPUs would do, and doing it.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "vgpud/registry/vf_registry.h"

namespace vgpud::daemon {

Settings VfRegistry::CurrentSettings(const ServedGpu& gpu) const {
  Settings settings{gpu.settings(), {}};
  for (const auto& [id, vf] : vfs_)
    if (vf->gpu_name() == gpu.name() && vf->Shares()) settings.vfs.push_back(vf->settings());
  return settings;
}

ApiResult<void> VfRegistry::Weigh(Part* part) const {
  const Settings before = CurrentSettings(*part->gpu);
  if (const auto ok = CheckChange(before, part->after, part->gpu->thread().switch_cost()); !ok)
    return ApiFail(ErrorKind::kConflict, ok.error().context, FieldToBlame(ok.error(), part->patch));
  part->difference = Compare(before, part->after);
  if (!several()) return {};
  for (auto* list : {&part->difference.changes, &part->difference.effects})
    for (daemon::Change& change : *list) change.gpu = part->gpu->name();
  return {};
}

// The VFs that are changed, with their new knobs.
ApiResult<std::vector<VfRegistry::Wanted>> VfRegistry::ApplyTo(Settings* settings, const SettingsPatch& patch) const {
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

// By GPU, in the order of the GPUs; each with what it would do.
ApiResult<std::vector<VfRegistry::Part>> VfRegistry::Split(const SettingsPatch& patch) const {
  std::vector<Part> parts;
  for (const auto& gpu : gpus_) parts.push_back({gpu.get(), {}, CurrentSettings(*gpu), {}, {}});
  const auto part_of = [&](const ServedGpu& gpu) -> Part& {
    return *std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.gpu == &gpu; });
  };
  if (patch.gpu) part_of(*TRY(FindGpu({}))).patch.gpu = patch.gpu;
  for (const auto& [name, gpu_patch] : patch.gpus) {
    Part& part = part_of(*TRY(FindGpu(name)));
    if (part.patch.gpu)
      return ApiFail(ErrorKind::kInvalid, fmt::format("gpu \"{}\" is given twice", part.gpu->name()), "gpu");
    part.patch.gpu = gpu_patch;
  }
  for (const auto& [name, vf_patch] : patch.vfs) {
    const auto vf = Find(name);
    if (vf == nullptr) return NoSuchVf(name);
    part_of(GpuOf(*vf)).patch.vfs.emplace_back(name, vf_patch);
  }
  std::erase_if(parts, [](const Part& part) { return !part.patch.gpu && part.patch.vfs.empty(); });
  for (Part& part : parts) {
    part.vfs = TRY(ApplyTo(&part.after, part.patch));
    TRY(Weigh(&part));
  }
  TRY(CheckLimits(parts));
  return parts;
}

// What is settled at once; the rest is for the scheduler thread.
GpuThread::Change VfRegistry::Carry(Part& part) {
  GpuThread::Change change;
  if (part.gpu->settings().policy != part.after.gpu.policy)
    change.policy = *MakePolicy(part.after.gpu.policy, part.after.gpu.options);
  else if (part.patch.gpu)
    change.options = part.after.gpu.options;
  if (part.patch.gpu) {
    part.gpu->SetSettings(part.after.gpu);
    settings_changed_();
  }
  for (const Wanted& wanted : part.vfs) {
    wanted.vf->Adopt(wanted.view);
    change.vfs.push_back(wanted.view);
  }
  TellExpectedShares(*part.gpu);
  return change;
}

void VfRegistry::Change(const SettingsPatch& patch, bool dry_run, Reply<ChangeReport> done) {
  auto parts = Split(patch);
  if (!parts) return done(tl::unexpected(parts.error()));
  ChangeReport report;
  for (const Part& part : *parts) {
    const auto append = [](auto& list, const auto& more) { list.insert(list.end(), more.begin(), more.end()); };
    append(report.difference.changes, part.difference.changes);
    append(report.difference.effects, part.difference.effects);
  }
  if (dry_run) return done(report);
  // Answered when all of it is in force and on the disk.
  struct Awaited {
    std::vector<std::pair<std::string, uint64_t>> rounds;
    std::optional<Result<void>> kept;
  };
  const auto awaited = std::make_shared<Awaited>();
  const auto answer = [awaited, done, report, all = parts->size()] {
    if (awaited->rounds.size() < all || !awaited->kept) return;
    const uint64_t round = awaited->rounds.empty() ? 0 : awaited->rounds.front().second;
    if (!*awaited->kept)
      return done(ApiFail(ErrorKind::kFailed,
                          fmt::format("the change is in force from round {} on, but could not be written down and is "
                                      "lost when vgpud ends: {}",
                                      round, awaited->kept->error().context)));
    ChangeReport in_force = report;
    in_force.round = round;
    if (all > 1) in_force.rounds = awaited->rounds;
    done(in_force);
  };
  std::vector<Wanted> changed;
  for (Part& part : *parts) {
    part.gpu->thread().Apply(Carry(part), [awaited, answer, name = part.gpu->name()](uint64_t at) {
      awaited->rounds.emplace_back(name, at);
      answer();
    });
    changed.insert(changed.end(), part.vfs.begin(), part.vfs.end());
  }
  KeepChanged(changed, [awaited, answer](const Result<void>& result) {
    awaited->kept = result;
    answer();
  });
}

void VfRegistry::ChangeVf(const std::string& name, const VfPatch& patch, bool dry_run, Reply<ChangeReport> done) {
  Change({{}, {{name, patch}}}, dry_run, [done, vf = Find(name)](ApiResult<ChangeReport> change) {
    if (change) change->vf = vf->Report();
    done(std::move(change));
  });
}

ApiResult<VfReport> VfRegistry::SetDomain(const std::string& name, const VfDomain& domain) {
  const auto vf = Find(name);
  if (vf == nullptr) return NoSuchVf(name);
  const VfDomain& before = vf->spec().domain;
  const VfDomain now{domain.name, domain.uuid, before.ends_vf && before.uuid == domain.uuid};
  if (now == before) return vf->Report();
  vf->SetDomain(now);
  GpuOf(*vf).telemetry().SetDomain(vf->id(), now);
  // Nobody waits for the disk: what it misses is said again by those who watch libvirt.
  if (IsKept(vf->spec()) && vf->state() != Vf::State::kClosing)
    Keep(*vf, [name](const Result<void>& kept) {
      if (!kept) LOG(kWarning, "vf={}: whose it is could not be written down: {}", name, kept.error().context);
    });
  return vf->Report();
}

void VfRegistry::ChangeGpu(const std::string& name, const GpuPatch& patch, bool dry_run, Reply<ChangeReport> done) {
  const auto gpu = FindGpu(name);
  if (!gpu) return done(tl::unexpected(gpu.error()));
  Change({{}, {}, {{(*gpu)->name(), patch}}}, dry_run, [this, done, gpu = *gpu](ApiResult<ChangeReport> change) {
    if (change) change->gpu = ReportGpu(*gpu);
    done(std::move(change));
  });
}

}  // namespace vgpud::daemon
