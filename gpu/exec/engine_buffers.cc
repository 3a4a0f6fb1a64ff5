// SPDX-License-Identifier: Apache-2.0
// Buffers: memory that the guest shares with its executor. Copies name them by number; kernels reach them at addresses
// that the GPU gives, never at one that the guest chooses.
#include <fmt/core.h>

#include <utility>

#include "base/checked.h"
#include "gpu/capability/host_sharing.h"
#include "gpu/exec/channel_engine.h"

namespace vgpud::exec {

// nullopt: *area is complete.
std::optional<ChannelEngine::Verdict> ChannelEngine::FindBuffer(Entry& entry, uint64_t id, GuestArea** area) {
  const char* name = FindOp(entry.sqe.op)->name;
  const auto it = id <= UINT32_MAX ? buffers_.find(MustFit<uint32_t>(id)) : buffers_.end();
  if (it == buffers_.end()) {
    if (std::exchange(entry.link_checked, true))
      return Reject(entry, CuStatus::kInvalidValue, fmt::format("{}: no buffer {}", name, id));
    return Verdict::kLink;
  }
  *area = it->second.area;
  if ((*area)->failed())
    return Reject(entry, CuStatus::kOutOfMemory, fmt::format("{}: there was no memory to map buffer {}", name, id));
  if (!(*area)->complete()) return Verdict::kWait;
  return std::nullopt;
}

ChannelEngine::Verdict ChannelEngine::DoBuffer(Entry& entry) {
  const auto id = entry.sqe.args[1];
  GuestArea* found = nullptr;
  if (const auto verdict = FindBuffer(entry, id, &found)) return *verdict;
  const GuestArea& area = *found;
  const uint64_t offset = entry.sqe.args[2];
  const uint64_t bytes = entry.sqe.args[3];
  const uint64_t size = area.bytes().size();
  if (offset > size || bytes > size - offset || (entry.sqe.op == VGPU_OP_BUF_OUT && !area.writable()))
    return Reject(entry, CuStatus::kInvalidValue,
                  fmt::format("{}: {} bytes at {} of buffer {} ({} bytes, {})", FindOp(entry.sqe.op)->name, bytes,
                              offset, id, size, area.writable() ? "writable" : "read-only"));
  auto op = MakeOp(entry.sqe);
  op->area = MustFit<uint32_t>(id);
  op->span = area.bytes().subspan(offset, bytes);
  return Queue(entry, std::move(op), false);
}

ChannelEngine::Verdict ChannelEngine::DoBufferAddress(Entry& entry) {
  const uint64_t id = entry.sqe.args[0];
  GuestArea* area = nullptr;
  if (const auto verdict = FindBuffer(entry, id, &area)) return *verdict;
  if (!area->writable())
    return Reject(entry, CuStatus::kNotSupported,
                  fmt::format("BUF_ADDRESS: buffer {} is read-only, kernels might write to it", id));
  HostSharing* const sharing = can().host_sharing;
  if (sharing == nullptr)
    return Reject(entry, CuStatus::kNotSupported, "this GPU's kernels reach no memory of the host");
  const auto address = sharing->Share(area->bytes(), area->file());
  if (!address) return Reject(entry, address.error());
  Buffer& buffer = buffers_.at(MustFit<uint32_t>(id));
  buffer.shared = true;
  buffer.address = *address;
  return Reply(entry, {Raw(*address), area->bytes().size()});
}

std::shared_ptr<AreaUsers> ChannelEngine::UsersOf(GpuVa address, uint64_t bytes) const {
  for (const auto& [id, buffer] : buffers_) {
    const uint64_t size = buffer.area->bytes().size();
    const uint64_t offset = Raw(address) - Raw(buffer.address);
    if (buffer.shared && offset < size && bytes <= size - offset) return buffer.area->users();
  }
  return nullptr;
}

void ChannelEngine::ShareBuffersAgain() {
  HostSharing* const sharing = can().host_sharing;
  for (auto& [id, buffer] : buffers_) {
    if (!buffer.shared || sharing == nullptr) continue;
    if (const auto address = sharing->Share(buffer.area->bytes(), buffer.area->file())) buffer.address = *address;
  }
}

void ChannelEngine::DropBuffer(uint32_t id) {
  const auto it = buffers_.find(id);
  if (it == buffers_.end()) return;
  it->second.area->users()->Leave();
  HostSharing* const sharing = gpu_ != nullptr ? can().host_sharing : nullptr;
  if (it->second.shared && sharing != nullptr) sharing->Unshare(it->second.area->bytes());
  buffers_.erase(it);
  streams_.ForEach([id](Op& op) {
    if (op.area == id) op.area_lost = true;
  });
}

}  // namespace vgpud::exec
