// SPDX-License-Identifier: Apache-2.0
// Graphs as DOT files.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/integration/shim_calls/graphs.h"

namespace {

class ShimDot : public ShimKernelGraphs {
 protected:
  void SetUp() override {
    ShimKernelGraphs::SetUp();
    char name[] = "/tmp/shim-dot-XXXXXX";
    close(mkstemp(name));
    path_ = name;
  }
  void TearDown() override {
    unlink(path_.c_str());
    ShimKernelGraphs::TearDown();
  }
  std::string Print(unsigned flags) {
    EXPECT_EQ(CUDA_SUCCESS, cuGraphDebugDotPrint(graph_, path_.c_str(), flags));
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  std::string path_;
};

TEST_F(ShimDot, NodesWithTheirTypesEdgesAndChildGraphs) {
  const CUgraphNode kernel = AddKernel(), fill = Fill(1, {kernel});
  CUgraph child = nullptr;
  CUgraphNode inside = nullptr, node = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&child, 0));
  CUDA_MEMCPY3D_st copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemcpyNode(&inside, child, nullptr, 0, &copy, context_));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddChildGraphNode(&node, graph_, &fill, 1, child));
  EXPECT_EQ(
      "digraph dot {\n"
      "subgraph cluster_1 {\n"
      "label=\"graph_1\";\n"
      "\"graph_1_node_0\" [shape=\"box\", label=\"0\\nKERNEL\\nvectoradd\"];\n"
      "\"graph_1_node_1\" [shape=\"box\", label=\"1\\nMEMSET\"];\n"
      "\"graph_1_node_2\" [shape=\"box\", label=\"2\\nGRAPH\"];\n"
      "subgraph cluster_2 {\n"
      "label=\"graph_2\";\n"
      "\"graph_2_node_0\" [shape=\"box\", label=\"0\\nMEMCPY\\nHOST to DEVICE\"];\n"
      "}\n"
      "\"graph_1_node_0\" -> \"graph_1_node_1\";\n"
      "\"graph_1_node_1\" -> \"graph_1_node_2\";\n"
      "}\n"
      "}\n",
      Print(0));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(child));
}

TEST_F(ShimDot, FlagsAskForMore) {
  AddKernel(3);
  Fill(0x42);
  const std::string launch = "grid (3, 1, 1) block (32, 1, 1) shared 0", value = "value 0x42";
  const auto has = [&](unsigned flags, const std::string& text) {
    return Print(flags).find(text) != std::string::npos;
  };
  EXPECT_FALSE(has(0, launch));
  EXPECT_TRUE(has(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS, launch));
  EXPECT_FALSE(has(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS, value));
  EXPECT_TRUE(has(CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS, value));
  EXPECT_FALSE(has(CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS, launch));
  EXPECT_TRUE(has(CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES, "function 0x"));
  EXPECT_TRUE(has(CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE, launch));
  EXPECT_TRUE(has(CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE, value));
}

TEST_F(ShimDot, CallsCheckTheirArguments) {
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphDebugDotPrint(nullptr, path_.c_str(), 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphDebugDotPrint(graph_, nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphDebugDotPrint(graph_, path_.c_str(), 1u << 16));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDebugDotPrint(graph_, path_.c_str(), 1u << 15));
  EXPECT_EQ(CUDA_ERROR_OPERATING_SYSTEM, cuGraphDebugDotPrint(graph_, "/nowhere/graph.dot", 0));
  EXPECT_EQ(CUDA_ERROR_OPERATING_SYSTEM, cuGraphDebugDotPrint(graph_, "/dev/full", 0));
}

}  // namespace
