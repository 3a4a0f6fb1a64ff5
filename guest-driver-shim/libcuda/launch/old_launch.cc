// SPDX-License-Identifier: Apache-2.0
// How kernels were launched before CUDA 4.0: block shape, shared memory and parameters are set call by call and stay
// with the function until the launch, which says no more than the grid. pycuda still does so.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "guest-driver-shim/libcuda/launch/parameters.h"
#include "guest-driver-shim/libcuda/module/module.h"

namespace {

using namespace vgpud::cuda;

// Changes what is set for the next launch of a function: `change`, under its mutex, says whether it may.
template <class Change>
CUresult Set(CUfunction function, const Change& change) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  const auto kernel = FindKernel(function);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Kernel::OldLaunch& next = kernel->old_launch();
  MutexLock lock(next.mutex);
  return change(next) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult SetParameter(CUfunction function, int offset, const void* value, size_t bytes) {
  return Set(function, [&](Kernel::OldLaunch& next) {
    next.mutex.AssertHeld();
    const auto at = static_cast<size_t>(offset);
    if (offset < 0 || value == nullptr || at > kMaxParameterBytes || bytes > kMaxParameterBytes - at) return false;
    if (next.parameters.size() < at + bytes) next.parameters.resize(at + bytes);
    memcpy(next.parameters.data() + at, value, bytes);
    return true;
  });
}

CUresult LaunchGrid(CUfunction function, int width, int height, CUstream stream) {
  const auto kernel = FindKernel(function);
  if (kernel == nullptr || width <= 0 || height <= 0) {
    const CUresult error = CurrentContext().error;
    if (error != CUDA_SUCCESS) return error;
    return kernel == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
  }
  Kernel::OldLaunch& next = kernel->old_launch();
  std::vector<std::byte> parameters;
  unsigned block[3] = {};
  unsigned shared = 0;
  {
    MutexLock lock(next.mutex);
    parameters.assign(next.parameter_bytes, std::byte{0});
    std::copy_n(next.parameters.begin(), std::min(next.parameters.size(), parameters.size()), parameters.begin());
    std::copy(std::begin(next.block), std::end(next.block), block);
    shared = next.shared;
  }
  size_t bytes = parameters.size();
  void* extra[] = {reinterpret_cast<void*>(kExtraPointer), parameters.data(), reinterpret_cast<void*>(kExtraBytes),
                   &bytes, reinterpret_cast<void*>(kExtraEnd)};
  return cuLaunchKernel(function, static_cast<unsigned>(width), static_cast<unsigned>(height), 1, block[0], block[1],
                        block[2], shared, stream, nullptr, extra);
}

}  // namespace

CU_API(cuFuncSetBlockShape)(CUfunction function, int x, int y, int z) {
  return Set(function, [=](Kernel::OldLaunch& next) {
    next.mutex.AssertHeld();
    if (x <= 0 || y <= 0 || z <= 0) return false;
    next.block[0] = x;
    next.block[1] = y;
    next.block[2] = z;
    return true;
  });
}
CU_API(cuFuncSetSharedSize)(CUfunction function, unsigned bytes) {
  return Set(function, [=](Kernel::OldLaunch& next) {
    next.mutex.AssertHeld();
    next.shared = bytes;
    return true;
  });
}
CU_API(cuParamSetSize)(CUfunction function, unsigned bytes) {
  return Set(function, [=](Kernel::OldLaunch& next) {
    next.mutex.AssertHeld();
    if (bytes > kMaxParameterBytes) return false;
    next.parameter_bytes = bytes;
    return true;
  });
}
CU_API(cuParamSeti)(CUfunction function, int offset, unsigned value) {
  return SetParameter(function, offset, &value, sizeof value);
}
CU_API(cuParamSetf)(CUfunction function, int offset, float value) {
  return SetParameter(function, offset, &value, sizeof value);
}
CU_API(cuParamSetv)(CUfunction function, int offset, void* value, unsigned bytes) {
  return SetParameter(function, offset, value, bytes);
}

CU_API(cuLaunch)(CUfunction function) { return LaunchGrid(function, 1, 1, nullptr); }
CU_API(cuLaunchGrid)(CUfunction function, int width, int height) {
  return LaunchGrid(function, width, height, nullptr);
}
CU_API(cuLaunchGridAsync)(CUfunction function, int width, int height, CUstream stream) {
  return LaunchGrid(function, width, height, stream);
}
