// SPDX-License-Identifier: Apache-2.0
// Nodes of every type, described by CUgraphNodeParams.
#pragma once

#include "guest-driver-shim/libcuda/graph/graph.h"

namespace vgpud::cuda {

// Errors: CUDA_ERROR_NOT_SUPPORTED (a type that graphs here do not have; setting a type that has nothing to set),
// CUDA_ERROR_INVALID_VALUE (no type at all, another one than the node's, bytes set that mean nothing).

// Adds a node; what CUDA answers in `params` is written there.
CUresult AddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, CUgraphNodeParams_st* params);
CUresult SetNode(CUgraphNode node, const CUgraphNodeParams_st* params);
CUresult SetNodeIn(CUgraphExec executable, CUgraphNode node, const CUgraphNodeParams_st* params);

}  // namespace vgpud::cuda
