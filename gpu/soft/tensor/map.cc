// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/tensor/map.h"

#include <algorithm>
#include <iterator>

namespace vgpud::soft {
namespace {

// Bits of an element in both memories, and the number of elements that boxes and tensors are multiples of.
struct TypeShape {
  uint8_t bits;
  uint8_t shared_bits;
  uint8_t multiple;
};
constexpr TypeShape kTypes[] = {
    {8, 8, 1},   {16, 16, 1}, {32, 32, 1}, {32, 32, 1}, {64, 64, 1}, {64, 64, 1}, {16, 16, 1}, {32, 32, 1},
    {32, 32, 1}, {64, 64, 1}, {16, 16, 1}, {32, 32, 1}, {32, 32, 1}, {4, 4, 2},   {4, 8, 128}, {6, 8, 128},
};
static_assert(std::size(kTypes) == VGPU_TENSOR_TYPES);
// Bytes of a row in shared memory are a multiple of them.
constexpr uint32_t kGranule = 16;
constexpr uint32_t kMostBox = 256;
constexpr uint32_t kMostElementStride = 8;
constexpr uint32_t kAlignment = 16;
constexpr uint32_t kPaddedAlignment = 32;

bool IsFloat(uint32_t type) { return type >= VGPU_TENSOR_F16 && type <= VGPU_TENSOR_TF32_FTZ; }

const char* ReadDimensions(const vgpu_tensor_map& bytes, TensorMap* map) {
  const TypeShape& type = kTypes[map->type];
  const uint64_t alignment = type.bits != type.shared_bits ? kPaddedAlignment : kAlignment;
  if (map->address % alignment != 0) return "tensor map: its tensor is not aligned";
  for (uint32_t d = 0; d < VGPU_TENSOR_MAP_RANK; ++d) {
    const bool used = d < map->rank;
    map->size[d] = used ? bytes.size[d] : 1;
    map->stride[d] = used && d > 0 ? bytes.stride[d - 1] : 0;
    const uint32_t box = used ? bytes.box[d] : 1;
    const uint32_t step = used && d > 0 ? bytes.element_stride[d] : 1;
    if (map->size[d] == 0 || map->size[d] > uint64_t{1} << 32)
      return "tensor map: a dimension has no size that there is";
    if (map->stride[d] % alignment != 0) return "tensor map: the stride of a dimension is not aligned";
    if (box == 0 || box > kMostBox) return "tensor map: the box has a size that there is not";
    if (step == 0 || step > kMostElementStride) return "tensor map: the stride of elements is one that there is not";
    map->count[d] = (box + step - 1) / step;
    map->element_stride[d] = step;
  }
  if (map->size[0] % type.multiple != 0 || map->count[0] % type.multiple != 0)
    return "tensor map: the first dimension is no multiple of what its type is packed in";
  if (uint64_t{map->count[0]} * type.shared_bits % (8 * kGranule) != 0)
    return "tensor map: a row of the box is no multiple of 16 bytes";
  const uint32_t span = map->swizzle == VGPU_SWIZZLE_NONE ? UINT32_MAX : 16u << map->swizzle;
  if (uint64_t{map->count[0]} * type.shared_bits / 8 > span)
    return "tensor map: a row of the box is longer than what is swizzled";
  return nullptr;
}

}  // namespace

uint32_t TensorBits(uint32_t type) { return kTypes[type].bits; }
uint32_t TensorSharedBits(uint32_t type) { return kTypes[type].shared_bits; }

const char* ReadTensorMap(const vgpu_tensor_map& bytes, TensorMap* map) {
  if (bytes.magic != VGPU_TENSOR_MAP_MAGIC) return "tensor map: it was not made by this driver";
  if (bytes.type >= VGPU_TENSOR_TYPES || bytes.rank_minus_1 >= VGPU_TENSOR_MAP_RANK)
    return "tensor map: its type or rank is none";
  if (bytes.interleave != 0) return "tensor map: the soft GPU has no interleaved tensors";
  if (bytes.swizzle > VGPU_SWIZZLE_128 || bytes.atomicity > VGPU_ATOM_64) return "tensor map: its swizzle mode is none";
  if (bytes.atomicity != VGPU_ATOM_16 && bytes.swizzle != VGPU_SWIZZLE_128)
    return "tensor map: its swizzle mode has no atomicity";
  if (bytes.fill > 1 || (bytes.fill == 1 && !IsFloat(bytes.type))) return "tensor map: its fill mode is none";
  const auto zero = [](auto v) { return v == 0; };
  if (!std::all_of(std::begin(bytes.mbz), std::end(bytes.mbz), zero) ||
      !std::all_of(std::begin(bytes.mbz2), std::end(bytes.mbz2), zero))
    return "tensor map: it was not made by this driver";
  map->type = bytes.type;
  map->rank = bytes.rank_minus_1 + 1u;
  map->swizzle = bytes.swizzle;
  map->atomicity = bytes.atomicity;
  map->fill_nan = bytes.fill == 1;
  map->address = bytes.address;
  return ReadDimensions(bytes, map);
}

}  // namespace vgpud::soft
