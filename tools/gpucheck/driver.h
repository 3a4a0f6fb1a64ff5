// SPDX-License-Identifier: Apache-2.0
// The CUDA driver API for the programs of gpu-check: a libcuda that is loaded when they run, GPU_CHECK_LIBRARY or
// libcuda.so.1. The first call that fails ends the program with a line "ERROR call=... name=... code=..." and status 3.
#pragma once

#include <cstddef>

#include "gpu/cuda/driver_calls.h"

namespace gpucheck {

namespace driver = vgpud::driver;

// The loaded library; the first call loads it.
const driver::Calls& Cuda();
// Ends the program unless `result` is 0.
void Check(driver::Status result, const char* call);
#define CUDA(call) ::gpucheck::Check(::gpucheck::Cuda().call, #call)

// Device 0, its context current to this thread.
struct Gpu {
  driver::Device device = 0;
  char name[128] = "";
  int capability = 0;
  int multiprocessors = 0;
  int most_shared = 0;
  size_t memory = 0;
};
Gpu OpenGpu();
driver::Function LoadKernel(const char* ptx, const char* name);
double Seconds();  // of a clock that only goes on

}  // namespace gpucheck
