// SPDX-License-Identifier: Apache-2.0
// Attributes of launches and of kernel nodes: what asks for something that this device can't do is refused, hints are
// taken as such.
#pragma once

#include "guest-driver-shim/libcuda/graph/node_params.h"

namespace vgpud::cuda {

enum class AttributeOf { kLaunch, kNode };

// CUDA_ERROR_NOT_SUPPORTED: this device can't. CUDA_ERROR_INVALID_VALUE: nodes have no such attribute.
CUresult CheckAttribute(AttributeOf owner, int id, const AttributeValue& value);
// What an attribute of a node is as long as nobody has set it.
AttributeValue InitialAttribute(int id);

bool IsCooperative(const LaunchAttributes& attributes);
// Blocks of a cluster in each dimension, zeros if nothing is said; what is left out is 1. Not checked.
std::array<uint32_t, 3> ClusterOf(const LaunchAttributes& attributes);
// Those of a captured launch that its node has.
LaunchAttributes AsKept(const LaunchAttributes& attributes, bool cooperative);

}  // namespace vgpud::cuda
