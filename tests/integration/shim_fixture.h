// SPDX-License-Identifier: Apache-2.0
// The driver API of libcuda.so.1 in tests: the primary context of device 0 is current.
#pragma once

#include <gtest/gtest.h>

#include "guest-driver-shim/libcuda/generated/cuda_api.h"

inline constexpr char kPtx[] = ".version 8.0\n.target sm_75\n.address_size 64\n// served by the fake\n";

class ShimApi : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context_, 0));
    ASSERT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context_));
  }
  void TearDown() override {
    EXPECT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRelease_v2(0));
    EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(nullptr));
  }
  CUdeviceptr Alloc(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuMemAlloc_v2(&address, bytes));
    return address;
  }
  CUcontext context_ = nullptr;
};
