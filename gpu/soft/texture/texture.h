// SPDX-License-Identifier: Apache-2.0
// Textures and surfaces of a context: checked descriptors in a table that kernels name by 64-bit handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/generated/cuda_enums.h"
#include "gpu/gpu.h"
#include "gpu/soft/memory/arena.h"

namespace vgpud::soft {

// Numeric values of CUarray_format (cuda.h).
enum class TexelFormat : uint8_t {
  kU8 = cuda_enum::CU_AD_FORMAT_UNSIGNED_INT8,
  kU16 = cuda_enum::CU_AD_FORMAT_UNSIGNED_INT16,
  kU32 = cuda_enum::CU_AD_FORMAT_UNSIGNED_INT32,
  kS8 = cuda_enum::CU_AD_FORMAT_SIGNED_INT8,
  kS16 = cuda_enum::CU_AD_FORMAT_SIGNED_INT16,
  kS32 = cuda_enum::CU_AD_FORMAT_SIGNED_INT32,
  kHalf = cuda_enum::CU_AD_FORMAT_HALF,
  kFloat = cuda_enum::CU_AD_FORMAT_FLOAT,
};

class StateReader;
class StateWriter;

struct TextureLevel {
  uint64_t offset;  // from the first address that kernels reach
  uint64_t pitch;
  uint64_t slice;
  uint32_t width, height, depth;
};

// A descriptor after all checks: every texel of every level was inside a live allocation when it was made. The memory
// may be gone since, so an access still looks at the page map.
struct Texture {
  TextureDesc desc;
  uint64_t handle = 0;
  TexelFormat format = TexelFormat::kU8;
  uint32_t channel_bytes = 1;
  uint32_t texel_bytes = 1;
  uint32_t slices = 1;    // layers and faces; 1 of plain ones
  bool as_float = false;  // what is read are floats that may be filtered
  bool scaled = false;    // integers become 0..1 or -1..1
  std::vector<TextureLevel> levels;
};

// The value of a handle: never a valid address, a generation, and the place in the table.
inline constexpr uint64_t kTextureHandle = 0x00f1000000000000;
inline constexpr uint64_t kTextureGenerations = 1 << 24;
inline constexpr size_t kMaxTextures = 65536;
inline constexpr uint64_t TextureHandle(uint64_t generation, size_t index) {
  return kTextureHandle | generation << 20 | index;
}

// A texture without a handle, or why there can't be one: CreateTexture (gpu/gpu.h). `memory_gone`: levels need not lie
// inside live allocations, only inside the arena.
GpuResult<std::unique_ptr<Texture>> MakeTexture(const TextureDesc& desc, const Arena& arena, bool memory_gone);

// Not thread-safe; reading is, while nobody adds or removes.
class TextureTable {
 public:
  // kInvalidValue with a sentence for what contradicts itself, has extents beyond the device's limits, or does not lie
  // inside one allocation; kNotSupported for formats that the soft GPU does not read; kOutOfMemory for one too many.
  GpuResult<uint64_t> Add(const TextureDesc& desc, const Arena& arena);
  // kInvalidHandle if there is none.
  GpuResult<void> Remove(uint64_t handle);
  // nullptr if there is none.
  const Texture* Find(uint64_t handle) const {
    const uint64_t index = handle & 0xfffff;
    return index < entries_.size() && entries_[index] != nullptr && entries_[index]->handle == handle
               ? entries_[index].get()
               : nullptr;
  }
  bool empty() const { return entries_.empty(); }
  // texture_state.cc; Load into a fresh table. The memory of a texture may be gone, as when it is used.
  void Save(StateWriter& out) const;
  void Load(StateReader& in, const Arena& arena);

 private:
  std::vector<std::unique_ptr<Texture>> entries_;
  std::vector<uint32_t> unused_;
  uint64_t generation_ = 0;
};

}  // namespace vgpud::soft
