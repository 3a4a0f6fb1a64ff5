// SPDX-License-Identifier: Apache-2.0
// Nodes that are described by CUgraphNodeParams: one call for all types.
#include <atomic>
#include <vector>

#include "tests/integration/shim_calls/graphs.h"

namespace {

class ShimNodes : public ShimKernelGraphs {
 protected:
  CUresult TryAdd(CUgraphNodeParams_st& params, CUgraphNode* out) {
    return cuGraphAddNode(out, graph_, nullptr, 0, &params);
  }
  CUgraphNode Add(CUgraphNodeParams_st& params, std::vector<CUgraphNode> after = {}) {
    CUgraphNode node = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphAddNode_v2(&node, graph_, after.data(), nullptr, after.size(), &params));
    int type = -1;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeGetType(node, &type));
    EXPECT_EQ(params.type, type);
    return node;
  }
  CUgraphNodeParams_st FillParams(unsigned value) {
    auto params = Of(CU_GRAPH_NODE_TYPE_MEMSET);
    params.memset = {memory_, 0, value, 1, 4, 1, context_};
    return params;
  }
  CUgraphNodeParams_st AllocParams(size_t bytes) {
    auto params = Of(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    params.alloc.bytesize = bytes;
    return params;
  }
};

TEST_F(ShimNodes, WorkOfEveryTypeIsDoneInOrder) {
  static std::atomic<int> calls;
  calls = 0;
  auto kernel = Of(CU_GRAPH_NODE_TYPE_KERNEL);
  kernel.kernel.func = add_;
  kernel.kernel.gridDimX = 3, kernel.kernel.gridDimY = kernel.kernel.gridDimZ = 1;
  kernel.kernel.blockDimX = kernel.kernel.blockDimY = kernel.kernel.blockDimZ = 1;
  kernel.kernel.kernelParams = parameters_;
  const CUgraphNode launch = Add(kernel);
  auto copy = Of(CU_GRAPH_NODE_TYPE_MEMCPY);
  copy.memcpy.copyCtx = context_;
  copy.memcpy.copyParams.srcMemoryType = copy.memcpy.copyParams.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.memcpy.copyParams.srcDevice = memory_, copy.memcpy.copyParams.dstDevice = memory_ + 64;
  copy.memcpy.copyParams.WidthInBytes = 16, copy.memcpy.copyParams.Height = copy.memcpy.copyParams.Depth = 1;
  const CUgraphNode second = Add(copy, {launch});
  auto fill = FillParams(5);
  const CUgraphNode third = Add(fill, {second});
  auto host = Of(CU_GRAPH_NODE_TYPE_HOST);
  host.host.fn = [](void*) { ++calls; };
  const CUgraphNode fourth = Add(host, {third});
  CUgraph child = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&child, 0));
  CUgraphNode inside = nullptr;
  const auto six = FillOf(6);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&inside, child, nullptr, 0, &six, context_));
  auto graph = Of(CU_GRAPH_NODE_TYPE_GRAPH);
  graph.graph.graph = child;
  const CUgraphNode fifth = Add(graph, {fourth});
  auto empty = Of(CU_GRAPH_NODE_TYPE_EMPTY);
  const CUgraphNode sixth = Add(empty, {fifth});
  CUevent event = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, 0));
  auto record = Of(CU_GRAPH_NODE_TYPE_EVENT_RECORD), wait = Of(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  record.eventRecord.event = wait.eventWait.event = event;
  const CUgraphNode seventh = Add(wait, {Add(record, {sixth})});
  auto alloc = AllocParams(64);
  const CUgraphNode eighth = Add(alloc, {seventh});
  EXPECT_NE(0u, alloc.alloc.dptr);
  auto free = Of(CU_GRAPH_NODE_TYPE_MEM_FREE);
  free.free.dptr = alloc.alloc.dptr;
  Add(free, {eighth});

  TakeAll();
  const CUgraphExec executable = Instantiate(graph_);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
  std::vector<uint64_t> order;
  for (const Sent& sent : TakeAll())
    if (sent.entry.op == VGPU_OP_LAUNCH || sent.entry.op == VGPU_OP_COPY_DEV || sent.entry.op == VGPU_OP_FILL)
      order.push_back(sent.entry.op == VGPU_OP_FILL ? sent.entry.args[1] : 1000 + sent.entry.op);
  EXPECT_EQ((std::vector<uint64_t>{1000 + VGPU_OP_LAUNCH, 1000 + VGPU_OP_COPY_DEV, 5, 6}), order);
  EXPECT_EQ(1, calls);
  EXPECT_EQ(CUDA_SUCCESS, cuEventQuery(event));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(child));
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
}

TEST_F(ShimNodes, ParametersAreSetInGraphsAndInExecutables) {
  auto fill = FillParams(1);
  const CUgraphNode node = Add(fill);
  const CUgraphExec executable = Instantiate(graph_);
  fill = FillParams(2);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeSetParams(node, &fill));
  EXPECT_EQ(std::vector<uint64_t>{1}, Fills(executable));
  EXPECT_EQ(std::vector<uint64_t>{2}, Launch(graph_));
  fill = FillParams(3);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecNodeSetParams(executable, node, &fill));
  EXPECT_EQ(std::vector<uint64_t>{3}, Fills(executable));
  EXPECT_EQ(std::vector<uint64_t>{2}, Launch(graph_));

  auto host = Of(CU_GRAPH_NODE_TYPE_HOST);
  host.host.fn = [](void*) {};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetParams(node, &host)) << "another type";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecNodeSetParams(executable, node, &host));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetParams(node, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecNodeSetParams(executable, node, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetParams(nullptr, &fill));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecNodeSetParams(executable, nullptr, &fill));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecNodeSetParams(nullptr, node, &fill));
  auto alloc = AllocParams(64);
  const CUgraphNode memory = Add(alloc);
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuGraphNodeSetParams(memory, &alloc));
  auto free = Of(CU_GRAPH_NODE_TYPE_MEM_FREE);
  free.free.dptr = alloc.alloc.dptr;
  const CUgraphNode end = Add(free, {memory});
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuGraphNodeSetParams(end, &free));
  auto empty = Of(CU_GRAPH_NODE_TYPE_EMPTY);
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuGraphNodeSetParams(Add(empty), &empty)) << "it has none";
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
}

TEST_F(ShimNodes, TypesThatAreNotThereAreRefused) {
  CUgraphNode node = nullptr;
  for (const int type : {-1, 14, 1 << 30}) {
    auto params = Of(type);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, TryAdd(params, &node)) << type;
  }
  for (const int type :
       {CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP}) {
    auto params = Of(type);
    EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, TryAdd(params, &node)) << type;
  }
  EXPECT_TRUE(NodesOf(graph_).empty());
}

TEST_F(ShimNodes, BytesThatMeanNothingAreZero) {
  CUgraphNode node = nullptr;
  const auto result = [&](void (*change)(CUgraphNodeParams_st&)) {
    auto params = FillParams(1);
    change(params);
    return TryAdd(params, &node);
  };
  EXPECT_EQ(CUDA_SUCCESS, result([](CUgraphNodeParams_st&) {}));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result([](CUgraphNodeParams_st& p) { p.reserved0[2] = 1; }));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result([](CUgraphNodeParams_st& p) { p.reserved1[6] = 1; }));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result([](CUgraphNodeParams_st& p) { p.reserved1[28] = 1; }));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result([](CUgraphNodeParams_st& p) { p.reserved2 = 1; }));
  const auto wild = [](CUgraphNodeParams_st& p) { p.memset.ctx = reinterpret_cast<CUcontext>(0x1234); };
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, result(wild));
}

TEST_F(ShimNodes, NodesComeAfterNodesOfTheirOwnGraph) {
  CUgraph other = nullptr;
  CUgraphNode foreign = nullptr, node = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&other, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddEmptyNode(&foreign, other, nullptr, 0));
  const CUgraphNode mine = Empty();
  auto fill = FillParams(1);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&node, graph_, &foreign, 1, &fill));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph_, &mine, &foreign, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph_, &foreign, &mine, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&node, graph_, nullptr, 1, &fill));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(nullptr, graph_, nullptr, 0, &fill));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&node, nullptr, nullptr, 0, &fill));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&node, graph_, nullptr, 0, nullptr));
  EXPECT_EQ(1u, NodesOf(graph_).size());
  CUgraphEdgeData_st edge{};
  EXPECT_EQ(CUDA_SUCCESS, cuGraphAddNode_v2(&node, graph_, &mine, &edge, 1, &fill));
  const CUgraphNode third = Empty();
  EXPECT_EQ(CUDA_SUCCESS, cuGraphAddDependencies_v2(graph_, &node, &third, &edge, 1));
  edge.from_port = 1;
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddNode_v2(&node, graph_, &mine, &edge, 1, &fill));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddDependencies_v2(graph_, &node, &third, &edge, 1));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(other));
}

TEST_F(ShimNodes, AnAllocationNodeThatIsNotAddedAllocatesNothing) {
  CUgraphNode node = nullptr;
  auto alloc = AllocParams(64);
  Take(VGPU_OP_MEM_ALLOC);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&node, nullptr, nullptr, 0, &alloc));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(nullptr, graph_, nullptr, 0, &alloc));
  alloc.alloc.accessDescCount = 1;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, TryAdd(alloc, &node)) << "nothing described";
  CUmemAccessDesc_st access[2] = {};
  alloc.alloc.accessDescs = access;
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, TryAdd(alloc, &node)) << "no device";
  alloc.alloc.accessDescCount = size_t{1} << 60;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, TryAdd(alloc, &node)) << "more than there are devices";
  EXPECT_TRUE(Take(VGPU_OP_MEM_ALLOC).empty());
}

TEST_F(ShimNodes, AGraphCanBeGivenAway) {
  CUgraph child = nullptr, told = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&child, 0));
  CUgraphNode inside = nullptr, node = nullptr;
  const auto four = FillOf(4);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&inside, child, nullptr, 0, &four, context_));
  auto params = Of(CU_GRAPH_NODE_TYPE_GRAPH);
  params.graph = {child, 2};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, TryAdd(params, &node));
  params.graph = {graph_, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, TryAdd(params, &node)) << "into itself";
  params.graph = {child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE};
  node = Add(params);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphChildGraphNodeGetGraph(node, &told));
  EXPECT_EQ(child, told);
  EXPECT_EQ(std::vector<uint64_t>{4}, Launch(graph_));
  CUgraphExec executable = nullptr;
  CUgraphExecUpdateResultInfo_st info{};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(child));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&executable, child, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, TryAdd(params, &node)) << "a second time";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddChildGraphNode(&node, graph_, nullptr, 0, child));
  executable = Instantiate(graph_);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecUpdate_v2(executable, child, &info));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroyNode(node));
  size_t count = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(child, nullptr, &count)) << "gone with its node";
}

TEST_F(ShimNodes, OldCallsTakeTheShorterKernel) {
  CUDA_KERNEL_NODE_PARAMS_st kernel{};
  kernel.func = add_;
  kernel.gridDimX = 2, kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = parameters_;
  CUgraphNode node = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddKernelNode(&node, graph_, nullptr, 0, &kernel));
  const CUgraphExec executable = Instantiate(graph_);
  const auto blocks = [&](CUgraphExec each) { return Launches(each).at(0).grid[0]; };
  EXPECT_EQ(2u, blocks(executable));
  kernel.gridDimX = 3;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphKernelNodeSetParams(node, &kernel));
  const CUgraphExec second = Instantiate(graph_);
  EXPECT_EQ(3u, blocks(second));
  EXPECT_EQ(2u, blocks(executable));
  kernel.gridDimX = 4;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecKernelNodeSetParams(executable, node, &kernel));
  EXPECT_EQ(4u, blocks(executable));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&node, graph_, nullptr, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetParams(node, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(executable, node, nullptr));
  for (const CUgraphExec each : {executable, second}) EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(each));
}

}  // namespace
