// SPDX-License-Identifier: Apache-2.0
// Launches of kernels that are told in other forms than cuLaunchKernel's.
#pragma once

#include "guest-driver-shim/libcuda/driver/stream_table.h"
#include "guest-driver-shim/libcuda/graph/graph.h"
#include "guest-driver-shim/libcuda/launch/launch_attributes.h"

namespace vgpud::cuda {

// cuLaunchKernelEx with `attributes`, which are checked, instead of the config's; in a capture it becomes a node.
CUresult LaunchWith(DefaultStream mode, const CUlaunchConfig_st& config, CUfunction function, void** parameters,
                    void** extra, const LaunchAttributes& attributes);

// The work of a node: checks a launch, and keeps copies of its parameters.
CUresult KernelWork(const Current& current, const CUDA_KERNEL_NODE_PARAMS_v2_st& told, LaunchAttributes attributes,
                    NodeWork* out);

}  // namespace vgpud::cuda
