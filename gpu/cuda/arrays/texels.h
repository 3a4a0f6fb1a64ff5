// SPDX-License-Identifier: Apache-2.0
// Where the texels of a texture or surface lie in the guest's memory: its description, checked. Pure.
#pragma once

#include <vector>

#include "gpu/cuda/driver_api.h"
#include "gpu/cuda/memory/ranges.h"
#include "gpu/gpu.h"

namespace vgpud::driver {

// One level: slices (layers, faces, planes) of rows.
struct TexelLevel {
  uint64_t address = 0, pitch = 0, slice = 0;
  uint64_t row_bytes = 0, rows = 1, slices = 1;

  // Nothing where it begins at 0 rows: from the first byte to the last.
  uint64_t bytes() const { return (slices - 1) * slice + (rows - 1) * pitch + row_bytes; }
  uint64_t end() const { return address + bytes(); }
  bool operator==(const TexelLevel&) const = default;
};

// A part of a level: whole rows, and whole slices where it is of more than one.
struct TexelBox {
  uint64_t first_slice = 0, slices = 0, first_row = 0, rows = 0;
};
// What of `level` has a byte in [address, address + bytes); no slices: nothing.
TexelBox BoxOf(const TexelLevel& level, uint64_t address, uint64_t bytes);

struct Texels {
  ArrayShape shape{};  // as a driver's array of the same texels would have it, that surfaces can be made of
  std::vector<TexelLevel> levels;

  // Do both name the same texels in the same memory? Faces of a cube are layers to a surface.
  bool SameAs(const Texels& other, bool surface) const;
  bool Overlaps(const Texels& other) const;
};

// kInvalidValue with a sentence: it contradicts itself, or is not in one range of the guest's.
GpuResult<Texels> ReadTexels(const TextureDesc& desc, const Ranges& ranges);

}  // namespace vgpud::driver
