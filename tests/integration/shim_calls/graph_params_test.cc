// SPDX-License-Identifier: Apache-2.0
// What nodes were told to do, read back: nodes that a program added, and those of captures.
#include <cstring>
#include <vector>

#include "tests/integration/shim_calls/graphs.h"

namespace {

class ShimNodeParams : public ShimKernelGraphs {
 protected:
  void SetUp() override {
    ShimKernelGraphs::SetUp();
    ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event_, 0));
  }
  void TearDown() override {
    EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event_));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream_));
    ShimKernelGraphs::TearDown();
  }
  static CUDA_KERNEL_NODE_PARAMS_v2_st KernelOf(CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS_v2_st kernel{};
    EXPECT_EQ(CUDA_SUCCESS, cuGraphKernelNodeGetParams_v2(node, &kernel));
    return kernel;
  }
  static CUDA_MEMCPY3D_st CopyOf(CUgraphNode node) {
    CUDA_MEMCPY3D_st copy{};
    EXPECT_EQ(CUDA_SUCCESS, cuGraphMemcpyNodeGetParams(node, &copy));
    return copy;
  }
  static std::vector<uint64_t> FillValues(CUgraphNode node) {
    CUDA_MEMSET_NODE_PARAMS_st p{};
    EXPECT_EQ(CUDA_SUCCESS, cuGraphMemsetNodeGetParams(node, &p));
    return {p.dst, p.pitch, p.value, p.elementSize, p.width, p.height};
  }
  // What `work` gives to a stream, as nodes.
  template <class Work>
  std::vector<CUgraphNode> Capture(const Work& work) {
    EXPECT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
    work();
    EXPECT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream_, &captured_));
    return NodesOf(captured_);
  }
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
  CUgraph captured_ = nullptr;
};

TEST_F(ShimNodeParams, AKernelsParametersBelongToItsNode) {
  const CUgraphNode node = AddKernel(3);
  const CUdeviceptr before = address_;
  address_ = 1, count_ = 2;
  auto kernel = KernelOf(node);
  EXPECT_EQ(add_, kernel.func);
  EXPECT_EQ(3u, kernel.gridDimX);
  EXPECT_EQ(32u, kernel.blockDimX);
  EXPECT_EQ(0u, kernel.sharedMemBytes);
  EXPECT_EQ(nullptr, kernel.extra);
  ASSERT_NE(nullptr, kernel.kernelParams);
  EXPECT_EQ(before, *static_cast<CUdeviceptr*>(kernel.kernelParams[2]));
  EXPECT_EQ(7u, *static_cast<unsigned*>(kernel.kernelParams[3]));
  CUDA_KERNEL_NODE_PARAMS_st old{};
  EXPECT_EQ(CUDA_SUCCESS, cuGraphKernelNodeGetParams(node, &old));
  EXPECT_EQ(add_, old.func);
  EXPECT_EQ(kernel.kernelParams, old.kernelParams);
  // What was read can be set, on the node itself too.
  kernel.gridDimX = 4;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphKernelNodeSetParams_v2(node, &kernel));
  kernel = KernelOf(node);
  EXPECT_EQ(4u, kernel.gridDimX);
  EXPECT_EQ(7u, *static_cast<unsigned*>(kernel.kernelParams[3]));
}

TEST_F(ShimNodeParams, AKernelTellsItsParametersInTheFormInWhichTheyWereSet) {
  CUgraphNode node = nullptr;
  unsigned char buffer[28] = {1, 2, 3};
  size_t bytes = sizeof buffer;
  void* extra[] = {reinterpret_cast<void*>(1), buffer, reinterpret_cast<void*>(2), &bytes, nullptr};
  auto kernel = Kernel();
  kernel.func = nullptr;
  kernel.kern = reinterpret_cast<CUkernel>(add_);
  kernel.kernelParams = nullptr;
  kernel.extra = extra;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddKernelNode_v2(&node, graph_, nullptr, 0, &kernel));
  buffer[0] = 9;
  kernel = KernelOf(node);
  EXPECT_EQ(nullptr, kernel.func);
  EXPECT_EQ(reinterpret_cast<CUkernel>(add_), kernel.kern);
  EXPECT_EQ(context_, kernel.ctx);
  EXPECT_EQ(nullptr, kernel.kernelParams);
  ASSERT_NE(nullptr, kernel.extra);
  EXPECT_EQ(1, *static_cast<unsigned char*>(kernel.extra[1]));
  EXPECT_EQ(28u, *static_cast<size_t*>(kernel.extra[3]));
  EXPECT_EQ(nullptr, kernel.extra[4]);
  CUDA_KERNEL_NODE_PARAMS_st old{};
  EXPECT_EQ(CUDA_SUCCESS, cuGraphKernelNodeGetParams(node, &old));
  EXPECT_EQ(add_, old.func) << "the only place that it has";
}

TEST_F(ShimNodeParams, NodesTellWhatTheyWereTold) {
  CUgraphNode node = nullptr;
  CUDA_MEMCPY3D_st copy{};
  memset(static_cast<void*>(&copy), 0x11, sizeof copy);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemcpyNode(&node, graph_, nullptr, 0, &copy, context_));
  const CUDA_MEMCPY3D_st told = CopyOf(node);
  EXPECT_EQ(0, memcmp(&copy, &told, sizeof copy));
  const CUDA_MEMSET_NODE_PARAMS_st fill{memory_, 8, 3, 2, 4, 5};
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&node, graph_, nullptr, 0, &fill, context_));
  EXPECT_EQ((std::vector<uint64_t>{memory_, 8, 3, 2, 4, 5}), FillValues(node));
  const CUDA_HOST_NODE_PARAMS_st host{[](void*) {}, &node};
  CUDA_HOST_NODE_PARAMS_st told_host{};
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddHostNode(&node, graph_, nullptr, 0, &host));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphHostNodeGetParams(node, &told_host));
  EXPECT_EQ(host.fn, told_host.fn);
  EXPECT_EQ(&node, told_host.userData);
  CUevent event = nullptr, other = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddEventRecordNode(&node, graph_, nullptr, 0, event_));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphEventRecordNodeGetEvent(node, &event));
  EXPECT_EQ(event_, event);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphEventWaitNodeGetEvent(node, &event)) << "it does not wait";
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddEventWaitNode(&node, graph_, nullptr, 0, event_));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&other, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphEventWaitNodeSetEvent(node, other));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphEventWaitNodeGetEvent(node, &event));
  EXPECT_EQ(other, event);
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(other));
}

TEST_F(ShimNodeParams, MemoryNodesTellWhatTheyWereTold) {
  CUmemAccessDesc_st access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUDA_MEM_ALLOC_NODE_PARAMS_v1_st wanted{}, told{};
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  wanted.bytesize = 100;
  wanted.accessDescs = &access;
  wanted.accessDescCount = 1;
  CUgraphNode alloc = nullptr, free = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemAllocNode(&alloc, graph_, nullptr, 0, &wanted));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemFreeNode(&free, graph_, &alloc, 1, wanted.dptr));
  access.flags = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphMemAllocNodeGetParams(alloc, &told));
  EXPECT_EQ(100u, told.bytesize);
  EXPECT_EQ(wanted.dptr, told.dptr);
  EXPECT_EQ(CU_MEM_ALLOCATION_TYPE_PINNED, told.poolProps.allocType);
  ASSERT_EQ(1u, told.accessDescCount);
  EXPECT_EQ(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, static_cast<int>(told.accessDescs[0].flags)) << "the node's own";
  CUdeviceptr address = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphMemFreeNodeGetParams(free, &address));
  EXPECT_EQ(wanted.dptr, address);
}

TEST_F(ShimNodeParams, CapturedWorkIsTold) {
  static unsigned char host[16], other[16];
  const auto nodes = Capture([&] {
    void* parameters[] = {&address_, &address_, &address_, &count_};
    EXPECT_EQ(CUDA_SUCCESS, cuLaunchKernel(add_, 5, 1, 1, 16, 2, 1, 8, stream_, parameters, nullptr));
    EXPECT_EQ(CUDA_SUCCESS, cuMemsetD16Async(memory_, 0x1234, 6, stream_));
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(memory_, host, 16, stream_));
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(host, memory_ + 4, 12, stream_));
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoDAsync_v2(memory_ + 32, memory_, 8, stream_));
    EXPECT_EQ(CUDA_SUCCESS,
              cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(other), reinterpret_cast<CUdeviceptr>(host), 16, stream_));
    EXPECT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(
                                stream_, [](void*) {}, host));
    EXPECT_EQ(CUDA_SUCCESS, cuEventRecordWithFlags(event_, stream_, CU_EVENT_RECORD_EXTERNAL));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(stream_, event_, CU_EVENT_WAIT_EXTERNAL));
  });
  ASSERT_EQ(9u, nodes.size());
  const auto kernel = KernelOf(nodes[0]);
  EXPECT_EQ(add_, kernel.func);
  EXPECT_EQ(5u, kernel.gridDimX);
  EXPECT_EQ(2u, kernel.blockDimY);
  EXPECT_EQ(8u, kernel.sharedMemBytes);
  ASSERT_NE(nullptr, kernel.kernelParams);
  EXPECT_NE(&count_, kernel.kernelParams[3]);
  EXPECT_EQ(count_, *static_cast<unsigned*>(kernel.kernelParams[3]));
  EXPECT_EQ((std::vector<uint64_t>{memory_, 0, 0x1234, 2, 6, 1}), FillValues(nodes[1]));
  const struct {
    int from_type, to_type;
    const void *from, *to;
    size_t bytes;
  } copies[] = {{CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, host, reinterpret_cast<void*>(memory_), 16},
                {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST, reinterpret_cast<void*>(memory_ + 4), host, 12},
                {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE, reinterpret_cast<void*>(memory_),
                 reinterpret_cast<void*>(memory_ + 32), 8},
                {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST, host, other, 16}};
  for (size_t i = 0; i < std::size(copies); ++i) {
    const auto& expected = copies[i];
    const CUDA_MEMCPY3D_st copy = CopyOf(nodes[2 + i]);
    EXPECT_EQ(expected.from_type, static_cast<int>(copy.srcMemoryType)) << i;
    EXPECT_EQ(expected.to_type, static_cast<int>(copy.dstMemoryType)) << i;
    const void* const from =
        expected.from_type == CU_MEMORYTYPE_HOST ? copy.srcHost : reinterpret_cast<void*>(copy.srcDevice);
    const void* const to =
        expected.to_type == CU_MEMORYTYPE_HOST ? copy.dstHost : reinterpret_cast<void*>(copy.dstDevice);
    EXPECT_EQ(expected.from, from) << i;
    EXPECT_EQ(expected.to, to) << i;
    EXPECT_EQ((std::vector<size_t>{expected.bytes, 1, 1}),
              (std::vector<size_t>{copy.WidthInBytes, copy.Height, copy.Depth}));
  }
  CUDA_HOST_NODE_PARAMS_st call{};
  EXPECT_EQ(CUDA_SUCCESS, cuGraphHostNodeGetParams(nodes[6], &call));
  EXPECT_EQ(host, call.userData);
  CUevent recorded = nullptr, awaited = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphEventRecordNodeGetEvent(nodes[7], &recorded));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphEventWaitNodeGetEvent(nodes[8], &awaited));
  EXPECT_EQ(event_, recorded);
  EXPECT_EQ(event_, awaited);
  EXPECT_EQ(std::vector<uint64_t>{0x1234}, Launch(captured_)) << "and is done";
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(captured_));
}

TEST_F(ShimNodeParams, ACapturedKernelOfALibraryIsToldAsOne) {
  CUlibrary library = nullptr;
  CUkernel add = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuLibraryGetKernel(&add, library, "vectoradd"));
  const auto nodes = Capture([&] {
    const auto function = reinterpret_cast<CUfunction>(add);
    EXPECT_EQ(CUDA_SUCCESS, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream_, parameters_, nullptr));
  });
  ASSERT_EQ(1u, nodes.size());
  EXPECT_EQ(nullptr, KernelOf(nodes[0]).func);
  EXPECT_EQ(add, KernelOf(nodes[0]).kern);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(captured_));
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryUnload(library));
}

TEST_F(ShimNodeParams, CapturedAllocationsAreTold) {
  CUdeviceptr address = 0, freed = 0;
  const auto nodes = Capture([&] {
    EXPECT_EQ(CUDA_SUCCESS, cuMemAllocAsync(&address, 48, stream_));
    EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(address, stream_));
  });
  ASSERT_EQ(2u, nodes.size());
  CUDA_MEM_ALLOC_NODE_PARAMS_v1_st told{};
  EXPECT_EQ(CUDA_SUCCESS, cuGraphMemAllocNodeGetParams(nodes[0], &told));
  EXPECT_EQ(48u, told.bytesize);
  EXPECT_EQ(address, told.dptr);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphMemFreeNodeGetParams(nodes[1], &freed));
  EXPECT_EQ(address, freed);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(captured_));
}

TEST_F(ShimNodeParams, CapturedRowsAreOneNode) {
  static unsigned char host[64];
  CUDA_MEMCPY2D_st rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_HOST, rows.srcHost = host, rows.srcPitch = 8;
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE, rows.dstDevice = memory_, rows.dstPitch = 16;
  rows.WidthInBytes = 4, rows.Height = 3;
  const auto nodes = Capture([&] {
    EXPECT_EQ(CUDA_SUCCESS, cuMemsetD2D32Async(memory_, 32, 7, 2, 3, stream_));
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpy2DAsync_v2(&rows, stream_));
    EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8Async(memory_, 1, 0, stream_)) << "nothing to do";
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemsetD16Async(memory_ + 1, 1, 4, stream_)) << "not aligned";
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemsetD16Async(0, 1, 4, stream_));
  });
  ASSERT_EQ(2u, nodes.size());
  EXPECT_EQ((std::vector<uint64_t>{memory_, 32, 7, 4, 2, 3}), FillValues(nodes[0]));
  const CUDA_MEMCPY3D_st copy = CopyOf(nodes[1]);
  EXPECT_EQ((std::vector<size_t>{8, 16, 4, 3, 1}),
            (std::vector<size_t>{copy.srcPitch, copy.dstPitch, copy.WidthInBytes, copy.Height, copy.Depth}));
  EXPECT_EQ((std::vector<uint64_t>{7, 7, 7}), Launch(captured_)) << "row by row";
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(captured_));
}

TEST_F(ShimNodeParams, AChildGraphIsPartOfItsNode) {
  CUgraph child = nullptr, inside = nullptr;
  CUgraphNode fill = nullptr, node = nullptr;
  const auto one = FillOf(1), two = FillOf(2);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&child, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&fill, child, nullptr, 0, &one, context_));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddChildGraphNode(&node, graph_, nullptr, 0, child));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphMemsetNodeSetParams(fill, &two));
  EXPECT_EQ(std::vector<uint64_t>{1}, Launch(graph_)) << "it is a copy";
  ASSERT_EQ(CUDA_SUCCESS, cuGraphChildGraphNodeGetGraph(node, &inside));
  EXPECT_NE(child, inside);
  ASSERT_EQ(1u, NodesOf(inside).size());
  EXPECT_EQ(CUDA_SUCCESS, cuGraphMemsetNodeSetParams(NodesOf(inside)[0], &two));
  EXPECT_EQ(std::vector<uint64_t>{2}, Launch(graph_)) << "which can be changed";
  CUgraphNode found = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeFindInClone(&found, fill, inside));
  EXPECT_EQ(NodesOf(inside)[0], found);

  CUDA_MEM_ALLOC_NODE_PARAMS_v1_st wanted{};
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  wanted.bytesize = 64;
  CUgraphNode alloc = nullptr;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&alloc, inside, nullptr, 0, &wanted));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(inside));
  CUgraph clone = nullptr, copy = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphClone(&clone, graph_));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphNodeFindInClone(&found, node, clone));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphChildGraphNodeGetGraph(found, &copy));
  EXPECT_NE(inside, copy);
  EXPECT_EQ(std::vector<uint64_t>{2}, Launch(clone));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(clone));
  size_t count = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(copy, nullptr, &count)) << "gone with its parent";
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroyNode(node));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(inside, nullptr, &count)) << "gone with its node";
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemAllocNode(&alloc, child, nullptr, 0, &wanted));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddChildGraphNode(&node, graph_, nullptr, 0, child)) << "it allocates";
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(wanted.dptr));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(child));
}

TEST_F(ShimNodeParams, ACapturedLaunchOfAGraphIsAChildGraph) {
  const CUgraphNode fill = Fill(1);
  Fill(2, {fill});
  const CUgraphExec executable = Instantiate(graph_);
  const auto three = FillOf(3);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphExecMemsetNodeSetParams(executable, fill, &three, context_));
  const auto nodes = Capture([&] { EXPECT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, stream_)); });
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  ASSERT_EQ(1u, nodes.size());
  CUgraph inside = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphChildGraphNodeGetGraph(nodes[0], &inside));
  ASSERT_EQ(2u, NodesOf(inside).size());
  EXPECT_EQ(3u, FillValues(NodesOf(inside)[0])[2]) << "as the executable was";
  EXPECT_EQ((std::vector<uint64_t>{3, 2}), Launch(captured_));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(captured_));
}

TEST_F(ShimNodeParams, QuestionsAreChecked) {
  const CUgraphNode empty = Empty(), wild = reinterpret_cast<CUgraphNode>(0x1234);
  CUDA_KERNEL_NODE_PARAMS_st old{};
  CUDA_KERNEL_NODE_PARAMS_v2_st kernel{};
  CUDA_MEMCPY3D_st copy{};
  CUDA_MEMSET_NODE_PARAMS_st fill{};
  CUDA_HOST_NODE_PARAMS_st host{};
  CUDA_MEM_ALLOC_NODE_PARAMS_v1_st alloc{};
  CUdeviceptr address = 0;
  CUevent event = nullptr;
  CUgraph graph = nullptr;
  for (const CUgraphNode node : {empty, wild, CUgraphNode{nullptr}}) {
    const CUresult results[] = {
        cuGraphKernelNodeGetParams(node, &old),      cuGraphKernelNodeGetParams_v2(node, &kernel),
        cuGraphMemcpyNodeGetParams(node, &copy),     cuGraphMemsetNodeGetParams(node, &fill),
        cuGraphHostNodeGetParams(node, &host),       cuGraphMemAllocNodeGetParams(node, &alloc),
        cuGraphMemFreeNodeGetParams(node, &address), cuGraphEventRecordNodeGetEvent(node, &event),
        cuGraphEventWaitNodeGetEvent(node, &event),  cuGraphChildGraphNodeGetGraph(node, &graph)};
    for (size_t i = 0; i < std::size(results); ++i) EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, results[i]) << i;
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphMemsetNodeGetParams(Fill(1), nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeGetParams(AddKernel(), nullptr));
}

}  // namespace
