// SPDX-License-Identifier: Apache-2.0
// Stream capture: what is captured, what is forbidden meanwhile and what becomes of the capture then; served by
// fake_vf.
#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/shim_fixture.h"

namespace {

const auto kLegacy = reinterpret_cast<CUstream>(1);

class CaptureRules : public ShimApi {
 protected:
  void SetUp() override {
    ShimApi::SetUp();
    memory_ = Alloc(64);
    stream_ = NewStream(CU_STREAM_NON_BLOCKING);
    other_ = NewStream(CU_STREAM_NON_BLOCKING);
  }
  static CUstream NewStream(unsigned flags) {
    CUstream stream = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, flags));
    return stream;
  }
  static CUevent NewEvent() {
    CUevent event = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
  }
  CUresult Fill(CUstream stream, unsigned value = 7) const { return cuMemsetD32Async(memory_, value, 16, stream); }
  uint32_t Word() const {
    uint32_t word = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(&word, memory_, 4));
    return word;
  }
  static void Begin(CUstream stream, int mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    ASSERT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream, mode));
  }
  static int Status(CUstream stream) {
    int status = -1;
    EXPECT_EQ(CUDA_SUCCESS, cuStreamIsCapturing(stream, &status));
    return status;
  }
  // The result of the end, which gives a graph when it is CUDA_SUCCESS and only then.
  static CUresult End(CUstream stream, CUgraph* out = nullptr) {
    auto graph = reinterpret_cast<CUgraph>(1);
    const CUresult result = cuStreamEndCapture(stream, &graph);
    EXPECT_EQ(result == CUDA_SUCCESS, graph != nullptr);
    if (out != nullptr) *out = graph;
    return result;
  }
  // `stream` captures no more into what an error has ended, gives no graph and then works as before.
  void ExpectInvalidated(CUstream stream) {
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_INVALIDATED, Status(stream));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, Fill(stream));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, End(stream));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, Status(stream));
    EXPECT_EQ(CUDA_SUCCESS, Fill(stream, 99));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(99u, Word());
  }
  static std::vector<CUgraphNode> DependenciesOf(CUstream stream, CUgraph* graph = nullptr) {
    int status = -1;
    unsigned long id = 0;
    const CUgraphNode* after = nullptr;
    size_t count = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCaptureInfo_v2(stream, &status, &id, graph, &after, &count));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, status);
    EXPECT_NE(0u, id);
    return {after, after + count};
  }
  CUdeviceptr memory_ = 0, memory_2_ = 0;
  CUstream stream_ = nullptr, other_ = nullptr;
};

TEST_F(CaptureRules, BranchesStayBranches) {
  const CUevent fork = NewEvent(), join = NewEvent();
  CUgraph graph = nullptr, ended = nullptr;
  Begin(stream_);
  ASSERT_EQ(CUDA_SUCCESS, Fill(stream_));
  const auto root = DependenciesOf(stream_, &graph);
  ASSERT_EQ(1u, root.size());
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(fork, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(other_, fork, 0));
  EXPECT_EQ(root, DependenciesOf(other_));
  ASSERT_EQ(CUDA_SUCCESS, Fill(stream_));
  ASSERT_EQ(CUDA_SUCCESS, Fill(other_));
  const auto left = DependenciesOf(stream_), right = DependenciesOf(other_);
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(join, other_));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(stream_, join, 0));
  EXPECT_EQ((std::vector{left[0], right[0]}), DependenciesOf(stream_));
  ASSERT_EQ(CUDA_SUCCESS, Fill(stream_));
  const auto last = DependenciesOf(stream_);
  ASSERT_EQ(CUDA_SUCCESS, End(stream_, &ended));
  EXPECT_EQ(graph, ended);

  std::array<CUgraphNode, 8> from{}, to{};
  std::array<CUgraphEdgeData_st, 8> data;
  size_t count = 8;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphGetEdges_v2(graph, from.data(), to.data(), data.data(), &count));
  ASSERT_EQ(4u, count);
  std::vector<std::pair<CUgraphNode, CUgraphNode>> edges;
  for (size_t i = 0; i < count; ++i) edges.emplace_back(from[i], to[i]);
  std::sort(edges.begin(), edges.end());
  std::vector<std::pair<CUgraphNode, CUgraphNode>> expected{
      {root[0], left[0]}, {root[0], right[0]}, {left[0], last[0]}, {right[0], last[0]}};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(expected, edges);
  EXPECT_EQ(nullptr, from[4]);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
}

TEST_F(CaptureRules, InformationHasAllVersions) {
  int status = -1;
  unsigned long id = 0, id_2 = 0, id_3 = 0;
  CUgraph graph = nullptr, graph_3 = nullptr;
  const CUgraphNode *after = nullptr, *after_3 = nullptr;
  const CUgraphEdgeData_st* edges = nullptr;
  size_t count = 9, count_3 = 9;
  Begin(stream_);
  ASSERT_EQ(CUDA_SUCCESS, Fill(stream_));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCaptureInfo(stream_, &status, &id));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCaptureInfo_v2(stream_, &status, &id_2, &graph, &after, &count));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCaptureInfo_v3(stream_, &status, &id_3, &graph_3, &after_3, &edges, &count_3));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCaptureInfo_v3(stream_, &status, nullptr, nullptr, nullptr, nullptr, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
            cuStreamGetCaptureInfo_v3(stream_, &status, nullptr, nullptr, nullptr, &edges, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamGetCaptureInfo(stream_, nullptr, &id));
  EXPECT_EQ(id, id_2);
  EXPECT_EQ(id, id_3);
  EXPECT_EQ(graph, graph_3);
  EXPECT_NE(nullptr, graph);
  ASSERT_EQ(1u, count);
  ASSERT_EQ(1u, count_3);
  EXPECT_EQ(after[0], after_3[0]);
  EXPECT_EQ(0, edges[0].type);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph)) << "the capture's, until it ends";
  CUgraphExec executable;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&executable, graph, 0));
  EXPECT_EQ(CUDA_SUCCESS, End(stream_));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCaptureInfo(stream_, &status, &id));
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, status);
}

TEST_F(CaptureRules, DependenciesCanBeSetAndNodesAddedByHand) {
  CUgraph graph = nullptr;
  Begin(stream_);
  ASSERT_EQ(CUDA_SUCCESS, Fill(stream_, 1));
  auto before = DependenciesOf(stream_, &graph);
  CUgraphNode empty = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddEmptyNode(&empty, graph, before.data(), 1));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamUpdateCaptureDependencies(stream_, &empty, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  EXPECT_EQ((std::vector{before[0], empty}), DependenciesOf(stream_));
  ASSERT_EQ(CUDA_SUCCESS,
            cuStreamUpdateCaptureDependencies_v2(stream_, &empty, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  EXPECT_EQ(std::vector{empty}, DependenciesOf(stream_));
  CUgraphNode wild = reinterpret_cast<CUgraphNode>(0x123);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamUpdateCaptureDependencies(stream_, &wild, 1, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamUpdateCaptureDependencies(stream_, &empty, 1, 2));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_STATE, cuStreamUpdateCaptureDependencies(other_, &empty, 1, 0));
  // What was taken out need not be joined, here a branch that had been.
  const CUevent fork = NewEvent(), join = NewEvent();
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(fork, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(other_, fork, 0));
  ASSERT_EQ(CUDA_SUCCESS, Fill(other_));
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(join, other_));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(stream_, join, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamUpdateCaptureDependencies(stream_, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  EXPECT_EQ(CUDA_SUCCESS, End(stream_));
}

TEST_F(CaptureRules, GoesOnInAGraphThatIsThere) {
  CUgraph graph = nullptr, ended = nullptr;
  CUgraphNode root = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddEmptyNode(&root, graph, nullptr, 0));
  ASSERT_EQ(CUDA_SUCCESS,
            cuStreamBeginCaptureToGraph(stream_, graph, &root, nullptr, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(std::vector{root}, DependenciesOf(stream_));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_STATE,
            cuStreamBeginCaptureToGraph(other_, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_EQ(CUDA_SUCCESS, Fill(stream_));
  ASSERT_EQ(CUDA_SUCCESS, End(stream_, &ended));
  EXPECT_EQ(graph, ended);
  // One that fails leaves the graph to its owner.
  ASSERT_EQ(CUDA_SUCCESS,
            cuStreamBeginCaptureToGraph(stream_, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(stream_));
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, End(stream_));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
}

// Worst of all: kernels that never ran, without an error.
TEST_F(CaptureRules, AnEventOfACaptureThatHasEndedTakesNobodyIntoIt) {
  const CUevent event = NewEvent();
  Begin(stream_);
  ASSERT_EQ(CUDA_SUCCESS, Fill(stream_, 1));
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, stream_));
  ASSERT_EQ(CUDA_SUCCESS, End(stream_));
  EXPECT_EQ(CUDA_ERROR_CAPTURED_EVENT, cuStreamWaitEvent(other_, event, 0));
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, Status(other_));
  ASSERT_EQ(CUDA_SUCCESS, Fill(other_, 5));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(other_));
  EXPECT_EQ(5u, Word());
  // Recorded again it is an event as any other.
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, stream_));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(other_, event, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuEventSynchronize(event));
}

TEST_F(CaptureRules, AnExternalRecordAndWaitAreNodes) {
  const CUevent event = NewEvent();
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(event, stream_, CU_EVENT_RECORD_EXTERNAL));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(stream_, event, CU_EVENT_WAIT_EXTERNAL));
  CUgraph graph = nullptr;
  Begin(stream_);
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(stream_, event, CU_EVENT_WAIT_EXTERNAL));
  ASSERT_EQ(CUDA_SUCCESS, Fill(stream_, 3));
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecordWithFlags(event, stream_, CU_EVENT_RECORD_EXTERNAL));
  ASSERT_EQ(CUDA_SUCCESS, End(stream_, &graph));
  std::array<CUgraphNode, 3> nodes{};
  size_t count = 3;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph, nodes.data(), &count));
  std::vector<int> types(3);
  for (size_t i = 0; i < 3; ++i) ASSERT_EQ(CUDA_SUCCESS, cuGraphNodeGetType(nodes[i], &types[i]));
  EXPECT_EQ(
      (std::vector<int>{CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_EVENT_RECORD}),
      types);
  CUgraphExec executable;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, stream_));
  EXPECT_EQ(CUDA_SUCCESS, cuEventSynchronize(event));
  EXPECT_EQ(3u, Word());
}

// What a capturing stream does not permit: the call's own error, and no graph afterwards.
TEST_F(CaptureRules, ForbiddenCallsEndTheCapture) {
  const CUevent inside = NewEvent(), outside = NewEvent(), never = NewEvent();
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(outside, stream_));
  const auto callback = [](CUstream, CUresult, void*) {};
  const struct {
    const char* what;
    CUresult result;
    std::function<CUresult()> call;
  } rows[] = {
      {"stream synchronize", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuStreamSynchronize(stream_); }},
      {"stream query", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuStreamQuery(stream_); }},
      {"context synchronize", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuCtxSynchronize(); }},
      {"callback", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
       [&] { return cuStreamAddCallback(stream_, callback, nullptr, 0); }},
      {"event query", CUDA_ERROR_CAPTURED_EVENT, [&] { return cuEventQuery(inside); }},
      {"event synchronize", CUDA_ERROR_CAPTURED_EVENT, [&] { return cuEventSynchronize(inside); }},
      {"elapsed time", CUDA_ERROR_CAPTURED_EVENT,
       [&] {
         float ms;
         return cuEventElapsedTime(&ms, inside, outside);
       }},
      {"event from outside", CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
       [&] { return cuStreamWaitEvent(stream_, outside, 0); }},
      {"allocation", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuMemAlloc_v2(&memory_2_, 64); }},
      {"free", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuMemFree_v2(memory_); }},
      {"pinned memory", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
       [&] {
         void* host;
         return cuMemHostAlloc(&host, 64, 0);
       }},
      {"question about another event", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return cuEventQuery(outside); }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    Begin(stream_);
    ASSERT_EQ(CUDA_SUCCESS, Fill(stream_));
    ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(inside, stream_));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(stream_, never, 0)) << "never recorded: nothing to wait for";
    EXPECT_EQ(row.result, row.call());
    ExpectInvalidated(stream_);
  }
}

TEST_F(CaptureRules, TheLegacyStreamCantBeUsedWhileABlockingStreamCaptures) {
  const CUstream blocking = NewStream(0);
  const CUevent event = NewEvent(), recorded = NewEvent();
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(recorded, other_));
  uint32_t word = 0;
  const struct {
    const char* what;
    std::function<CUresult()> call;
  } rows[] = {
      {"fill", [&] { return Fill(kLegacy); }},
      {"copy", [&] { return cuMemcpyDtoH_v2(&word, memory_, 4); }},
      {"copy to", [&] { return cuMemcpyHtoD_v2(memory_, &word, 4); }},
      {"event record", [&] { return cuEventRecord(event, kLegacy); }},
      {"event wait", [&] { return cuStreamWaitEvent(kLegacy, recorded, 0); }},
      {"synchronize", [&] { return cuStreamSynchronize(kLegacy); }},
      {"host function",
       [&] {
         return cuLaunchHostFunc(
             kLegacy, [](void*) {}, nullptr);
       }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    Begin(blocking);
    ASSERT_EQ(CUDA_SUCCESS, Fill(blocking));
    int status = -1;
    unsigned long id = 0;
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(kLegacy, &status));
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamGetCaptureInfo(kLegacy, &status, &id));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, Status(blocking)) << "a question does not end it";
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, row.call());
    ExpectInvalidated(blocking);
  }
  Begin(stream_);
  EXPECT_EQ(CUDA_SUCCESS, Fill(kLegacy)) << "a non-blocking stream is none of its business";
  EXPECT_EQ(CUDA_SUCCESS, End(stream_));
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(kLegacy, 0));
}

TEST_F(CaptureRules, ForksHaveToBeJoined) {
  const CUevent fork = NewEvent();
  for (const bool works : {false, true}) {
    Begin(stream_);
    ASSERT_EQ(CUDA_SUCCESS, Fill(stream_));
    ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(fork, stream_));
    ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(other_, fork, 0));
    if (works) {
      ASSERT_EQ(CUDA_SUCCESS, Fill(other_));
    }
    EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, End(other_));
    EXPECT_EQ(works ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED : CUDA_SUCCESS, End(stream_));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, Status(stream_));
    EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, Status(other_));
  }
}

TEST_F(CaptureRules, TwoCapturesDoNotMerge) {
  const CUevent event = NewEvent();
  Begin(stream_);
  Begin(other_);
  ASSERT_EQ(CUDA_SUCCESS, Fill(stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, stream_));
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(other_, event, 0));
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_INVALIDATED, Status(stream_));
  EXPECT_EQ(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, End(other_));
  ExpectInvalidated(stream_);
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_STATE, End(stream_));
  Begin(stream_);
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(CUDA_SUCCESS, End(stream_));
}

TEST_F(CaptureRules, TheThreadThatBeganItEndsItUnlessRelaxed) {
  for (const int mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    Begin(stream_, mode);
    ASSERT_EQ(CUDA_SUCCESS, Fill(stream_));
    CUresult ended = CUDA_SUCCESS;
    std::thread([&] {
      EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context_));
      ended = End(stream_);
    }).join();
    const bool relaxed = mode == CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT_EQ(relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, ended);
    EXPECT_EQ(relaxed ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS, End(stream_));
  }
}

// Rows of cuThreadExchangeStreamCaptureMode: who is kept from calls that no capture notices.
TEST_F(CaptureRules, UnsafeCallsGoByTheModesOfThreadAndCapture) {
  constexpr int kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL, kLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  const struct {
    int capture, thread;
    bool own, refused;
  } rows[] = {{kGlobal, kGlobal, true, true},    {kGlobal, kGlobal, false, true},   {kLocal, kGlobal, true, true},
              {kLocal, kGlobal, false, false},   {kRelaxed, kGlobal, true, false},  {kRelaxed, kGlobal, false, false},
              {kGlobal, kLocal, true, true},     {kGlobal, kLocal, false, false},   {kLocal, kLocal, true, true},
              {kGlobal, kRelaxed, true, false},  {kGlobal, kRelaxed, false, false}, {kLocal, kRelaxed, true, false},
              {kRelaxed, kRelaxed, true, false}, {kRelaxed, kLocal, true, false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(std::to_string(row.capture) + std::to_string(row.thread) + (row.own ? " own" : " other"));
    Begin(stream_, row.capture);
    ASSERT_EQ(CUDA_SUCCESS, Fill(stream_));
    const auto allocate = [&] {
      EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context_));
      int mode = row.thread;
      EXPECT_EQ(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
      CUdeviceptr more = 0;
      EXPECT_EQ(row.refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS, cuMemAlloc_v2(&more, 64));
      EXPECT_EQ(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
      EXPECT_EQ(row.thread, mode);
    };
    row.own ? allocate() : std::thread(allocate).join();
    EXPECT_EQ(row.refused ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS, End(stream_));
  }
}

TEST_F(CaptureRules, ItsStreamCanGoAway) {
  const CUevent fork = NewEvent();
  Begin(stream_);
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(fork, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(other_, fork, 0));
  CUgraph graph = nullptr;
  size_t count = 0;
  DependenciesOf(other_, &graph);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph, nullptr, &count));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream_));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(graph, nullptr, &count)) << "gone with its capture";
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_NONE, Status(other_));
  EXPECT_EQ(CUDA_SUCCESS, Fill(other_, 4));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(other_));
  EXPECT_EQ(4u, Word());
}

TEST_F(CaptureRules, ALaunchOfAGraphIsAChildGraph) {
  CUgraph child = nullptr, graph = nullptr;
  Begin(stream_);
  ASSERT_EQ(CUDA_SUCCESS, Fill(stream_, 1));
  ASSERT_EQ(CUDA_SUCCESS, Fill(stream_, 2));
  ASSERT_EQ(CUDA_SUCCESS, End(stream_, &child));
  CUgraphExec executable, outer;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, child, 0));
  Begin(stream_);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, stream_));
  ASSERT_EQ(CUDA_SUCCESS, End(stream_, &graph));
  CUgraphNode node = nullptr;
  size_t count = 1;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph, &node, &count));
  int type = -1;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeGetType(node, &type));
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_GRAPH, type);
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&outer, graph, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(outer, stream_));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream_));
  EXPECT_EQ(2u, Word());
}

}  // namespace
