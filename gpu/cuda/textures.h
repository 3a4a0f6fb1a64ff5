// SPDX-License-Identifier: Apache-2.0
// Texture objects of the driver. Guests keep their arrays in plain memory, so what a driver can sample there is what
// there is: buffers, and 2D images in rows.
#pragma once

#include <set>

#include "gpu/cuda/card.h"
#include "gpu/cuda/ranges.h"
#include "gpu/texture.h"

namespace vgpud::driver {

class Textures {
 public:
  // Both outlive it.
  Textures(const Card& card, const Ranges& ranges) : card_(card), ranges_(ranges) {}
  ~Textures();
  Textures(const Textures&) = delete;
  Textures& operator=(const Textures&) = delete;

  GpuResult<uint64_t> Create(const TextureDesc& desc);
  GpuResult<void> Destroy(uint64_t handle);

 private:
  const Card& card_;
  const Ranges& ranges_;
  std::set<TextureObject> live_;
};

}  // namespace vgpud::driver
