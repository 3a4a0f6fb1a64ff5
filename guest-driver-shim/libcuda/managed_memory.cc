// SPDX-License-Identifier: Apache-2.0
// Calls for managed memory.
#include "guest-driver-shim/libcuda/driver/managed.h"
#include "guest-driver-shim/libcuda/graph/capture.h"

using namespace vgpud::cuda;

CU_API(cuMemAllocManaged)(CUdeviceptr* out, size_t bytes, unsigned flags) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = RefuseUnsafeCall()) return error;
  return AllocManaged(current, out, bytes);
}

namespace {

// Hints: the bytes move when they have to.
CUresult Hint(CUdeviceptr address) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  return IsManaged(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult Prefetch(DefaultStream, CUdeviceptr address, size_t, int, CUstream) { return Hint(address); }
CUresult PrefetchTo(DefaultStream, CUdeviceptr address, size_t, CUmemLocation_st, unsigned, CUstream) {
  return Hint(address);
}
CUresult Attach(DefaultStream, CUstream, CUdeviceptr address, size_t, unsigned) { return Hint(address); }

}  // namespace

CU_API(cuMemAdvise)(CUdeviceptr address, size_t, int, CUdevice) { return Hint(address); }
CU_API(cuMemAdvise_v2)(CUdeviceptr address, size_t, int, CUmemLocation_st) { return Hint(address); }
CU_TWINS(cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz, Prefetch, (CUdeviceptr at, size_t n, CUdevice to, CUstream s),
         (at, n, to, s))
CU_TWINS(cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz, PrefetchTo,
         (CUdeviceptr at, size_t n, CUmemLocation_st to, unsigned flags, CUstream s), (at, n, to, flags, s))
CU_TWINS(cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz, Attach,
         (CUstream s, CUdeviceptr at, size_t n, unsigned flags), (s, at, n, flags))
