// SPDX-License-Identifier: Apache-2.0
// Graphs: work that is recorded once and submitted again with each launch. A graph's nodes are kept in an order that
// respects their dependencies, and a launch submits them in that order (lanes.h).
#pragma once

#include <functional>

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

class Graph;

// Submits one node's work to `stream`.
using GraphWork = std::function<CUresult(const Current& current, uint32_t stream)>;

// Adds a node to a graph, behind the nodes `after`. `epoch`: the device's, of what the work names.
CUresult AddGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, int type, uint64_t epoch,
                      GraphWork work);
// Gives a node of that type other work; SetExecutableNode: the copy of it that an executable graph holds.
CUresult SetGraphNode(CUgraphNode node, int type, uint64_t epoch, GraphWork work);
CUresult SetExecutableNode(CUgraphExec executable, CUgraphNode node, int type, uint64_t epoch, GraphWork work);
// All of a graph, as it is now, as the work of one node.
CUresult WorkOfGraph(CUgraph graph, GraphWork* out);
// graph_memory.cc: an allocation or its end in a capturing stream.
class InCapture;
CUresult CaptureAlloc(const Current& current, const InCapture& capture, CUdeviceptr* out, size_t bytes);
CUresult CaptureFree(const Current& current, const InCapture& capture, CUdeviceptr address);

}  // namespace vgpud::cuda
