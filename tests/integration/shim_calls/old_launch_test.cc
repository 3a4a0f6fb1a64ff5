// SPDX-License-Identifier: Apache-2.0
// Launches as before CUDA 4.0: state that is set call by call, of which the launch makes an ordinary one.
#include <cstring>

#include "tests/integration/shim_calls/wire.h"

namespace {

const auto kWildFunction = reinterpret_cast<CUfunction>(0x1234);

class ShimOldLaunch : public ShimWire {
 protected:
  void SetUp() override {
    ShimWire::SetUp();
    ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module_, kPtx));
    ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&add_, module_, "vectoradd"));
    memory_ = Alloc(64);
  }
  void SetParameters() {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(CUDA_SUCCESS, cuParamSetv(add_, 8 * i, &memory_, sizeof memory_));
    ASSERT_EQ(CUDA_SUCCESS, cuParamSeti(add_, 24, 2));
    ASSERT_EQ(CUDA_SUCCESS, cuParamSetSize(add_, 28));
  }
  CUmodule module_ = nullptr;
  CUfunction add_ = nullptr;
  CUdeviceptr memory_ = 0;
};

TEST_F(ShimOldLaunch, TakesShapeAndParametersFromTheFunction) {
  SetParameters();
  ASSERT_EQ(CUDA_SUCCESS, cuFuncSetBlockShape(add_, 5, 6, 7));
  ASSERT_EQ(CUDA_SUCCESS, cuFuncSetSharedSize(add_, 96));
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
  unsigned long long id = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamGetId(stream, &id));
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchGridAsync(add_, 3, 4, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchGrid(add_, 8, 9));
  ASSERT_EQ(CUDA_SUCCESS, cuLaunch(add_));
  const auto sent = Take(VGPU_OP_LAUNCH);
  ASSERT_EQ(3u, sent.size());
  const std::vector<std::vector<uint32_t>> grids = {{3, 4, 1}, {8, 9, 1}, {1, 1, 1}};
  for (size_t i = 0; i < sent.size(); ++i) {
    const auto launch = sent[i].As<vgpu_launch>();
    EXPECT_EQ(grids[i], std::vector<uint32_t>(launch.grid, launch.grid + 3)) << i;
    EXPECT_EQ((std::vector<uint32_t>{5, 6, 7}), std::vector<uint32_t>(launch.block, launch.block + 3));
    EXPECT_EQ(96u, launch.dynamic_shared);
    EXPECT_EQ(memory_, sent[i].As<uint64_t>(sizeof launch + 16));
    EXPECT_EQ(2u, sent[i].As<uint32_t>(sizeof launch + 24));
  }
  EXPECT_EQ(id, sent[0].entry.stream);
  EXPECT_NE(id, sent[1].entry.stream);
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

TEST_F(ShimOldLaunch, FloatsKeepTheirBits) {
  SetParameters();
  ASSERT_EQ(CUDA_SUCCESS, cuParamSetf(add_, 4, 1.5f));
  Wire::Get().Refuse(VGPU_OP_LAUNCH, CUDA_ERROR_LAUNCH_FAILED);  // that is no address
  cuLaunch(add_);
  cuCtxSynchronize();
  const auto sent = Wire::Get().Take(VGPU_OP_LAUNCH);
  ASSERT_EQ(1u, sent.size());
  EXPECT_EQ(1.5f, sent[0].As<float>(sizeof(vgpu_launch) + 4));
}

TEST_F(ShimOldLaunch, RefusesWhatNoLaunchCouldHave) {
  SetParameters();
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(add_, 0, 1, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(add_, 1, -1, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(add_, 1, 1, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuParamSetSize(add_, 32765));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuParamSeti(add_, -1, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuParamSeti(add_, 32761, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuParamSeti(add_, 32760, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuParamSetv(add_, 0, nullptr, 4));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuParamSetv(add_, 4, &memory_, ~0u));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(add_, 0, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(add_, 1, -1));
  EXPECT_EQ(CUDA_SUCCESS, cuParamSetSize(add_, 27));
  EXPECT_EQ(CUDA_SUCCESS, cuLaunch(add_)) << "what is missing is zero";
  EXPECT_EQ(CUDA_SUCCESS, cuParamSetSize(add_, 28));
  EXPECT_EQ(CUDA_SUCCESS, cuFuncSetBlockShape(add_, 1, 1024, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLaunch(add_)) << "more than the device takes";
  for (const CUresult result :
       {cuFuncSetBlockShape(kWildFunction, 1, 1, 1), cuFuncSetSharedSize(kWildFunction, 0),
        cuParamSetSize(kWildFunction, 0), cuParamSeti(kWildFunction, 0, 0), cuParamSetf(kWildFunction, 0, 0),
        cuParamSetv(kWildFunction, 0, &memory_, 1), cuLaunch(kWildFunction), cuLaunchGrid(kWildFunction, 1, 1)}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, result);
  }
}

}  // namespace
