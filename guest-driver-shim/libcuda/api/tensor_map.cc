// SPDX-License-Identifier: Apache-2.0
// Tensor maps: written by the program's own libcuda, in the layout that kernels of the soft GPU read
// (uapi/vgpu_tensor_map.h). Of a device whose kernels read another one the host has them made (by_host).
#include <cstring>
#include <iterator>

#include "guest-driver-shim/include/uapi/vgpu_tensor_map.h"
#include "guest-driver-shim/libcuda/api.h"
#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {
namespace {

constexpr uintptr_t kMapAlignment = 64;
constexpr unsigned kLeastColumnsRank = 3;

// By CUtensorMapDataType.
struct TypeRow {
  uint8_t type;  // VGPU_TENSOR_*
  uint8_t bits;  // of an element in shared memory
  bool is_float;
  uint16_t multiple;  // of elements: sizes of the first dimension
};
constexpr TypeRow kTypes[] = {
    {VGPU_TENSOR_U8, 8, false, 1},          {VGPU_TENSOR_U16, 16, false, 1},    {VGPU_TENSOR_U32, 32, false, 1},
    {VGPU_TENSOR_S32, 32, false, 1},        {VGPU_TENSOR_U64, 64, false, 1},    {VGPU_TENSOR_S64, 64, false, 1},
    {VGPU_TENSOR_F16, 16, true, 1},         {VGPU_TENSOR_F32, 32, true, 1},     {VGPU_TENSOR_F64, 64, true, 1},
    {VGPU_TENSOR_BF16, 16, true, 1},        {VGPU_TENSOR_F32_FTZ, 32, true, 1}, {VGPU_TENSOR_TF32, 32, true, 1},
    {VGPU_TENSOR_TF32_FTZ, 32, true, 1},    {VGPU_TENSOR_B4X16, 4, false, 2},   {VGPU_TENSOR_B4X16_P64, 8, false, 128},
    {VGPU_TENSOR_B6X16_P32, 8, false, 128},
};
// By CUtensorMapSwizzle.
struct SwizzleRow {
  uint8_t mode, atomicity;
  uint32_t span;  // bytes of a row of the box, at most; 0 = any
};
constexpr SwizzleRow kSwizzles[] = {
    {VGPU_SWIZZLE_NONE, VGPU_ATOM_16, 0},  {VGPU_SWIZZLE_32, VGPU_ATOM_16, 32},
    {VGPU_SWIZZLE_64, VGPU_ATOM_16, 64},   {VGPU_SWIZZLE_128, VGPU_ATOM_16, 128},
    {VGPU_SWIZZLE_128, VGPU_ATOM_32, 128}, {VGPU_SWIZZLE_128, VGPU_ATOM_32_FLIP_8, 128},
    {VGPU_SWIZZLE_128, VGPU_ATOM_64, 128},
};
constexpr int kInterleaveModes = 3;
constexpr int kPromotions = 4;
constexpr int kFills = 2;
constexpr uint64_t kMostSize = uint64_t{1} << 32;
constexpr uint64_t kStrideLimit = uint64_t{1} << 40;
constexpr uint32_t kMostBox = 256;
constexpr uint32_t kMostElementStride = 8;
constexpr uint32_t kAlignment = 16;
constexpr uint32_t kPaddedAlignment = 32;

// What the context's device can do with tensor maps, or which error to answer.
CUresult Possible() {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  return current.device->attribute(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED) != 0 ? CUDA_SUCCESS
                                                                                         : CUDA_ERROR_NOT_SUPPORTED;
}

struct Shape {
  const unsigned long* size;
  const unsigned long* stride;
  const unsigned* box;
  const unsigned* element_stride;
};
bool SetShape(const TypeRow& type, unsigned rank, const Shape& shape, vgpu_tensor_map* map) {
  const bool padded = type.multiple > 2;
  const uint32_t alignment = padded ? kPaddedAlignment : kAlignment;
  if (map->address == 0 || map->address % alignment != 0) return false;
  for (unsigned d = 0; d < rank; ++d) {
    if (shape.size[d] == 0 || shape.size[d] > kMostSize) return false;
    if (shape.box[d] == 0 || shape.box[d] > kMostBox) return false;
    if (shape.element_stride[d] == 0 || shape.element_stride[d] > kMostElementStride) return false;
    map->size[d] = shape.size[d];
    map->box[d] = static_cast<uint16_t>(shape.box[d]);
    map->element_stride[d] = static_cast<uint8_t>(shape.element_stride[d]);
    if (d == 0) continue;
    const uint64_t stride = shape.stride[d - 1];
    if (stride % alignment != 0 || stride >= kStrideLimit) return false;
    map->stride[d - 1] = stride;
  }
  return shape.size[0] % type.multiple == 0 && (!padded || shape.box[0] == type.multiple) &&
         shape.box[0] * type.bits % (8 * kAlignment) == 0;
}

bool ByHost() { return CurrentContext().device->makes_tensor_maps(); }

// What all kinds have: `rank` is checked, the pointers are not null.
vgpu_tensor_map_request RequestOf(uint32_t kind, int type, unsigned rank, const void* address, const Shape& shape) {
  vgpu_tensor_map_request request{};
  request.kind = kind;
  request.type = static_cast<uint32_t>(type);
  request.rank = rank;
  request.address = reinterpret_cast<uintptr_t>(address);
  for (unsigned d = 0; d < rank; ++d) {
    request.size[d] = shape.size[d];
    if (d != 0) request.stride[d - 1] = shape.stride[d - 1];
    request.element_stride[d] = shape.element_stride[d];
    if (shape.box != nullptr) request.box[d] = shape.box[d];
  }
  return request;
}

vgpu_tensor_map_request WithModes(vgpu_tensor_map_request request, int interleave, int swizzle, int promotion,
                                  int fill) {
  request.interleave = static_cast<uint32_t>(interleave);
  request.swizzle = static_cast<uint32_t>(swizzle);
  request.promotion = static_cast<uint32_t>(promotion);
  request.fill = static_cast<uint32_t>(fill);
  return request;
}

// An im2col map may be asked of the host for such a tensor.
CUresult PossibleColumns(const CUtensorMap_st* out, unsigned rank, const Shape& shape) {
  if (const CUresult error = Possible(); error != CUDA_SUCCESS) return error;
  if (out == nullptr || reinterpret_cast<uintptr_t>(out) % kMapAlignment != 0 || rank < kLeastColumnsRank ||
      rank > VGPU_TENSOR_MAP_RANK || shape.size == nullptr || shape.stride == nullptr ||
      shape.element_stride == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  return ByHost() ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult AskHost(vgpu_tensor_map_request request, CUtensorMap_st* out) {
  Command command;
  command.op = VGPU_OP_TENSOR_MAP;
  Device& device = *CurrentContext().device;
  const auto bytes = std::as_writable_bytes(std::span<vgpu_tensor_map_request, 1>(&request, 1));
  const CUresult error = device.channel->Call(command, bytes, bytes).status;
  if (error == CUDA_SUCCESS) memcpy(static_cast<void*>(out), request.map, sizeof request.map);
  return error;
}

}  // namespace
}  // namespace vgpud::cuda

using namespace vgpud::cuda;

CU_API(cuTensorMapEncodeTiled)
(CUtensorMap_st* out, int type, unsigned rank, void* address, const unsigned long* size, const unsigned long* stride,
 const unsigned* box, const unsigned* element_stride, int interleave, int swizzle, int promotion, int fill) {
  if (const CUresult error = Possible(); error != CUDA_SUCCESS) return error;
  if (out == nullptr || reinterpret_cast<uintptr_t>(out) % kMapAlignment != 0 || rank == 0 ||
      rank > VGPU_TENSOR_MAP_RANK || size == nullptr || (rank > 1 && stride == nullptr) || box == nullptr ||
      element_stride == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  if (ByHost()) {
    const vgpu_tensor_map_request request =
        RequestOf(VGPU_TENSOR_MAP_TILED, type, rank, address, {size, stride, box, element_stride});
    return AskHost(WithModes(request, interleave, swizzle, promotion, fill), out);
  }
  const auto below = [](int value, size_t count) { return value >= 0 && static_cast<size_t>(value) < count; };
  if (!below(type, std::size(kTypes)) || !below(interleave, kInterleaveModes) ||
      !below(swizzle, std::size(kSwizzles)) || !below(promotion, kPromotions) || !below(fill, kFills))
    return CUDA_ERROR_INVALID_VALUE;
  const TypeRow& row = kTypes[type];
  const SwizzleRow& mode = kSwizzles[swizzle];
  if (fill != 0 && !row.is_float) return CUDA_ERROR_INVALID_VALUE;
  vgpu_tensor_map map{};
  map.magic = VGPU_TENSOR_MAP_MAGIC;
  map.type = row.type;
  map.rank_minus_1 = static_cast<uint8_t>(rank - 1);
  map.swizzle = mode.mode;
  map.atomicity = mode.atomicity;
  map.fill = static_cast<uint8_t>(fill);
  map.address = reinterpret_cast<uintptr_t>(address);
  if (interleave != 0) return rank >= 3 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  if (!SetShape(row, rank, {size, stride, box, element_stride}, &map)) return CUDA_ERROR_INVALID_VALUE;
  if (mode.span != 0 && box[0] * row.bits / 8 > mode.span) return CUDA_ERROR_INVALID_VALUE;
  memcpy(static_cast<void*>(out), &map, sizeof map);
  return CUDA_SUCCESS;
}

// The soft GPU has no im2col: those maps are the host's or none.
CU_API(cuTensorMapEncodeIm2col)
(CUtensorMap_st* out, int type, unsigned rank, void* address, const unsigned long* size, const unsigned long* stride,
 const int* lower, const int* upper, unsigned channels, unsigned pixels, const unsigned* element_stride, int interleave,
 int swizzle, int promotion, int fill) {
  if (const CUresult error = PossibleColumns(out, rank, {size, stride, nullptr, element_stride})) return error;
  if (lower == nullptr || upper == nullptr) return CUDA_ERROR_INVALID_VALUE;
  vgpu_tensor_map_request request =
      RequestOf(VGPU_TENSOR_MAP_IM2COL, type, rank, address, {size, stride, nullptr, element_stride});
  for (unsigned d = 0; d < rank - 2; ++d) {
    request.lower[d] = lower[d];
    request.upper[d] = upper[d];
  }
  request.box[0] = channels;
  request.box[1] = pixels;
  return AskHost(WithModes(request, interleave, swizzle, promotion, fill), out);
}

CU_API(cuTensorMapEncodeIm2colWide)
(CUtensorMap_st* out, int type, unsigned rank, void* address, const unsigned long* size, const unsigned long* stride,
 int lower, int upper, unsigned channels, unsigned pixels, const unsigned* element_stride, int interleave, int mode,
 int swizzle, int promotion, int fill) {
  if (const CUresult error = PossibleColumns(out, rank, {size, stride, nullptr, element_stride})) return error;
  vgpu_tensor_map_request request =
      RequestOf(VGPU_TENSOR_MAP_IM2COL_WIDE, type, rank, address, {size, stride, nullptr, element_stride});
  request.lower[0] = lower;
  request.upper[0] = upper;
  request.box[0] = channels;
  request.box[1] = pixels;
  request.mode = static_cast<uint32_t>(mode);
  return AskHost(WithModes(request, interleave, swizzle, promotion, fill), out);
}

CU_API(cuTensorMapReplaceAddress)(CUtensorMap_st* out, void* address) {
  if (const CUresult error = Possible(); error != CUDA_SUCCESS) return error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (ByHost()) {
    vgpu_tensor_map_request request{};
    request.kind = VGPU_TENSOR_MAP_REPLACE;
    request.address = reinterpret_cast<uintptr_t>(address);
    memcpy(request.map, static_cast<const void*>(out), sizeof request.map);
    return AskHost(request, out);
  }
  vgpu_tensor_map map;
  memcpy(&map, static_cast<const void*>(out), sizeof map);
  const bool padded = map.type == VGPU_TENSOR_B4X16_P64 || map.type == VGPU_TENSOR_B6X16_P32;
  map.address = reinterpret_cast<uintptr_t>(address);
  if (map.magic != VGPU_TENSOR_MAP_MAGIC || address == nullptr ||
      map.address % (padded ? kPaddedAlignment : kAlignment) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  memcpy(static_cast<void*>(out), &map, sizeof map);
  return CUDA_SUCCESS;
}
