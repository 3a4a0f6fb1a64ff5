// SPDX-License-Identifier: Apache-2.0
// How an export of libcuda.so.1 is written. The generated prototypes make the compiler reject a wrong signature.
#pragma once

#include <cstddef>
#include <tuple>

#include "guest-driver-shim/libcuda/channel/api_call.h"
#include "guest-driver-shim/libcuda/generated/cuda_api.h"

namespace vgpud::cuda {

// The type of a function's n-th parameter.
template <class Function, size_t n>
struct ParameterOf;
template <size_t n, class... Parameters>
struct ParameterOf<CUresult(Parameters...), n> {
  using Type = std::tuple_element_t<n, std::tuple<Parameters...>>;
};

}  // namespace vgpud::cuda

#define CU_PARAMETER(name, n) vgpud::cuda::ParameterOf<decltype(name), n>::Type p##n
#define CU_ARGUMENT(name, n) p##n

// What the program calls goes through Enter to what follows: the parameters and the body.
#define CU_API(name)                                                                                   \
  static CUresult name##_Body(CU_EACH_##name(CU_PARAMETER));                                           \
  extern "C" __attribute__((visibility("default"))) CUresult name(CU_EACH_##name(CU_PARAMETER)) {      \
    return vgpud::cuda::Enter([&]() -> CUresult { return name##_Body(CU_EACH_##name(CU_ARGUMENT)); }); \
  }                                                                                                    \
  static CUresult name##_Body

#define CU_UNPACK(...) __VA_ARGS__
// A function and its per-thread default stream twin: both call implementation(DefaultStream, arguments...).
#define CU_TWINS(name, twin, implementation, parameters, arguments)                                            \
  CU_API(name) parameters { return implementation(vgpud::cuda::DefaultStream::kLegacy, CU_UNPACK arguments); } \
  CU_API(twin) parameters { return implementation(vgpud::cuda::DefaultStream::kPerThread, CU_UNPACK arguments); }

namespace vgpud::cuda {

// What the stream handle 0 means: functions with the suffix _ptsz / _ptds take the thread's own stream.
enum class DefaultStream { kLegacy, kPerThread };

}  // namespace vgpud::cuda
