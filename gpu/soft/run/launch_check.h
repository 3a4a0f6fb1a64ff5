// SPDX-License-Identifier: Apache-2.0
// Whether a kernel can be launched in a shape (CUDA C++ Programming Guide, "Compute Capabilities").
#pragma once

#include <array>

#include "base/compute_capability.h"
#include "gpu/gpu.h"
#include "gpu/soft/code/program.h"

namespace vgpud::soft {

inline constexpr uint32_t kAllDynamicShared = UINT32_MAX;

// `max_dynamic_shared`: what the kernel may have beyond its static shared memory, at most what `capability` lets a
// block have. Errors: kIllegalInstruction (it holds an instruction that does not exist here), kInvalidValue,
// kLaunchOutOfResources; the text names kernel and limit.
GpuResult<void> CheckLaunch(const ComputeCapability& capability, const CodeFunction& function, const LaunchShape& shape,
                            uint32_t max_dynamic_shared = kAllDynamicShared);

// Blocks of a cluster in each dimension, as the launch or else the kernel says. Checked by CheckLaunch.
std::array<uint32_t, 3> ClusterOf(const CodeFunction& function, const LaunchShape& shape);
bool IsExplicitCluster(const CodeFunction& function, const LaunchShape& shape);

}  // namespace vgpud::soft
