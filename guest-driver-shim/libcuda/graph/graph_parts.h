// SPDX-License-Identifier: Apache-2.0
// What graphs are made of, for the files that build, capture and launch them.
#pragma once

#include <set>

#include "guest-driver-shim/libcuda/graph/graph.h"

namespace vgpud::cuda {

struct Body;
struct Condition;

struct GraphNode {
  int type = CU_GRAPH_NODE_TYPE_EMPTY;
  NodeWork work;
  CUgraphNode handle = nullptr;
  CUgraphNode original = nullptr;  // that it is a clone's copy of
  std::weak_ptr<Graph> graph;
  std::set<CUgraphNode> after;  // under the graph's mutex
  // Of an executable graph's nodes only.
  bool enabled = true;
  std::shared_ptr<const Body> body;  // of a child graph
};
// How many references to each of a program's objects somebody has (user_object.cc).
struct UserObject;
using References = std::map<std::shared_ptr<UserObject>, uint64_t>;

using NodeList = std::vector<std::shared_ptr<GraphNode>>;

class Graph {
 public:
  Mutex mutex{lock_rank::kGraph};
  NodeList nodes GUARDED_BY(mutex);  // as they were added
  CUgraph handle = nullptr;
  std::atomic<bool> capturing{false};  // into it; it can't be instantiated meanwhile
  std::atomic<bool> embedded{false};   // it belongs to a node, and can't be destroyed by the program
  std::atomic<bool> moved{false};      // embedded: the program has given it away, so it may be used there only
  References references GUARDED_BY(mutex);
  std::vector<std::shared_ptr<Condition>> conditions GUARDED_BY(mutex);  // made for it
  std::weak_ptr<void> instance GUARDED_BY(mutex);  // of a graph with conditional nodes there is one at a time
};

// A graph inside of a node; its handle goes with the node.
struct EmbeddedGraph {
  explicit EmbeddedGraph(std::shared_ptr<Graph> graph);
  EmbeddedGraph(const EmbeddedGraph&) = delete;
  ~EmbeddedGraph();
  const std::shared_ptr<Graph> graph;
};

HandleTable<CUgraph, Graph>& Graphs();
HandleTable<CUgraphNode, GraphNode>& Nodes();

// An empty graph with its handle.
std::shared_ptr<Graph> NewGraph();
// The graph and its nodes have no handles any more; executable graphs made of it stay as they are.
CUresult DropGraph(CUgraph handle);
std::shared_ptr<GraphNode> AppendNode(const std::shared_ptr<Graph>& graph, std::shared_ptr<GraphNode> node);
// Adds copies of the nodes, which depend on each other as those do, and copies of the graphs inside of them.
void CopyNodes(const NodeList& nodes, const std::shared_ptr<Graph>& to);
// The nodes as a graph inside of a node.
std::shared_ptr<EmbeddedGraph> Embed(const NodeList& nodes);

bool IsMemoryNode(const GraphNode& node);
// Edges without ports, as all edges of graphs here are.
bool IsPlain(const CUgraphEdgeData_st& edge);

}  // namespace vgpud::cuda
