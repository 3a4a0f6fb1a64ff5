// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/texture/texture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/checked.h"
#include "gpu/soft/code/inst.h"

namespace vgpud::soft {
namespace {

using Shape = TextureDesc::Shape;

constexpr size_t kMaxLevels = 17;
constexpr uint64_t kMaxPitch = uint64_t{1} << 31;

struct FormatRow {
  TexelFormat format;
  uint32_t bytes;
  bool is_float;
};
constexpr FormatRow kFormats[] = {
    {TexelFormat::kU8, 1, false},  {TexelFormat::kU16, 2, false},  {TexelFormat::kU32, 4, false},
    {TexelFormat::kS8, 1, false},  {TexelFormat::kS16, 2, false},  {TexelFormat::kS32, 4, false},
    {TexelFormat::kHalf, 2, true}, {TexelFormat::kFloat, 4, true},
};

// Extents of each shape: those of the device attributes (device_info.cc), the larger of texture and surface.
struct ShapeRow {
  const char* name;
  uint32_t width, height, depth, layers;
};
constexpr ShapeRow kShapes[] = {
    {"1D of linear memory", 1u << 28, 1, 1, 1},
    {"1D", 131072, 1, 1, 2048},
    {"2D", 131072, 65536, 1, 2048},
    {"3D", 32768, 16384, 32768, 1},
    {"cube", 32768, 32768, 1, 2046 * 6},
};

GpuResult<void> CheckExtents(const TextureDesc& d) {
  const auto shape = static_cast<size_t>(d.shape);
  if (shape >= std::size(kShapes))
    return GpuFail(CuStatus::kInvalidValue, fmt::format("texture of the unknown shape {}", shape));
  const ShapeRow& most = kShapes[shape];
  const bool cube_ok = d.shape != Shape::kCube || (d.width == d.height && d.layers % 6 == 0);
  const bool layers_ok = d.layered || d.shape == Shape::kCube || d.layers == 1;
  if (d.width == 0 || d.width > most.width || d.height == 0 || d.height > most.height || d.depth == 0 ||
      d.depth > most.depth || d.layers == 0 || d.layers > most.layers || !cube_ok || !layers_ok)
    return GpuFail(CuStatus::kInvalidValue,
                   fmt::format("{} texture of {} x {} x {} texels, {} layers: at most {} x {} x {}, {} layers{}",
                               most.name, d.width, d.height, d.depth, d.layers, most.width, most.height, most.depth,
                               most.layers, d.shape == Shape::kCube ? ", square faces, six per cube" : ""));
  uint32_t longest = std::max({d.width, d.height, d.depth});
  size_t levels = 0;
  for (; longest != 0; longest /= 2) ++levels;
  if (d.levels.empty() || d.levels.size() > std::min(levels, kMaxLevels) ||
      (d.shape == Shape::kBuffer && (d.levels.size() != 1 || d.layered)))
    return GpuFail(CuStatus::kInvalidValue,
                   fmt::format("{} texture of {} x {} x {} texels with {} levels{}", most.name, d.width, d.height,
                               d.depth, d.levels.size(), d.layered ? ", layered" : ""));
  return {};
}

GpuResult<void> CheckSampling(const TextureDesc& d, bool as_float) {
  for (const TextureDesc::Address a : d.address)
    if (a > TextureDesc::Address::kBorder)
      return GpuFail(CuStatus::kInvalidValue,
                     fmt::format("texture with the unknown address mode {}", static_cast<uint32_t>(a)));
  if (d.linear && !as_float)
    return GpuFail(CuStatus::kInvalidValue,
                   "a texture with linear filter must be of floats, or of 8 or 16 bit integers read as floats");
  if (!std::isfinite(d.lod_bias) || std::isnan(d.lod_min) || std::isnan(d.lod_max))
    return GpuFail(CuStatus::kInvalidValue, "texture with a level of detail that is no number");
  return {};
}

bool InArena(const Arena& arena, GpuVa address, uint64_t bytes) {
  const uint64_t offset = Raw(address) - arena.vram_va();
  return offset < arena.bytes() && Inside(offset, bytes, arena.bytes());
}

// Where each level is, checked against the live allocations.
GpuResult<void> PlaceLevels(const Arena& arena, Texture& t, bool memory_gone) {
  const TextureDesc& d = t.desc;
  for (size_t n = 0; n < d.levels.size(); ++n) {
    const TextureDesc::Level& from = d.levels[n];
    TextureLevel level{};
    level.width = std::max(d.width >> n, 1u);
    level.height = std::max(d.height >> n, 1u);
    level.depth = std::max(d.depth >> n, 1u);
    level.pitch = from.pitch;
    level.slice = from.slice;
    const CheckedSize row = CheckedSize(level.width) * t.texel_bytes;
    const uint64_t rows = level.height;
    const uint64_t slices = uint64_t{level.depth} * t.slices;
    const auto wrong = [&](const char* what) {
      return GpuFail(CuStatus::kInvalidValue,
                     fmt::format("texture level {} ({} x {} x {} texels of {} bytes, {} layers) at {:#x}, pitch {}, "
                                 "slice {}: {}",
                                 n, level.width, level.height, level.depth, t.texel_bytes, t.slices, Raw(from.address),
                                 from.pitch, from.slice, what));
    };
    if (rows > 1 && (!row.Fits(from.pitch) || from.pitch > kMaxPitch)) return wrong("the pitch does not hold a row");
    const CheckedSize image = row + CheckedSize(rows - 1) * (rows > 1 ? from.pitch : 0);
    if (slices > 1 && (!image.Fits(from.slice) || from.slice > arena.bytes()))
      return wrong("the slice does not hold its rows");
    if (Raw(from.address) % t.texel_bytes != 0 || (rows > 1 && from.pitch % t.texel_bytes != 0) ||
        (slices > 1 && from.slice % t.texel_bytes != 0))
      return wrong("texels are not aligned");
    const CheckedSize all = image + CheckedSize(slices - 1) * (slices > 1 ? from.slice : 0);
    const uint64_t bytes = all.saturated();
    if (memory_gone ? !InArena(arena, from.address, bytes) : !arena.Contains(from.address, bytes))
      return wrong("not inside one allocation");
    level.offset = Raw(from.address) - kArenaVa;
    t.levels.push_back(level);
  }
  return {};
}

}  // namespace

GpuResult<std::unique_ptr<Texture>> MakeTexture(const TextureDesc& desc, const Arena& arena, bool memory_gone) {
  if (auto r = CheckExtents(desc); !r) return tl::unexpected(std::move(r).error());
  const auto* row = std::find_if(std::begin(kFormats), std::end(kFormats),
                                 [&](const FormatRow& f) { return static_cast<uint32_t>(f.format) == desc.format; });
  if (row == std::end(kFormats))
    return GpuFail(
        CuStatus::kNotSupported,
        fmt::format("texture format {:#x}: the soft GPU has 8, 16 and 32 bit integers, half and float", desc.format));
  if (desc.channels != 1 && desc.channels != 2 && desc.channels != 4)
    return GpuFail(CuStatus::kInvalidValue, fmt::format("texture of {} channels: 1, 2 or 4", desc.channels));
  auto texture = std::make_unique<Texture>();
  texture->desc = desc;
  texture->format = row->format;
  texture->channel_bytes = row->bytes;
  texture->texel_bytes = row->bytes * desc.channels;
  texture->scaled = !row->is_float && row->bytes < 4 && desc.read_float;
  texture->as_float = row->is_float || texture->scaled;
  texture->slices = desc.layers;
  if (!desc.surface) {
    if (auto r = CheckSampling(desc, texture->as_float); !r) return tl::unexpected(std::move(r).error());
  }
  if (auto r = PlaceLevels(arena, *texture, memory_gone); !r) return tl::unexpected(std::move(r).error());
  return texture;
}

GpuResult<uint64_t> TextureTable::Add(const TextureDesc& desc, const Arena& arena) {
  auto made = MakeTexture(desc, arena, false);
  if (!made) return tl::unexpected(std::move(made).error());
  std::unique_ptr<Texture> texture = std::move(*made);
  size_t index = entries_.size();
  if (!unused_.empty()) {
    index = unused_.back();
    unused_.pop_back();
  } else if (index >= kMaxTextures) {
    return GpuFail(CuStatus::kOutOfMemory, fmt::format("{} textures and surfaces are all there can be", kMaxTextures));
  } else {
    entries_.emplace_back();
  }
  generation_ = (generation_ + 1) % kTextureGenerations;
  texture->handle = TextureHandle(generation_, index);
  const uint64_t handle = texture->handle;
  entries_[index] = std::move(texture);
  return handle;
}

GpuResult<void> TextureTable::Remove(uint64_t handle) {
  if (Find(handle) == nullptr)
    return GpuFail(CuStatus::kInvalidHandle, fmt::format("{:#x} is no texture or surface", handle));
  const uint64_t index = handle & 0xfffff;
  entries_[index] = nullptr;
  unused_.push_back(MustFit<uint32_t>(index));
  return {};
}

}  // namespace vgpud::soft
