// SPDX-License-Identifier: Apache-2.0
// Whether a kernel can be launched in a shape (CUDA C++ Programming Guide, "Compute Capabilities").
#pragma once

#include "gpu/gpu.h"
#include "gpu/soft/code/program.h"

namespace vgpud::soft {

// Shared memory of a block, static and dynamic.
inline constexpr uint32_t kMaxShared = 64 << 10;

// `max_dynamic_shared`: what the kernel may have beyond its static shared memory. Errors: kIllegalInstruction (it holds
// an instruction that does not exist here), kInvalidValue, kLaunchOutOfResources; the text names kernel and limit.
GpuResult<void> CheckLaunch(const CodeFunction& function, const LaunchShape& shape, uint32_t max_dynamic_shared);

}  // namespace vgpud::soft
