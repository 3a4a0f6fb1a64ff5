// SPDX-License-Identifier: Apache-2.0
// Calls whose handle or address names its context work in a thread that has none.
#include <thread>

#include "tests/integration/shim_fixture.h"

namespace {

using NoContext = ShimApi;

TEST_F(NoContext, WhatNamesItsOwnIsFreed) {
  CUstream stream;
  CUarray array;
  CUmipmappedArray mipmapped;
  CUmodule module;
  CUdeviceptr pooled = 0;
  const CUDA_ARRAY_DESCRIPTOR_st flat{16, 16, CU_AD_FORMAT_FLOAT, 1};
  const CUDA_ARRAY3D_DESCRIPTOR_st levels{16, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  const CUdeviceptr plain = Alloc(4096);
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocAsync(&pooled, 4096, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  ASSERT_EQ(CUDA_SUCCESS, cuArrayCreate_v2(&array, &flat));
  ASSERT_EQ(CUDA_SUCCESS, cuMipmappedArrayCreate(&mipmapped, &levels, 2));
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
  std::thread([&] {
    CUcontext current = context_, of_stream = nullptr;
    CUdevice device = -1;
    EXPECT_EQ(CUDA_SUCCESS, cuCtxGetCurrent(&current));
    EXPECT_EQ(nullptr, current);
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetCtx(stream, &of_stream));
    EXPECT_EQ(context_, of_stream);
    EXPECT_EQ(CUDA_SUCCESS, cuStreamGetDevice(stream, &device));
    EXPECT_EQ(0, device);
    EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(plain));
    EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(pooled));
    EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(0));
    EXPECT_EQ(CUDA_SUCCESS, cuArrayDestroy(array));
    EXPECT_EQ(CUDA_SUCCESS, cuMipmappedArrayDestroy(mipmapped));
    EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemFree_v2(plain)) << "it is nobody's any more";
  }).join();
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(plain));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
}

TEST_F(NoContext, PinnedMemoryHasARange) {
  void* pinned = nullptr;
  CUdeviceptr base = 0;
  size_t bytes = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&pinned, 10000, 0));
  const auto address = reinterpret_cast<CUdeviceptr>(pinned);
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetAddressRange_v2(&base, &bytes, address + 9000));
  EXPECT_EQ(address, base);
  EXPECT_LE(10000u, bytes);
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(pinned));
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&base, &bytes, address));
}

}  // namespace
