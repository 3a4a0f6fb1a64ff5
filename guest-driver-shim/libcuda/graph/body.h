// SPDX-License-Identifier: Apache-2.0
// What an executable graph launches: copies of a graph's nodes, in an order that respects their dependencies, and with
// them those of its child graphs.
#pragma once

#include "guest-driver-shim/libcuda/graph/graph_parts.h"

namespace vgpud::cuda {

class Lanes;

struct Body {
  NodeList nodes;  // a node is replaced, never changed
  std::shared_ptr<Lanes> lanes;
  std::vector<std::shared_ptr<Condition>> conditions;  // of all graphs that it was made of
  bool conditional = false;                            // has conditional nodes
};

// Makes the body of a graph as it is now. False: its dependencies form a circle, *bad is a node of it; or *bad may not
// be in the graph of a conditional node.
bool MakeBody(Graph& graph, Body* out, CUgraphNode* bad);

// The node that was made of `handle`, in child graphs too; nullptr if there is none.
std::shared_ptr<const GraphNode> FindInBody(const Body& body, CUgraphNode handle);
// Replaces that node by what `change` makes of a copy. CUDA_ERROR_INVALID_VALUE: there is none.
CUresult ChangeInBody(Body& body, CUgraphNode handle, const std::function<CUresult(GraphNode&)>& change);

// Gives the nodes of `body` what those of `fresh` do, a body of the same form; they keep their names and stay enabled
// or not. On failure nothing has changed, *why is a CUgraphExecUpdateResult, *failed the fresh node that does not fit
// or nullptr.
bool AdoptBody(Body& body, const Body& fresh, int* why, CUgraphNode* failed);

}  // namespace vgpud::cuda
