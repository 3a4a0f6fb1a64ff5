// SPDX-License-Identifier: Apache-2.0
// Graphs: work that is recorded once and submitted again with each launch. A graph's nodes are kept in an order that
// respects their dependencies, and a launch submits them in that order (lanes.h).
#pragma once

#include <functional>

#include "guest-driver-shim/libcuda/driver/driver.h"
#include "guest-driver-shim/libcuda/graph/node_params.h"

namespace vgpud::cuda {

class Graph;

// Submits one node's work to `stream`.
using GraphWork = std::function<CUresult(const Current& current, uint32_t stream)>;

struct NodeWork {
  GraphWork submit;  // nullptr: nothing
  NodeParams params;
  uint64_t epoch = 0;  // of the device, when the work was recorded
};
// Makes a node's work. `before`: what a node of the same type did until now, nullptr for a new node.
using MakeNodeWork = std::function<CUresult(const NodeWork* before, NodeWork* out)>;

// Adds a node to a graph, behind the nodes `after`; `make` is called when nothing else is wrong.
CUresult AddGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, int type,
                      const MakeNodeWork& make);
// Gives a node of that type other work; SetExecutableNode: the copy of it that an executable graph holds.
CUresult SetGraphNode(CUgraphNode node, int type, const MakeNodeWork& make);
CUresult SetExecutableNode(CUgraphExec executable, CUgraphNode node, int type, const MakeNodeWork& make);

// What has been set of a kernel node (node_params.cc).
CUresult AttributesOf(CUgraphNode node, LaunchAttributes* out);

// child_graph.cc: a copy of a graph as the work of one node. With `move_into`, the graph that gets the node: the graph
// itself, which the program gives away.
CUresult EmbedGraph(CUgraph graph, CUgraph move_into, NodeWork* out);

// graph_memory.cc. An allocation or its end as the work of a node. The address is written to `wanted`.
CUresult AllocWork(const Current& current, CUDA_MEM_ALLOC_NODE_PARAMS_v1_st* wanted, NodeWork* out);
CUresult FreeWork(const Current& current, CUdeviceptr address, NodeWork* out);
// The same in a capturing stream.
class InCapture;
CUresult CaptureAlloc(const Current& current, const InCapture& capture, CUdeviceptr* out, size_t bytes);
CUresult CaptureFree(const Current& current, const InCapture& capture, CUdeviceptr address);

}  // namespace vgpud::cuda
