// SPDX-License-Identifier: Apache-2.0
// Launches whose shape no device takes: the code depends on whether CUDA's runtime asked or the program itself.
#include <string>
#include <vector>

#include "tests/integration/shim_calls/wire.h"

namespace {

constexpr CUresult kInvalidConfiguration = 9;  // cudaErrorInvalidConfiguration

class ShimShape : public ShimWire {
 protected:
  void SetUp() override {
    ShimWire::SetUp();
    CUlibrary library = nullptr;
    CUmodule module = nullptr;
    ASSERT_EQ(CUDA_SUCCESS, cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
    ASSERT_EQ(CUDA_SUCCESS, cuLibraryGetKernel(&kernel_, library, "narrow"));
    ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
    ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&function_, module, "narrow"));
  }
  static CUresult Launch(CUfunction function, std::vector<unsigned> shape, unsigned shared = 0) {
    return cuLaunchKernel(function, shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], shared, nullptr,
                          nullptr, nullptr);
  }
  CUresult OfTheRuntime(std::vector<unsigned> shape, unsigned shared = 0) {
    return Launch(reinterpret_cast<CUfunction>(kernel_), std::move(shape), shared);
  }
  CUkernel kernel_ = nullptr;
  CUfunction function_ = nullptr;
};

TEST_F(ShimShape, TheRuntimeIsToldThatTheConfigurationIsInvalid) {
  const std::vector<std::vector<unsigned>> shapes = {
      {0, 1, 1, 1, 1, 1},    {1, 0, 1, 1, 1, 1},  {1, 1, 0, 1, 1, 1},     {1, 1, 1, 0, 1, 1},
      {1, 1, 1, 1, 0, 1},    {1, 1, 1, 1, 1, 0},  {1, 65536, 1, 1, 1, 1}, {1, 1, 65535, 1, 1, 1},
      {1, 1, 1, 1025, 1, 1}, {1, 1, 1, 1, 1, 65}, {1, 1, 1, 32, 33, 1}};
  for (const auto& shape : shapes) {
    EXPECT_EQ(kInvalidConfiguration, OfTheRuntime(shape)) << testing::PrintToString(shape);
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Launch(function_, shape)) << testing::PrintToString(shape);
  }
  CUlaunchConfig_st config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = 1;
  EXPECT_EQ(kInvalidConfiguration, cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel_), nullptr, nullptr));
  EXPECT_EQ(kInvalidConfiguration,
            cuLaunchCooperativeKernel(reinterpret_cast<CUfunction>(kernel_), 1, 1, 1, 1025, 1, 1, 0, nullptr, nullptr));
}

TEST_F(ShimShape, OtherRefusalsAreTheSameForBoth) {
  EXPECT_EQ(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, OfTheRuntime({1, 1, 1, 97, 1, 1})) << "its launch bounds";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, OfTheRuntime({1, 1, 1, 1, 1, 1}, 48153)) << "shared memory not opted in to";
  EXPECT_EQ(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            cuLaunchCooperativeKernel(reinterpret_cast<CUfunction>(kernel_), 21, 1, 1, 96, 1, 1, 0, nullptr, nullptr));
}

}  // namespace
