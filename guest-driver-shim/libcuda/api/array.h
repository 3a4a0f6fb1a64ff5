// SPDX-License-Identifier: Apache-2.0
// CUDA arrays: plain device memory with rows and slices, and what a program said about their texels.
#pragma once

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

struct Array {
  Device* device = nullptr;
  Context* context = nullptr;
  uint64_t epoch = 0;
  CUDA_ARRAY3D_DESCRIPTOR_st desc{};
  CUdeviceptr address = 0;
  uint64_t texel_bytes = 0;
  uint64_t row_bytes = 0;  // what may be copied of a row
  uint64_t rows = 1;
  uint64_t slices = 1;  // depth, layers or faces
  uint64_t pitch = 0;
  uint64_t slice = 0;
  bool is_level = false;  // of a mipmapped array, whose memory it is

  bool layered() const { return (desc.Flags & CUDA_ARRAY3D_LAYERED) != 0; }
  bool cube() const { return (desc.Flags & CUDA_ARRAY3D_CUBEMAP) != 0; }
};

struct MipmappedArray {
  CUDA_ARRAY3D_DESCRIPTOR_st desc{};
  CUdeviceptr address = 0;
  std::vector<CUarray> handles;
  std::vector<std::shared_ptr<Array>> levels;
};

// nullptr for a handle that is none, or whose context was reset.
std::shared_ptr<Array> FindArray(CUarray handle);
std::shared_ptr<MipmappedArray> FindMipmappedArray(CUmipmappedArray handle);

// 0 for a format that arrays here cannot have.
uint64_t BytesOfFormat(int format);

// Arrays and texture objects of `context` go with it. texture.cc has the second.
void DropArraysOf(const Context* context);
void DropTexturesOf(const Context* context);

}  // namespace vgpud::cuda
