// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/admission.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "sched/knobs.h"
#include "vgpud/host/share_limits.h"
#include "vgpud/model/api.h"
#include "vgpud/registry/preview.h"

namespace vgpud::daemon {

static_assert(share_limits::kVfs.all == control::kMaxVfs);

namespace {

// The knobs that it does not have as every VF has.
SettingsPatch Asked(const VfSpec& spec) {
  VfPatch given;
  for (const KnobRow& row : Knobs())
    if (row.per_vf && KnobOf(spec.view, row.knob) != KnobOf(VfView{}, row.knob))
      given.knobs.push_back({row.knob, KnobOf(spec.view, row.knob)});
  return {{}, {{spec.name, given}}};
}

VfSettings SettingsOf(VfId id, const VfSpec& spec) {
  VfSettings vf{spec.name, spec.view};
  vf.view.vf = id;
  return vf;
}

}  // namespace

ApiResult<VfId> Admission::FreeNumber(const std::string& name, VfId wanted) const {
  if (vfs_.closed()) return ApiFail(ErrorKind::kUnavailable, "vgpud is stopping");
  if (vfs_.Find(name) != nullptr)
    return ApiFail(ErrorKind::kConflict,
                   fmt::format("a vf \"{}\" exists already; destroy it first or take another name", name), "name");
  if (vfs_.lost().Find(name) != nullptr)
    return ApiFail(ErrorKind::kConflict,
                   fmt::format("{}; only then can another one have its name", vfs_.lost().Reason(name)), "name");
  if (const auto number = vfs_.FreeNumber(wanted)) return *number;
  return ApiFail(ErrorKind::kConflict,
                 fmt::format("there are {} vfs already, the most that one vgpud takes", control::kMaxVfs));
}

ApiResult<VfId> Admission::FreeNumber(const std::string& name, const Sharer& whose) const {
  const PlaceLimit& limit = share_limits::kVfs;
  if (!whose.privileged && vfs_.all().size() >= limit.all - limit.reserved)
    return ApiFail(ErrorKind::kConflict,
                   fmt::format("there are {} vfs already, the most that all but root may have together: destroy one",
                               vfs_.all().size()));
  return FreeNumber(name, VfId{0});
}

ApiResult<VfId> Admission::RoomAgain(const VfDefinition& definition) const {
  const VfSpec& spec = definition.spec;
  const VfId id = TRY(FreeNumber(spec.name, VfId{definition.number}));
  for (const auto& [other, vf] : vfs_.all())
    if (vf->definition().uuid == definition.uuid)
      return ApiFail(ErrorKind::kConflict, fmt::format("vf \"{}\" has its uuid", vf->spec().name));
  const ServedGpu* const gpu = TRY(gpus_.Find(spec.gpu));
  TRY(PreviewOn(*gpu, id, spec));
  if (auto why_not = limits_.WhyNotInRam(spec)) return tl::unexpected(std::move(*why_not));
  return id;
}

ApiResult<void> Admission::CheckVram(const ServedGpu& gpu, const VfSpec& spec) const {
  const GpuRoom room = vfs_.RoomOn(gpu);
  const bool moves = gpu.config().gpu.cuda_oversubscribe;
  if (room.vram_bytes == 0 || spec.vram_bytes <= (moves ? room.vram_bytes : room.free_bytes())) return {};
  return ApiFail(
      ErrorKind::kConflict,
      fmt::format("vf \"{}\" wants {} of memory, and of the {} of the GPU {} are free: give it less, destroy "
                  "another VF, or start vgpud with more (--soft-gpu-vram)",
                  spec.name, FormatBytes(spec.vram_bytes), FormatBytes(room.vram_bytes),
                  FormatBytes(room.free_bytes())),
      "vram_bytes");
}

ApiResult<Difference> Admission::PreviewOn(const ServedGpu& gpu, VfId id, const VfSpec& spec) const {
  TRY(CheckVram(gpu, spec));
  const Settings before = vfs_.SettingsOn(gpu);
  Settings after = before;
  auto& vfs = after.vfs;
  vfs.insert(std::find_if(vfs.begin(), vfs.end(), [&](const VfSettings& other) { return other.view.vf > id; }),
             SettingsOf(id, spec));
  return daemon::Preview(gpus_, gpu, before, after, Asked(spec));
}

std::optional<ApiError> Admission::WhyNever(const ServedGpu& gpu, const VfWish& wish) const {
  const auto spec = wish.on(gpu.profiles());
  if (!spec) return spec.error();
  VfSpec there = *spec;
  there.gpu = gpu.name();
  if (const auto why_not = limits_.WhyNotForTenant(there, true)) return why_not;
  if (const auto why_not = limits_.WhyNotForSite(there, true)) return why_not;
  const uint64_t all = gpu.config().gpu_vram_bytes;
  if (all != 0 && spec->vram_bytes > all) return CheckVram(gpu, *spec).error();
  const Settings before{gpu.settings(), {}};
  const auto ok = CheckChange(before, {gpu.settings(), {SettingsOf(VfId{0}, *spec)}}, gpu.thread().switch_cost());
  if (ok) return std::nullopt;
  return ApiError{ErrorKind::kConflict, ok.error().context, FieldToBlame(ok.error(), Asked(*spec))};
}

ApiResult<Admission::Choice> Admission::Locate(const VfWish& wish, const WaitingRoom::Gpus& taken) const {
  const VfId id = TRY(FreeNumber(wish.spec.name, wish.whose));
  if (!wish.spec.gpu.empty()) TRY(gpus_.Find(wish.spec.gpu));
  std::vector<Choice> places;
  std::vector<GpuRoom> rooms;
  std::optional<ApiError> refusal;
  for (const auto& gpu : gpus_.all()) {
    if ((!wish.spec.gpu.empty() && gpu->name() != wish.spec.gpu) || taken.contains(gpu->name())) continue;
    auto spec = TRY(wish.on(gpu->profiles()));
    Choice place{id, gpu.get(), std::move(spec), {}};
    place.spec.gpu = gpu->name();
    rooms.push_back(vfs_.RoomOn(*gpu));
    auto why_not = limits_.WhyNotForTenant(place.spec, false);
    if (!why_not) why_not = limits_.WhyNotForSite(place.spec, false);
    if (!why_not)
      if (const auto previewed = PreviewOn(*gpu, id, place.spec); !previewed) why_not = previewed.error();
    if (why_not) {
      rooms.back().refusal = why_not->error;
      refusal = why_not;
    }
    places.push_back(std::move(place));
  }
  if (refusal && (rooms.size() == 1 || refusal->kind == ErrorKind::kInvalid)) return tl::unexpected(*refusal);
  const Placement usual = wish.spec.numa_node ? Placement::kNuma : usual_;
  const auto placed = Place(wish.spec.placement.value_or(usual), wish.spec.numa_node, rooms);
  if (!placed)
    return ApiFail(ErrorKind::kConflict, fmt::format("vf \"{}\": {}", wish.spec.name, placed.error().context),
                   refusal ? refusal->field : "");
  places[placed->gpu].why = gpus_.several() && !wish.spec.gpu.empty() ? "as asked for" : placed->why;
  return places[placed->gpu];
}

ApiResult<ChangeReport> Admission::Preview(const VfWish& wish) const {
  const Choice choice = TRY(Locate(wish));
  ChangeReport report{{}, {}, TRY(PreviewOn(*choice.gpu, choice.id, choice.spec)), {}};
  if (gpus_.several()) report.placed = fmt::format("{}: {}", choice.gpu->name(), choice.why);
  return report;
}

ApiResult<ChangeReport> Admission::PreviewAlone(const VfWish& wish) const {
  if (!wish.spec.gpu.empty()) TRY(gpus_.Find(wish.spec.gpu));
  std::optional<ApiError> refusal;
  for (const auto& gpu : gpus_.all()) {
    if (!wish.spec.gpu.empty() && gpu->name() != wish.spec.gpu) continue;
    refusal = WhyNever(*gpu, wish);
    if (!refusal) return ChangeReport{};
  }
  return tl::unexpected(*refusal);  // there is a GPU
}

}  // namespace vgpud::daemon
