// SPDX-License-Identifier: Apache-2.0
// Which streams a launch of a graph uses, and that every node comes after what it depends on.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/integration/shim_calls/graphs.h"

namespace {

class LaunchLanes : public ShimGraphs {};

// What each fill of a number of entries comes after: those before it in its stream, and what events have brought there.
struct Order {
  std::map<uint64_t, std::set<uint64_t>> before;     // by value of the fill
  std::map<uint32_t, std::set<uint64_t>> in_stream;  // what each stream has done, from the start
  std::map<uint64_t, uint32_t> stream;
  std::map<std::pair<uint64_t, uint64_t>, std::set<uint64_t>> recorded;  // by slot and generation

  void Add(const std::vector<Sent>& entries) {
    for (const Sent& sent : entries) {
      const vgpu_sqe& entry = sent.entry;
      auto& here = in_stream[entry.stream];
      if (entry.op == VGPU_OP_FILL) {
        before[entry.args[1]] = here;
        stream[entry.args[1]] = entry.stream;
        here.insert(entry.args[1]);
      } else if (entry.op == VGPU_OP_EVENT_RECORD) {
        recorded[{entry.args[0], entry.args[1]}] = here;
      } else if (entry.op == VGPU_OP_EVENT_WAIT) {
        const auto& there = recorded[{entry.args[0], entry.args[1]}];
        here.insert(there.begin(), there.end());
      }
    }
  }
};

TEST_F(LaunchLanes, BranchesGoToStreamsOfTheirOwn) {
  const CUgraphNode first = Fill(1), left = Fill(2, {first}), right = Fill(3, {first});
  Fill(4, {left, right});
  CUgraphExec executable = nullptr;
  CUstream stream;
  unsigned long long number = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamGetId(stream, &number));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph_, 0));
  TakeAll();
  ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, stream));
  Order order;
  order.Add(TakeAll());
  EXPECT_EQ(number, order.stream[1]);
  EXPECT_EQ(number, order.stream[2]);
  EXPECT_NE(number, order.stream[3]);
  EXPECT_EQ(number, order.stream[4]);
  EXPECT_EQ((std::set<uint64_t>{1}), order.before[3]);
  EXPECT_EQ((std::set<uint64_t>{1, 2, 3}), order.before[4]);
  // Again, in another stream: the same streams for its branches, all after the launch before.
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(memory_, 9, 4, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
  const auto entries = TakeAll();
  EXPECT_TRUE(std::none_of(entries.begin(), entries.end(),
                           [](const Sent& sent) { return sent.entry.op == VGPU_OP_STREAM_CREATE; }));
  order.Add(entries);
  EXPECT_EQ((std::set<uint64_t>{1, 2, 3, 4, 9}), order.before[1]);
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_EQ(1u, Take(VGPU_OP_STREAM_DESTROY).size());
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

// Graphs at random: every node comes after all that it depends on, and what follows the launch after all of them.
TEST_F(LaunchLanes, LaunchesRespectAllDependencies) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    CUgraph graph;
    ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
    const CUgraph own = std::exchange(graph_, graph);
    std::vector<CUgraphNode> nodes;
    std::vector<std::set<uint64_t>> expected;
    const unsigned count = 1 + random() % 40;
    for (unsigned value = 0; value < count; ++value) {
      std::vector<CUgraphNode> after;
      std::set<uint64_t> all;
      for (unsigned edges = random() % 3; edges > 0 && value > 0; --edges) {
        const unsigned earlier = random() % value;
        if (std::find(after.begin(), after.end(), nodes[earlier]) == after.end()) after.push_back(nodes[earlier]);
        all.insert(expected[earlier].begin(), expected[earlier].end());
        all.insert(earlier);
      }
      nodes.push_back(Fill(value, after));
      expected.push_back(std::move(all));
    }
    CUgraphExec executable = nullptr;
    ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph_, 0));
    TakeAll();
    ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(memory_, 200, 4, nullptr));
    ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
    ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(memory_, 201, 4, nullptr));
    Order order;
    order.Add(TakeAll());
    for (unsigned value = 0; value < count; ++value) {
      const auto& before = order.before[value];
      EXPECT_TRUE(std::includes(before.begin(), before.end(), expected[value].begin(), expected[value].end())) << value;
      EXPECT_TRUE(before.contains(200)) << value;
    }
    EXPECT_EQ(count + 1, order.before[201].size());
    EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
    graph_ = own;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  }
}

}  // namespace
