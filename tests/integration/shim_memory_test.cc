// SPDX-License-Identifier: Apache-2.0
// Managed memory and the memory of graphs, served by fake_vf (shim_api_test.cc).
#include <cstring>

#include "base/sanitizer.h"
#include "tests/integration/shim_fixture.h"

namespace {

constexpr size_t kBytes = 300'000;  // no multiple of a page

class ShimManaged : public ShimApi {
 protected:
  void SetUp() override {
    ShimApi::SetUp();
    if (!vgpud::kFixedAddresses) GTEST_SKIP() << "ThreadSanitizer leaves no addresses for it";
    for (CUdeviceptr* p : {&a_, &b_}) ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(p, kBytes, CU_MEM_ATTACH_GLOBAL));
  }
  void TearDown() override {
    for (const CUdeviceptr p : {a_, b_}) EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(p));
    ShimApi::TearDown();
  }
  static unsigned char* Host(CUdeviceptr p) { return reinterpret_cast<unsigned char*>(p); }
  CUdeviceptr a_ = 0, b_ = 0;
};

TEST_F(ShimManaged, BothSidesSeeWhatTheOtherWrote) {
  EXPECT_EQ(0, Host(a_)[0]);
  EXPECT_EQ(0, Host(b_)[kBytes - 1]);
  memset(Host(a_), 7, kBytes);
  Host(a_)[kBytes - 1] = 9;
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoDAsync_v2(b_, a_, kBytes, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(7, Host(b_)[0]);
  EXPECT_EQ(9, Host(b_)[kBytes - 1]);
  // A second exchange carries only what changed, and keeps the rest.
  Host(a_)[100'000] = 1;
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(a_, 3, 10, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(nullptr));
  EXPECT_EQ(3, Host(a_)[9]);
  EXPECT_EQ(7, Host(a_)[10]);
  EXPECT_EQ(1, Host(a_)[100'000]);
  unsigned char out[4] = {};
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(out, a_ + 99'999, sizeof out));
  EXPECT_EQ(1, out[1]);
  EXPECT_EQ(7, out[2]);
}

// The host may go on with one allocation while the device works on another.
TEST_F(ShimManaged, AWaitDoesNotUndoWhatTheHostHasWritten) {
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(a_, 5, kBytes, nullptr));
  Host(b_)[0] = 77;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(nullptr));
  EXPECT_EQ(77, Host(b_)[0]);
  EXPECT_EQ(5, Host(a_)[kBytes - 1]);
}

TEST_F(ShimManaged, CopiesOfTheHostArriveAtOnce) {
  const unsigned char in[] = {1, 2, 3};
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpy(a_ + 5, reinterpret_cast<CUdeviceptr>(in), sizeof in));
  EXPECT_EQ(2, Host(a_)[6]);
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoD_v2(b_, in, sizeof in));
  EXPECT_EQ(3, Host(b_)[2]);
}

TEST_F(ShimManaged, PointersSayWhatTheyAre) {
  int managed = 0;
  CUdeviceptr host = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, a_ + 4));
  EXPECT_EQ(1, managed);
  EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, a_ + 4));
  EXPECT_EQ(a_ + 4, host);
  const CUdeviceptr plain = Alloc(16);
  EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, plain));
  EXPECT_EQ(0, managed);
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(plain));
  const CUmemLocation_st here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  EXPECT_EQ(CUDA_SUCCESS, cuMemPrefetchAsync_v2(a_, 16, here, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync_v2(plain, 16, here, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&host, 0, CU_MEM_ATTACH_GLOBAL));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&host, 16, 99));
}

TEST_F(ShimApi, MappedHostMemoryIsOneAddressForBothSides) {
  if (!vgpud::kFixedAddresses) GTEST_SKIP() << "ThreadSanitizer leaves no addresses for it";
  void* host = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&host, 5000, CU_MEMHOSTALLOC_DEVICEMAP));
  CUdeviceptr device = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostGetDevicePointer_v2(&device, static_cast<char*>(host) + 10, 0));
  auto* const bytes = static_cast<unsigned char*>(host);
  EXPECT_EQ(reinterpret_cast<CUdeviceptr>(bytes + 10), device);
  bytes[9] = 1;
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(device, 6, 20, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(nullptr));
  EXPECT_EQ(1, bytes[9]);
  EXPECT_EQ(6, bytes[29]);
  EXPECT_EQ(0, bytes[30]);
  unsigned type = 0;
  int managed = 1;
  EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
  EXPECT_EQ(unsigned{CU_MEMORYTYPE_HOST}, type);
  EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, device));
  EXPECT_EQ(0, managed);
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(host));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer_v2(&device, host, 0));
  void* pinned = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&pinned, 5000, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer_v2(&device, pinned, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(pinned));
}

TEST_F(ShimApi, RegisteredMemoryIsForCopies) {
  std::vector<unsigned char> memory(3 << 20, 7);
  unsigned char* const host = memory.data();
  EXPECT_EQ(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(host));
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostRegister_v2(host, memory.size(), CU_MEMHOSTREGISTER_DEVICEMAP));
  EXPECT_EQ(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(host + 100, 8, 0));
  EXPECT_EQ(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(host - 8, 16, 0));
  unsigned type = 0, flags = 0;
  const auto inside = reinterpret_cast<CUdeviceptr>(host + 5);
  EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside));
  EXPECT_EQ(unsigned{CU_MEMORYTYPE_HOST}, type);
  EXPECT_EQ(CUDA_SUCCESS, cuMemHostGetFlags(&flags, host));
  EXPECT_EQ(unsigned{CU_MEMHOSTREGISTER_DEVICEMAP}, flags);
  CUdeviceptr device = 0, mapped = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer_v2(&mapped, host, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuMemAlloc_v2(&device, memory.size()));
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(device, 9, 1000, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyHtoDAsync_v2(device + 500, host, memory.size() - 500, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(host, device, memory.size(), nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(nullptr));
  EXPECT_EQ(9, host[499]);
  EXPECT_EQ(7, host[500]);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
  EXPECT_EQ(CUDA_SUCCESS, cuMemHostUnregister(host));
  EXPECT_EQ(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(host));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(device));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(nullptr, 8, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(host, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(host, ~size_t{0}, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(reinterpret_cast<void*>(0x1000), 4096, 0));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuMemHostRegister_v2(host, 8, CU_MEMHOSTREGISTER_IOMEMORY));
}

TEST_F(ShimApi, ManagedMemoryGoesWithItsContext) {
  if (!vgpud::kFixedAddresses) GTEST_SKIP() << "ThreadSanitizer leaves no addresses for it";
  CUdeviceptr p = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&p, 16, CU_MEM_ATTACH_GLOBAL));
  ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxReset_v2(0));
  ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context_, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
  CUdeviceptr again = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&again, 16, CU_MEM_ATTACH_GLOBAL));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(again));
}

CUDA_MEM_ALLOC_NODE_PARAMS_v1_st Wanted(size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS_v1_st wanted{};
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  wanted.bytesize = bytes;
  return wanted;
}

TEST_F(ShimApi, GraphsHaveTheirOwnMemory) {
  CUgraph graph;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS_v1_st kept = Wanted(64), freed = Wanted(64);
  CUgraphNode first, second, fill, end;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemAllocNode(&first, graph, nullptr, 0, &kept));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemAllocNode(&second, graph, &first, 1, &freed));
  ASSERT_NE(0u, kept.dptr);
  ASSERT_NE(kept.dptr, freed.dptr);
  CUDA_MEMSET_NODE_PARAMS_st set{};
  set.dst = kept.dptr;
  set.value = 0x11;
  set.elementSize = 1;
  set.width = 64;
  set.height = 1;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemsetNode(&fill, graph, &second, 1, &set, context_));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphAddMemFreeNode(&end, graph, &fill, 1, freed.dptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&end, graph, &fill, 1, freed.dptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&end, graph, &fill, 1, 12345));
  uint64_t used = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(128u, used);
  CUgraphExec executable;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  // What the graph has not freed is still there, and the program's.
  unsigned char out[64] = {};
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(out, kept.dptr, sizeof out));
  EXPECT_EQ(0x11, out[63]);
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(kept.dptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(kept.dptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(freed.dptr));
}

TEST_F(ShimApi, CapturedAllocationsBelongToTheGraph) {
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUdeviceptr memory = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocAsync(&memory, 256, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(memory, 1, 256, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuMemFreeAsync(memory, stream));
  CUgraph graph;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamEndCapture(stream, &graph));
  size_t count = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuGraphGetNodes(graph, nullptr, &count));
  EXPECT_EQ(3u, count);
  CUgraphExec executable;
  ASSERT_EQ(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&executable, graph, 0));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(CUDA_SUCCESS, cuGraphLaunch(executable, stream));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

}  // namespace
