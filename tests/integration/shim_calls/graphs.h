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

// The same with the kernel `vectoradd` of the fake, which takes three addresses and a count.
class ShimKernelGraphs : public ShimGraphs {
 protected:
  void SetUp() override {
    ShimGraphs::SetUp();
    ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module_, kPtx));
    ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&add_, module_, "vectoradd"));
    address_ = memory_;
  }
  CUDA_KERNEL_NODE_PARAMS_v2_st Kernel(unsigned blocks = 1) {
    CUDA_KERNEL_NODE_PARAMS_v2_st kernel{};
    kernel.func = add_;
    kernel.gridDimX = blocks, kernel.gridDimY = kernel.gridDimZ = 1;
    kernel.blockDimX = 32, kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = parameters_;
    return kernel;
  }
  CUgraphNode AddKernel(unsigned blocks = 1) {
    CUgraphNode node = nullptr;
    const auto kernel = Kernel(blocks);
    EXPECT_EQ(CUDA_SUCCESS, cuGraphAddKernelNode_v2(&node, graph_, nullptr, 0, &kernel));
    return node;
  }
  static CUgraphNodeParams_st Of(int type) {
    CUgraphNodeParams_st params{};
    params.type = type;
    return params;
  }
  CUgraphExec Instantiate(CUgraph graph) {
    CUgraphExec executable = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph, 0));
    return executable;
  }
  // The values of the fills of one launch.
  std::vector<uint64_t> Fills(CUgraphExec executable) {
    EXPECT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
    std::vector<uint64_t> values;
    for (const Sent& sent : Take(VGPU_OP_FILL)) values.push_back(sent.entry.args[1]);
    return values;
  }
  // The launches of one launch.
  std::vector<vgpu_launch> Launches(CUgraphExec executable) {
    EXPECT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
    std::vector<vgpu_launch> launches;
    for (const Sent& sent : Take(VGPU_OP_LAUNCH)) launches.push_back(sent.As<vgpu_launch>());
    return launches;
  }
  CUDA_MEMSET_NODE_PARAMS_st FillOf(unsigned value) const { return {memory_, 0, value, 1, 4, 1}; }
  static std::vector<CUgraphNode> NodesOf(CUgraph graph) {
    size_t count = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph, nullptr, &count));
    std::vector<CUgraphNode> nodes(count);
    EXPECT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph, nodes.data(), &count));
    return nodes;
  }

  CUmodule module_ = nullptr;
  CUfunction add_ = nullptr;
  CUdeviceptr address_ = 0;
  unsigned count_ = 7;
  void* parameters_[4] = {&address_, &address_, &address_, &count_};
};
