// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/ops/buffer_ops.h"

#include <fmt/core.h>

#include <utility>

#include "base/checked.h"

namespace vgpud::exec {

std::optional<EntryVerdict> BufferOps::Find(RingEntry& entry, uint64_t id, GuestArea** area) {
  const char* name = FindOp(entry.sqe.op)->name;
  *area = buffers_.Find(id);
  if (*area == nullptr) {
    if (std::exchange(entry.link_checked, true))
      return channel_.Reject(entry, CuStatus::kInvalidValue, fmt::format("{}: no buffer {}", name, id));
    return EntryVerdict::kLink;
  }
  if ((*area)->failed())
    return channel_.Reject(entry, CuStatus::kOutOfMemory,
                           fmt::format("{}: there was no memory to map buffer {}", name, id));
  if (!(*area)->complete()) return EntryVerdict::kWait;
  return std::nullopt;
}

EntryVerdict BufferOps::Copy(RingEntry& entry) {
  const auto id = entry.sqe.args[1];
  GuestArea* found = nullptr;
  if (const auto verdict = Find(entry, id, &found)) return *verdict;
  const GuestArea& area = *found;
  const uint64_t offset = entry.sqe.args[2];
  const uint64_t bytes = entry.sqe.args[3];
  const uint64_t size = area.bytes().size();
  if (offset > size || bytes > size - offset || (entry.sqe.op == VGPU_OP_BUF_OUT && !area.writable()))
    return channel_.Reject(entry, CuStatus::kInvalidValue,
                           fmt::format("{}: {} bytes at {} of buffer {} ({} bytes, {})", FindOp(entry.sqe.op)->name,
                                       bytes, offset, id, size, area.writable() ? "writable" : "read-only"));
  auto op = MakeOp(entry.sqe);
  op->area = MustFit<uint32_t>(id);
  op->span = area.bytes().subspan(offset, bytes);
  return work_.Queue(entry, std::move(op), false);
}

EntryVerdict BufferOps::Address(RingEntry& entry) {
  const uint64_t id = entry.sqe.args[0];
  GuestArea* area = nullptr;
  if (const auto verdict = Find(entry, id, &area)) return *verdict;
  if (!area->writable())
    return channel_.Reject(entry, CuStatus::kNotSupported,
                           fmt::format("BUF_ADDRESS: buffer {} is read-only, kernels might write to it", id));
  const auto address = buffers_.Share(MustFit<uint32_t>(id));
  if (!address) return channel_.Reject(entry, address.error());
  return channel_.Reply(entry, {Raw(*address), area->bytes().size()});
}

}  // namespace vgpud::exec
