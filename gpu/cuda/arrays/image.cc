// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/arrays/image.h"

#include <fmt/core.h>

#include <algorithm>

namespace vgpud::driver {
namespace {

GpuError Failed(const Card& card, Status status, const char* what) {
  return {static_cast<CuStatus>(status), fmt::format("{}: {}", what, card.api().Describe(status))};
}

// Slices that lie whole rows apart are one copy, others one each.
Status CopyBox(const Card& card, const TexelLevel& level, const TexelBox& box, Array array, bool upload,
               Stream stream) {
  const bool whole = box.slices == 1 || level.slice % level.pitch == 0;
  const uint64_t each = whole ? box.slices : 1;
  for (uint64_t done = 0; done < box.slices; done += each) {
    CopySide memory{}, texels{};
    memory.kind = CopySide::Kind::kDevice;
    memory.device = level.address + (box.first_slice + done) * level.slice + box.first_row * level.pitch;
    memory.pitch = level.pitch;
    memory.rows = each == 1 ? 0 : level.slice / level.pitch;
    texels.kind = CopySide::Kind::kArray;
    texels.array = array;
    texels.y = box.first_row;
    texels.z = box.first_slice + done;
    Copy3d copy{};
    copy.from = upload ? memory : texels;
    copy.to = upload ? texels : memory;
    copy.width_bytes = level.row_bytes;
    copy.height = box.rows;
    copy.depth = each;
    if (const Status status = card.api().Memcpy3DAsync(&copy, stream); status != kOk) return status;
  }
  return kOk;
}

}  // namespace

GpuResult<std::unique_ptr<Image>> Image::Make(const Card& card, Texels texels, Stream stream) {
  const Api& api = card.api();
  std::unique_ptr<Image> image(new Image(card, std::move(texels)));
  const ArrayShape& shape = image->texels_.shape;
  const auto count = static_cast<uint32_t>(image->texels_.levels.size());
  image->levels_.resize(count);
  Status status = count == 1 ? api.Array3DCreate(&image->array_, &shape)
                             : api.MipmappedArrayCreate(&image->mipmapped_, &shape, count);
  if (status != kOk) {
    image->array_ = nullptr;
    image->mipmapped_ = nullptr;
    return tl::unexpected(Failed(card, status, count == 1 ? "cuArray3DCreate" : "cuMipmappedArrayCreate"));
  }
  if (count == 1) image->levels_[0] = image->array_;
  for (uint32_t n = 0; count != 1 && n < count; ++n) {
    status = api.MipmappedArrayGetLevel(&image->levels_[n], image->mipmapped_, n);
    if (status != kOk) return tl::unexpected(Failed(card, status, "cuMipmappedArrayGetLevel"));
  }
  if (status = image->UploadAll(stream); status != kOk)
    return tl::unexpected(Failed(card, status, "copy into an array"));
  return image;
}

Image::~Image() {
  card_.Bind();
  if (array_ != nullptr) (void)card_.api().ArrayDestroy(array_);
  if (mipmapped_ != nullptr) (void)card_.api().MipmappedArrayDestroy(mipmapped_);
}

std::optional<TextureResource> Image::Find(const Texels& texels, bool surface) const {
  TextureResource resource{};
  if (!memory_gone && texels_.SameAs(texels, surface)) {
    resource.kind = mipmapped_ != nullptr ? TextureResource::Kind::kMipmapped : TextureResource::Kind::kArray;
    if (mipmapped_ != nullptr)
      resource.mipmapped = mipmapped_;
    else
      resource.array = array_;
    return resource;
  }
  if (memory_gone || texels.levels.size() != 1) return std::nullopt;
  const auto level = std::find(texels_.levels.begin(), texels_.levels.end(), texels.levels.front());
  if (level == texels_.levels.end()) return std::nullopt;
  const auto number = static_cast<size_t>(level - texels_.levels.begin());
  Texels of_level{texels_.shape, {*level}};
  const auto halve = [&](size_t& extent) { extent = extent == 0 ? 0 : std::max<size_t>(extent >> number, 1); };
  halve(of_level.shape.width);
  halve(of_level.shape.height);
  if ((texels_.shape.flags & (kArrayLayered | kArrayCube)) == 0) halve(of_level.shape.depth);
  if (!of_level.SameAs(texels, surface)) return std::nullopt;
  resource.kind = TextureResource::Kind::kArray;
  resource.array = levels_[number];
  return resource;
}

Status Image::Copy(uint64_t address, uint64_t bytes, bool upload, Stream stream) const {
  if (memory_gone) return kOk;
  for (size_t n = 0; n < levels_.size(); ++n) {
    const TexelBox box = BoxOf(texels_.levels[n], address, bytes);
    if (box.slices == 0) continue;
    if (const Status status = CopyBox(card_, texels_.levels[n], box, levels_[n], upload, stream); status != kOk)
      return status;
  }
  return kOk;
}

Status Image::Upload(uint64_t address, uint64_t bytes, Stream stream) const {
  return Copy(address, bytes, true, stream);
}

Status Image::Download(uint64_t address, uint64_t bytes, Stream stream) const {
  return Copy(address, bytes, false, stream);
}

}  // namespace vgpud::driver
