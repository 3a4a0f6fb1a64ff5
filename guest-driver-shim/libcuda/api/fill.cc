// SPDX-License-Identifier: Apache-2.0
// Memory sets. The forms without a stream do not hold up the host either, as CUDA documents for device memory; for
// memory that the host has, too, they do.
#include "guest-driver-shim/libcuda/api/copy.h"
#include "guest-driver-shim/libcuda/driver/allocations.h"
#include "guest-driver-shim/libcuda/driver/shared_memory.h"
#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/capture.h"
#include "guest-driver-shim/libcuda/launch/submit.h"

namespace {

using namespace vgpud::cuda;

bool CheckFill(CUdeviceptr to, uint32_t element_bytes, size_t count) {
  uint64_t bytes;
  return to != 0 && to % element_bytes == 0 && !__builtin_mul_overflow(count, element_bytes, &bytes);
}

CUresult FillOn(const Current& current, uint32_t stream, CUdeviceptr to, uint32_t value, uint32_t element_bytes,
                size_t count) {
  Command command;
  command.stream = stream;
  if (count == 0) return CUDA_SUCCESS;
  if (!CheckFill(to, element_bytes, count)) return CUDA_ERROR_INVALID_VALUE;
  command.op = VGPU_OP_FILL;
  command.args[0] = to;
  command.args[1] = value;
  command.args[2] = element_bytes;
  command.args[3] = count;
  const uint64_t bytes = count * element_bytes;
  const bool known = IsDeviceRange(current.device, to, bytes) || FindShared(to, bytes).device == current.device;
  if (!known) return current.channel->Call(command).status;
  return Enqueue(current, command);
}

CUresult Fill(DefaultStream mode, const CUDA_MEMSET_NODE_PARAMS_st& fill, CUstream stream) {
  const Place place = Where(mode, stream);
  if (place.error != CUDA_SUCCESS) return place.error;
  // Memory of another device is filled there, when the stream has come so far.
  const bool elsewhere = Driver::Get().devices().size() > 1 && IsDefaultStream(stream) && fill.dst != 0 &&
                         !IsDeviceRange(place.current.device, fill.dst, 1);
  Device* const other = elsewhere ? DeviceOf(fill.dst) : nullptr;
  if (other == nullptr) return FillRows(place.current, place.stream, fill);
  if (const CUresult error = SyncStream(place.current, place.stream)) return error;
  const Current there = PrimaryOf(other);
  return there.error != CUDA_SUCCESS ? there.error : FillRows(there, VGPU_STREAM_LEGACY, fill);
}

template <uint32_t kElement, class Value>
CUresult Set(DefaultStream m, CUdeviceptr to, Value value, size_t count) {
  const CUresult status = Fill(m, {to, 0, value, kElement, count, 1}, nullptr);
  if (status != CUDA_SUCCESS) return status;
  const Place place = Where(m, nullptr);
  if (place.error != CUDA_SUCCESS) return place.error;
  const bool waits = FindShared(to, 1).device != nullptr || WantsSyncCopies(place.current.device, to);
  return waits ? SyncStream(place.current, place.stream) : CUDA_SUCCESS;
}
template <uint32_t kElement, class Value>
CUresult SetLater(DefaultStream m, CUdeviceptr to, Value value, size_t count, CUstream s) {
  return Fill(m, {to, 0, value, kElement, count, 1}, s);
}
template <uint32_t kElement, class Value>
CUresult SetRows(DefaultStream m, CUdeviceptr to, size_t pitch, Value value, size_t width, size_t height, CUstream s) {
  const bool any = width != 0 && height != 0;
  if (any && height > 1 && (pitch < width * kElement || pitch % kElement != 0)) return CUDA_ERROR_INVALID_VALUE;
  return Fill(m, {to, pitch, value, kElement, width, height}, s);
}

constexpr auto Set8 = Set<1, unsigned char>;
constexpr auto Set16 = Set<2, unsigned short>;
constexpr auto Set32 = Set<4, unsigned>;
constexpr auto Set8Later = SetLater<1, unsigned char>;
constexpr auto Set16Later = SetLater<2, unsigned short>;
constexpr auto Set32Later = SetLater<4, unsigned>;
constexpr auto Rows8 = SetRows<1, unsigned char>;
constexpr auto Rows16 = SetRows<2, unsigned short>;
constexpr auto Rows32 = SetRows<4, unsigned>;

}  // namespace

namespace vgpud::cuda {

CUresult FillRows(const Current& current, uint32_t stream, const CUDA_MEMSET_NODE_PARAMS_st& fill) {
  const bool size_ok = fill.elementSize == 1 || fill.elementSize == 2 || fill.elementSize == 4;
  const bool any = fill.width != 0 && fill.height != 0;
  if (!size_ok || (any && fill.height > 1 && fill.pitch < fill.width * fill.elementSize))
    return CUDA_ERROR_INVALID_VALUE;
  if (const InCapture capture = Capturing(current, stream)) {
    if (capture.error() != CUDA_SUCCESS || !any) return capture.error();
    return CheckFill(fill.dst, fill.elementSize, fill.width)
               ? capture.Add(current, CU_GRAPH_NODE_TYPE_MEMSET, FillWork(fill))
               : CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t row = 0; any && row < fill.height; ++row) {
    const CUresult error =
        FillOn(current, stream, fill.dst + row * fill.pitch, fill.value, fill.elementSize, fill.width);
    if (error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

NodeWork FillWork(const CUDA_MEMSET_NODE_PARAMS_st& fill) {
  return {[fill](const Current& at, uint32_t stream) { return FillRows(at, stream, fill); }, fill};
}

}  // namespace vgpud::cuda

#define SET_ARGS(type) (CUdeviceptr to, type value, size_t n)
#define LATER_ARGS(type) (CUdeviceptr to, type value, size_t n, CUstream s)
#define ROWS_ARGS(type) (CUdeviceptr to, size_t pitch, type value, size_t w, size_t h)
#define ROWS_LATER_ARGS(type) (CUdeviceptr to, size_t pitch, type value, size_t w, size_t h, CUstream s)

CU_TWINS(cuMemsetD8_v2, cuMemsetD8_v2_ptds, Set8, SET_ARGS(unsigned char), (to, value, n))
CU_TWINS(cuMemsetD16_v2, cuMemsetD16_v2_ptds, Set16, SET_ARGS(unsigned short), (to, value, n))
CU_TWINS(cuMemsetD32_v2, cuMemsetD32_v2_ptds, Set32, SET_ARGS(unsigned), (to, value, n))
CU_TWINS(cuMemsetD8Async, cuMemsetD8Async_ptsz, Set8Later, LATER_ARGS(unsigned char), (to, value, n, s))
CU_TWINS(cuMemsetD16Async, cuMemsetD16Async_ptsz, Set16Later, LATER_ARGS(unsigned short), (to, value, n, s))
CU_TWINS(cuMemsetD32Async, cuMemsetD32Async_ptsz, Set32Later, LATER_ARGS(unsigned), (to, value, n, s))
CU_TWINS(cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds, Rows8, ROWS_ARGS(unsigned char), (to, pitch, value, w, h, nullptr))
CU_TWINS(cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds, Rows16, ROWS_ARGS(unsigned short), (to, pitch, value, w, h, nullptr))
CU_TWINS(cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds, Rows32, ROWS_ARGS(unsigned), (to, pitch, value, w, h, nullptr))
CU_TWINS(cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz, Rows8, ROWS_LATER_ARGS(unsigned char), (to, pitch, value, w, h, s))
CU_TWINS(cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz, Rows16, ROWS_LATER_ARGS(unsigned short),
         (to, pitch, value, w, h, s))
CU_TWINS(cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz, Rows32, ROWS_LATER_ARGS(unsigned), (to, pitch, value, w, h, s))
