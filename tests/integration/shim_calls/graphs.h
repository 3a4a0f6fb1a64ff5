// SPDX-License-Identifier: Apache-2.0
// A graph to add fills to, whose launches are seen as they are sent.
#pragma once

#include <vector>

#include "tests/integration/shim_calls/wire.h"

class ShimGraphs : public ShimWire {
 protected:
  void SetUp() override {
    ShimWire::SetUp();
    memory_ = Alloc(256);
    ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&graph_, 0));
  }
  void TearDown() override {
    EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph_));
    ShimWire::TearDown();
  }
  CUgraphNode Empty(std::vector<CUgraphNode> after = {}) {
    CUgraphNode node = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphAddEmptyNode(&node, graph_, after.data(), after.size()));
    return node;
  }
  CUgraphNode Fill(unsigned value, std::vector<CUgraphNode> after = {}) {
    CUgraphNode node = nullptr;
    const CUDA_MEMSET_NODE_PARAMS_st fill{memory_, 0, value, 1, 4, 1};
    EXPECT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&node, graph_, after.data(), after.size(), &fill, context_));
    return node;
  }
  // The values of the fills, in the order in which a launch sends them.
  std::vector<uint64_t> Launch(CUgraph graph) {
    CUgraphExec executable = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph, 0));
    EXPECT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
    EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
    std::vector<uint64_t> values;
    for (const Sent& sent : Take(VGPU_OP_FILL)) values.push_back(sent.entry.args[1]);
    return values;
  }
  CUdeviceptr memory_ = 0;
  CUgraph graph_ = nullptr;
};
