// SPDX-License-Identifier: Apache-2.0
// The logs that programs hand in when they load an image, and what comes back in them.
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/integration/shim_calls/wire.h"

namespace {

class ShimJitOptions : public ShimWire {
 protected:
  void SetUp() override {
    ShimWire::SetUp();
    Fill(sizeof error_);
  }
  // The option values as they are before a call.
  void Fill(size_t error_bytes) {
    memset(error_, 'x', sizeof error_);
    memset(info_, 'x', sizeof info_);
    values_[0] = info_, values_[1] = reinterpret_cast<void*>(sizeof info_);
    values_[2] = error_, values_[3] = reinterpret_cast<void*>(error_bytes);
    values_[4] = reinterpret_cast<void*>(~size_t{0});
  }
  size_t InfoBytes() const { return reinterpret_cast<size_t>(values_[1]); }
  size_t ErrorBytes() const { return reinterpret_cast<size_t>(values_[3]); }
  float Milliseconds() const {
    float time;
    memcpy(&time, &values_[4], sizeof time);
    return time;
  }
  char info_[64], error_[256];
  int options_[5] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                     CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME};
  void* values_[5] = {};
  static constexpr char kReason[] = "the fake refuses operation 6";
};

TEST_F(ShimJitOptions, OfAModuleSaysWhatTheDeviceSaid) {
  Wire::Get().Refuse(VGPU_OP_MODULE_LOAD, CUDA_ERROR_INVALID_PTX);
  CUmodule module = nullptr;
  EXPECT_EQ(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, kPtx, 5, options_, values_));
  EXPECT_STREQ(kReason, error_);
  EXPECT_EQ(strlen(kReason), ErrorBytes());
  EXPECT_STREQ("", info_);
  EXPECT_EQ(0u, InfoBytes());
  EXPECT_LE(0, Milliseconds());
  EXPECT_GT(60000, Milliseconds());
}

TEST_F(ShimJitOptions, OfALibraryDoesToo) {
  Wire::Get().Refuse(VGPU_OP_MODULE_LOAD, CUDA_ERROR_INVALID_PTX);
  CUlibrary library = nullptr;
  EXPECT_EQ(CUDA_ERROR_INVALID_PTX, cuLibraryLoadData(&library, kPtx, options_, values_, 5, nullptr, nullptr, 0));
  EXPECT_STREQ(kReason, error_);
  EXPECT_EQ(strlen(kReason), ErrorBytes());
}

TEST_F(ShimJitOptions, IsCutToItsBuffer) {
  Wire::Get().Refuse(VGPU_OP_MODULE_LOAD, CUDA_ERROR_INVALID_PTX);
  CUmodule module = nullptr;
  Fill(9);
  EXPECT_EQ(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, kPtx, 5, options_, values_));
  EXPECT_STREQ("the fake", error_);
  EXPECT_EQ('x', error_[9]);
  EXPECT_EQ(8u, ErrorBytes());
  Fill(0);
  EXPECT_EQ(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, kPtx, 5, options_, values_));
  EXPECT_EQ('x', error_[0]) << "there is no room";
  Fill(sizeof error_);
  values_[2] = nullptr;
  EXPECT_EQ(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, kPtx, 5, options_, values_));
  EXPECT_EQ(0u, ErrorBytes());
}

TEST_F(ShimJitOptions, SaysWhenThereIsNoImage) {
  CUmodule module = nullptr;
  const char damaged[] = "\x50\xed\x55\xba\x09\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00";
  EXPECT_EQ(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadDataEx(&module, damaged, 5, options_, values_));
  EXPECT_NE(nullptr, strstr(error_, "no PTX text, fat binary or machine code")) << error_;
}

TEST_F(ShimJitOptions, IsEmptyWhenAllIsWell) {
  CUmodule module = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadDataEx(&module, kPtx, 5, options_, values_));
  EXPECT_STREQ("", error_);
  EXPECT_EQ(0u, ErrorBytes());
  EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
}

TEST_F(ShimJitOptions, OptionsAreThoseOfCuda13) {
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  for (const int option : {-1, static_cast<int>(CU_JIT_NUM_OPTIONS)}) {
    int options[] = {option};
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleLoadDataEx(&module, kPtx, 1, options, values_));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(&library, kPtx, options, values_, 1, nullptr, nullptr, 0));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
              cuLibraryLoadFromFile(&library, "/nowhere", options, values_, 1, nullptr, nullptr, 0));
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleLoadDataEx(&module, kPtx, 1, nullptr, values_));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuModuleLoadDataEx(&module, kPtx, 1, options_, nullptr));
}

}  // namespace
