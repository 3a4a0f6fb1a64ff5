// SPDX-License-Identifier: Apache-2.0
// What changes to VFs and the GPU would do, and doing it.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "sched/knobs.h"
#include "vgpud/vf_registry.h"

namespace vgpud::daemon {

Settings VfRegistry::CurrentSettings(const ServedGpu& gpu) const {
  Settings settings{gpu.settings(), {}};
  for (const auto& [id, vf] : vfs_)
    if (vf->gpu_name() == gpu.name() && vf->Shares()) settings.vfs.push_back(vf->settings());
  return settings;
}

ApiResult<Difference> VfRegistry::Weigh(const ServedGpu& gpu, const Settings& after, const SettingsPatch& patch) const {
  const Settings before = CurrentSettings(gpu);
  if (const auto ok = CheckChange(before, after, gpu.thread().switch_cost()); !ok)
    return ApiFail(ErrorKind::kConflict, ok.error().context, FieldToBlame(ok.error(), patch));
  return Compare(before, after);
}

ApiResult<void> VfRegistry::CheckVram(const ServedGpu& gpu, const VfSpec& spec) const {
  const uint64_t all = gpu.config().gpu_vram_bytes;
  uint64_t used = 0;
  for (const VfId id : IdsOn(gpu)) used += vfs_.at(id)->spec().vram_bytes;
  if (all == 0 || (used <= all && spec.vram_bytes <= all - used)) return {};
  return ApiFail(
      ErrorKind::kConflict,
      fmt::format("vf \"{}\" wants {} of memory, and of the {} of the GPU {} are free: give it less, destroy "
                  "another VF, or start vgpud with more (--soft-gpu-vram)",
                  spec.name, FormatBytes(spec.vram_bytes), FormatBytes(all), FormatBytes(all - std::min(all, used))),
      "vram_bytes");
}

ApiResult<ChangeReport> VfRegistry::WeighVf(const VfSpec& spec) const {
  const auto id = FreeId(spec);
  if (!id) return tl::unexpected(id.error());
  const ServedGpu& gpu = First();
  if (const auto room = CheckVram(gpu, spec); !room) return tl::unexpected(room.error());
  Settings after = CurrentSettings(gpu);
  VfSettings vf{spec.name, spec.view};
  vf.view.vf = *id;
  after.vfs.insert(
      std::find_if(after.vfs.begin(), after.vfs.end(), [&](const VfSettings& other) { return other.view.vf > *id; }),
      vf);
  VfPatch given;
  for (const KnobRow& row : Knobs())
    if (row.per_vf && KnobOf(spec.view, row.knob) != KnobOf(VfView{}, row.knob))
      given.knobs.push_back({row.knob, KnobOf(spec.view, row.knob)});
  auto difference = Weigh(gpu, after, {{}, {{spec.name, given}}});
  if (!difference) return tl::unexpected(difference.error());
  return ChangeReport{{}, {}, std::move(*difference), {}};
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

void VfRegistry::Change(const SettingsPatch& patch, bool dry_run, Reply<ChangeReport> done) {
  ServedGpu& gpu = First();
  Settings after = CurrentSettings(gpu);
  const auto vfs = ApplyTo(&after, patch);
  if (!vfs) return done(tl::unexpected(vfs.error()));
  auto difference = Weigh(gpu, after, patch);
  if (!difference) return done(tl::unexpected(difference.error()));
  ChangeReport report{{}, {}, std::move(*difference), {}};
  if (dry_run) return done(report);
  GpuThread::Change change;
  if (gpu.settings().policy != after.gpu.policy)
    change.policy = *MakePolicy(after.gpu.policy, after.gpu.options);
  else if (patch.gpu)
    change.options = after.gpu.options;
  gpu.SetSettings(after.gpu);
  if (patch.gpu) settings_changed_();
  for (const Wanted& wanted : *vfs) {
    wanted.vf->Adopt(wanted.view);
    change.vfs.push_back(wanted.view);
  }
  TellExpectedShares(gpu);
  // Answered when it is in force and on the disk.
  const auto round = std::make_shared<std::optional<uint64_t>>();
  const auto kept = std::make_shared<std::optional<Result<void>>>();
  const auto answer = [round, kept, done, report] {
    if (!*round || !*kept) return;
    if (!**kept)
      return done(ApiFail(ErrorKind::kFailed,
                          fmt::format("the change is in force from round {} on, but could not be written down and is "
                                      "lost when vgpud ends: {}",
                                      **round, (*kept)->error().context)));
    ChangeReport in_force = report;
    in_force.round = **round;
    done(in_force);
  };
  gpu.thread().Apply(std::move(change), [round, answer](uint64_t at) {
    *round = at;
    answer();
  });
  KeepChanged(*vfs, [kept, answer](const Result<void>& result) {
    *kept = result;
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

void VfRegistry::ChangeGpu(const GpuPatch& patch, bool dry_run, Reply<ChangeReport> done) {
  Change({patch, {}}, dry_run, [this, done](ApiResult<ChangeReport> change) {
    if (change) change->gpu = ReportGpu(First());
    done(std::move(change));
  });
}

}  // namespace vgpud::daemon
