// SPDX-License-Identifier: Apache-2.0
// Conditional nodes. The handle is the address of the word that kernels set, so that fills can set it here.
#include <algorithm>
#include <vector>

#include "tests/integration/shim_calls/graphs.h"

namespace {

class ShimConditional : public ShimKernelGraphs {
 protected:
  unsigned long Handle(unsigned initial, unsigned flags = CU_GRAPH_COND_ASSIGN_DEFAULT) {
    unsigned long handle = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphConditionalHandleCreate(&handle, graph_, context_, initial, flags));
    EXPECT_NE(0u, handle);
    return handle;
  }
  CUgraphNodeParams_st Conditional(unsigned long handle, int type, unsigned size) {
    auto params = Of(CU_GRAPH_NODE_TYPE_CONDITIONAL);
    params.conditional = {handle, type, size, nullptr, context_};
    return params;
  }
  // Its graphs.
  std::vector<CUgraph> Add(CUgraph to, unsigned long handle, int type, unsigned size) {
    auto params = Conditional(handle, type, size);
    CUgraphNode node = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphAddNode(&node, to, nullptr, 0, &params));
    int told = -1;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeGetType(node, &told));
    EXPECT_EQ(CU_GRAPH_NODE_TYPE_CONDITIONAL, told);
    return {params.conditional.phGraph_out, params.conditional.phGraph_out + size};
  }
  // A fill in one of them, behind its last node: of 1 byte elements, or of the word at `handle`.
  CUgraphNode FillIn(CUgraph graph, unsigned value, unsigned long handle = 0) {
    const CUDA_MEMSET_NODE_PARAMS_st fill{handle != 0 ? handle : memory_, 0, value, handle != 0 ? 4u : 1u,
                                          handle != 0 ? 1u : 4u,          1};
    const auto nodes = NodesOf(graph);
    CUgraphNode node = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&node, graph, nodes.empty() ? nullptr : &nodes.back(),
                                                 nodes.empty() ? 0 : 1, &fill, context_));
    return node;
  }
  // The values of the fills of bytes in one launch.
  std::vector<uint64_t> Bytes(CUgraphExec executable) {
    EXPECT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
    std::vector<uint64_t> values;
    for (const Sent& sent : Take(VGPU_OP_FILL))
      if (sent.entry.args[2] == 1) values.push_back(sent.entry.args[1]);
    return values;
  }
  std::vector<uint64_t> Once() {
    const CUgraphExec executable = Instantiate(graph_);
    auto values = Bytes(executable);
    EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
    return values;
  }
};

TEST_F(ShimConditional, ANodeThatFitsIsNoneThatFailed) {
  FillIn(Add(graph_, Handle(5), CU_GRAPH_COND_TYPE_IF, 1)[0], 1);
  CUgraphExec executable = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS_st params{};
  EXPECT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithParams(&executable, graph_, &params));
  EXPECT_EQ(nullptr, params.hErrNode_out);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
}

TEST_F(ShimConditional, IfAndElse) {
  const unsigned long yes = Handle(5), no = Handle(0), other = Handle(0);
  FillIn(Add(graph_, yes, CU_GRAPH_COND_TYPE_IF, 1)[0], 1);
  EXPECT_EQ(std::vector<uint64_t>{1}, Once());
  FillIn(Add(graph_, no, CU_GRAPH_COND_TYPE_IF, 1)[0], 2);
  EXPECT_EQ(std::vector<uint64_t>{1}, Once());
  const auto both = Add(graph_, other, CU_GRAPH_COND_TYPE_IF, 2);
  FillIn(both[0], 3);
  FillIn(both[1], 4);
  const auto values = Once();
  EXPECT_EQ(2u, values.size());
  EXPECT_NE(values.end(), std::find(values.begin(), values.end(), 4u));
}

TEST_F(ShimConditional, ALoopGoesOnUntilItsBodySaysSo) {
  const unsigned long outer = Handle(1), inner = Handle(0, 0);
  const CUgraph loop = Add(graph_, outer, CU_GRAPH_COND_TYPE_WHILE, 1)[0];
  FillIn(loop, 7);
  // The copy makes the condition of the loop what is in memory, which the program changes while it runs.
  const CUdeviceptr next = Alloc(8);
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD32_v2(next, 1, 1));
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD32_v2(next + 4, 0, 1));
  CUDA_MEMCPY3D_st copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.WidthInBytes = 4, copy.Height = copy.Depth = 1;
  CUgraphNode set = nullptr, shift = nullptr, before = NodesOf(loop)[0];
  copy.srcDevice = next, copy.dstDevice = outer;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemcpyNode(&set, loop, &before, 1, &copy, context_));
  copy.srcDevice = next + 4, copy.dstDevice = next;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemcpyNode(&shift, loop, &set, 1, &copy, context_));
  // A condition inside of the loop, which the loop sets.
  auto params = Conditional(inner, CU_GRAPH_COND_TYPE_IF, 1);
  CUgraphNode word = FillIn(loop, 1, inner), node = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddNode(&node, loop, &word, 1, &params));
  FillIn(params.conditional.phGraph_out[0], 8);
  EXPECT_EQ((std::vector<uint64_t>{7, 8, 7, 8}), Once());
}

TEST_F(ShimConditional, ASwitchHasAsManyWaysAsItWants) {
  const unsigned long handle = Handle(0, 0);
  const auto ways = Add(graph_, handle, CU_GRAPH_COND_TYPE_SWITCH, 3);
  for (unsigned i = 0; i < 3; ++i) FillIn(ways[i], 10 + i);
  const CUgraphExec executable = Instantiate(graph_);
  for (const unsigned value : {2u, 0u, 1u}) {
    ASSERT_EQ(CUDA_SUCCESS, cuMemsetD32_v2(handle, value, 1));
    EXPECT_EQ(std::vector<uint64_t>{10 + value}, Bytes(executable)) << "kept from before the launch";
  }
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD32_v2(handle, 3, 1));
  EXPECT_EQ(std::vector<uint64_t>{}, Bytes(executable));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
}

TEST_F(ShimConditional, AConditionThatCannotBeReadIsToldLikeAPostedError) {
  FillIn(Add(graph_, Handle(1), CU_GRAPH_COND_TYPE_IF, 1)[0], 1);
  const CUgraphExec executable = Instantiate(graph_);
  Wire::Get().Refuse(VGPU_OP_COPY_OUT, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
  const CUresult waited = cuStreamSynchronize(nullptr);
  Wire::Get().Refuse(VGPU_OP_COPY_OUT, 0);
  CUdeviceptr memory = 0;
  const CUresult next = waited != CUDA_SUCCESS ? waited : cuMemAlloc_v2(&memory, 16);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, next);
  for (const Sent& sent : Take(VGPU_OP_FILL)) EXPECT_NE(1u, sent.entry.args[2]) << "its graph has not run";
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
}

TEST_F(ShimConditional, WhatComesAfterWaits) {
  const unsigned long handle = Handle(1);
  auto params = Conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
  const CUgraphNode first = Fill(1);
  CUgraphNode node = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddNode(&node, graph_, &first, 1, &params));
  Fill(3, {node});
  FillIn(params.conditional.phGraph_out[0], 2);
  const CUgraphExec executable = Instantiate(graph_);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
    ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
    unsigned char byte = 0;
    ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(&byte, memory_, 1));
    EXPECT_EQ(3, byte);
    ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8_v2(memory_, 0, 4));
  }
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
}

TEST_F(ShimConditional, CallsCheckTheirArguments) {
  unsigned long handle = 0;
  const auto wild = reinterpret_cast<CUcontext>(0x1234);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(nullptr, graph_, context_, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&handle, nullptr, context_, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&handle, graph_, wild, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&handle, graph_, context_, 0, 2));
  handle = Handle(0);
  CUgraphNode node = nullptr;
  const auto result = [&](unsigned long h, int type, unsigned size) {
    auto params = Conditional(h, type, size);
    return cuGraphAddNode(&node, graph_, nullptr, 0, &params);
  };
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(0, CU_GRAPH_COND_TYPE_IF, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(memory_, CU_GRAPH_COND_TYPE_IF, 1)) << "any memory is no handle";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(handle, CU_GRAPH_COND_TYPE_IF, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(handle, CU_GRAPH_COND_TYPE_IF, 3));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(handle, CU_GRAPH_COND_TYPE_WHILE, 2));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(handle, CU_GRAPH_COND_TYPE_SWITCH, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(handle, CU_GRAPH_COND_TYPE_SWITCH, 1u << 31));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(handle, 3, 1));
  EXPECT_EQ(CUDA_SUCCESS, result(handle, CU_GRAPH_COND_TYPE_IF, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(handle, CU_GRAPH_COND_TYPE_IF, 1)) << "one node each";
}

TEST_F(ShimConditional, SuchGraphsAreNotCopied) {
  const auto graphs = Add(graph_, Handle(1), CU_GRAPH_COND_TYPE_IF, 1);
  CUgraph clone = nullptr, other = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec second = nullptr;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphClone(&clone, graph_));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&other, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddChildGraphNode(&node, other, nullptr, 0, graph_));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graphs[0])) << "the node's";
  const CUgraphExec executable = Instantiate(graph_);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&second, graph_, 0)) << "one at a time";
  CUgraphExecUpdateResultInfo_st info{};
  EXPECT_EQ(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(executable, graph_, &info));
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, static_cast<int>(info.result));
  CUstream stream = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(executable, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream, &clone));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(clone));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  const CUDA_HOST_NODE_PARAMS_st host{[](void*) {}, nullptr};
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddHostNode(&node, graphs[0], nullptr, 0, &host));
  CUDA_GRAPH_INSTANTIATE_PARAMS_st params{};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&second, graph_, &params));
  EXPECT_EQ(node, params.hErrNode_out) << "no host functions inside";
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(other));
}

}  // namespace
