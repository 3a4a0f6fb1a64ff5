// SPDX-License-Identifier: Apache-2.0
// An array of the driver's own that holds the texels of a guest's array, for textures and surfaces that a driver makes
// of arrays only. The guest's copies go to and from its plain memory, so each side gets what is written on the other:
// Textures says when.
#pragma once

#include <memory>

#include "gpu/cuda/arrays/texels.h"
#include "gpu/cuda/card.h"

namespace vgpud::driver {

class Image {
 public:
  // With what lies in the guest's memory when `stream` has come so far. `card` outlives it.
  static GpuResult<std::unique_ptr<Image>> Make(const Card& card, Texels texels, Stream stream);
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  const Texels& texels() const { return texels_; }
  // What of it is `texels`: all, or one level; nullopt: nothing.
  std::optional<TextureResource> Find(const Texels& texels, bool surface) const;

  // Rows with a byte in [address, address + bytes): from the guest's memory into the array, and back. In stream order.
  Status Upload(uint64_t address, uint64_t bytes, Stream stream) const;
  Status Download(uint64_t address, uint64_t bytes, Stream stream) const;
  Status UploadAll(Stream stream) const { return Upload(0, UINT64_MAX, stream); }
  Status DownloadAll(Stream stream) const { return Download(0, UINT64_MAX, stream); }

  uint32_t users = 0;     // objects made of it
  uint32_t surfaces = 0;  // those among them that kernels write through
  uint64_t vram_bytes = 0;
  bool memory_gone = false;  // the guest's is free, so that nothing may be copied

 private:
  Image(const Card& card, Texels texels) : card_(card), texels_(std::move(texels)) {}
  Status Copy(uint64_t address, uint64_t bytes, bool upload, Stream stream) const;

  const Card& card_;
  Texels texels_;
  Array array_ = nullptr;               // of one level
  MipmappedArray mipmapped_ = nullptr;  // of several
  std::vector<Array> levels_;
};

}  // namespace vgpud::driver
