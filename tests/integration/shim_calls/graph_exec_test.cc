// SPDX-License-Identifier: Apache-2.0
// Executable graphs: nodes switched off, nodes of child graphs, flags, and what is told when one can't be made.
#include <vector>

#include "tests/integration/shim_calls/graphs.h"

namespace {

class ShimExec : public ShimKernelGraphs {
 protected:
  static unsigned Enabled(CUgraphExec executable, CUgraphNode node) {
    unsigned enabled = 99;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeGetEnabled(executable, node, &enabled));
    return enabled;
  }
};

TEST_F(ShimExec, ADisabledNodeIsSkippedAndItsOrderStays) {
  const CUgraphNode first = Fill(1), second = Fill(2, {first});
  Fill(3, {second});
  const CUgraphExec executable = Instantiate(graph_);
  EXPECT_EQ(1u, Enabled(executable, second));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphNodeSetEnabled(executable, second, 0));
  EXPECT_EQ(0u, Enabled(executable, second));
  EXPECT_EQ((std::vector<uint64_t>{1, 3}), Fills(executable));
  const auto five = FillOf(5);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphExecMemsetNodeSetParams(executable, second, &five, context_));
  EXPECT_EQ((std::vector<uint64_t>{1, 3}), Fills(executable)) << "other parameters do not enable it";
  ASSERT_EQ(CUDA_SUCCESS, cuGraphNodeSetEnabled(executable, second, 7));
  EXPECT_EQ(1u, Enabled(executable, second));
  EXPECT_EQ((std::vector<uint64_t>{1, 5, 3}), Fills(executable));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphNodeSetEnabled(executable, first, 0));
  CUgraphExecUpdateResultInfo_st info{};
  ASSERT_EQ(CUDA_SUCCESS, cuGraphExecUpdate_v2(executable, graph_, &info));
  EXPECT_EQ((std::vector<uint64_t>{2, 3}), Fills(executable)) << "nor does an update";
  EXPECT_EQ((std::vector<uint64_t>{1, 2, 3}), Launch(graph_)) << "the graph itself knows nothing of it";
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
}

TEST_F(ShimExec, KernelsCopiesAndFillsCanBeDisabled) {
  CUgraphNode copy = nullptr, host = nullptr;
  CUDA_MEMCPY3D_st bytes{};
  bytes.srcMemoryType = bytes.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  bytes.srcDevice = memory_, bytes.dstDevice = memory_ + 64;
  bytes.WidthInBytes = 16, bytes.Height = bytes.Depth = 1;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemcpyNode(&copy, graph_, nullptr, 0, &bytes, context_));
  const CUDA_HOST_NODE_PARAMS_st call{[](void*) {}, nullptr};
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddHostNode(&host, graph_, nullptr, 0, &call));
  const CUgraphNode kernel = AddKernel(), fill = Fill(1), empty = Empty();
  const CUgraphExec executable = Instantiate(graph_);
  for (const CUgraphNode node : {kernel, copy, fill})
    EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeSetEnabled(executable, node, 0));
  TakeAll();
  ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
  for (const Sent& sent : TakeAll()) {
    EXPECT_NE(VGPU_OP_LAUNCH, sent.entry.op);
    EXPECT_NE(VGPU_OP_COPY_DEV, sent.entry.op);
    EXPECT_NE(VGPU_OP_FILL, sent.entry.op);
  }
  unsigned enabled = 0;
  const CUgraphNode later = Fill(2);
  for (const CUgraphNode node : {host, empty, later, CUgraphNode{nullptr}}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(executable, node, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetEnabled(executable, node, &enabled));
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(nullptr, fill, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetEnabled(nullptr, fill, &enabled));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetEnabled(executable, fill, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
}

TEST_F(ShimExec, NodesOfChildGraphsAreReached) {
  CUgraph child = nullptr, inside = nullptr;
  CUgraphNode first = nullptr, second = nullptr, node = nullptr;
  const auto one = FillOf(1), two = FillOf(2), nine = FillOf(9);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&child, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&first, child, nullptr, 0, &one, context_));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&second, child, &first, 1, &two, context_));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddChildGraphNode(&node, graph_, nullptr, 0, child));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphChildGraphNodeGetGraph(node, &inside));
  const auto nodes = NodesOf(inside);
  ASSERT_EQ(2u, nodes.size());
  const CUgraphExec executable = Instantiate(graph_);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphExecMemsetNodeSetParams(executable, nodes[1], &nine, context_));
  EXPECT_EQ((std::vector<uint64_t>{1, 9}), Fills(executable));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphNodeSetEnabled(executable, nodes[0], 0));
  EXPECT_EQ((std::vector<uint64_t>{9}), Fills(executable));
  // All of a child graph at once: of the same form only.
  ASSERT_EQ(CUDA_SUCCESS, cuGraphMemsetNodeSetParams(second, &one));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphExecChildGraphNodeSetParams(executable, node, child));
  EXPECT_EQ((std::vector<uint64_t>{1}), Fills(executable)) << "the first is still off";
  ASSERT_EQ(CUDA_SUCCESS, cuGraphNodeSetEnabled(executable, nodes[0], 1)) << "and still known by its name";
  CUgraphNode third = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&third, child, &second, 1, &two, context_));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecChildGraphNodeSetParams(executable, node, child));
  EXPECT_EQ((std::vector<uint64_t>{1, 1}), Fills(executable));
  // An update reaches them too, and says which node does not fit.
  CUgraph other = nullptr;
  CUgraphNode other_node = nullptr;
  CUgraphExecUpdateResultInfo_st info{};
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&other, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddChildGraphNode(&other_node, other, nullptr, 0, child));
  EXPECT_EQ(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(executable, other, &info));
  EXPECT_EQ(other_node, info.errorNode);
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, static_cast<int>(info.result));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphExecUpdate_v2(executable, graph_, &info));
  EXPECT_EQ((std::vector<uint64_t>{1, 2}), Fills(executable));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(other));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(child));
}

TEST_F(ShimExec, FlagsAreTold) {
  unsigned long flags = 99;
  CUgraphExec executable = Instantiate(graph_);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecGetFlags(executable, &flags));
  EXPECT_EQ(0u, flags);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecGetFlags(executable, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecGetFlags(nullptr, &flags));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph_, 1 | 2 | 8));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecGetFlags(executable, &flags));
  EXPECT_EQ(1u | 8u, flags) << "uploading is no property of it";
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
}

TEST_F(ShimExec, InstantiationSaysWhatIsWrong) {
  const auto wild = reinterpret_cast<CUgraphNode>(0x1234);
  CUgraphExec executable = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS_st params{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, nullptr, wild, 99};
  EXPECT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithParams(&executable, graph_, &params));
  EXPECT_EQ(CUDA_GRAPH_INSTANTIATE_SUCCESS, static_cast<int>(params.result_out));
  EXPECT_EQ(nullptr, params.hErrNode_out);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&executable, graph_, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&executable, nullptr, &params));
  EXPECT_EQ(CUDA_GRAPH_INSTANTIATE_ERROR, static_cast<int>(params.result_out));
  params.hUploadStream = reinterpret_cast<CUstream>(3);
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuGraphInstantiateWithParams_ptsz(&executable, graph_, &params));
  params = {CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH, nullptr, wild, 0};
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithParams(&executable, graph_, &params));
  EXPECT_EQ(CUDA_GRAPH_INSTANTIATE_ERROR, static_cast<int>(params.result_out));
  EXPECT_EQ(nullptr, params.hErrNode_out);
  // Two nodes in a circle, one before and one behind it.
  const CUgraphNode before = Empty(), a = Empty({before}), b = Empty({a}), behind = Empty({b});
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddDependencies(graph_, &b, &a, 1));
  params = {};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&executable, graph_, &params));
  EXPECT_EQ(CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, static_cast<int>(params.result_out));
  EXPECT_TRUE(params.hErrNode_out == a || params.hErrNode_out == b);
  char log[4] = {'x', 'x', 'x', 'x'};
  CUgraphNode bad = behind;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate_v2(&executable, graph_, &bad, log, sizeof log));
  EXPECT_TRUE(bad == a || bad == b);
  EXPECT_STREQ("", log);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphRemoveDependencies(graph_, &b, &a, 1));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphInstantiate(&executable, graph_, &bad, nullptr, 0));
  EXPECT_EQ(nullptr, bad);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
}

}  // namespace
