// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/arrays/texels.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/checked.h"

namespace vgpud::driver {
namespace {

constexpr struct {
  uint32_t format;  // CUarray_format
  uint32_t bytes;
} kFormats[] = {{cuda_enum::CU_AD_FORMAT_UNSIGNED_INT8, 1},  {cuda_enum::CU_AD_FORMAT_UNSIGNED_INT16, 2},
                {cuda_enum::CU_AD_FORMAT_UNSIGNED_INT32, 4}, {cuda_enum::CU_AD_FORMAT_SIGNED_INT8, 1},
                {cuda_enum::CU_AD_FORMAT_SIGNED_INT16, 2},   {cuda_enum::CU_AD_FORMAT_SIGNED_INT32, 4},
                {cuda_enum::CU_AD_FORMAT_HALF, 2},           {cuda_enum::CU_AD_FORMAT_FLOAT, 4}};
constexpr uint32_t kFaces = 6;

tl::unexpected<GpuError> Wrong(std::string what) {
  return GpuFail(CuStatus::kInvalidValue, "a texture " + std::move(what));
}

GpuResult<uint64_t> TexelBytes(const TextureDesc& desc) {
  for (const auto& row : kFormats)
    if (row.format == desc.format && (desc.channels == 1 || desc.channels == 2 || desc.channels == 4))
      return uint64_t{row.bytes} * desc.channels;
  return Wrong(fmt::format("of format {} with {} channels", desc.format, desc.channels));
}

GpuResult<ArrayShape> ShapeOf(const TextureDesc& d) {
  using Shape = TextureDesc::Shape;
  const bool high = d.shape == Shape::k2d || d.shape == Shape::k3d || d.shape == Shape::kCube;
  const bool deep = d.shape == Shape::k3d, cube = d.shape == Shape::kCube, layers = d.layered || cube;
  const uint64_t extents[] = {d.width, d.height, d.depth, d.layers};
  if (d.shape > Shape::kCube || std::count(std::begin(extents), std::end(extents), 0) != 0 ||
      (!high && d.height != 1) || (!deep && d.depth != 1) || (!layers && d.layers != 1) || (deep && d.layered))
    return Wrong(fmt::format("of shape {} with {} x {} x {} texels in {} layers", static_cast<uint32_t>(d.shape),
                             d.width, d.height, d.depth, d.layers));
  if (cube && (d.width != d.height || d.layers % kFaces != 0 || (!d.layered && d.layers != kFaces)))
    return Wrong(fmt::format("that is no cube: {} x {} texels, {} faces", d.width, d.height, d.layers));
  ArrayShape shape{};
  shape.width = d.width;
  shape.height = high ? d.height : 0;
  shape.depth = deep ? d.depth : layers ? d.layers : 0;
  shape.format = d.format;
  shape.channels = d.channels;
  shape.flags = kArraySurface | (d.layered ? kArrayLayered : 0) | (cube ? kArrayCube : 0);
  return shape;
}

}  // namespace

TexelBox BoxOf(const TexelLevel& level, uint64_t address, uint64_t bytes) {
  const uint64_t begin = std::max(address, level.address), end = std::min(address + bytes, level.end());
  if (begin >= end) return {};
  const uint64_t first = begin - level.address, last = end - 1 - level.address;
  const uint64_t slice = std::min(first / level.slice, level.slices - 1);
  const uint64_t slices = std::min(last / level.slice, level.slices - 1) - slice + 1;
  if (slices != 1) return {slice, slices, 0, level.rows};
  const auto row = [&](uint64_t at) { return std::min((at - slice * level.slice) / level.pitch, level.rows - 1); };
  return {slice, 1, row(first), row(last) - row(first) + 1};
}

bool Texels::SameAs(const Texels& other, bool surface) const {
  const auto layers = [&](uint32_t flags) {
    return surface && (flags & kArrayCube) != 0 ? kArrayLayered : flags & ~kArraySurface;
  };
  return levels == other.levels && shape.width == other.shape.width && shape.height == other.shape.height &&
         shape.depth == other.shape.depth && shape.format == other.shape.format &&
         shape.channels == other.shape.channels && layers(shape.flags) == layers(other.shape.flags);
}

bool Texels::Overlaps(const Texels& other) const {
  return std::any_of(levels.begin(), levels.end(), [&](const TexelLevel& a) {
    return std::any_of(other.levels.begin(), other.levels.end(),
                       [&](const TexelLevel& b) { return a.address < b.end() && b.address < a.end(); });
  });
}

GpuResult<Texels> ReadTexels(const TextureDesc& desc, const Ranges& ranges) {
  Texels texels;
  const uint64_t texel = TRY(TexelBytes(desc));
  texels.shape = TRY(ShapeOf(desc));
  if (desc.levels.empty()) return Wrong("without a level");
  const auto halved = [](uint64_t extent, size_t n) { return std::max<uint64_t>(extent >> n, 1); };
  for (size_t n = 0; n < desc.levels.size(); ++n) {
    const TextureDesc::Level& from = desc.levels[n];
    TexelLevel level;
    level.address = Raw(from.address);
    level.rows = halved(desc.height, n);
    level.slices = desc.layers != 1 ? desc.layers : halved(desc.depth, n);
    const CheckedSize row = CheckedSize(halved(desc.width, n)) * texel;
    level.row_bytes = row.saturated();
    // What is not used may be anything.
    level.pitch = level.rows == 1 ? level.row_bytes : from.pitch;
    const CheckedSize image = CheckedSize(level.rows - 1) * level.pitch + row;
    level.slice = level.slices == 1 ? image.saturated() : from.slice;
    const CheckedSize bytes = CheckedSize(level.slices - 1) * level.slice + image;
    if (!row.Fits(level.pitch) || !image.Fits(level.slice) || !ranges.Contains(level.address, bytes.saturated()))
      return Wrong(fmt::format("whose level {} of {} bytes at {:#x} is not inside one allocation", n, bytes.saturated(),
                               level.address));
    texels.levels.push_back(level);
  }
  return texels;
}

}  // namespace vgpud::driver
