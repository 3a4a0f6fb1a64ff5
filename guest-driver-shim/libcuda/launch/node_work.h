// SPDX-License-Identifier: Apache-2.0
// The work of nodes that takes more than handing their parameters on.
#pragma once

#include "guest-driver-shim/libcuda/graph/graph.h"
#include "guest-driver-shim/libcuda/module/module.h"

namespace vgpud::cuda {

// launch.cc: checks a launch, and keeps copies of its parameters.
CUresult KernelWork(const Current& current, const CUDA_KERNEL_NODE_PARAMS_v2_st& told, LaunchAttributes attributes,
                    NodeWork* out);

// conditional_node.cc: makes the node with its empty graphs, which are written to `wanted`. CUDA_ERROR_INVALID_VALUE:
// no handle, or one that a node has already; a number of graphs that the type can't have.
CUresult ConditionalWork(const Current& current, CUDA_CONDITIONAL_NODE_PARAMS* wanted, NodeWork* out);

}  // namespace vgpud::cuda
