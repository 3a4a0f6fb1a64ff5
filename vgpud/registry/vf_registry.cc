// SPDX-License-Identifier: Apache-2.0
#include "vgpud/registry/vf_registry.h"

#include <fmt/core.h>

#include <utility>

#include "base/check.h"
#include "sched/knobs.h"
#include "vgpud/model/api.h"

namespace vgpud::daemon {

std::shared_ptr<Vf> VfRegistry::Find(const std::string& name) const {
  for (const auto& [id, vf] : vfs_)
    if (vf->spec().name == name) return vf;
  return nullptr;
}

std::shared_ptr<Vf> VfRegistry::Find(VfId id) const {
  const auto it = vfs_.find(id);
  return it != vfs_.end() ? it->second : nullptr;
}

ApiResult<std::shared_ptr<Vf>> VfRegistry::Get(const std::string& name) const {
  auto vf = Find(name);
  if (vf == nullptr && lost_.Find(name) != nullptr) return ApiFail(ErrorKind::kConflict, lost_.Reason(name));
  if (vf == nullptr)
    return ApiFail(ErrorKind::kNotFound, fmt::format("there is no vf \"{}\" (see: vgpuctl list)", name));
  return vf;
}

std::vector<std::shared_ptr<Vf>> VfRegistry::On(const ServedGpu& gpu) const {
  std::vector<std::shared_ptr<Vf>> vfs;
  for (const auto& [id, vf] : vfs_)
    if (vf->gpu_name() == gpu.name()) vfs.push_back(vf);
  return vfs;
}

std::optional<VfId> VfRegistry::FreeNumber(VfId wanted) const {
  if (Raw(wanted) < control::kMaxVfs && !vfs_.contains(wanted)) return wanted;
  uint32_t number = 0;
  for (const auto& [used, vf] : vfs_)
    if (Raw(used) == number) ++number;
  return number < control::kMaxVfs ? std::optional(VfId{number}) : std::nullopt;
}

void VfRegistry::Add(std::shared_ptr<Vf> vf) {
  const VfId id = vf->id();
  CHECK(vfs_.emplace(id, std::move(vf)).second);
}

Settings VfRegistry::SettingsOn(const ServedGpu& gpu) const {
  Settings settings{gpu.settings(), {}};
  for (const auto& vf : On(gpu))
    if (vf->Shares()) settings.vfs.push_back(vf->settings());
  return settings;
}

GpuRoom VfRegistry::RoomOn(const ServedGpu& gpu) const {
  GpuRoom room;
  room.name = gpu.name();
  room.vram_bytes = gpu.config().gpu_vram_bytes;
  room.node = gpu.config().numa_node;
  for (const auto& vf : On(gpu)) {
    ++room.vfs;
    room.promised_bytes += vf->spec().vram_bytes;
    if (vf->Shares()) room.guaranteed += static_cast<double>(KnobOf(vf->spec().view, Knob::kGuarantee)) / kWhole;
  }
  return room;
}

void VfRegistry::TellExpectedShares(const ServedGpu& gpu) const {
  const Settings settings = SettingsOn(gpu);
  const std::vector<ExpectedShare> expected = ExpectedShares(settings);
  for (size_t i = 0; i < expected.size(); ++i) vfs_.at(settings.vfs[i].view.vf)->SetExpectedShare(expected[i]);
}

}  // namespace vgpud::daemon
