// SPDX-License-Identifier: Apache-2.0
// Conditional nodes: which of their graphs is launched, and how often, says a word of device memory. Its address is the
// handle that kernels pass to cudaGraphSetConditional.
#pragma once

#include "guest-driver-shim/libcuda/graph/body.h"

namespace vgpud::cuda {

struct Condition {
  Condition() = default;
  Condition(const Condition&) = delete;
  ~Condition();

  Device* device = nullptr;
  uint64_t epoch = 0;
  CUdeviceptr address = 0;
  unsigned initial = 0;
  bool assign = false;             // `initial`, when a launch begins
  std::atomic<bool> taken{false};  // by a node
};
// nullptr: no handle.
std::shared_ptr<Condition> FindCondition(unsigned long handle);

using Bodies = std::vector<std::shared_ptr<const Body>>;

struct ConditionalParams {
  std::shared_ptr<Condition> condition;
  std::vector<std::shared_ptr<EmbeddedGraph>> graphs;
  std::vector<CUgraph> handles;  // which the program is given a pointer to
  // What the node does in an executable that has made these of the graphs.
  std::function<GraphWork(Bodies bodies)> launching;
};

// Sets those that are to begin with their value.
CUresult AssignConditions(const Current& current, uint32_t stream, const Body& body);

}  // namespace vgpud::cuda
