// SPDX-License-Identifier: Apache-2.0
// Graphs of libcuda.so.1, call by call.
#include <thread>
#include <vector>

#include "tests/integration/shim_calls/graphs.h"

namespace {

const auto kWildGraph = reinterpret_cast<CUgraph>(0x1234);
const auto kWildNode = reinterpret_cast<CUgraphNode>(0x1234);
const auto kWildExec = reinterpret_cast<CUgraphExec>(0x1234);

TEST_F(ShimGraphs, NodesRunAfterWhatTheyDependOn) {
  const CUgraphNode first = Fill(1), second = Fill(2), third = Fill(3);
  EXPECT_EQ((std::vector<uint64_t>{1, 2, 3}), Launch(graph_));
  const CUgraphNode from[] = {third, second}, to[] = {second, first};
  EXPECT_EQ(CUDA_SUCCESS, cuGraphAddDependencies_v2(graph_, from, to, nullptr, 2));
  EXPECT_EQ((std::vector<uint64_t>{3, 2, 1}), Launch(graph_));
  CUgraph clone = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphClone(&clone, graph_));
  EXPECT_EQ((std::vector<uint64_t>{3, 2, 1}), Launch(clone));
  size_t roots = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetRootNodes(clone, nullptr, &roots));
  EXPECT_EQ(1u, roots);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(clone));
  CUgraphEdgeData_st* const edges = reinterpret_cast<CUgraphEdgeData_st*>(&roots);
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddDependencies_v2(graph_, from, to, edges, 2));
}

TEST_F(ShimGraphs, ListsFillUpWithNull) {
  const CUgraphNode a = Empty(), b = Empty({a}), c = Empty();
  CUgraphNode out[4];
  size_t count = 4;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph_, out, &count));
  EXPECT_EQ(3u, count);
  EXPECT_EQ((std::vector<CUgraphNode>{a, b, c, nullptr}), std::vector<CUgraphNode>(out, out + 4));
  count = 2;
  out[2] = kWildNode;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph_, out, &count));
  EXPECT_EQ(2u, count);
  EXPECT_EQ(kWildNode, out[2]) << "untouched";
  count = 4;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetRootNodes(graph_, out, &count));
  EXPECT_EQ(2u, count);
  EXPECT_EQ(a, out[0]);
  EXPECT_EQ(c, out[1]);
  EXPECT_EQ(nullptr, out[2]);
  int type = -1;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeGetType(a, &type));
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_EMPTY, type);
}

TEST_F(ShimGraphs, CallsCheckTheirArguments) {
  const CUgraphNode node = Empty();
  CUgraph graph = nullptr;
  CUgraphNode out = nullptr;
  CUgraphExec executable = nullptr;
  size_t count = 0;
  int type = 0;
  const CUDA_MEMSET_NODE_PARAMS_st fill{memory_, 0, 1, 1, 4, 1};
  const CUDA_HOST_NODE_PARAMS_st none{nullptr, nullptr};
  const CUresult results[] = {cuGraphCreate(nullptr, 0),
                              cuGraphCreate(&graph, 1),
                              cuGraphDestroy(kWildGraph),
                              cuGraphClone(nullptr, graph_),
                              cuGraphClone(&graph, kWildGraph),
                              cuGraphGetNodes(kWildGraph, nullptr, &count),
                              cuGraphGetNodes(graph_, nullptr, nullptr),
                              cuGraphNodeGetType(kWildNode, &type),
                              cuGraphNodeGetType(node, nullptr),
                              cuGraphAddDependencies(kWildGraph, &node, &node, 1),
                              cuGraphAddDependencies(graph_, nullptr, &node, 1),
                              cuGraphAddDependencies(graph_, &node, nullptr, 1),
                              cuGraphAddDependencies(graph_, &kWildNode, &node, 1),
                              cuGraphAddDependencies(graph_, &node, &kWildNode, 1),
                              cuGraphAddEmptyNode(nullptr, graph_, nullptr, 0),
                              cuGraphAddEmptyNode(&out, kWildGraph, nullptr, 0),
                              cuGraphAddEmptyNode(&out, graph_, nullptr, 1),
                              cuGraphAddEmptyNode(&out, graph_, &kWildNode, 1),
                              cuGraphAddMemsetNode(&out, graph_, nullptr, 0, nullptr, context_),
                              cuGraphAddHostNode(&out, graph_, nullptr, 0, &none),
                              cuGraphMemsetNodeSetParams(kWildNode, &fill),
                              cuGraphMemsetNodeSetParams(node, &fill),
                              cuGraphInstantiateWithFlags(nullptr, graph_, 0),
                              cuGraphInstantiateWithFlags(&executable, kWildGraph, 0),
                              cuGraphExecDestroy(kWildExec),
                              cuGraphLaunch(kWildExec, nullptr),
                              cuGraphUpload(kWildExec, nullptr),
                              cuGraphExecMemsetNodeSetParams(kWildExec, node, &fill, context_)};
  for (size_t i = 0; i < std::size(results); ++i) EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, results[i]) << i;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphAddDependencies(graph_, nullptr, nullptr, 0));
  // Upload, node priorities and freeing on launch; not launching from the device, nor what may come.
  for (unsigned long long flag = 1; flag <= 16; flag <<= 1) {
    const bool known = flag == 1 || flag == 2 || flag == 8;
    EXPECT_EQ(known ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithFlags(&executable, graph_, flag))
        << flag;
  }
  EXPECT_EQ(CUDA_SUCCESS, cuGraphUpload(executable, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuGraphLaunch(executable, reinterpret_cast<CUstream>(3)));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  CUgraph mine = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&mine, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddEmptyNode(&out, mine, nullptr, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(mine));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetType(out, &type)) << "its nodes went with it";
}

TEST_F(ShimGraphs, UpdatesNeedTheSameForm) {
  const CUgraphNode a = Fill(1);
  Fill(2, {a});
  CUgraphExec executable = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph_, 0));
  CUgraph loose = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&loose, 0));
  const CUDA_MEMSET_NODE_PARAMS_st fill{memory_, 0, 9, 1, 4, 1};
  CUgraphNode nodes[2];
  for (CUgraphNode& node : nodes)
    ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&node, loose, nullptr, 0, &fill, context_));
  CUgraphExecUpdateResultInfo_st info{};
  EXPECT_EQ(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(executable, loose, &info));
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, info.result);
  EXPECT_EQ(nodes[1], info.errorNode) << "it comes after none";
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddDependencies(loose, &nodes[0], &nodes[1], 1));
  CUgraphNode failed = kWildNode;
  int result = -1;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecUpdate(executable, loose, &failed, &result));
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_SUCCESS, result);
  EXPECT_EQ(nullptr, failed);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecUpdate(executable, loose, nullptr, &result));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecUpdate(executable, loose, &failed, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecUpdate_v2(executable, loose, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecUpdate_v2(kWildExec, loose, &info));
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_ERROR, info.result);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphExecUpdate_v2(executable, kWildGraph, &info));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(loose));
}

TEST_F(ShimGraphs, FillNodesHaveRows) {
  CUgraphNode node = nullptr;
  const auto run = [&](CUDA_MEMSET_NODE_PARAMS_st fill) {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
    EXPECT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&node, graph, nullptr, 0, &fill, context_));
    EXPECT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph, 0));
    const CUresult result = cuGraphLaunch(executable, nullptr);
    EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
    EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
    return result;
  };
  EXPECT_EQ(CUDA_SUCCESS, run({memory_, 12, 0x1234, 2, 5, 3}));
  EXPECT_EQ((Rows{{memory_, 0x1234, 2, 5}, {memory_ + 12, 0x1234, 2, 5}, {memory_ + 24, 0x1234, 2, 5}}),
            ArgsOf(VGPU_OP_FILL, 4));
  EXPECT_EQ(CUDA_SUCCESS, run({memory_, 10, 1, 2, 5, 2})) << "rows that adjoin";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, run({memory_, 9, 1, 2, 5, 2}));
  EXPECT_EQ(CUDA_SUCCESS, run({memory_, 0, 1, 2, 5, 1}));
  for (const unsigned element : {0u, 1u, 2u, 3u, 4u, 5u, 8u}) {
    const bool good = element == 1 || element == 2 || element == 4;
    EXPECT_EQ(good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, run({memory_, 64, 1, element, 1, 2})) << element;
  }
}

class ShimCapture : public ShimGraphs {
 protected:
  void SetUp() override {
    ShimGraphs::SetUp();
    ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  void TearDown() override {
    EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream_));
    ShimGraphs::TearDown();
  }
  CUstream stream_ = nullptr;
};

TEST_F(ShimCapture, OnlyOneCaptureAStream) {
  CUgraph graph = nullptr;
  int status = -1;
  unsigned long first = 0, second = 0, none = 99;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCapture_v2(stream_, -1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCapture_v2(stream_, 3));
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(nullptr, 0)) << "the legacy stream";
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCaptureInfo(stream_, &status, &none));
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, status);
  EXPECT_EQ(0u, none);
  for (const int mode : {0, 1, 2}) {
    ASSERT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream_, mode));
    EXPECT_EQ(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture_v2(stream_, mode));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCaptureInfo(stream_, &status, mode == 0 ? &first : &second));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, status);
    EXPECT_EQ(CUDA_SUCCESS, cuStreamIsCapturing(nullptr, &status));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, status);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamEndCapture(stream_, nullptr));
    ASSERT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream_, &graph));
    EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  }
  EXPECT_NE(0u, first);
  EXPECT_EQ(first + 2, second);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamIsCapturing(stream_, nullptr));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream_, &graph));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamBeginCapture(stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream_, &graph));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
}

TEST_F(ShimCapture, StreamsJoinByEvents) {
  CUstream other;
  CUevent event;
  CUgraph graph = nullptr;
  int status = -1;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream_, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(other, event, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamIsCapturing(other, &status));
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, status);
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(other, &graph)) << "it did not begin there";
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(memory_, 1, 4, other));
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(memory_, 2, 4, stream_));
  EXPECT_EQ(0u, Wire::Get().Take(VGPU_OP_FILL).size());
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, other));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(stream_, event, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream_, &graph));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamIsCapturing(other, &status));
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, status);
  EXPECT_EQ((std::vector<uint64_t>{1, 2}), Launch(graph));
  size_t count = 0, roots = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph, nullptr, &count));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetRootNodes(graph, nullptr, &roots));
  EXPECT_EQ(2u, count);
  EXPECT_EQ(2u, roots) << "neither comes after the other";
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  // Recorded again outside of a capture, the event has nothing to do with it any more.
  ASSERT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream_, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, other));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(other, event, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamIsCapturing(other, &status));
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, status);
  ASSERT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream_, &graph));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(other));
}

TEST_F(ShimCapture, CapturedWorkHasItsType) {
  CUmodule module;
  CUfunction narrow;
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
  ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&narrow, module, "narrow"));
  unsigned char host[16] = {}, to[16] = {};
  void* pinned = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&pinned, 16, 0));
  CUgraph graph = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream_, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(narrow, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(memory_, 1, 4, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(memory_, host, 16, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(host, memory_, 16, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoDAsync_v2(memory_ + 16, memory_, 16, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(memory_, pinned, 16, stream_));
  ASSERT_EQ(CUDA_SUCCESS,
            cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(host), 16, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(
                              stream_, [](void*) {}, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream_, &graph));
  CUgraphNode nodes[8];
  size_t count = 8;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph, nodes, &count));
  ASSERT_EQ(8u, count);
  const int expected[] = {0, 2, 1, 1, 1, 1, 1, 3};
  for (int i = 0; i < 8; ++i) {
    int type = -1;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeGetType(nodes[i], &type));
    EXPECT_EQ(expected[i], type) << i;
  }
  EXPECT_EQ((std::vector<uint64_t>{1}), Launch(graph));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(pinned));
}

TEST_F(ShimCapture, CaptureModesAreOfThreads) {
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT_EQ(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(CU_STREAM_CAPTURE_MODE_GLOBAL, mode) << "the default";
  std::thread([] {
    int other = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    EXPECT_EQ(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&other));
    EXPECT_EQ(CU_STREAM_CAPTURE_MODE_GLOBAL, other);
  }).join();
  EXPECT_EQ(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(CU_STREAM_CAPTURE_MODE_RELAXED, mode);
  for (int bad : {-1, 3}) EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(&bad));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(nullptr));
}

class ShimGraphMemory : public ShimGraphs {
 protected:
  static uint64_t Told(int attribute) {
    uint64_t value = ~uint64_t{0};
    EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetGraphMemAttribute(0, attribute, &value)) << attribute;
    return value;
  }
  static CUDA_MEM_ALLOC_NODE_PARAMS_v1_st Wanted(size_t bytes) {
    CUDA_MEM_ALLOC_NODE_PARAMS_v1_st wanted{};
    wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    wanted.bytesize = bytes;
    return wanted;
  }
};

TEST_F(ShimGraphMemory, WhatGraphsUseIsCounted) {
  uint64_t any = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &any));
  const uint64_t before = Told(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
  EXPECT_EQ(before, Told(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)) << "set back";
  CUgraph graph = nullptr;
  CUgraphNode a, b;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
  auto first = Wanted(100), second = Wanted(50);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemAllocNode(&a, graph, nullptr, 0, &first));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemFreeNode(&b, graph, &a, 1, first.dptr));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemAllocNode(&a, graph, nullptr, 0, &second));
  int type = -1;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeGetType(a, &type));
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_MEM_ALLOC, type);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeGetType(b, &type));
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_MEM_FREE, type);
  for (const int attribute : {0, 1, 2, 3}) EXPECT_EQ(before + 150, Told(attribute));
  Take(VGPU_OP_MEM_FREE);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_EQ((Rows{{first.dptr}}), ArgsOf(VGPU_OP_MEM_FREE, 1)) << "the other one is the program's";
  EXPECT_EQ(before, Told(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT));
  EXPECT_EQ(before, Told(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT));
  EXPECT_EQ(before + 150, Told(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH));
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &any));
  EXPECT_EQ(before, Told(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(second.dptr));
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGraphMemTrim(0));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGraphMemTrim(1));
}

TEST_F(ShimGraphMemory, CallsCheckTheirArguments) {
  uint64_t value = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetGraphMemAttribute(0, 4, &value));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetGraphMemAttribute(0, -1, &value));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetGraphMemAttribute(0, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetGraphMemAttribute(1, 0, &value));
  for (const int now : {CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT})
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceSetGraphMemAttribute(0, now, &value));
  CUgraphNode node = nullptr;
  const auto result = [&](void (*change)(CUDA_MEM_ALLOC_NODE_PARAMS_v1_st&)) {
    auto wanted = Wanted(64);
    change(wanted);
    return cuGraphAddMemAllocNode(&node, graph_, nullptr, 0, &wanted);
  };
  using Wish = CUDA_MEM_ALLOC_NODE_PARAMS_v1_st;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&node, graph_, nullptr, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result([](Wish& w) { w.poolProps.allocType = 0; }));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result([](Wish& w) { w.bytesize = 0; }));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, result([](Wish& w) { w.poolProps.handleTypes = 1; }));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, result([](Wish& w) { w.poolProps.location.type = 0; }));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, result([](Wish& w) { w.poolProps.location.id = 1; }));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, graph_, nullptr, 0, memory_)) << "no graph's";
}

// Freed by the program, such memory may not be freed twice, but is there again in the next launch.
TEST_F(ShimGraphMemory, EveryLaunchAllocatesAgain) {
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  auto wanted = Wanted(64);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemAllocNode(&node, graph_, nullptr, 0, &wanted));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph_, 0));
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
    EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(wanted.dptr, nullptr));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(wanted.dptr));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(wanted.dptr, nullptr));
  }
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
}

}  // namespace
