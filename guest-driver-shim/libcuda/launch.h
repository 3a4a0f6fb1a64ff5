// SPDX-License-Identifier: Apache-2.0
// Kernel launches as the work of nodes.
#pragma once

#include "guest-driver-shim/libcuda/graph/graph.h"
#include "guest-driver-shim/libcuda/module.h"

namespace vgpud::cuda {

// Checks a launch, and keeps copies of its parameters.
CUresult KernelWork(const Current& current, const CUDA_KERNEL_NODE_PARAMS_v2_st& told, LaunchAttributes attributes,
                    NodeWork* out);

}  // namespace vgpud::cuda
