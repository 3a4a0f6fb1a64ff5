// SPDX-License-Identifier: Apache-2.0
// Graphs: captured, built node by node, and with other parameters; served by fake_vf (shim_api_test.cc).
#include <atomic>
#include <vector>

#include "tests/integration/shim_fixture.h"

namespace {

// A graph of: copy x to a, b = 1.0f everywhere, c = a + b, copy c to z, count.
struct GraphRig {
  std::vector<float> x = std::vector<float>(1000, 1.5f), z = std::vector<float>(1000);
  CUdeviceptr a = 0, b = 0, c = 0;
  unsigned n = 1000;
  std::atomic<int> count{0};
  CUfunction function = nullptr;
  static void Count(void* data) { ++static_cast<GraphRig*>(data)->count; }
};

TEST_F(ShimApi, CapturesStreamsIntoAGraph) {
  GraphRig rig;
  rig.a = Alloc(4000), rig.b = Alloc(4000), rig.c = Alloc(4000);
  CUmodule module;
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
  ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&rig.function, module, "vectoradd"));
  CUstream stream, other;
  CUevent fork, join;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  int status = -1;
  CUgraph graph = nullptr;
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream, &graph));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamIsCapturing(stream, &status));
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, status);
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(fork, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(other, fork, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(rig.a, rig.x.data(), 4000, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD32Async(rig.b, 0x3f800000, 1000, other));
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(join, other));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(stream, join, 0));
  void* parameters[] = {&rig.a, &rig.b, &rig.c, &rig.n};
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(rig.function, 4, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(rig.z.data(), rig.c, 4000, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(stream, GraphRig::Count, &rig));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream, &graph));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamIsCapturing(other, &status));
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, status);
  size_t nodes = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(5u, nodes);
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(0, rig.count) << "captured, not done";

  CUgraphExec executable = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  for (const float value : {1.5f, 2.5f}) {
    rig.x.assign(1000, value);
    ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, stream));
    ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(std::vector<float>(1000, value + 1), rig.z);
  }
  EXPECT_EQ(2, rig.count);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(executable, stream));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(other));
}

TEST_F(ShimApi, BuildsAGraphNodeByNode) {
  GraphRig rig;
  rig.a = Alloc(4000), rig.b = Alloc(4000), rig.c = Alloc(4000);
  CUmodule module;
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
  ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&rig.function, module, "vectoradd"));
  CUgraph graph, clone;
  CUgraphNode add, in, fill, out, host, empty;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
  void* parameters[] = {&rig.a, &rig.b, &rig.c, &rig.n};
  CUDA_KERNEL_NODE_PARAMS_v2_st kernel{};
  kernel.func = rig.function;
  kernel.gridDimX = 4, kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = 256, kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = parameters;
  // The kernel comes first in the graph and last in its order.
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddKernelNode_v2(&add, graph, nullptr, 0, &kernel));
  CUDA_MEMCPY3D_st copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = rig.x.data();
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstDevice = rig.a;
  copy.WidthInBytes = 400, copy.Height = 5, copy.Depth = 2;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemcpyNode(&in, graph, nullptr, 0, &copy, context_));
  CUDA_MEMSET_NODE_PARAMS_st set{rig.b, 4000, 0x3f800000, 4, 1000, 1};
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &set, context_));
  const CUgraphNode from[] = {in, fill}, to[] = {add, add};
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddDependencies(graph, from, to, 2));
  CUDA_MEMCPY3D_st back{};
  back.srcMemoryType = CU_MEMORYTYPE_DEVICE, back.srcDevice = rig.c;
  back.dstMemoryType = CU_MEMORYTYPE_HOST, back.dstHost = rig.z.data();
  back.WidthInBytes = 4000, back.Height = back.Depth = 1;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemcpyNode(&out, graph, &add, 1, &back, context_));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddEmptyNode(&empty, graph, &out, 1));
  const CUDA_HOST_NODE_PARAMS_st count{GraphRig::Count, &rig};
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddHostNode(&host, graph, &empty, 1, &count));
  size_t roots = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetRootNodes(graph, nullptr, &roots));
  EXPECT_EQ(2u, roots);
  int type = -1;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeGetType(host, &type));
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_HOST, type);

  ASSERT_EQ(CUDA_SUCCESS, cuGraphClone(&clone, graph));
  CUgraphExec executable;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, clone, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(std::vector<float>(1000, 2.5f), rig.z);
  EXPECT_EQ(1, rig.count);
  const CUgraphNode circle_from[] = {host}, circle_to[] = {in};
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddDependencies(graph, circle_from, circle_to, 1));
  CUgraphExec never;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&never, graph, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(clone));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
}

constexpr size_t kCount = 16;

class ShimGraph : public ShimApi {
 protected:
  void SetUp() override {
    ShimApi::SetUp();
    to_ = Alloc(kCount * sizeof(uint32_t));
    ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&graph_, 0));
  }
  CUDA_MEMSET_NODE_PARAMS_st Fill(uint32_t value) const {
    return {to_, kCount * sizeof(uint32_t), value, sizeof(uint32_t), kCount, 1};
  }
  CUgraphNode AddFill(CUgraph graph, uint32_t value) {
    CUgraphNode node = nullptr;
    const auto fill = Fill(value);
    EXPECT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&node, graph, nullptr, 0, &fill, context_));
    return node;
  }
  CUgraphExec Instantiate() {
    CUgraphExec executable = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph_, 0));
    return executable;
  }
  uint32_t AfterLaunch(CUgraphExec executable) {
    EXPECT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
    std::vector<uint32_t> words(kCount);
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(words.data(), to_, kCount * sizeof(uint32_t)));
    return words[kCount - 1];
  }
  CUdeviceptr to_ = 0;
  CUgraph graph_ = nullptr;
};

TEST_F(ShimGraph, AnExecutableKeepsItsParametersUntilItGetsOthersItself) {
  const CUgraphNode node = AddFill(graph_, 1);
  const CUgraphExec executable = Instantiate();
  const auto two = Fill(2), three = Fill(3);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphMemsetNodeSetParams(node, &two));
  EXPECT_EQ(1u, AfterLaunch(executable));
  EXPECT_EQ(2u, AfterLaunch(Instantiate()));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphExecMemsetNodeSetParams(executable, node, &three, context_));
  EXPECT_EQ(3u, AfterLaunch(executable));
  EXPECT_EQ(2u, AfterLaunch(Instantiate()));
}

TEST_F(ShimGraph, ParametersOfAnotherTypeOrNodeAreRefused) {
  const CUgraphNode node = AddFill(graph_, 1);
  const CUgraphExec executable = Instantiate();
  const CUgraphNode later = AddFill(graph_, 2);
  const auto fill = Fill(3);
  const CUDA_HOST_NODE_PARAMS_st host{[](void*) {}, nullptr};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphHostNodeSetParams(node, &host));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecHostNodeSetParams(executable, node, &host));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams(executable, later, &fill, context_));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams(executable, node, nullptr, context_));
  EXPECT_EQ(1u, AfterLaunch(executable));
}

TEST_F(ShimGraph, AnUpdateTakesTheParametersOfAGraphOfTheSameForm) {
  const CUgraphNode node = AddFill(graph_, 1);
  const CUgraphExec executable = Instantiate();
  CUgraph other;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&other, 0));
  AddFill(other, 7);
  CUgraphExecUpdateResultInfo_st info{};
  ASSERT_EQ(CUDA_SUCCESS, cuGraphExecUpdate_v2(executable, other, &info));
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_SUCCESS, static_cast<int>(info.result));
  EXPECT_EQ(7u, AfterLaunch(executable));
  const auto fill = Fill(8);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecMemsetNodeSetParams(executable, node, &fill, context_)) << "still its node";
  EXPECT_EQ(8u, AfterLaunch(executable));

  AddFill(other, 9);
  EXPECT_EQ(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(executable, other, &info));
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, static_cast<int>(info.result));
  CUgraph third;
  CUgraphNode host;
  const CUDA_HOST_NODE_PARAMS_st call{[](void*) {}, nullptr};
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&third, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddHostNode(&host, third, nullptr, 0, &call));
  EXPECT_EQ(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(executable, third, &info));
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, static_cast<int>(info.result));
  EXPECT_EQ(host, info.errorNode);
  EXPECT_EQ(8u, AfterLaunch(executable)) << "nothing changed";
}

TEST_F(ShimGraph, AChildGraphRunsInItsPlace) {
  CUgraph child;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&child, 0));
  AddFill(child, 5);
  CUgraphNode first = AddFill(graph_, 4), node = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddChildGraphNode(&node, graph_, &first, 1, child));
  EXPECT_EQ(5u, AfterLaunch(Instantiate()));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddChildGraphNode(&node, graph_, nullptr, 0, nullptr));
}

TEST_F(ShimGraph, CopiesBetweenPeersAreCopiesOnTheOneDevice) {
  const CUdeviceptr from = Alloc(64);
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD32_v2(from, 42, 16));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyPeer(to_, context_, from, context_, 64));
  uint32_t word = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(&word, to_ + 60, 4));
  EXPECT_EQ(42u, word);
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer(to_, context_, from, nullptr, 64));
}

}  // namespace
