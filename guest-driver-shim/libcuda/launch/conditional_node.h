// SPDX-License-Identifier: Apache-2.0
// The work of conditional nodes.
#pragma once

#include "guest-driver-shim/libcuda/graph/graph.h"

namespace vgpud::cuda {

// Makes the node with its empty graphs, which are written to `wanted`. CUDA_ERROR_INVALID_VALUE: no handle, or one that
// a node has already; a number of graphs that the type can't have.
CUresult ConditionalWork(const Current& current, CUDA_CONDITIONAL_NODE_PARAMS* wanted, NodeWork* out);

}  // namespace vgpud::cuda
