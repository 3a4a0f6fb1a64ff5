// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/ops/buffers.h"

#include "base/checked.h"
#include "gpu/capability/host_sharing.h"

namespace vgpud::exec {

GuestArea* Buffers::Find(uint64_t id) const {
  const auto it = id <= UINT32_MAX ? by_id_.find(MustFit<uint32_t>(id)) : by_id_.end();
  return it != by_id_.end() ? it->second.area : nullptr;
}

GpuResult<GpuVa> Buffers::Share(uint32_t id) {
  HostSharing* const sharing = context_.can().host_sharing;
  if (sharing == nullptr) return GpuFail(CuStatus::kNotSupported, "this GPU's kernels reach no memory of the host");
  Buffer& buffer = by_id_.at(id);
  auto address = sharing->Share(buffer.area->bytes(), buffer.area->file());
  if (!address) return address;
  buffer.shared = true;
  buffer.address = *address;
  return address;
}

void Buffers::ShareAgain() {
  for (auto& [id, buffer] : by_id_)
    if (buffer.shared) (void)Share(id);
}

std::shared_ptr<AreaUsers> Buffers::UsersOf(GpuVa address, uint64_t bytes) const {
  for (const auto& [id, buffer] : by_id_) {
    const uint64_t size = buffer.area->bytes().size();
    const uint64_t offset = Raw(address) - Raw(buffer.address);
    if (buffer.shared && offset < size && bytes <= size - offset) return buffer.area->users();
  }
  return nullptr;
}

void Buffers::Drop(uint32_t id, StreamWork& work) {
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) return;
  it->second.area->users()->Leave();
  HostSharing* const sharing = context_.exists() ? context_.can().host_sharing : nullptr;
  if (it->second.shared && sharing != nullptr) sharing->Unshare(it->second.area->bytes());
  by_id_.erase(it);
  work.streams().ForEach([id](Op& op) {
    if (op.area == id) op.area_lost = true;
  });
}

}  // namespace vgpud::exec
