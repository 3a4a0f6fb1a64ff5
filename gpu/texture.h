// SPDX-License-Identifier: Apache-2.0
// What a texture or surface object says, as the guest gives it: not checked before Gpu::CreateTexture has seen it.
// The meaning of every field is that of the CUDA driver API (CUDA_RESOURCE_DESC, CUDA_TEXTURE_DESC).
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace vgpud {

struct TextureDesc {
  enum class Shape : uint32_t { kBuffer, k1d, k2d, k3d, kCube };
  enum class Address : uint32_t { kWrap, kClamp, kMirror, kBorder };

  // Level 0 is the whole image; level n has half the extents of level n - 1, at least 1. Rows lie `pitch` bytes apart,
  // layers, faces and depth slices `slice` bytes.
  struct Level {
    GpuVa address;
    uint64_t pitch = 0;
    uint64_t slice = 0;
  };

  Shape shape = Shape::k2d;
  bool layered = false;
  bool surface = false;   // for suld, sust and sured; the sampling fields mean nothing then
  uint32_t width = 0;     // texels
  uint32_t height = 1;    // 1 where the shape has none
  uint32_t depth = 1;     // 3D only
  uint32_t layers = 1;    // of a layered one: images, for cubes six per cube
  uint32_t format = 0;    // CUarray_format
  uint32_t channels = 1;  // 1, 2 or 4
  std::vector<Level> levels;

  Address address[3] = {Address::kWrap, Address::kWrap, Address::kWrap};
  bool linear = false;      // filter between texels
  bool mip_linear = false;  // filter between levels
  bool normalized = false;  // coordinates 0..1
  bool read_float = false;  // 8 and 16 bit integers are read as 0..1 or -1..1
  bool srgb = false;
  float lod_bias = 0, lod_min = 0, lod_max = 0;
  uint32_t border[4] = {};  // bits of each channel of what lies outside
};

}  // namespace vgpud
