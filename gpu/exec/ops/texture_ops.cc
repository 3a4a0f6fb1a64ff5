// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/ops/texture_ops.h"

#include <fmt/core.h>

#include <bit>
#include <cstring>

namespace vgpud::exec {
namespace {

// `payload` has at least a vgpu_texture.
GpuResult<TextureDesc> ReadTexture(std::span<const std::byte> payload) {
  const auto wrong = [](std::string what) {
    return GpuFail(CuStatus::kInvalidValue, "TEXTURE_CREATE: " + std::move(what));
  };
  vgpu_texture in;
  std::memcpy(&in, payload.data(), sizeof in);
  if ((in.flags & ~VGPU_TEXTURE_ALL_FLAGS) != 0 || in.mbz != 0)
    return wrong(fmt::format("flags {:#x}, mbz {:#x}: only the bits {:#x} have a meaning", in.flags, in.mbz,
                             VGPU_TEXTURE_ALL_FLAGS));
  if (in.levels == 0 || in.levels > VGPU_TEXTURE_MAX_LEVELS ||
      payload.size() - sizeof in != in.levels * sizeof(vgpu_texture_level))
    return wrong(fmt::format("{} levels in a payload of {} bytes", in.levels, payload.size()));
  const auto flag = [&](uint32_t bit) { return (in.flags & bit) != 0; };
  const uint32_t sampling = VGPU_TEXTURE_LINEAR | VGPU_TEXTURE_MIP_LINEAR | VGPU_TEXTURE_NORMALIZED |
                            VGPU_TEXTURE_READ_FLOAT | VGPU_TEXTURE_SRGB;
  if (flag(VGPU_TEXTURE_SURFACE) && flag(sampling))
    return wrong(fmt::format("a surface with sampling flags {:#x}", in.flags & sampling));
  TextureDesc desc;
  desc.shape = static_cast<TextureDesc::Shape>(in.shape);
  desc.surface = flag(VGPU_TEXTURE_SURFACE);
  desc.layered = flag(VGPU_TEXTURE_LAYERED);
  desc.linear = flag(VGPU_TEXTURE_LINEAR);
  desc.mip_linear = flag(VGPU_TEXTURE_MIP_LINEAR);
  desc.normalized = flag(VGPU_TEXTURE_NORMALIZED);
  desc.read_float = flag(VGPU_TEXTURE_READ_FLOAT);
  desc.srgb = flag(VGPU_TEXTURE_SRGB);
  desc.width = in.width;
  desc.height = in.height;
  desc.depth = in.depth;
  desc.layers = in.layers;
  desc.format = in.format;
  desc.channels = in.channels;
  for (int a = 0; a < 3; ++a) desc.address[a] = static_cast<TextureDesc::Address>(in.address[a]);
  desc.lod_bias = std::bit_cast<float>(in.lod_bias);
  desc.lod_min = std::bit_cast<float>(in.lod_min);
  desc.lod_max = std::bit_cast<float>(in.lod_max);
  std::memcpy(desc.border, in.border, sizeof desc.border);
  for (uint32_t n = 0; n < in.levels; ++n) {
    vgpu_texture_level level;
    std::memcpy(&level, payload.data() + sizeof in + n * sizeof level, sizeof level);
    desc.levels.push_back({GpuVa{level.address}, level.pitch, level.slice});
  }
  return desc;
}

}  // namespace

EntryVerdict TextureOps::Create(RingEntry& entry) {
  const auto desc = ReadTexture(entry.span);
  if (!desc) return channel_.Reject(entry, desc.error());
  const uint64_t need = context_.gpu().TextureBytes(*desc);
  if (need != 0)
    if (const auto verdict = vram_.Reserve(entry, need, need)) return *verdict;
  const auto handle = context_.gpu().CreateTexture(*desc);
  if (!handle) return channel_.Reject(entry, handle.error());
  if (need != 0) vram_.share().Use(need);
  return channel_.Reply(entry, {*handle});
}

EntryVerdict TextureOps::Destroy(RingEntry& entry) {
  const auto done = context_.gpu().DestroyTexture(entry.sqe.args[0]);
  if (!done) return channel_.Reject(entry, done.error());
  if (*done != 0) vram_.share().Return(*done);
  return channel_.Reply(entry);
}

}  // namespace vgpud::exec
