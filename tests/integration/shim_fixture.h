// SPDX-License-Identifier: Apache-2.0
// The driver API of libcuda.so.1 in tests: the primary context of device 0 is current.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "guest-driver-shim/libcuda/generated/cuda_api.h"

inline constexpr char kPtx[] = ".version 8.0\n.target sm_75\n.address_size 64\n// served by the fake\n";

// A host function that keeps the work after it in its stream from running until it is let go.
// It has left this object before the object is gone: the ring, which orders them too, is a way that no thread sanitizer
// sees.
class StreamHold {
 public:
  ~StreamHold() {
    LetGo();
    while (inside_.load() != 0) std::this_thread::yield();
  }
  void Put(CUstream stream) {
    ++inside_;
    const CUresult error = cuLaunchHostFunc(stream, Wait, this);
    if (error != CUDA_SUCCESS) --inside_;
    ASSERT_EQ(CUDA_SUCCESS, error);
  }
  void LetGo() {
    go_ = true;
    go_.notify_all();
  }

 private:
  static void Wait(void* data) {
    auto* const hold = static_cast<StreamHold*>(data);
    hold->go_.wait(false);
    --hold->inside_;
  }
  std::atomic<bool> go_{false};
  std::atomic<int> inside_{0};
};

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
