// SPDX-License-Identifier: Apache-2.0
// The CUDA driver of the launcher: libcuda.so.1, loaded when the program starts. Every call goes through DRIVER_CHECK:
// the first failure ends the program.
#pragma once

#include "gpu/cuda/driver_calls.h"

namespace driver = vgpud::driver;

// The loaded library. The first call loads it and ends the program with a message when that fails.
const driver::Calls& Cuda();
// Ends the program with the error's name and text unless `result` is kOk.
void Check(driver::Status result, const char* call);

#define DRIVER_CHECK(call) ::Check(::Cuda().call, #call)
