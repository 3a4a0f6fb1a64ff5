// SPDX-License-Identifier: Apache-2.0
// Managed memory of libcuda.so.1: what goes to and fro.
#include <vector>

#include "tests/integration/shim_calls/wire.h"

namespace {

class ShimManagedWire : public ShimWire {
 protected:
  static constexpr size_t kPage = 4096;
  // What the host wrote, as it goes to the device before the next operation.
  Rows Published() {
    EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8_v2(trigger_, 0, 1));
    Rows rows;
    for (const Sent& sent : Wire::Get().Take(VGPU_OP_COPY_IN))
      rows.push_back({sent.entry.args[0], sent.payload.size()});
    EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize());  // the host's turn
    return rows;
  }
  void SetUp() override {
    ShimWire::SetUp();
    trigger_ = Alloc(16);
    Take(VGPU_OP_MEM_ALLOC);
  }
  static unsigned char* Host(CUdeviceptr p) { return reinterpret_cast<unsigned char*>(p); }
  CUdeviceptr trigger_ = 0;
};

TEST_F(ShimManagedWire, ItIsWholePagesOfZeros) {
  CUdeviceptr p = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&p, kPage + 1, CU_MEM_ATTACH_HOST));
  EXPECT_EQ(0u, p % kPage);
  EXPECT_EQ((Rows{{3 * kPage}}), ArgsOf(VGPU_OP_MEM_ALLOC, 1)) << "one more, to begin at a page";
  EXPECT_EQ((Rows{{p, 0, 4, 2 * kPage / 4}}), ArgsOf(VGPU_OP_FILL, 4));
  size_t bytes = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetAddressRange_v2(nullptr, &bytes, p));
  EXPECT_EQ(kPage + 1, bytes);
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(p));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(nullptr, 16, CU_MEM_ATTACH_GLOBAL));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&p, 16, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&p, 16, 3));
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocManaged(&p, ~size_t{0} - 2 * kPage + 1, CU_MEM_ATTACH_GLOBAL));
  Wire::Get().Refuse(VGPU_OP_MEM_ALLOC, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&p, ~size_t{0} - 3 * kPage, CU_MEM_ATTACH_GLOBAL));
}

TEST_F(ShimManagedWire, OnlyLinesOf64BytesThatTheHostChangedAreSent) {
  const size_t pages = 70, bytes = pages * kPage;  // more than one piece of 256 KiB
  CUdeviceptr p = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL));
  EXPECT_EQ(Rows{}, Published());
  Host(p)[0] = 1;
  Host(p)[63] = 1;
  EXPECT_EQ((Rows{{p, 64}}), Published());
  EXPECT_EQ(Rows{}, Published()) << "sent once";
  Host(p)[63] = 2, Host(p)[64] = 2;
  EXPECT_EQ((Rows{{p, 128}}), Published()) << "neighbours go together";
  Host(p)[kPage + 100] = 1, Host(p)[bytes - 1] = 1;
  EXPECT_EQ((Rows{{p + kPage + 64, 64}, {p + bytes - 64, 64}}), Published());
  memset(Host(p), 9, bytes);
  EXPECT_EQ((Rows{{p, 256 << 10}, {p + (256 << 10), bytes - (256 << 10)}}), Published());
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(p));
}

TEST_F(ShimManagedWire, WhatTheDeviceMayHaveWrittenIsFetchedInPieces) {
  const size_t bytes = (256 << 10) + kPage;
  CUdeviceptr p = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  Wire::Get().Take(VGPU_OP_COPY_OUT);
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(p + 10, 7, 3, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  Rows fetched;
  for (const Sent& sent : Wire::Get().Take(VGPU_OP_COPY_OUT))
    fetched.push_back({sent.entry.args[0], sent.payload.size()});
  EXPECT_EQ((Rows{{p, 256 << 10}, {p + (256 << 10), kPage}}), fetched);
  EXPECT_EQ(0, Host(p)[9]);
  EXPECT_EQ(7, Host(p)[10]);
  EXPECT_EQ(7, Host(p)[12]);
  EXPECT_EQ(0, Host(p)[13]);
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(0u, Wire::Get().Take(VGPU_OP_COPY_OUT).size()) << "all was done: both sides agree";
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(p, 8, 1, nullptr));
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(nullptr));
    EXPECT_EQ(2u, Wire::Get().Take(VGPU_OP_COPY_OUT).size()) << "another stream may still be writing";
  }
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(p));
}

TEST_F(ShimManagedWire, ExchangesRunInAStreamThatWaitsForNoOther) {
  CUdeviceptr p = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&p, 16, CU_MEM_ATTACH_GLOBAL));
  Host(p)[0] = 1;
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(trigger_, 0, 1, nullptr));
  const auto created = Wire::Get().Take(VGPU_OP_STREAM_CREATE);
  ASSERT_EQ(1u, created.size());
  EXPECT_EQ(uint64_t{VGPU_STREAM_NON_BLOCKING}, created[0].entry.args[1]);
  const auto in = Wire::Get().Take(VGPU_OP_COPY_IN), wait = Wire::Get().Take(VGPU_OP_STREAM_SYNC);
  ASSERT_EQ(1u, in.size());
  ASSERT_EQ(1u, wait.size());
  EXPECT_EQ(created[0].entry.args[0], in[0].entry.stream);
  EXPECT_EQ(in[0].entry.stream, wait[0].entry.stream) << "the next operation may be of any stream";
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(p));
}

TEST_F(ShimManagedWire, HintsAreForManagedMemory) {
  CUdeviceptr p = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_GLOBAL));
  const CUmemLocation_st here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const struct {
    CUdeviceptr at;
    CUresult result;
  } rows[] = {{p, CUDA_SUCCESS},
              {p + kPage - 1, CUDA_SUCCESS},
              {p + kPage, CUDA_ERROR_INVALID_VALUE},
              {p - 1, CUDA_ERROR_INVALID_VALUE},
              {trigger_, CUDA_ERROR_INVALID_VALUE}};
  for (const auto& row : rows) {
    EXPECT_EQ(row.result, cuMemAdvise(row.at, 1, 1, 0));
    EXPECT_EQ(row.result, cuMemAdvise_v2(row.at, 1, 1, here));
    EXPECT_EQ(row.result, cuMemPrefetchAsync(row.at, 1, 0, nullptr));
    EXPECT_EQ(row.result, cuMemPrefetchAsync_v2(row.at, 1, here, 0, nullptr));
    EXPECT_EQ(row.result, cuStreamAttachMemAsync(nullptr, row.at, 0, CU_MEM_ATTACH_GLOBAL));
  }
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(p));
}

TEST_F(ShimManagedWire, VariablesAreSharedByAddress) {
  CUlibrary library = nullptr, twin = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUdeviceptr p = 0, again = 0;
  size_t bytes = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuLibraryGetManaged(&p, &bytes, library, "variable"));
  EXPECT_EQ(200u, bytes);
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryGetManaged(&again, nullptr, library, "variable"));
  EXPECT_EQ(p, again);
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryGetManaged(nullptr, &bytes, library, "variable"));
  EXPECT_NE(p / kPage, (p + bytes - 1) / kPage) << "of this test: it lies on two pages";
  Host(p)[199] = 5;
  EXPECT_EQ((Rows{{p + 192, 8}}), Published()) << "and no byte beyond it";
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8_v2(p, 6, 1));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(6, Host(p)[0]);
  EXPECT_EQ(5, Host(p)[199]);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLibraryGetManaged(nullptr, nullptr, library, "variable"));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLibraryGetManaged(&p, &bytes, library, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetManaged(&p, &bytes, nullptr, "variable"));
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&p, &bytes, library, "nothing"));
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryUnload(library));
  int managed = 1;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, again));
  ASSERT_EQ(CUDA_SUCCESS, cuLibraryLoadData(&twin, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryGetManaged(&p, &bytes, twin, "variable")) << "the pages are free again";
  EXPECT_EQ(CUDA_SUCCESS, cuLibraryUnload(twin));
}

TEST_F(ShimManagedWire, MemoryOfAContextGoesWithIt) {
  CUcontext made = nullptr;
  CUdeviceptr own = 0, other = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&own, 16, CU_MEM_ATTACH_GLOBAL));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v2(&made, 0, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&other, 16, CU_MEM_ATTACH_GLOBAL));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(made));
  EXPECT_EQ(1u, Take(VGPU_OP_MEM_FREE).size());
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(other));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(own));
  EXPECT_EQ(1u, Take(VGPU_OP_MEM_FREE).size());
}

}  // namespace
