// SPDX-License-Identifier: Apache-2.0
// Clusters on a device that has none: a block is a cluster of one, and larger ones are refused.
#include <cstring>
#include <vector>

#include "tests/integration/shim_calls/wire.h"

namespace {

class ShimCluster : public ShimWire {
 protected:
  void SetUp() override {
    ShimWire::SetUp();
    ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module_, kPtx));
    ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&narrow_, module_, "narrow"));
    config_.gridDimX = config_.gridDimY = config_.gridDimZ = 1;
    config_.blockDimX = 96, config_.blockDimY = config_.blockDimZ = 1;
    config_.attrs = &attribute_;
    attribute_.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    Ask({1, 1, 1});
  }
  void Ask(std::vector<uint32_t> size) {
    memcpy(attribute_.value, size.data(), 12);
    config_.numAttrs = 1;
  }
  CUresult Require(int width, int height, int depth) {
    const int values[] = {width, height, depth};
    for (int i = 0; i < 3; ++i)
      if (const CUresult error = cuFuncSetAttribute(narrow_, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + i, values[i]))
        return error;
    return CUDA_SUCCESS;
  }
  CUresult Launch() { return cuLaunchKernel(narrow_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr); }
  CUmodule module_ = nullptr;
  CUfunction narrow_ = nullptr;
  CUlaunchConfig_st config_{};
  CUlaunchAttribute_st attribute_{};
};

TEST_F(ShimCluster, OneBlockIsTheLargest) {
  int size = -1, clusters = -1;
  EXPECT_EQ(CUDA_SUCCESS, cuOccupancyMaxPotentialClusterSize(&size, narrow_, &config_));
  EXPECT_EQ(1, size);
  EXPECT_EQ(CUDA_SUCCESS, cuOccupancyMaxActiveClusters(&clusters, narrow_, &config_));
  EXPECT_EQ(20, clusters) << "as many as blocks: 10 on each of 2 multiprocessors";
  Ask({2, 1, 1});
  EXPECT_EQ(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuOccupancyMaxActiveClusters(&clusters, narrow_, &config_));
  EXPECT_EQ(CUDA_SUCCESS, cuOccupancyMaxPotentialClusterSize(&size, narrow_, &config_)) << "asks for none";
  config_.numAttrs = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuOccupancyMaxActiveClusters(&clusters, narrow_, &config_)) << "of what?";
  config_.sharedMemBytes = 70000;
  EXPECT_EQ(CUDA_SUCCESS, cuOccupancyMaxPotentialClusterSize(&size, narrow_, &config_));
  EXPECT_EQ(0, size) << "no block fits";
}

TEST_F(ShimCluster, QuestionsAreChecked) {
  int out = 0;
  for (const auto call : {cuOccupancyMaxActiveClusters, cuOccupancyMaxPotentialClusterSize}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, call(nullptr, narrow_, &config_));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, call(&out, narrow_, nullptr));
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, call(&out, nullptr, &config_));
    for (const unsigned threads : {0u, 1025u, 1u << 31}) {
      config_.blockDimX = threads;
      EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, call(&out, narrow_, &config_)) << threads;
    }
    config_.blockDimX = 96;
    config_.attrs = nullptr;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, call(&out, narrow_, &config_));
    config_.attrs = &attribute_;
  }
}

TEST_F(ShimCluster, AttributesAreRememberedAndCountAtTheLaunch) {
  int value = -1;
  EXPECT_EQ(CUDA_SUCCESS, cuFuncSetAttribute(narrow_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  EXPECT_EQ(CUDA_SUCCESS, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, narrow_));
  EXPECT_EQ(1, value);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
            cuFuncSetAttribute(narrow_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 2));
  EXPECT_EQ(CUDA_SUCCESS, cuFuncSetAttribute(narrow_, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 2));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
            cuFuncSetAttribute(narrow_, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 3));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(narrow_, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Require(-1, 1, 1));
  ASSERT_EQ(CUDA_SUCCESS, Require(1, 1, 1));
  EXPECT_EQ(CUDA_SUCCESS, Launch());
  ASSERT_EQ(CUDA_SUCCESS, Require(2, 1, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_CLUSTER_SIZE, Launch()) << "all of them or none";
  ASSERT_EQ(CUDA_SUCCESS, Require(2, 3, 1));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, Launch());
  EXPECT_EQ(CUDA_SUCCESS, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, narrow_));
  EXPECT_EQ(3, value);
  EXPECT_EQ(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuOccupancyMaxPotentialClusterSize(&value, narrow_, &config_));
  EXPECT_EQ(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuOccupancyMaxActiveClusters(&value, narrow_, &config_));
  ASSERT_EQ(CUDA_SUCCESS, Require(0, 0, 0));
  EXPECT_EQ(CUDA_SUCCESS, Launch());
  EXPECT_EQ(0u, Take(VGPU_OP_FUNCTION_SET).size()) << "nothing that the device has to know";
}

}  // namespace
