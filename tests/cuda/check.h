// SPDX-License-Identifier: Apache-2.0
// CUDA error checking for the test programs: the first failing call ends the program with the error's name and text.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CUDA_CHECK(call)                                                                                        \
  do {                                                                                                          \
    const cudaError_t cuda_check_error = (call);                                                                \
    if (cuda_check_error != cudaSuccess) {                                                                      \
      std::printf("FAILED %s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call, cudaGetErrorName(cuda_check_error), \
                  cudaGetErrorString(cuda_check_error));                                                        \
      std::exit(1);                                                                                             \
    }                                                                                                           \
  } while (false)

// After a launch: reports what the launch itself returned.
#define CUDA_CHECK_LAUNCH() CUDA_CHECK(cudaGetLastError())
