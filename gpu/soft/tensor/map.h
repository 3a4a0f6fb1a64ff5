// SPDX-License-Identifier: Apache-2.0
// Tensor maps (uapi/vgpu_tensor_map.h), from bytes that a guest may have written to checked values.
#pragma once

#include <cstdint>

#include "guest-driver-shim/include/uapi/vgpu_tensor_map.h"

namespace vgpud::soft {

struct TensorMap {
  uint32_t type;  // VGPU_TENSOR_*
  uint32_t rank;  // 1..5; what is said of further dimensions is that of a single element
  uint32_t swizzle;
  uint32_t atomicity;
  bool fill_nan;
  uint64_t address;
  uint64_t size[VGPU_TENSOR_MAP_RANK];            // elements
  uint64_t stride[VGPU_TENSOR_MAP_RANK];          // bytes; [0] is not used
  uint32_t count[VGPU_TENSOR_MAP_RANK];           // elements of a box
  uint32_t element_stride[VGPU_TENSOR_MAP_RANK];  // from one element of a box to the next, in elements of the tensor

  uint64_t rows() const { return uint64_t{count[1]} * count[2] * count[3] * count[4]; }
};

// Of an element.
uint32_t TensorBits(uint32_t type);        // in global memory
uint32_t TensorSharedBits(uint32_t type);  // in shared memory
// Bytes of a run of `elements` in global memory; of packed types a multiple of what shares a byte.
inline uint64_t TensorBytes(uint32_t type, uint64_t elements) { return elements * TensorBits(type) / 8; }

// nullptr: `map` is filled in. Else why these bytes are no tensor map. Any thread.
const char* ReadTensorMap(const vgpu_tensor_map& bytes, TensorMap* map);

// Where in shared memory a byte lies that the box has at `offset` (CUDA driver API "cuTensorMapEncodeTiled"). It stays
// within the same 128 bytes, and so do the 8 bytes around it.
inline uint64_t Swizzled(uint32_t swizzle, uint32_t atomicity, uint64_t offset) {
  const uint64_t line = offset >> 7;
  if (swizzle == VGPU_SWIZZLE_32) return offset ^ (line & 1) << 4;
  if (swizzle == VGPU_SWIZZLE_64) return offset ^ (line & 3) << 4;
  if (swizzle != VGPU_SWIZZLE_128) return offset;
  if (atomicity == VGPU_ATOM_16) return offset ^ (line & 7) << 4;
  if (atomicity == VGPU_ATOM_64) return offset ^ (line & 1) << 6;
  const uint64_t flip = atomicity == VGPU_ATOM_32_FLIP_8 ? (line & 1) << 3 : 0;
  return (offset ^ (line & 3) << 5) ^ flip;
}

}  // namespace vgpud::soft
