// SPDX-License-Identifier: Apache-2.0
// Calls of the driver that the runtime has no name for, found as programs find them; and what a program expects.
#pragma once

#include "check.h"

inline int wrong = 0;

// Says what is not as expected, the first ten times.
inline void expect(const char* what, long long got, long long wanted) {
  if (got == wanted) return;
  if (wrong++ < 10) std::printf("%s: %lld, expected %lld\n", what, got, wanted);
}

// Ends the program when the driver has no such call.
template <class Function>
Function* driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  CUDA_CHECK(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
#else
  CUDA_CHECK(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found));
#endif
  if (function == nullptr) {
    std::printf("FAILED, the driver has no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<Function*>(function);
}
