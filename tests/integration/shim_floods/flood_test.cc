// SPDX-License-Identifier: Apache-2.0
// More than there is room for: the program waits, and everything happens in order.
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "guest-driver-shim/include/uapi/vgpu_abi.h"
#include "tests/integration/shim_fixture.h"

namespace {

class Flood : public ShimApi {
 protected:
  void SetUp() override {
    ShimApi::SetUp();
    ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  void TearDown() override {
    EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream_));
    ShimApi::TearDown();
  }

  struct Call {
    Flood* test;
    unsigned number;
  };
  // Host functions of `calls` are called in the order of their numbers.
  std::vector<Call> Calls(unsigned count) {
    std::vector<Call> calls;
    for (unsigned i = 0; i < count; ++i) calls.push_back({this, i});
    return calls;
  }
  static void Next(void* data) {
    auto* const call = static_cast<Call*>(data);
    if (call->test->called_++ != call->number) ++call->test->out_of_order_;
  }
  // `work` is done `times` by a thread of its own, behind a host function that returns only when the thread has come so
  // far that it must be about to run out of room, or has.
  void Do(unsigned times, const std::function<CUresult(unsigned)>& work) {
    StreamHold hold;
    hold.Put(stream_);
    std::atomic<unsigned> done{0};
    std::thread worker([&] {
      EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context_));
      for (; done < times; ++done) ASSERT_EQ(CUDA_SUCCESS, work(done));
    });
    while (done < 500) std::this_thread::yield();
    hold.LetGo();
    worker.join();
    EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream_));
    EXPECT_EQ(0u, out_of_order_);
  }

  CUstream stream_ = nullptr;
  std::atomic<unsigned> called_{0}, out_of_order_{0};
};

TEST_F(Flood, HostFunctions) {
  auto calls = Calls(4000);
  Do(4000, [&](unsigned i) { return cuLaunchHostFunc(stream_, Next, &calls[i]); });
  EXPECT_EQ(4000u, called_);
}

TEST_F(Flood, Callbacks) {
  auto calls = Calls(4000);
  const auto next = [](CUstream, CUresult, void* data) { Next(data); };
  Do(4000, [&](unsigned i) { return cuStreamAddCallback(stream_, next, &calls[i], 0); });
  EXPECT_EQ(4000u, called_);
}

TEST_F(Flood, HostFunctionsOfSeveralThreadsInOneStream) {
  constexpr unsigned kThreads = 4, kEach = 1000;
  std::atomic<unsigned> count{0};
  StreamHold hold;
  hold.Put(stream_);
  std::atomic<unsigned> queued{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context_));
      const auto add = [](void* data) { ++*static_cast<std::atomic<unsigned>*>(data); };
      for (unsigned i = 0; i < kEach; ++i, ++queued) ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(stream_, add, &count));
    });
  }
  while (queued < 500) std::this_thread::yield();
  hold.LetGo();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream_));
  EXPECT_EQ(kThreads * kEach, count);
}

TEST_F(Flood, LaunchesOfAGraphWithAHostNode) {
  CUgraph graph;
  CUgraphExec executable;
  std::atomic<unsigned> count{0};
  ASSERT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  const auto add = [](void* data) { ++*static_cast<std::atomic<unsigned>*>(data); };
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(stream_, add, &count));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream_, &graph));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph, 0));
  Do(4000, [&](unsigned) { return cuGraphLaunch(executable, stream_); });
  EXPECT_EQ(4000u, count);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
}

// A conditional node is work of the driver's own, for which there has to be room; and memory is freed when all else is
// done.
TEST_F(Flood, LaunchesOfAGraphWithAConditionalNode) {
  CUgraph graph;
  CUgraphExec executable;
  CUgraphNode node;
  unsigned long condition;
  const CUdeviceptr memory = Alloc(4);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphConditionalHandleCreate(&condition, graph, context_, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
  CUgraphNodeParams_st params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = condition;
  params.conditional.type = CU_GRAPH_COND_TYPE_IF;
  params.conditional.size = 1;
  params.conditional.ctx = context_;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &params));
  CUDA_MEMSET_NODE_PARAMS_st fill{};
  fill.dst = memory;
  fill.value = 77;
  fill.elementSize = 4;
  fill.width = fill.height = 1;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&node, params.conditional.phGraph_out[0], nullptr, 0, &fill, context_));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph, 0));
  unsigned value = 0;
  for (unsigned i = 0; i < 3000; ++i) {
    ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, stream_));
    if (i % 500 == 499) {
      ASSERT_EQ(CUDA_SUCCESS, cuMemFree_v2(Alloc(16)));
    }
  }
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable)) << "while it is on its way";
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream_));
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(&value, memory, sizeof value));
  EXPECT_EQ(77u, value);
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(memory));
}

TEST_F(Flood, Events) {
  constexpr size_t kEvents = 3 * VGPU_EVENT_SLOTS;
  std::vector<CUevent> events(kEvents);
  for (CUevent& event : events) {
    ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, 0));
    EXPECT_EQ(CUDA_SUCCESS, cuEventRecord(event, stream_));
  }
  EXPECT_EQ(CUDA_SUCCESS, cuEventSynchronize(events.back()));
  float before = 0;
  for (const CUevent event : events) {
    float after = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuEventQuery(event));
    ASSERT_EQ(CUDA_SUCCESS, cuEventElapsedTime(&after, events[0], event));
    EXPECT_GE(after, before) << "each keeps its own time";
    before = after;
  }
  EXPECT_GT(before, 0);
  for (const CUevent event : events) EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
}

TEST_F(Flood, EventsThatHaveNotBeenReached) {
  constexpr unsigned kEvents = VGPU_EVENT_SLOTS + 3000;
  std::vector<CUevent> events(kEvents);
  for (CUevent& event : events) ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, 0));
  Do(kEvents, [&](unsigned i) { return cuEventRecord(events[i], stream_); });
  for (const CUevent event : events) {
    EXPECT_EQ(CUDA_SUCCESS, cuEventQuery(event));
    EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
  }
}

TEST_F(Flood, RecordsOfOneEvent) {
  CUevent event;
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  Do(VGPU_EVENT_SLOTS + 3000, [&](unsigned) { return cuEventRecord(event, stream_); });
  EXPECT_EQ(CUDA_SUCCESS, cuEventQuery(event));
  EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
}

// Nobody has asked for the end of what each stream has; together it is as much as there is room for.
TEST_F(Flood, ManyStreamsWithLittleEach) {
  constexpr unsigned kStreams = 600, kEach = 8;
  const CUdeviceptr memory = Alloc(64);
  std::vector<CUstream> streams(kStreams);
  for (CUstream& stream : streams) {
    ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < kEach; ++i) ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(memory, 1, 64, stream));
  }
  for (const CUstream stream : streams) EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(memory));
}

// The program has as many events as it likes, and the driver markers of its own all the same.
TEST_F(Flood, EventsTakeNothingFromHostFunctions) {
  std::vector<CUevent> events(2 * VGPU_EVENT_SLOTS);
  for (CUevent& event : events) ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, 0));
  auto calls = Calls(1);
  EXPECT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(stream_, Next, &calls[0]));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream_));
  EXPECT_EQ(1u, called_);
  for (const CUevent event : events) EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy_v2(event));
}

}  // namespace
