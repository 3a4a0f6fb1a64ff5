// SPDX-License-Identifier: Apache-2.0
// What a program asks about graphs and takes out of them, event nodes, and objects that live as long as graphs; served
// by fake_vf.
#include <array>
#include <vector>

#include "tests/integration/shim_fixture.h"

namespace {

class GraphParts : public ShimApi {
 protected:
  void SetUp() override {
    ShimApi::SetUp();
    ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&graph_, 0));
  }
  CUgraphNode Add(const std::vector<CUgraphNode>& after) const {
    CUgraphNode node = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphAddEmptyNode(&node, graph_, after.data(), after.size()));
    return node;
  }
  static std::vector<CUgraphNode> Before(CUgraphNode node) {
    std::array<CUgraphNode, 8> nodes{};
    size_t count = nodes.size();
    EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeGetDependencies(node, nodes.data(), &count));
    return {nodes.begin(), nodes.begin() + static_cast<long>(count)};
  }
  static std::vector<CUgraphNode> Behind(CUgraphNode node) {
    std::array<CUgraphNode, 8> nodes{};
    size_t count = nodes.size();
    EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeGetDependentNodes(node, nodes.data(), &count));
    return {nodes.begin(), nodes.begin() + static_cast<long>(count)};
  }
  CUgraph graph_ = nullptr;
};

TEST_F(GraphParts, NeighboursAndEdges) {
  const CUgraphNode a = Add({}), b = Add({a}), c = Add({a, b});
  EXPECT_EQ(std::vector<CUgraphNode>{}, Before(a));
  EXPECT_EQ((std::vector{a, b}), Before(c));
  EXPECT_EQ((std::vector{b, c}), Behind(a));
  EXPECT_EQ(std::vector<CUgraphNode>{}, Behind(c));
  size_t count = 99;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetEdges(graph_, nullptr, nullptr, &count));
  EXPECT_EQ(3u, count);
  // Fewer places than edges: as many as fit. More: the rest is zero.
  std::array<CUgraphNode, 4> from, to;
  from.fill(a), to.fill(a);
  count = 2;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetEdges(graph_, from.data(), to.data(), &count));
  EXPECT_EQ(2u, count);
  EXPECT_EQ(a, from[2]);
  count = 4;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetEdges(graph_, from.data(), to.data(), &count));
  EXPECT_EQ(3u, count);
  EXPECT_EQ(nullptr, to[3]);
  CUgraphEdgeData_st data{};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphGetEdges_v2(graph_, nullptr, nullptr, &data, &count));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphGetEdges(graph_, from.data(), nullptr, &count));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphGetEdges(graph_, from.data(), to.data(), nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetDependencies(nullptr, from.data(), &count));
}

TEST_F(GraphParts, DependenciesAndNodesAreTakenOut) {
  const CUgraphNode a = Add({}), b = Add({a}), c = Add({a, b});
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(graph_, &c, &a, 1)) << "there is none";
  const CUgraphNode from[] = {a, c}, to[] = {c, c};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(graph_, from, to, 2));
  EXPECT_EQ((std::vector{a, b}), Before(c)) << "all or none";
  EXPECT_EQ(CUDA_SUCCESS, cuGraphRemoveDependencies(graph_, from, to, 1));
  EXPECT_EQ(std::vector{b}, Before(c));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroyNode(b));
  EXPECT_EQ(std::vector<CUgraphNode>{}, Before(c));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(b));
  size_t count = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph_, nullptr, &count));
  EXPECT_EQ(2u, count);
}

TEST_F(GraphParts, NodesAreFoundInTheCloneOfTheirGraph) {
  const CUgraphNode a = Add({}), b = Add({a});
  CUgraph clone, other;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphClone(&clone, graph_));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&other, 0));
  CUgraphNode twin_a = nullptr, twin_b = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeFindInClone(&twin_a, a, clone));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphNodeFindInClone(&twin_b, b, clone));
  EXPECT_NE(a, twin_a);
  EXPECT_EQ(std::vector{twin_a}, Before(twin_b));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphNodeFindInClone(&twin_a, a, other));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphNodeFindInClone(&twin_a, nullptr, clone));
}

TEST_F(GraphParts, EventNodesRecordAndWait) {
  CUevent first, second;
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&first, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&second, 0));
  CUgraphNode record = nullptr, wait = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddEventRecordNode(&record, graph_, nullptr, 0, first));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddEventWaitNode(&wait, graph_, &record, 1, first));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddEventWaitNode(&wait, graph_, &record, 1, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphEventRecordNodeSetEvent(record, second));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphEventRecordNodeSetEvent(wait, second));
  CUgraphExec executable;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph_, 0));
  float ms;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, first, second)) << "only the second was recorded";
  ASSERT_EQ(CUDA_SUCCESS, cuGraphExecEventRecordNodeSetEvent(executable, record, first));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(CUDA_SUCCESS, cuEventElapsedTime(&ms, first, second));
}

class UserObjects : public GraphParts {
 protected:
  CUuserObject Make(unsigned count) {
    CUuserObject object = nullptr;
    const auto end = [](void* data) { ++*static_cast<int*>(data); };
    EXPECT_EQ(CUDA_SUCCESS, cuUserObjectCreate(&object, &ended_, end, count, 1));
    return object;
  }
  int ended_ = 0;
};

TEST_F(UserObjects, EndWithTheirLastReference) {
  const CUuserObject object = Make(2);
  EXPECT_EQ(CUDA_SUCCESS, cuUserObjectRetain(object, 0x7fffffff));
  EXPECT_EQ(CUDA_SUCCESS, cuUserObjectRelease(object, 0x7fffffff));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 3)) << "there are two";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuUserObjectRetain(object, 0x80000000));
  EXPECT_EQ(CUDA_SUCCESS, cuUserObjectRelease(object, 1));
  EXPECT_EQ(0, ended_);
  EXPECT_EQ(CUDA_SUCCESS, cuUserObjectRelease(object, 1));
  EXPECT_EQ(1, ended_);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuUserObjectRetain(object, 1));
  CUuserObject none;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&none, nullptr, nullptr, 1, 1));
}

TEST_F(UserObjects, LiveAsLongAsWhatIsMadeOfTheGraph) {
  const CUuserObject object = Make(1);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphRetainUserObject(graph_, object, 2, 1)) << "more than the caller has";
  ASSERT_EQ(CUDA_SUCCESS, cuGraphRetainUserObject(graph_, object, 1, 1)) << "moved";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 1)) << "the caller has none left";
  ASSERT_EQ(CUDA_SUCCESS, cuGraphRetainUserObject(graph_, object, 2, 0));
  CUgraph clone;
  CUgraphExec executable;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphClone(&clone, graph_));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph_, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphReleaseUserObject(graph_, object, 4));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphReleaseUserObject(graph_, object, 3));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph_));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(clone));
  EXPECT_EQ(0, ended_);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_EQ(1, ended_);
}

}  // namespace
