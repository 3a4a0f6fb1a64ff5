// SPDX-License-Identifier: Apache-2.0
// Launch attributes of kernel nodes. Those that change the launch itself are checked like a launch's.
#include <cstring>

#include "guest-driver-shim/libcuda/launch/launch.h"
#include "guest-driver-shim/libcuda/launch/launch_attributes.h"

namespace {

using namespace vgpud::cuda;

// Makes the node's work anew, with what `change` makes of its attributes.
template <class Change>
CUresult ChangeAttributes(CUgraphNode node, const Change& change) {
  const Current current = CurrentContext();
  if (current.error != CUDA_SUCCESS) return current.error;
  return SetGraphNode(node, CU_GRAPH_NODE_TYPE_KERNEL, [&](const NodeWork* before, NodeWork* out) -> CUresult {
    const auto* const kernel = std::get_if<std::shared_ptr<const KernelParams>>(&before->params);
    if (kernel == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    LaunchAttributes attributes = (*kernel)->attributes;
    change(attributes);
    out->epoch = current.device->epoch.load();
    return KernelWork(current, (*kernel)->told, std::move(attributes), out);
  });
}

}  // namespace

CU_API(cuGraphKernelNodeSetAttribute)(CUgraphNode node, int id, const CUlaunchAttributeValue_union* in) {
  if (in == nullptr) return CUDA_ERROR_INVALID_VALUE;
  AttributeValue value;
  memcpy(value.data(), in, value.size());
  if (const CUresult error = CheckAttribute(AttributeOf::kNode, id, value)) return error;
  return ChangeAttributes(node, [&](LaunchAttributes& attributes) { attributes[id] = value; });
}

CU_API(cuGraphKernelNodeGetAttribute)(CUgraphNode node, int id, CUlaunchAttributeValue_union* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const AttributeValue initial = InitialAttribute(id);
  if (const CUresult error = CheckAttribute(AttributeOf::kNode, id, initial)) return error;
  LaunchAttributes attributes;
  if (const CUresult error = AttributesOf(node, &attributes)) return error;
  const auto it = attributes.find(id);
  memcpy(out, it != attributes.end() ? it->second.data() : initial.data(), initial.size());
  return CUDA_SUCCESS;
}

CU_API(cuGraphKernelNodeCopyAttributes)(CUgraphNode to, CUgraphNode from) {
  LaunchAttributes attributes;
  if (const CUresult error = AttributesOf(from, &attributes)) return error;
  return ChangeAttributes(to, [&](LaunchAttributes& mine) { mine = attributes; });
}
