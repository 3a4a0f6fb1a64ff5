// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/changes.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "vgpud/host/when_all.h"
#include "vgpud/registry/preview.h"

namespace vgpud::daemon {

ApiResult<Changes::Plan> Changes::SplitByGpu(const SettingsPatch& patch) const {
  Plan plan;
  for (const auto& gpu : gpus_.all()) plan.push_back({gpu.get(), {}, vfs_.SettingsOn(*gpu), {}, {}, {}});
  const auto part_of = [&](const ServedGpu& gpu) -> Part& {
    return *std::find_if(plan.begin(), plan.end(), [&](const Part& part) { return part.gpu == &gpu; });
  };
  if (patch.gpu) part_of(*TRY(gpus_.Find({}))).patch.gpu = patch.gpu;
  for (const auto& [name, gpu_patch] : patch.gpus) {
    Part& part = part_of(*TRY(gpus_.Find(name)));
    if (part.patch.gpu)
      return ApiFail(ErrorKind::kInvalid, fmt::format("gpu \"{}\" is given twice", part.gpu->name()), "gpu");
    part.patch.gpu = gpu_patch;
  }
  for (const auto& [name, vf_patch] : patch.vfs)
    part_of(gpus_.Of(*TRY(vfs_.Get(name)))).patch.vfs.emplace_back(name, vf_patch);
  std::erase_if(plan, [](const Part& part) { return !part.patch.gpu && part.patch.vfs.empty(); });
  return plan;
}

ApiResult<void> Changes::Apply(Part* part) const {
  Settings& settings = part->after;
  if (part->patch.gpu) daemon::Apply(*part->patch.gpu, settings.gpu);
  for (const auto& [name, patch] : part->patch.vfs) {
    const auto vf = TRY(vfs_.Get(name));
    if (const auto why_not = vf->Unchangeable()) return tl::unexpected(*why_not);
    ChangedVf changed{vf, vf->spec().view, vf->spec().memory()};
    daemon::Apply(patch, changed.view);
    daemon::Apply(patch, changed.memory);
    for (VfSettings& other : settings.vfs) {
      if (other.view.vf != vf->id()) continue;
      const bool parked = other.view.paused && !vf->spec().view.paused;
      other.view = changed.view;
      other.view.paused |= parked;
      other.memory = changed.memory;
    }
    part->vfs.push_back(std::move(changed));
  }
  return {};
}

ApiResult<void> Changes::CheckLimits(const Plan& plan) const {
  std::vector<VfLimits::Change> changes;
  for (const Part& part : plan)
    for (const ChangedVf& changed : part.vfs) {
      changes.push_back({changed.vf->spec(), changed.vf->spec()});
      changes.back().is.view = changed.view;
      changes.back().is.vram_bytes = changed.memory.vram_bytes;
      changes.back().is.host_memory_bytes = changed.memory.host_memory_bytes;
    }
  return limits_.Check(changes);
}

ApiResult<void> Changes::CheckMemory(const Part& part) const {
  const GpuRoom room = vfs_.RoomOn(*part.gpu);
  const bool moves = part.gpu->config().gpu.cuda_oversubscribe;
  uint64_t more = 0, less = 0;  // at most control::kMaxVramBytes of each VF
  const std::string* grows = nullptr;
  for (const ChangedVf& changed : part.vfs) {
    const VfSpec& spec = changed.vf->spec();
    if (Larger(spec.memory(), changed.memory) != spec.memory())
      if (const auto why_not = changed.vf->WhyNotMore()) return tl::unexpected(*why_not);
    if (changed.memory.vram_bytes <= spec.vram_bytes) {
      less += spec.vram_bytes - changed.memory.vram_bytes;
      continue;
    }
    more += changed.memory.vram_bytes - spec.vram_bytes;
    grows = &spec.name;
    if (moves && room.vram_bytes != 0 && changed.memory.vram_bytes > room.vram_bytes)
      return ApiFail(ErrorKind::kConflict,
                     fmt::format("vf \"{}\" wants {} of memory, and the GPU has {}", spec.name,
                                 FormatBytes(changed.memory.vram_bytes), FormatBytes(room.vram_bytes)),
                     "vram_bytes");
  }
  if (room.vram_bytes == 0 || moves || more <= room.free_bytes() + less || more <= less) return {};
  return ApiFail(
      ErrorKind::kConflict,
      fmt::format("vf \"{}\" wants {} more of memory, and of the {} of the GPU {} are free: give it less, or "
                  "another VF, or start vgpud with more (--soft-gpu-vram)",
                  *grows, FormatBytes(more), FormatBytes(room.vram_bytes), FormatBytes(room.free_bytes() + less)),
      "vram_bytes");
}

// vgpud-vf decides; this is what it said last.
ApiResult<void> Changes::CheckUse(const Plan& plan) {
  for (const Part& part : plan)
    for (const ChangedVf& changed : part.vfs) {
      const VfReport now = changed.vf->Report();
      const VfMemory used{now.vram_used_bytes, now.host_memory_used_bytes};
      const bool vram = used.vram_bytes > changed.memory.vram_bytes;
      if (vram || used.host_memory_bytes > changed.memory.host_memory_bytes)
        return ApiFail(ErrorKind::kConflict, WhyNotLess(now.name, used, changed.memory),
                       vram ? "vram_bytes" : "host_memory_bytes");
    }
  return {};
}

ApiResult<Changes::Plan> Changes::MakePlan(const SettingsPatch& patch) const {
  Plan plan = TRY(SplitByGpu(patch));
  for (Part& part : plan) {
    const Settings before = part.after;
    TRY(Apply(&part));
    TRY(CheckMemory(part));
    part.difference = TRY(Preview(gpus_, *part.gpu, before, part.after, part.patch));
    part.warnings = Warnings(part.patch, before, part.after);
  }
  TRY(CheckLimits(plan));
  return plan;
}

GpuThread::Change Changes::Settle(Part& part) {
  GpuThread::Change change;
  if (part.gpu->settings().policy != part.after.gpu.policy)
    change.policy = *MakePolicy(part.after.gpu.policy, part.after.gpu.options);
  else if (part.patch.gpu)
    change.options = part.after.gpu.options;
  if (part.patch.gpu) {
    part.gpu->SetSettings(part.after.gpu);
    gpu_settings_changed_();
  }
  for (const ChangedVf& changed : part.vfs) {
    changed.vf->Adopt(changed.view);
    change.vfs.push_back(changed.view);
  }
  part.gpu->Turnout();
  return change;
}

void Changes::Tell(const Plan& plan, const std::string& by) const {
  for (const Part& part : plan) {
    std::map<std::string, std::vector<Change>> of;  // by VF; "" is the GPU
    for (const Change& change : part.difference.changes) of[change.vf].push_back(change);
    for (auto& [vf, changes] : of)
      chronicle_.Add(
          {.kind = event_kind::kChanged, .vf = vf, .gpu = part.gpu->name(), .by = by, .changes = std::move(changes)});
  }
}

void Changes::Make(const SettingsPatch& patch, const Order& order, Reply<ChangeReport> done) {
  auto plan = MakePlan(patch);
  if (!plan) return done(tl::unexpected(plan.error()));
  if (order.dry_run) {
    const auto fits = CheckUse(*plan);
    return done(fits ? ApiResult<ChangeReport>(ReportOf(*plan)) : tl::unexpected(fits.error()));
  }
  std::vector<MemoryChange::Item> items;
  for (const Part& part : *plan)
    for (const ChangedVf& changed : part.vfs)
      if (const VfMemory was = changed.vf->spec().memory(); was != changed.memory)
        items.push_back({changed.vf, was, changed.memory});
  if (items.empty()) return Carry(*plan, nullptr, order.by, std::move(done));
  const auto memory = MemoryChange::Begin(resizing_, std::move(items));
  if (!memory) return done(tl::unexpected(memory.error()));
  (*memory)->Shrink(
      [this, patch, memory = *memory, by = order.by, done = std::move(done)](const ApiResult<void>& shrunk) {
        if (!shrunk) return done(tl::unexpected(shrunk.error()));
        // Others may have come in between.
        auto now = MakePlan(patch);
        if (now) return Carry(*now, memory, by, done);
        memory->Undo([done, why_not = now.error()] { done(tl::unexpected(why_not)); });
      });
}

ChangeReport Changes::ReportOf(const Plan& plan) {
  ChangeReport report;
  for (const Part& part : plan) {
    const auto append = [](auto& list, const auto& more) { list.insert(list.end(), more.begin(), more.end()); };
    append(report.difference.changes, part.difference.changes);
    append(report.difference.effects, part.difference.effects);
    append(report.warnings, part.warnings);
  }
  return report;
}

void Changes::Carry(Plan& plan, std::shared_ptr<MemoryChange> memory, const std::string& by, Reply<ChangeReport> done) {
  Tell(plan, by);
  struct Outcome {
    std::vector<std::pair<std::string, uint64_t>> rounds;
    Result<void> kept;
    ApiResult<void> resized;
  };
  const auto outcome = std::make_shared<Outcome>();
  const auto over = WhenAll(plan.size() + 1, [outcome, several = plan.size() > 1, report = ReportOf(plan), memory,
                                              done = std::move(done)]() mutable {
    const uint64_t round = outcome->rounds.empty() ? 0 : outcome->rounds.front().second;
    if (!outcome->kept)
      return done(ApiFail(ErrorKind::kFailed,
                          fmt::format("the change is in force from round {} on{}, but could not be written down and is "
                                      "lost when vgpud ends: {}",
                                      round, memory != nullptr ? " except for memory, which is as before" : "",
                                      outcome->kept.error().context)));
    if (!outcome->resized) return done(tl::unexpected(outcome->resized.error()));
    report.round = round;
    if (several) report.rounds = outcome->rounds;
    done(std::move(report));
  });
  if (memory != nullptr) memory->Commit();
  std::vector<VfDefinition> definitions;
  for (Part& part : plan) {
    part.gpu->thread().Apply(Settle(part), [outcome, over, name = part.gpu->name()](uint64_t at) {
      outcome->rounds.emplace_back(name, at);
      over();
    });
    for (const ChangedVf& changed : part.vfs)
      if (store_.Keeps(changed.vf->spec())) definitions.push_back(changed.vf->definition());
  }
  store_.Keep(definitions, [outcome, over, memory](const Result<void>& result) {
    outcome->kept = result;
    if (memory == nullptr) return over();
    if (!result) return memory->Undo(over);
    memory->Finish([outcome, over](const ApiResult<void>& resized) {
      outcome->resized = resized;
      over();
    });
  });
}

void Changes::MakeOfVf(const std::string& name, const VfPatch& patch, const Order& order, Reply<ChangeReport> done) {
  Make({{}, {{name, patch}}}, order, [done, vf = vfs_.Find(name)](ApiResult<ChangeReport> change) {
    if (change) change->vf = vf->Report();
    done(std::move(change));
  });
}

void Changes::MakeOfGpu(const std::string& name, const GpuPatch& patch, const Order& order, Reply<ChangeReport> done) {
  const auto gpu = gpus_.Find(name);
  if (!gpu) return done(tl::unexpected(gpu.error()));
  Make({{}, {}, {{(*gpu)->name(), patch}}}, order, [this, done, gpu = *gpu](ApiResult<ChangeReport> change) {
    if (change) change->gpu = reports_.OfGpu(*gpu);
    done(std::move(change));
  });
}

ApiResult<VfReport> Changes::SetDomain(const std::string& name, const VfDomain& domain, const std::string& by) {
  const auto vf = TRY(vfs_.Get(name));
  const VfDomain& before = vf->spec().domain;
  const VfDomain now{domain.name, domain.uuid, before.ends_vf && before.uuid == domain.uuid};
  if (now == before) return vf->Report();
  const auto field = [](const VfDomain& of) { return of.name.empty() ? FieldValue() : FieldValue(of.name); };
  chronicle_.Add({.kind = event_kind::kChanged,
                  .vf = name,
                  .gpu = vf->gpu_name(),
                  .by = by,
                  .changes = {{name, "domain", field(before), field(now)}}});
  const bool was_kept = store_.Keeps(vf->spec());
  vf->SetDomain(now);
  gpus_.Of(*vf).telemetry().SetDomain(vf->id(), now);
  // Nobody waits for the disk: what it misses is said again by those who watch libvirt.
  if (vf->state() == Vf::State::kClosing) return vf->Report();
  if (store_.Keeps(vf->spec()))
    store_.Keep(vf->definition(), [name](const Result<void>& kept) {
      if (!kept) LOG(kWarning, "vf={}: whose it is could not be written down: {}", name, kept.error().context);
    });
  else if (was_kept)  // it ends with vgpud from now on, and nobody would look for its definition
    store_.RemoveRest(name);
  return vf->Report();
}

}  // namespace vgpud::daemon
