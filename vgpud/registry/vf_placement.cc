// SPDX-License-Identifier: Apache-2.0
// New VFs: on which GPU, whether there is room for them, and waiting for it.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "sched/knobs.h"
#include "vgpud/model/nearest.h"
#include "vgpud/registry/vf_registry.h"

namespace vgpud::daemon {
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

ApiResult<ServedGpu*> VfRegistry::FindGpu(const std::string& name) const {
  if (name.empty() && !several()) return gpus_.front().get();
  std::vector<std::string> names;
  std::string all;
  for (const auto& gpu : gpus_) {
    if (gpu->name() == name) return gpu.get();
    names.push_back(gpu->name());
    all += (all.empty() ? "" : ", ") + gpu->name();
  }
  if (name.empty())
    return ApiFail(ErrorKind::kInvalid, fmt::format("there are {} GPUs, say which one: {}", gpus_.size(), all), "gpu");
  return ApiFail(ErrorKind::kNotFound,
                 fmt::format("there is no gpu \"{}\": {}", name, control::DidYouMean(name, names)), "gpu");
}

ApiResult<void> VfRegistry::CheckVram(const ServedGpu& gpu, const VfSpec& spec) const {
  const GpuRoom room = RoomOn(gpu);
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

GpuRoom VfRegistry::RoomOn(const ServedGpu& gpu) const {
  GpuRoom room;
  room.name = gpu.name();
  room.vram_bytes = gpu.config().gpu_vram_bytes;
  room.node = gpu.config().numa_node;
  for (const VfId id : IdsOn(gpu)) {
    const Vf& vf = *vfs_.at(id);
    ++room.vfs;
    room.promised_bytes += vf.spec().vram_bytes;
    if (vf.Shares()) room.guaranteed += static_cast<double>(KnobOf(vf.spec().view, Knob::kGuarantee)) / kWhole;
  }
  return room;
}

ApiResult<Difference> VfRegistry::WeighOn(const ServedGpu& gpu, VfId id, const VfSpec& spec) const {
  if (const auto room = CheckVram(gpu, spec); !room) return tl::unexpected(room.error());
  Part part{const_cast<ServedGpu*>(&gpu), Asked(spec), CurrentSettings(gpu), {}, {}};
  auto& vfs = part.after.vfs;
  vfs.insert(std::find_if(vfs.begin(), vfs.end(), [&](const VfSettings& other) { return other.view.vf > id; }),
             SettingsOf(id, spec));
  if (const auto weighed = Weigh(&part); !weighed) return tl::unexpected(weighed.error());
  return std::move(part.difference);
}

std::optional<ApiError> VfRegistry::NeverOn(const ServedGpu& gpu, const VfWish& wish) const {
  const auto spec = wish.on(gpu.profiles());
  if (!spec) return spec.error();
  VfSpec there = *spec;
  there.gpu = gpu.name();
  if (const auto why_not = WhyNotForTenant(there, true)) return why_not;
  if (const auto why_not = WhyNotForSite(there, true)) return why_not;
  const uint64_t all = gpu.config().gpu_vram_bytes;
  if (all != 0 && spec->vram_bytes > all) return CheckVram(gpu, *spec).error();
  const Settings before{gpu.settings(), {}};
  const auto ok = CheckChange(before, {gpu.settings(), {SettingsOf(VfId{0}, *spec)}}, gpu.thread().switch_cost());
  if (ok) return std::nullopt;
  return ApiError{ErrorKind::kConflict, ok.error().context, FieldToBlame(ok.error(), Asked(*spec))};
}

ApiResult<VfRegistry::Located> VfRegistry::Locate(const VfWish& wish, const WaitingRoom::Gpus& taken) const {
  const VfId id = TRY(FreeId(wish.spec));
  if (!wish.spec.gpu.empty()) TRY(FindGpu(wish.spec.gpu));
  std::vector<Located> places;
  std::vector<GpuRoom> rooms;
  std::optional<ApiError> refusal;
  for (const auto& gpu : gpus_) {
    if ((!wish.spec.gpu.empty() && gpu->name() != wish.spec.gpu) || taken.contains(gpu->name())) continue;
    Located place{id, gpu.get(), TRY(wish.on(gpu->profiles())), {}};
    place.spec.gpu = gpu->name();
    rooms.push_back(RoomOn(*gpu));
    auto why_not = WhyNotForTenant(place.spec, false);
    if (!why_not) why_not = WhyNotForSite(place.spec, false);
    if (!why_not)
      if (const auto weighed = WeighOn(*gpu, id, place.spec); !weighed) why_not = weighed.error();
    if (why_not) {
      rooms.back().refusal = why_not->error;
      refusal = why_not;
    }
    places.push_back(std::move(place));
  }
  if (refusal && (rooms.size() == 1 || refusal->kind == ErrorKind::kInvalid)) return tl::unexpected(*refusal);
  const Placement usual = wish.spec.numa_node ? Placement::kNuma : around_.config.placement;
  auto placed = Place(wish.spec.placement.value_or(usual), wish.spec.numa_node, rooms);
  if (!placed)
    return ApiFail(ErrorKind::kConflict, fmt::format("vf \"{}\": {}", wish.spec.name, placed.error().context),
                   refusal ? refusal->field : "");
  places[placed->gpu].why = several() && !wish.spec.gpu.empty() ? "as asked for" : placed->why;
  return places[placed->gpu];
}

ApiResult<ChangeReport> VfRegistry::WeighVf(const VfWish& wish) const {
  const Located located = TRY(Locate(wish));
  ChangeReport report{{}, {}, TRY(WeighOn(*located.gpu, located.id, located.spec)), {}};
  if (several()) report.placed = fmt::format("{}: {}", located.gpu->name(), located.why);
  return report;
}

ApiResult<ChangeReport> VfRegistry::WeighVfAlone(const VfWish& wish) const {
  if (!wish.spec.gpu.empty()) TRY(FindGpu(wish.spec.gpu));
  std::optional<ApiError> refusal;
  for (const auto& gpu : gpus_) {
    if (!wish.spec.gpu.empty() && gpu->name() != wish.spec.gpu) continue;
    refusal = NeverOn(*gpu, wish);
    if (!refusal) return ChangeReport{};
  }
  return tl::unexpected(*refusal);  // there is a GPU
}

void VfRegistry::CreateVf(const VfWish& wish, Reply<VfReport> done) {
  const auto located = Locate(wish);
  located ? Create(*located, std::move(done)) : done(tl::unexpected(located.error()));
}

void VfRegistry::Create(const Located& located, Reply<VfReport> answer) {
  const VfSpec& spec = located.spec;
  const auto done = [answer = std::move(answer), why = located.why](ApiResult<VfReport> vf) {
    if (vf) vf->placed = why;
    answer(std::move(vf));
  };
  if (IsKept(spec) && !definitions_.problem().empty())
    return done(ApiFail(ErrorKind::kUnavailable,
                        fmt::format("vf \"{}\" would not be back after a restart, as it could not be written down: {}; "
                                    "vgpuctl create --transient makes one that ends with vgpud",
                                    spec.name, definitions_.problem())));
  StartVf(located.id, UuidFor(spec.name, *located.gpu), spec, {},
          [this, done, spec](const ApiResult<VfReport>& started) {
            const auto vf = started ? Find(spec.name) : nullptr;
            if (vf == nullptr || !IsKept(spec)) return done(started);
            Keep(*vf, [this, done, name = spec.name, weak = std::weak_ptr<Vf>(vf)](const Result<void>& kept) {
              const auto self = weak.lock();
              if (kept)
                return self != nullptr ? done(self->Report()) : done(ApiFail(ErrorKind::kFailed, "the vf is gone"));
              done(ApiFail(
                  ErrorKind::kFailed,
                  fmt::format("vf \"{}\" could not be written down and is ended again: {}; vgpuctl create --transient "
                              "makes one that ends with vgpud",
                              name, kept.error().context)));
              definitions_.Remove(name + kDefinitionSuffix, [](const Result<void>&) {});  // part of it may be there
              if (self != nullptr && Find(name) == self) EndVf(name, true, [](const ApiResult<VfReport>&) {});
            });
          });
}

// Among those who wait.
uint64_t VfRegistry::PriorityOf(const VfSpec& spec) const {
  const auto tenant = FindTenant(tenants_, spec.tenant);
  const uint64_t own = KnobOf(spec.view, Knob::kPriority);
  return own == 0 && tenant ? (*tenant)->quota.each[Resource::kPriority].value_or(0) : own;
}

bool VfRegistry::TryInTurn(const VfWish& wish, const WaitingRoom::Gpus& taken, const Reply<VfReport>& done) {
  if (const auto id = FreeId(wish.spec); !id) {
    done(tl::unexpected(id.error()));
    return true;
  }
  if (const auto why_not = wish.why_not()) {
    done(tl::unexpected(*why_not));
    return true;
  }
  const auto located = Locate(wish, taken);
  if (located) Create(*located, done);
  if (located || located.error().kind != ErrorKind::kInvalid) return located.has_value();
  done(tl::unexpected(located.error()));
  return true;
}

std::function<void()> VfRegistry::CreateVfInTurn(const VfWish& wish, Reply<VfReport> done) {
  const auto nothing = [] {};
  const auto could = [this, wish](const std::string& name) {
    const auto gpu = FindGpu(name);
    return gpu && (wish.spec.gpu.empty() || wish.spec.gpu == name) && !NeverOn(**gpu, wish);
  };
  // One that waits for its own tenant keeps nobody else away.
  const auto wants = [this, could, wish](const std::string& name) {
    if (!could(name)) return false;
    VfSpec there = *wish.on((*FindGpu(name))->profiles());
    there.gpu = name;
    return !WhyNotForTenant(there, false);
  };
  if (std::none_of(gpus_.begin(), gpus_.end(), [&](const auto& gpu) { return could(gpu->name()); })) {
    CreateVf(wish, std::move(done));  // which says why not
    return nothing;
  }
  const auto number = waiting_->Enter(
      {.priority = static_cast<uint8_t>(PriorityOf(wish.spec)),
       .wants = wants,
       .try_now = [this, wish, done](const WaitingRoom::Gpus& taken) { return TryInTurn(wish, taken, done); },
       .whose = wish.whose});
  if (!number) {
    done(ApiFail(ErrorKind::kTooMany, number.error().context));
    return nothing;
  }
  return [this, number = *number] {
    waiting_->Leave(number);
    LookForRoom();  // it may have kept others away
  };
}

void VfRegistry::LookForRoom() {
  if (waiting_ == nullptr || waiting_->size() == 0 || std::exchange(looks_for_room_, true)) return;
  around_.loop.Post([this] {
    looks_for_room_ = false;
    waiting_->LookAgain();
  });
}

}  // namespace vgpud::daemon
