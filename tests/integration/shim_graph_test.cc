// Graphs whose nodes get other parameters, served by fake_vf (shim_api_test.cc).
#include <vector>

#include "tests/integration/shim_fixture.h"

namespace {

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
