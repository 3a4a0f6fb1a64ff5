// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/textures.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace vgpud::driver {
namespace {

// CUDA_TRSF flags.
constexpr uint32_t kReadAsInteger = 1, kNormalized = 2, kSrgb = 16;

constexpr struct {
  uint32_t format;  // CUarray_format
  uint32_t bytes;
} kFormats[] = {{cuda_enum::CU_AD_FORMAT_UNSIGNED_INT8, 1},  {cuda_enum::CU_AD_FORMAT_UNSIGNED_INT16, 2},
                {cuda_enum::CU_AD_FORMAT_UNSIGNED_INT32, 4}, {cuda_enum::CU_AD_FORMAT_SIGNED_INT8, 1},
                {cuda_enum::CU_AD_FORMAT_SIGNED_INT16, 2},   {cuda_enum::CU_AD_FORMAT_SIGNED_INT32, 4},
                {cuda_enum::CU_AD_FORMAT_HALF, 2},           {cuda_enum::CU_AD_FORMAT_FLOAT, 4}};

tl::unexpected<GpuError> Wrong(std::string what) {
  return GpuFail(CuStatus::kInvalidValue, "a texture " + std::move(what));
}

GpuResult<uint64_t> TexelBytes(const TextureDesc& desc) {
  for (const auto& row : kFormats)
    if (row.format == desc.format && (desc.channels == 1 || desc.channels == 2 || desc.channels == 4))
      return uint64_t{row.bytes} * desc.channels;
  return Wrong(fmt::format("of format {} with {} channels", desc.format, desc.channels));
}

TextureParams ParamsOf(const TextureDesc& desc) {
  TextureParams params{};
  for (int a = 0; a < 3; ++a) params.address_mode[a] = static_cast<int32_t>(desc.address[a]);
  params.filter = desc.linear ? 1 : 0;
  params.mipmap_filter = desc.mip_linear ? 1 : 0;
  params.flags = (desc.read_float ? 0 : kReadAsInteger) | (desc.normalized ? kNormalized : 0) | (desc.srgb ? kSrgb : 0);
  params.mipmap_bias = desc.lod_bias;
  params.mipmap_min = desc.lod_min;
  params.mipmap_max = desc.lod_max;
  std::memcpy(params.border, desc.border, sizeof params.border);
  return params;
}

}  // namespace

Textures::~Textures() {
  card_.Bind();
  for (const TextureObject texture : live_) (void)card_.api().TexObjectDestroy(texture);
}

GpuResult<uint64_t> Textures::Create(const TextureDesc& desc) {
  const bool buffer = desc.shape == TextureDesc::Shape::kBuffer;
  const bool rows = desc.shape == TextureDesc::Shape::k2d && !desc.layered && desc.levels.size() == 1;
  if (desc.surface || (!buffer && !rows))
    return GpuFail(CuStatus::kNotSupported,
                   "surfaces, and textures of other shapes than buffers and 2D images of one level, need arrays of the "
                   "driver's own, which this backend does not make");
  if (desc.levels.size() != 1 || desc.width == 0 || desc.height == 0) return Wrong("without texels");
  const uint64_t texel = TRY(TexelBytes(desc));
  const TextureDesc::Level& level = desc.levels.front();
  const CheckedSize row = CheckedSize(uint64_t{desc.width}) * texel;
  const CheckedSize bytes = buffer ? row : CheckedSize(uint64_t{desc.height} - 1) * level.pitch + row;
  if (!row.Fits(buffer ? UINT64_MAX - 1 : level.pitch) || !ranges_.Contains(Raw(level.address), bytes.saturated()))
    return Wrong(
        fmt::format("of {} bytes at {:#x} that is not inside one allocation", bytes.saturated(), Raw(level.address)));
  TextureResource resource{};
  resource.kind = buffer ? TextureResource::Kind::kLinear : TextureResource::Kind::kPitch2d;
  resource.address = Raw(level.address);
  resource.format = desc.format;
  resource.channels = desc.channels;
  resource.width_or_bytes = buffer ? bytes.saturated() : desc.width;
  resource.height = buffer ? 0 : desc.height;
  resource.pitch = buffer ? 0 : level.pitch;
  const TextureParams params = ParamsOf(desc);
  card_.Bind();
  TextureObject texture = 0;
  if (const Status status = card_.api().TexObjectCreate(&texture, &resource, &params, nullptr); status != kOk)
    return GpuFail(static_cast<CuStatus>(status), "cuTexObjectCreate: " + card_.api().Describe(status));
  live_.insert(texture);
  return texture;
}

GpuResult<void> Textures::Destroy(uint64_t handle) {
  if (live_.erase(handle) == 0)
    return GpuFail(CuStatus::kInvalidHandle, fmt::format("there is no texture {:#x}", handle));
  card_.Bind();
  (void)card_.api().TexObjectDestroy(handle);
  return {};
}

}  // namespace vgpud::driver
