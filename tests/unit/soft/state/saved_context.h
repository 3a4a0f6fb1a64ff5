// SPDX-License-Identifier: Apache-2.0
// Saving contexts of tests into memory and reading them back.
#pragma once

#include <algorithm>
#include <vector>

#include "gpu/soft/state/checksum.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {

using Bytes = std::vector<std::byte>;

inline GpuResult<Bytes> SaveAll(SoftMachine& m, std::vector<GpuGrid*> grids = {}) {
  Bytes bytes;
  std::vector<GpuModule*> modules;
  if (m.module != nullptr) modules.push_back(m.module.get());
  const auto sink = [&](std::span<const std::byte> piece) -> GpuResult<void> {
    EXPECT_LE(piece.size(), kStatePiece);
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  };
  const auto saved = m.gpu.Save(sink, modules, grids);
  if (!saved) return tl::unexpected(saved.error());
  return bytes;
}

// In pieces of at most `piece` bytes. The module becomes the machine's.
inline GpuResult<std::vector<std::unique_ptr<GpuGrid>>> RestoreAll(SoftMachine& m, std::span<const std::byte> bytes,
                                                                   size_t piece = SIZE_MAX) {
  const auto source = [&](std::span<std::byte> out) -> GpuResult<size_t> {
    const size_t part = std::min({out.size(), bytes.size(), piece});
    if (part != 0) std::memcpy(out.data(), bytes.data(), part);
    bytes = bytes.subspan(part);
    return part;
  };
  auto restored = m.gpu.Restore(source);
  if (!restored) return tl::unexpected(std::move(restored).error());
  if (!restored->modules.empty()) m.module = std::move(restored->modules[0]);
  return std::move(restored->grids);
}

// Makes the checksum right again after bytes have been changed.
inline void Seal(Bytes& bytes) {
  if (bytes.size() < 8) return;
  Checksum sum;
  sum.Add(std::span(bytes).first((bytes.size() - 8) / 8 * 8));
  const uint64_t value = sum.value();
  std::memcpy(bytes.data() + (bytes.size() - 8) / 8 * 8, &value, 8);
}

}  // namespace vgpud::soft
