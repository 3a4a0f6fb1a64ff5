// SPDX-License-Identifier: Apache-2.0
// How an export of libcuda.so.1 is written. The generated prototypes make the compiler reject a wrong signature.
#pragma once

#include "guest-driver-shim/libcuda/generated/cuda_api.h"

#define CU_API(name) extern "C" __attribute__((visibility("default"))) CUresult name

#define CU_UNPACK(...) __VA_ARGS__
// A function and its per-thread default stream twin: both call implementation(DefaultStream, arguments...).
#define CU_TWINS(name, twin, implementation, parameters, arguments)                                            \
  CU_API(name) parameters { return implementation(vgpud::cuda::DefaultStream::kLegacy, CU_UNPACK arguments); } \
  CU_API(twin) parameters { return implementation(vgpud::cuda::DefaultStream::kPerThread, CU_UNPACK arguments); }

namespace vgpud::cuda {

// What the stream handle 0 means: functions with the suffix _ptsz / _ptds take the thread's own stream.
enum class DefaultStream { kLegacy, kPerThread };

}  // namespace vgpud::cuda
