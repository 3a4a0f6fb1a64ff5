// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects of the driver. Guests keep their arrays in plain memory. A driver samples buffers and 2D
// images in rows where they are; for all else there is an Image, an array of the driver's with the same texels, and
// what is written on one side is copied to the other:
//   - what is copied into the guest's memory goes into the arrays at once;
//   - what kernels may have written through surfaces comes back when the guest's memory is read or partly written;
//   - where several objects see the same memory in different ways, also before each launch.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/cuda/arrays/image.h"
#include "gpu/cuda/lanes.h"

namespace vgpud::driver {

class Textures {
 public:
  // All outlive it.
  Textures(const Card& card, const Ranges& ranges, Lanes& lanes);
  ~Textures();
  Textures(const Textures&) = delete;
  Textures& operator=(const Textures&) = delete;

  // VRAM that Create(desc) will take beside the guest's memory; also when Create will refuse it.
  uint64_t Bytes(const TextureDesc& desc) const;
  GpuResult<uint64_t> Create(const TextureDesc& desc);
  // VRAM given back.
  GpuResult<uint64_t> Destroy(uint64_t handle);

  // Around copies and fills of guest memory, in the stream of copies. Before: also of what will be written, as that may
  // be a part of a row.
  Status BeforeCopy(uint64_t address, uint64_t bytes, Stream stream) const;
  Status AfterWrite(uint64_t address, uint64_t bytes, Stream stream) const;
  // An allocation there is about to be given back.
  void Forget(uint64_t address, uint64_t bytes);
  // Does something have to be copied before a launch? Then BeforeLaunch does it.
  bool mixed() const { return mixed_; }
  GpuResult<void> BeforeLaunch();

 private:
  struct Object {
    bool surface = false;
    Texels texels;           // where it is in place
    Image* image = nullptr;  // nullptr: it is
  };
  struct Found {
    Image* image = nullptr;
    TextureResource resource{};
  };
  std::optional<TextureResource> InPlace(const TextureDesc& desc, const Texels& texels) const;
  Found FindImage(const Texels& texels, bool surface) const;
  GpuResult<Found> MakeImage(const Texels& texels, bool surface);
  // Does something else see the memory of `image`?
  bool Shared(const Image& image) const;
  void LookForMixed();

  const Card& card_;
  const Ranges& ranges_;
  Lanes& lanes_;
  const uint64_t row_alignment_, address_alignment_;
  std::map<uint64_t, Object> live_;  // by the driver's handle
  std::vector<std::unique_ptr<Image>> images_;
  bool mixed_ = false;
};

}  // namespace vgpud::driver
