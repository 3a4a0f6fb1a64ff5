// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "guest-driver-shim/libcuda/api/event.h"
#include "guest-driver-shim/libcuda/api/pool.h"
#include "guest-driver-shim/libcuda/driver/managed_blocks.h"
#include "guest-driver-shim/libcuda/graph/capture.h"
#include "guest-driver-shim/libcuda/launch/submit.h"

namespace vgpud::cuda {
namespace {

constexpr int kLowestPriority = 0;
constexpr int kHighestPriority = -5;

CUresult Create(CUstream* out, unsigned flags, int priority) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) return CUDA_ERROR_INVALID_VALUE;
  auto stream = std::make_shared<Stream>();
  stream->flags = flags;
  stream->priority = std::max(kHighestPriority, std::min(kLowestPriority, priority));
  stream->device = current.device;
  stream->context = current.context->handle;
  stream->epoch = current.device->epoch.load();
  if (const CUresult error = CreateStreamNumber(current.device, flags, stream->priority, &stream->id)) return error;
  *out = Streams().Add(std::move(stream));
  return CUDA_SUCCESS;
}

bool IsDefault(CUstream stream) { return reinterpret_cast<uint64_t>(stream) <= 2; }

CUresult Synchronize(DefaultStream mode, CUstream stream) {
  const Current current = ContextOf(stream);
  if (current.error != CUDA_SUCCESS) return current.error;
  uint32_t number;
  if (const CUresult error = StreamNumber(current, stream, mode, &number)) return error;
  const CUresult status = SyncStream(current, number);
  TrimPools(current.device);
  return status != CUDA_SUCCESS ? status : FetchManaged(current, false);
}

CUresult Query(DefaultStream mode, CUstream stream) {
  const Current current = ContextOf(stream);
  if (current.error != CUDA_SUCCESS) return current.error;
  uint32_t number;
  if (const CUresult error = StreamNumber(current, stream, mode, &number)) return error;
  const CUresult status = QueryStream(current, number);
  return status != CUDA_SUCCESS ? status : FetchManaged(current, false);
}

template <class T>
CUresult Fact(DefaultStream, CUstream stream, T* out, T (*get)(const Stream&), T of_default) {
  const Current current = vgpud::cuda::ContextOf(stream, false);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (IsDefault(stream)) {
    *out = of_default;
    return CUDA_SUCCESS;
  }
  const auto found = Streams().Find(stream);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = get(*found);
  return CUDA_SUCCESS;
}

}  // namespace

}  // namespace vgpud::cuda

namespace {

using namespace vgpud::cuda;

CUresult WaitFor(DefaultStream mode, CUstream stream, CUevent event, unsigned flags) {
  const Current current = vgpud::cuda::ContextOf(stream);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  uint32_t number;
  if (const CUresult error = StreamNumber(current, stream, mode, &number)) return error;
  return StreamWaitsForEvent(current, number, event, flags == CU_EVENT_WAIT_EXTERNAL);
}

CUresult Priority(DefaultStream mode, CUstream stream, int* out) {
  return Fact<int>(
      mode, stream, out, [](const Stream& s) { return s.priority; }, 0);
}
CUresult Flags(DefaultStream mode, CUstream stream, unsigned* out) {
  return Fact<unsigned>(
      mode, stream, out, [](const Stream& s) { return s.flags; }, 0);
}
CUresult Number(DefaultStream mode, CUstream stream, unsigned long long* out) {
  const Current current = vgpud::cuda::ContextOf(stream, false);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint32_t number;
  if (const CUresult error = StreamNumber(current, stream, mode, &number)) return error;
  *out = number;
  return CUDA_SUCCESS;
}
CUresult ContextOf(DefaultStream mode, CUstream stream, CUcontext* out) {
  const Current current = vgpud::cuda::ContextOf(stream, false);
  if (current.error != CUDA_SUCCESS) return current.error;
  return Fact<CUcontext>(
      mode, stream, out, [](const Stream& s) { return s.context; }, current.context->handle);
}
CUresult ContextsOf(DefaultStream mode, CUstream stream, CUcontext* out, CUgreenCtx* green) {
  const CUresult error = ContextOf(mode, stream, out);
  if (error == CUDA_SUCCESS && green != nullptr) *green = nullptr;  // there are none
  return error;
}
CUresult DeviceOf(DefaultStream mode, CUstream stream, CUdevice* out) {
  const Current current = vgpud::cuda::ContextOf(stream, false);
  if (current.error != CUDA_SUCCESS) return current.error;
  return Fact<CUdevice>(
      mode, stream, out, [](const Stream& s) { return s.device->ordinal; }, current.device->ordinal);
}

}  // namespace

CU_API(cuStreamCreate)(CUstream* out, unsigned flags) { return Create(out, flags, 0); }
CU_API(cuStreamCreateWithPriority)(CUstream* out, unsigned flags, int priority) { return Create(out, flags, priority); }

CU_API(cuStreamDestroy_v2)(CUstream stream) {
  const Current current = vgpud::cuda::ContextOf(stream, false);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (IsDefault(stream)) return CUDA_ERROR_INVALID_HANDLE;
  const auto found = Streams().Remove(stream);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  DropFromCapture(found->device, found->id);
  if (found->epoch == found->device->epoch.load()) DestroyStreamNumber(found->device, found->id);
  return CUDA_SUCCESS;
}
CU_API(cuStreamDestroy)(CUstream stream) { return cuStreamDestroy_v2(stream); }

CU_TWINS(cuStreamSynchronize, cuStreamSynchronize_ptsz, Synchronize, (CUstream stream), (stream))
CU_TWINS(cuStreamQuery, cuStreamQuery_ptsz, Query, (CUstream stream), (stream))
CU_TWINS(cuStreamWaitEvent, cuStreamWaitEvent_ptsz, WaitFor, (CUstream stream, CUevent event, unsigned flags),
         (stream, event, flags))
CU_TWINS(cuStreamGetPriority, cuStreamGetPriority_ptsz, Priority, (CUstream stream, int* out), (stream, out))
CU_TWINS(cuStreamGetFlags, cuStreamGetFlags_ptsz, Flags, (CUstream stream, unsigned* out), (stream, out))
CU_TWINS(cuStreamGetId, cuStreamGetId_ptsz, Number, (CUstream stream, unsigned long long* out), (stream, out))
CU_TWINS(cuStreamGetCtx, cuStreamGetCtx_ptsz, ContextOf, (CUstream stream, CUcontext* out), (stream, out))
CU_TWINS(cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz, ContextsOf, (CUstream stream, CUcontext* out, CUgreenCtx* green),
         (stream, out, green))
CU_TWINS(cuStreamGetDevice, cuStreamGetDevice_ptsz, DeviceOf, (CUstream stream, CUdevice* out), (stream, out))

CU_API(cuCtxGetStreamPriorityRange)(int* least, int* greatest) {
  const Current current = CurrentContext(false);
  if (current.error != CUDA_SUCCESS) return current.error;
  if (least != nullptr) *least = kLowestPriority;
  if (greatest != nullptr) *greatest = kHighestPriority;
  return CUDA_SUCCESS;
}
