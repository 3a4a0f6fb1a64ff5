// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/memory/tensor_maps.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace vgpud::driver {
namespace {

constexpr uint32_t kMostRank = 5;

// The arrays as the driver wants them: aligned, and its own to read.
struct Told {
  explicit Told(const vgpu_tensor_map_request& request)
      : address(reinterpret_cast<void*>(request.address)),
        type(static_cast<int32_t>(request.type)),
        interleave(static_cast<int32_t>(request.interleave)),
        swizzle(static_cast<int32_t>(request.swizzle)),
        promotion(static_cast<int32_t>(request.promotion)),
        fill(static_cast<int32_t>(request.fill)) {
    std::copy_n(request.size, std::size(size), size);
    std::copy_n(request.stride, std::size(stride), stride);
    std::copy_n(request.box, std::size(box), box);
    std::copy_n(request.element_stride, std::size(element_stride), element_stride);
    std::copy_n(request.lower, std::size(lower), lower);
    std::copy_n(request.upper, std::size(upper), upper);
    std::memcpy(map, request.map, sizeof map);
  }
  alignas(64) unsigned char map[128];
  void* address;
  int32_t type, interleave, swizzle, promotion, fill;
  uint64_t size[5], stride[4];
  uint32_t box[5], element_stride[5];
  int32_t lower[3], upper[3];
};

Status Tiled(const Api& api, Told& t, const vgpu_tensor_map_request& request) {
  return api.TensorMapEncodeTiled(t.map, t.type, request.rank, t.address, t.size, t.stride, t.box, t.element_stride,
                                  t.interleave, t.swizzle, t.promotion, t.fill);
}
Status Im2col(const Api& api, Told& t, const vgpu_tensor_map_request& request) {
  return api.TensorMapEncodeIm2col(t.map, t.type, request.rank, t.address, t.size, t.stride, t.lower, t.upper, t.box[0],
                                   t.box[1], t.element_stride, t.interleave, t.swizzle, t.promotion, t.fill);
}
Status Im2colWide(const Api& api, Told& t, const vgpu_tensor_map_request& request) {
  if (api.TensorMapEncodeIm2colWide == nullptr) return cuda_enum::CUDA_ERROR_NOT_SUPPORTED;
  return api.TensorMapEncodeIm2colWide(t.map, t.type, request.rank, t.address, t.size, t.stride, t.lower[0], t.upper[0],
                                       t.box[0], t.box[1], t.element_stride, t.interleave,
                                       static_cast<int32_t>(request.mode), t.swizzle, t.promotion, t.fill);
}
Status Replace(const Api& api, Told& t, const vgpu_tensor_map_request&) {
  return api.TensorMapReplaceAddress(t.map, t.address);
}

// By VGPU_TENSOR_MAP_*.
constexpr struct {
  const char* call;
  Status (*make)(const Api& api, Told& told, const vgpu_tensor_map_request& request);
  uint32_t least_rank;
} kKinds[] = {{"cuTensorMapEncodeTiled", &Tiled, 1},
              {"cuTensorMapEncodeIm2col", &Im2col, 3},
              {"cuTensorMapEncodeIm2colWide", &Im2colWide, 3},
              {"cuTensorMapReplaceAddress", &Replace, 0}};

}  // namespace

GpuResult<void> EncodeTensorMap(const Card& card, vgpu_tensor_map_request& request) {
  if (request.kind >= std::size(kKinds))
    return GpuFail(CuStatus::kInvalidValue, fmt::format("TENSOR_MAP: no kind {}", request.kind));
  const auto& kind = kKinds[request.kind];
  if (request.rank < kind.least_rank || request.rank > kMostRank)
    return GpuFail(CuStatus::kInvalidValue, fmt::format("{}: a tensor of {} dimensions", kind.call, request.rank));
  Told told(request);
  card.Bind();
  if (const Status status = kind.make(card.api(), told, request); status != kOk)
    return GpuFail(static_cast<CuStatus>(status), fmt::format("{}: {}", kind.call, card.api().Describe(status)));
  std::memcpy(request.map, told.map, sizeof told.map);
  return {};
}

}  // namespace vgpud::driver
