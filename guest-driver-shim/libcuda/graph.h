// SPDX-License-Identifier: Apache-2.0
// Graphs: work that is recorded once and submitted again with each launch. A graph's nodes are kept in an order that
// respects their dependencies, and a launch submits them in that order to the one stream it is given.
#pragma once

#include <functional>

#include "guest-driver-shim/libcuda/driver/driver.h"

namespace vgpud::cuda {

class Graph;

// Submits one node's work to `stream`.
using GraphWork = std::function<CUresult(const Current& current, uint32_t stream)>;

// The graph that captures what is given to the stream; nullptr (nearly always, and then cheaply) when none does.
std::shared_ptr<Graph> Capturing(Device* device, uint32_t stream);

// Records work of a capturing stream instead of submitting it. `type`: CUgraphNodeType.
CUresult Capture(const Current& current, Graph& graph, int type, GraphWork work);

// Adds a node to a graph, behind the nodes `after`. `epoch`: the device's, of what the work names.
CUresult AddGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count, int type, uint64_t epoch,
                      GraphWork work);
// Gives a node of that type other work; SetExecutableNode: the copy of it that an executable graph holds.
CUresult SetGraphNode(CUgraphNode node, int type, uint64_t epoch, GraphWork work);
CUresult SetExecutableNode(CUgraphExec executable, CUgraphNode node, int type, uint64_t epoch, GraphWork work);
// All of a graph, as it is now, as the work of one node.
CUresult WorkOfGraph(CUgraph graph, GraphWork* out);
// graph_memory.cc: an allocation or its end in a capturing stream.
CUresult CaptureAlloc(const Current& current, Graph& graph, CUdeviceptr* out, size_t bytes);
CUresult CaptureFree(const Current& current, Graph& graph, CUdeviceptr address);

// A capturing stream came to an event: streams that wait for that event capture into the same graph from then on.
void CaptureEvent(const void* event, const std::shared_ptr<Graph>& graph);
// True when the event was last recorded in a stream that captures, and `stream` now captures too.
bool JoinCapture(const void* event, Device* device, uint32_t stream);
void ForgetCapturedEvent(const void* event);

// launch.cc: checks a launch and makes its entry; `stream` of it is the caller's.
CUresult MakeLaunch(const Current& current, const CUDA_KERNEL_NODE_PARAMS_v2_st& kernel, Command* command,
                    std::vector<std::byte>* payload);
// fill.cc
CUresult FillRows(const Current& current, uint32_t stream, const CUDA_MEMSET_NODE_PARAMS_st& fill);

}  // namespace vgpud::cuda
