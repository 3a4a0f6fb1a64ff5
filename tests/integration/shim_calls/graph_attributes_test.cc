// SPDX-License-Identifier: Apache-2.0
// Launch attributes of kernel nodes.
#include <cstring>
#include <initializer_list>
#include <vector>

#include "tests/integration/shim_calls/graphs.h"

namespace {

struct Value {
  alignas(8) int words[16] = {};
  CUlaunchAttributeValue_union* get() { return reinterpret_cast<CUlaunchAttributeValue_union*>(this); }
};

class ShimKernelAttributes : public ShimKernelGraphs {
 protected:
  static CUresult Set(CUgraphNode node, int id, int first) {
    Value value;
    value.words[0] = first;
    return cuGraphKernelNodeSetAttribute(node, id, value.get());
  }
  static int Get(CUgraphNode node, int id) {
    Value value;
    value.words[15] = 99;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphKernelNodeGetAttribute(node, id, value.get())) << id;
    EXPECT_EQ(0, value.words[15]) << "the whole value is told";
    return value.words[0];
  }
  unsigned LaunchFlags(CUgraph graph) {
    const CUgraphExec executable = Instantiate(graph);
    const unsigned flags = Launches(executable).at(0).flags;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
    return flags;
  }
};

TEST_F(ShimKernelAttributes, WhatIsSetIsToldAgain) {
  const CUgraphNode node = AddKernel();
  for (const int id :
       {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, CU_LAUNCH_ATTRIBUTE_PRIORITY, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION}) {
    EXPECT_EQ(0, Get(node, id)) << id;
    EXPECT_EQ(CUDA_SUCCESS, Set(node, id, 1)) << id;
    EXPECT_EQ(1, Get(node, id)) << id;
  }
  EXPECT_EQ(CU_SHAREDMEM_CARVEOUT_DEFAULT, Get(node, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT));
  const auto kernel = Kernel(2);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphKernelNodeSetParams_v2(node, &kernel));
  EXPECT_EQ(1, Get(node, CU_LAUNCH_ATTRIBUTE_PRIORITY)) << "other parameters leave them";
  CUgraph clone = nullptr;
  CUgraphNode copy = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphClone(&clone, graph_));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphNodeFindInClone(&copy, node, clone));
  EXPECT_EQ(1, Get(copy, CU_LAUNCH_ATTRIBUTE_PRIORITY));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(clone));
}

TEST_F(ShimKernelAttributes, ANodeCanBeCooperative) {
  const CUgraphNode node = AddKernel();
  EXPECT_EQ(0u, LaunchFlags(graph_));
  ASSERT_EQ(CUDA_SUCCESS, Set(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1));
  EXPECT_EQ(VGPU_LAUNCH_COOPERATIVE, LaunchFlags(graph_));
  auto kernel = Kernel(1 << 20);
  EXPECT_EQ(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cuGraphKernelNodeSetParams_v2(node, &kernel));
  ASSERT_EQ(CUDA_SUCCESS, Set(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphKernelNodeSetParams_v2(node, &kernel));
  EXPECT_EQ(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, Set(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1));
  EXPECT_EQ(0, Get(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE)) << "refused, not half set";
}

TEST_F(ShimKernelAttributes, AreCopiedFromNodeToNode) {
  const CUgraphNode from = AddKernel(), to = AddKernel(), empty = Empty();
  ASSERT_EQ(CUDA_SUCCESS, Set(from, CU_LAUNCH_ATTRIBUTE_PRIORITY, -3));
  ASSERT_EQ(CUDA_SUCCESS, Set(to, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 1));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphKernelNodeCopyAttributes(to, from));
  EXPECT_EQ(-3, Get(to, CU_LAUNCH_ATTRIBUTE_PRIORITY));
  EXPECT_EQ(0, Get(to, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)) << "all of them";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeCopyAttributes(to, empty));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeCopyAttributes(empty, from));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeCopyAttributes(nullptr, from));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeCopyAttributes(to, nullptr));
}

TEST_F(ShimKernelAttributes, OthersAreRefused) {
  const CUgraphNode node = AddKernel(), empty = Empty();
  Value value;
  for (const int id : std::initializer_list<int>{CU_LAUNCH_ATTRIBUTE_IGNORE, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
                                                 CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                                 CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
                                                 CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, -1, 15, 1000}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Set(node, id, 1)) << id;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeGetAttribute(node, id, value.get())) << id;
  }
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, Set(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 2));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, Set(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 1));
  EXPECT_EQ(CUDA_SUCCESS, Set(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Set(empty, CU_LAUNCH_ATTRIBUTE_PRIORITY, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeGetAttribute(empty, CU_LAUNCH_ATTRIBUTE_PRIORITY, value.get()));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, nullptr));
}

TEST_F(ShimKernelAttributes, CapturedLaunchesHaveTheirs) {
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -1));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchCooperativeKernel(add_, 1, 1, 1, 1, 1, 1, 0, stream, parameters_));
  CUlaunchAttribute_st attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
  attribute.value[0] = 1;
  CUlaunchConfig_st config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernelEx(&config, add_, parameters_, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream, &graph));
  const auto nodes = NodesOf(graph);
  ASSERT_EQ(2u, nodes.size());
  EXPECT_EQ(1, Get(nodes[0], CU_LAUNCH_ATTRIBUTE_COOPERATIVE));
  EXPECT_EQ(-1, Get(nodes[0], CU_LAUNCH_ATTRIBUTE_PRIORITY)) << "the stream's";
  EXPECT_EQ(0, Get(nodes[1], CU_LAUNCH_ATTRIBUTE_COOPERATIVE));
  EXPECT_EQ(1, Get(nodes[1], CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN));
  EXPECT_EQ(VGPU_LAUNCH_COOPERATIVE, LaunchFlags(graph));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

}  // namespace
