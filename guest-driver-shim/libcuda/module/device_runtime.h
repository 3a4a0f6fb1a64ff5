// SPDX-License-Identifier: Apache-2.0
// NVIDIA's device runtime, libcudadevrt.a, as an input of the JIT linker. Its code is for NVIDIA's GPUs; the functions
// that launch kernels are the device's own here, and those that wait for the whole grid are PTX of ours.
#pragma once

#include <span>
#include <string_view>

namespace vgpud::cuda {

// Is it that archive? By its member, or where a toolkit names that differently by the name of the file.
bool IsDeviceRuntime(std::span<const char> archive, std::string_view file_name);

// What stands for it: PTX of cudaCGGetIntrinsicHandle, cudaCGSynchronize, cudaCGSynchronizeGrid, cudaCGGetSize and
// cudaCGGetRank (cuda_device_runtime_api.h), weak, so that a program may have its own.
std::string_view DeviceRuntimePtx();

}  // namespace vgpud::cuda
