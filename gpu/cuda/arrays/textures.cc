// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/arrays/textures.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace vgpud::driver {
namespace {

// CUDA_TRSF flags.
constexpr uint32_t kReadAsInteger = 1, kNormalized = 2, kSrgb = 16;
constexpr size_t kMostObjects = 65536;
// As for allocations: what a driver gives out at least.
constexpr uint64_t kImageGrain = 64 << 10;

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

uint64_t Positive(int value) { return static_cast<uint64_t>(std::max(value, 1)); }

GpuError Failed(const Card& card, Status status, const char* what) {
  return {static_cast<CuStatus>(status), fmt::format("{}: {}", what, card.api().Describe(status))};
}

}  // namespace

Textures::Textures(const Card& card, const Ranges& ranges, Lanes& lanes)
    : card_(card),
      ranges_(ranges),
      lanes_(lanes),
      row_alignment_(Positive(card.Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT))),
      address_alignment_(Positive(card.Attribute(cuda_enum::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT))) {}

Textures::~Textures() {
  card_.Bind();
  const Api& api = card_.api();
  for (const auto& [handle, object] : live_)
    (void)(object.surface ? api.SurfObjectDestroy(handle) : api.TexObjectDestroy(handle));
}

// Rows that a driver can't sample where they are can only be an array's: it would have refused the program's own.
std::optional<TextureResource> Textures::InPlace(const TextureDesc& desc, const Texels& texels) const {
  const TexelLevel& level = texels.levels.front();
  const bool buffer = desc.shape == TextureDesc::Shape::kBuffer;
  const bool rows = desc.shape == TextureDesc::Shape::k2d && !desc.layered && texels.levels.size() == 1 &&
                    level.address % address_alignment_ == 0 && desc.levels.front().pitch % row_alignment_ == 0;
  if (desc.surface || (!buffer && !rows)) return std::nullopt;
  TextureResource resource{};
  resource.kind = buffer ? TextureResource::Kind::kLinear : TextureResource::Kind::kPitch2d;
  resource.address = level.address;
  resource.format = desc.format;
  resource.channels = desc.channels;
  resource.width_or_bytes = buffer ? level.bytes() : desc.width;
  resource.height = buffer ? 0 : desc.height;
  resource.pitch = buffer ? 0 : desc.levels.front().pitch;
  return resource;
}

Textures::Found Textures::FindImage(const Texels& texels, bool surface) const {
  for (const auto& image : images_)
    if (const auto resource = image->Find(texels, surface)) return {image.get(), *resource};
  return {};
}

uint64_t Textures::Bytes(const TextureDesc& desc) const {
  const auto texels = ReadTexels(desc, ranges_);
  if (!texels || FindImage(*texels, desc.surface).image != nullptr || InPlace(desc, *texels)) return 0;
  uint64_t bytes = 0;
  for (const TexelLevel& level : texels->levels) bytes += level.row_bytes * level.rows * level.slices;
  return (bytes + kImageGrain - 1) / kImageGrain * kImageGrain;
}

bool Textures::Shared(const Image& image) const {
  const auto seen = [&](const Texels& texels) { return image.texels().Overlaps(texels); };
  return std::any_of(images_.begin(), images_.end(),
                     [&](const auto& other) {
                       return other.get() != &image && !other->memory_gone && seen(other->texels());
                     }) ||
         std::any_of(live_.begin(), live_.end(),
                     [&](const auto& entry) { return entry.second.image == nullptr && seen(entry.second.texels); });
}

void Textures::LookForMixed() {
  mixed_ = std::any_of(images_.begin(), images_.end(), [this](const auto& image) {
    return image->surfaces != 0 && !image->memory_gone && Shared(*image);
  });
}

// Nobody sees texels that are only in another array yet.
GpuResult<Textures::Found> Textures::MakeImage(const Texels& texels, bool surface) {
  const Stream stream = TRY(lanes_.copies());
  for (const auto& other : images_) {
    if (other->surfaces == 0 || other->memory_gone || !other->texels().Overlaps(texels)) continue;
    if (surface)
      return GpuFail(CuStatus::kNotSupported, "a surface over a part of the memory of another one, seen otherwise");
    if (const Status status = other->DownloadAll(stream); status != kOk)
      return tl::unexpected(Failed(card_, status, "copy out of an array"));
  }
  auto image = TRY(Image::Make(card_, texels, stream));
  if (const Status status = card_.api().StreamSynchronize(stream); status != kOk)
    return tl::unexpected(Failed(card_, status, "copy into an array"));
  const auto resource = image->Find(texels, surface);
  images_.push_back(std::move(image));
  return Found{images_.back().get(), resource.value_or(TextureResource{})};
}

GpuResult<uint64_t> Textures::Create(const TextureDesc& desc) {
  const Api& api = card_.api();
  Texels texels = TRY(ReadTexels(desc, ranges_));
  if (desc.surface && (desc.shape == TextureDesc::Shape::kBuffer || texels.levels.size() != 1))
    return GpuFail(CuStatus::kInvalidValue, "a surface of a buffer, or of several levels");
  if (live_.size() >= kMostObjects)
    return GpuFail(CuStatus::kOutOfMemory, fmt::format("there are {} textures", kMostObjects));
  card_.Bind();
  const uint64_t vram_bytes = Bytes(desc);
  Found found = FindImage(texels, desc.surface);
  if (found.image == nullptr) {
    if (const auto resource = InPlace(desc, texels)) {
      found.resource = *resource;
    } else {
      found = TRY(MakeImage(texels, desc.surface));
      found.image->vram_bytes = vram_bytes;
    }
  }
  const TextureParams params = ParamsOf(desc);
  uint64_t handle = 0;
  const Status status = desc.surface ? api.SurfObjectCreate(&handle, &found.resource)
                                     : api.TexObjectCreate(&handle, &found.resource, &params, nullptr);
  if (status != kOk) {
    if (found.image != nullptr && found.image->users == 0) images_.pop_back();
    return tl::unexpected(Failed(card_, status, desc.surface ? "cuSurfObjectCreate" : "cuTexObjectCreate"));
  }
  if (found.image != nullptr) {
    ++found.image->users;
    if (desc.surface) ++found.image->surfaces;
    texels = {};
  }
  live_[handle] = {desc.surface, std::move(texels), found.image};
  LookForMixed();
  return handle;
}

GpuResult<uint64_t> Textures::Destroy(uint64_t handle) {
  const auto it = live_.find(handle);
  if (it == live_.end()) return GpuFail(CuStatus::kInvalidHandle, fmt::format("there is no texture {:#x}", handle));
  const auto [surface, texels, image] = std::move(it->second);
  live_.erase(it);
  card_.Bind();
  uint64_t given_back = 0;
  // What the last surface has written is the guest's. After a fault that is lost, and nobody asks.
  if (surface && --image->surfaces == 0)
    if (const auto stream = lanes_.copies(); stream && image->DownloadAll(*stream) == kOk)
      (void)card_.api().StreamSynchronize(*stream);
  (void)(surface ? card_.api().SurfObjectDestroy(handle) : card_.api().TexObjectDestroy(handle));
  if (image != nullptr && --image->users == 0) {
    given_back = image->vram_bytes;
    images_.erase(std::find_if(images_.begin(), images_.end(), [&](const auto& at) { return at.get() == image; }));
  }
  LookForMixed();
  return given_back;
}

Status Textures::BeforeCopy(uint64_t address, uint64_t bytes, Stream stream) const {
  for (const auto& image : images_) {
    if (image->surfaces == 0) continue;
    if (const Status status = image->Download(address, bytes, stream); status != kOk) return status;
  }
  return kOk;
}

Status Textures::AfterWrite(uint64_t address, uint64_t bytes, Stream stream) const {
  for (const auto& image : images_)
    if (const Status status = image->Upload(address, bytes, stream); status != kOk) return status;
  return kOk;
}

void Textures::Forget(uint64_t address, uint64_t bytes) {
  for (const auto& image : images_)
    image->memory_gone = image->memory_gone || (image->texels().levels.front().address - address < bytes);
  LookForMixed();
}

GpuResult<void> Textures::BeforeLaunch() {
  if (!mixed_) return {};
  card_.Bind();
  const Stream stream = TRY(lanes_.copies());
  Status status = kOk;
  for (const auto& image : images_)
    if (status == kOk && image->surfaces != 0) status = image->DownloadAll(stream);
  for (const auto& image : images_)
    if (status == kOk && image->surfaces == 0 && Shared(*image)) status = image->UploadAll(stream);
  if (status == kOk) status = card_.api().StreamSynchronize(stream);
  if (status != kOk) return tl::unexpected(Failed(card_, status, "copy between arrays"));
  return {};
}

}  // namespace vgpud::driver
