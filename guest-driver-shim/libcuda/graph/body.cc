// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/graph/body.h"

#include <algorithm>
#include <utility>

#include "guest-driver-shim/libcuda/graph/conditional.h"
#include "guest-driver-shim/libcuda/graph/lanes.h"

namespace vgpud::cuda {
namespace {

// A node of a circle: from any node that waits for an open one back to one that was seen before.
CUgraphNode NodeOfCircle(const NodeList& open) {
  std::map<CUgraphNode, const GraphNode*> nodes;
  for (const auto& node : open) nodes[node->handle] = node.get();
  std::set<CUgraphNode> seen;
  CUgraphNode at = open.front()->handle;
  while (seen.insert(at).second) {
    const auto& after = nodes[at]->after;
    at = *std::find_if(after.begin(), after.end(), [&](CUgraphNode n) { return nodes.contains(n); });
  }
  return at;
}

// False when the dependencies form a circle.
bool Sort(NodeList nodes, NodeList* sorted, CUgraphNode* bad) {
  std::set<CUgraphNode> open;
  for (const auto& node : nodes) open.insert(node->handle);
  while (!nodes.empty()) {
    const auto ready = std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) {
      return std::none_of(node->after.begin(), node->after.end(), [&](CUgraphNode n) { return open.contains(n); });
    });
    if (ready == nodes.end()) {
      *bad = NodeOfCircle(nodes);
      return false;
    }
    open.erase((*ready)->handle);
    sorted->push_back(*ready);
    nodes.erase(ready);
  }
  return true;
}

// May all nodes be in the graph of a conditional node?
bool FitsInside(const Body& body, CUgraphNode* bad) {
  return std::all_of(body.nodes.begin(), body.nodes.end(), [&](const auto& node) {
    if (node->body != nullptr) return FitsInside(*node->body, bad);
    const bool fits = node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_EMPTY ||
                      node->type == CU_GRAPH_NODE_TYPE_MEMSET || node->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                      node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
    if (!fits) *bad = node->handle;
    return fits;
  });
}

void TakeConditions(Body& from, Body* to) {
  to->conditions.insert(to->conditions.end(), from.conditions.begin(), from.conditions.end());
}

// Makes the bodies of a conditional node, and of them its work.
bool MakeBodies(const ConditionalParams& params, GraphNode& node, Body* out, CUgraphNode* bad) {
  Bodies bodies;
  for (const auto& graph : params.graphs) {
    auto body = std::make_shared<Body>();
    if (!MakeBody(*graph->graph, body.get(), bad) || !FitsInside(*body, bad)) return false;
    TakeConditions(*body, out);
    bodies.push_back(std::move(body));
  }
  out->conditional = true;
  node.work.submit = params.launching(std::move(bodies));
  return true;
}

}  // namespace

bool MakeBody(Graph& graph, Body* out, CUgraphNode* bad) {
  MutexLock lock(graph.mutex);
  NodeList copies;
  out->conditions = graph.conditions;
  for (const auto& node : graph.nodes) {
    auto copy = std::make_shared<GraphNode>(*node);
    const auto* const conditional = std::get_if<std::shared_ptr<const ConditionalParams>>(&node->work.params);
    if (conditional != nullptr && !MakeBodies(**conditional, *copy, out, bad)) return false;
    if (const auto* child = std::get_if<std::shared_ptr<EmbeddedGraph>>(&node->work.params)) {
      auto body = std::make_shared<Body>();
      if (!MakeBody(*(*child)->graph, body.get(), bad)) return false;
      TakeConditions(*body, out);
      copy->body = std::move(body);
      copy->work.params = {};
    }
    copies.push_back(std::move(copy));
  }
  if (!Sort(std::move(copies), &out->nodes, bad)) return false;
  out->lanes = std::make_shared<Lanes>(out->nodes);
  return true;
}

std::shared_ptr<const GraphNode> FindInBody(const Body& body, CUgraphNode handle) {
  for (const auto& node : body.nodes) {
    if (node->handle == handle) return node;
    if (node->body == nullptr) continue;
    if (auto found = FindInBody(*node->body, handle)) return found;
  }
  return nullptr;
}

CUresult ChangeInBody(Body& body, CUgraphNode handle, const std::function<CUresult(GraphNode&)>& change) {
  for (auto& node : body.nodes) {
    if (node->handle == handle) {
      auto changed = std::make_shared<GraphNode>(*node);
      if (const CUresult error = change(*changed)) return error;
      node = std::move(changed);
      return CUDA_SUCCESS;
    }
    if (node->body == nullptr || FindInBody(*node->body, handle) == nullptr) continue;
    auto inside = std::make_shared<Body>(*node->body);
    if (const CUresult error = ChangeInBody(*inside, handle, change)) return error;
    auto changed = std::make_shared<GraphNode>(*node);
    changed->body = std::move(inside);
    node = std::move(changed);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

bool AdoptBody(Body& body, const Body& fresh, int* why, CUgraphNode* failed) {
  const auto fail = [&](int reason, CUgraphNode node) {
    *why = reason;
    *failed = node;
    return false;
  };
  if (fresh.nodes.size() != body.nodes.size()) return fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  NodeList adopted;
  for (size_t n = 0; n < fresh.nodes.size(); ++n) {
    const GraphNode& old = *body.nodes[n];
    auto node = std::make_shared<GraphNode>(*fresh.nodes[n]);
    if (node->type != old.type) return fail(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, node->handle);
    if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
      return fail(CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, node->handle);
    if (node->after.size() != old.after.size()) return fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node->handle);
    if (node->body != nullptr && old.body != nullptr) {
      auto inside = std::make_shared<Body>(*old.body);
      if (!AdoptBody(*inside, *node->body, why, failed)) {
        if (*failed == nullptr) *failed = node->handle;
        return false;
      }
      node->body = std::move(inside);
    }
    node->handle = old.handle;
    node->after = old.after;
    node->enabled = old.enabled;
    adopted.push_back(std::move(node));
  }
  body.nodes = std::move(adopted);
  return true;
}

}  // namespace vgpud::cuda
