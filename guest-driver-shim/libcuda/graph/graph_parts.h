// SPDX-License-Identifier: Apache-2.0
// What graphs are made of, for the files that build, capture and launch them.
#pragma once

#include <set>

#include "guest-driver-shim/libcuda/graph/graph.h"

namespace vgpud::cuda {

struct GraphNode {
  int type = CU_GRAPH_NODE_TYPE_EMPTY;
  uint64_t epoch = 0;  // of the device, when the work was recorded
  GraphWork work;
  CUgraphNode handle = nullptr;
  CUgraphNode original = nullptr;  // that it is a clone's copy of
  std::weak_ptr<Graph> graph;
  std::set<CUgraphNode> after;  // under the graph's mutex
};
// How many references to each of a program's objects somebody has (user_object.cc).
struct UserObject;
using References = std::map<std::shared_ptr<UserObject>, uint64_t>;

using NodeList = std::vector<std::shared_ptr<GraphNode>>;

class Graph {
 public:
  std::mutex mutex;
  NodeList nodes;  // as they were added
  CUgraph handle = nullptr;
  std::atomic<bool> capturing{false};  // into it; it can't be instantiated meanwhile
  References references;
};

HandleTable<CUgraph, Graph>& Graphs();
HandleTable<CUgraphNode, GraphNode>& Nodes();

// An empty graph with its handle.
std::shared_ptr<Graph> NewGraph();
// The graph and its nodes have no handles any more; executable graphs made of it stay as they are.
CUresult DropGraph(CUgraph handle);
std::shared_ptr<GraphNode> AppendNode(const std::shared_ptr<Graph>& graph, std::shared_ptr<GraphNode> node);

}  // namespace vgpud::cuda
