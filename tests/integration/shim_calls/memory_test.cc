// SPDX-License-Identifier: Apache-2.0
// Allocation and pointer queries of libcuda.so.1, call by call.
#include <sys/mman.h>

#include <thread>
#include <vector>

#include "tests/integration/shim_calls/wire.h"

namespace {

class ShimMemory : public ShimWire {};

TEST_F(ShimMemory, RowsArePaddedTo512Bytes) {
  const struct {
    size_t width, height;
    size_t pitch;
  } rows[] = {{1, 1, 512}, {512, 3, 512}, {513, 3, 1024}, {1024, 2, 1024}};
  for (const auto& row : rows) {
    CUdeviceptr address = 0;
    size_t pitch = 0;
    ASSERT_EQ(CUDA_SUCCESS, cuMemAllocPitch_v2(&address, &pitch, row.width, row.height, 8));
    EXPECT_EQ(row.pitch, pitch);
    EXPECT_EQ((Rows{{row.pitch * row.height}}), ArgsOf(VGPU_OP_MEM_ALLOC, 1));
    EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(address));
  }
  CUdeviceptr address = 0;
  size_t pitch = 0;
  for (const unsigned element : {0u, 1u, 2u, 3u, 4u, 5u, 8u, 15u, 16u, 17u, 32u}) {
    const bool good = element == 4 || element == 8 || element == 16;
    EXPECT_EQ(good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2(&address, &pitch, 4, 4, element))
        << element;
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2(nullptr, &pitch, 4, 4, 4));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2(&address, nullptr, 4, 4, 4));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2(&address, &pitch, 0, 4, 4));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2(&address, &pitch, 4, 0, 4));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2(&address, &pitch, ~size_t{0} - 510, 1, 4));
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocPitch_v2(&address, &pitch, size_t{1} << 63, 2, 4));
  Wire::Get().Refuse(VGPU_OP_MEM_ALLOC, CUDA_ERROR_OUT_OF_MEMORY);
  pitch = 7;
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocPitch_v2(&address, &pitch, ~size_t{0} - 511, 1, 4))
      << "the longest row that can be padded";
  EXPECT_EQ(7u, pitch) << "untouched";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&address, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(nullptr, 1));
}

TEST_F(ShimMemory, HostMemoryIsWholePages) {
  void* host = nullptr;
  unsigned flags = 99;
  for (const unsigned flag : {0u, 1u, 4u, 5u}) {
    ASSERT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&host, 4097, flag)) << flag;
    EXPECT_EQ(CUDA_SUCCESS, cuMemHostGetFlags(&flags, host));
    EXPECT_EQ(flag, flags);
    memset(host, 1, 8192);
    EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(host));
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(&host, 16, 8));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(nullptr, 16, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(nullptr, 0, 0));
  for (const auto none : {cuMemHostAlloc(&host, 0, 0), cuMemAllocHost_v2(&host, 0), cuMemAllocHost(&host, 0)}) {
    EXPECT_EQ(CUDA_SUCCESS, none);
    EXPECT_EQ(nullptr, host) << "nothing is allocated, and that is no error";
  }
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemHostAlloc(&host, ~size_t{0}, 0));
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemHostAlloc(&host, ~size_t{0} - 4095, CU_MEMHOSTALLOC_DEVICEMAP));
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocHost_v2(&host, 16));
  EXPECT_EQ(CUDA_SUCCESS, cuMemHostGetFlags(&flags, host));
  EXPECT_EQ(0u, flags);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostGetFlags(nullptr, host));
  EXPECT_EQ(CUDA_SUCCESS, cuMemHostGetFlags(&flags, static_cast<char*>(host) + 4095)) << "anywhere in it";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostGetFlags(&flags, static_cast<char*>(host) + 4096));
  CUdeviceptr device = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer_v2(nullptr, host, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer_v2(&device, host, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(host)) << "it is the driver's";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(host));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&host, 16, CU_MEMHOSTALLOC_DEVICEMAP));
  EXPECT_EQ(CUDA_SUCCESS, cuMemHostGetDevicePointer_v2(&device, host, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(device)) << "cuMemFreeHost is for that";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(device, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer_v2(&device, host, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer_v2(nullptr, host, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer_v2(&device, static_cast<char*>(host) + 16, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(host));
}

TEST_F(ShimMemory, OnlyMemoryThatIsThereIsRegistered) {
  constexpr size_t kPage = 4096, kPages = 1100;  // more than are asked about at once
  auto* const pages = static_cast<unsigned char*>(
      mmap(nullptr, (kPages + 2) * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(MAP_FAILED, static_cast<void*>(pages));
  unsigned char* const first = pages + kPage;
  munmap(pages, kPage);
  munmap(first + kPages * kPage, kPage);
  const auto result = [](unsigned char* at, size_t bytes) {
    const CUresult registered = cuMemHostRegister_v2(at, bytes, 0);
    if (registered == CUDA_SUCCESS) {
      EXPECT_EQ(CUDA_SUCCESS, cuMemHostUnregister(at));
    }
    return registered;
  };
  EXPECT_EQ(CUDA_SUCCESS, result(first, kPages * kPage));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(first, kPages * kPage + 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(first - 1, 2));
  EXPECT_EQ(CUDA_SUCCESS, result(first + kPages * kPage - 1, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(first + kPages * kPage - 1, 2));
  EXPECT_EQ(CUDA_SUCCESS, result(first + 5, kPage));
  munmap(first + 3 * kPage, kPage);
  EXPECT_EQ(CUDA_SUCCESS, result(first, 3 * kPage));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(first, 3 * kPage + 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result(first, 5 * kPage)) << "a hole";
  munmap(first, 3 * kPage);
  munmap(first + 4 * kPage, (kPages - 4) * kPage);
}

TEST_F(ShimMemory, RegisteredRangesDoNotOverlap) {
  std::vector<unsigned char> memory(300);
  unsigned char* const host = memory.data();
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostRegister_v2(host + 100, 100, CU_MEMHOSTREGISTER_PORTABLE));
  for (const size_t at : {100, 101, 199})
    EXPECT_EQ(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(host + at, 1, 0)) << at;
  EXPECT_EQ(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(host, 101, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemHostRegister_v2(host, 100, 0)) << "up to it";
  EXPECT_EQ(CUDA_SUCCESS, cuMemHostRegister_v2(host + 200, 100, 0)) << "behind it";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(host + 101)) << "not where it begins";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(host + 100, 1, 16));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuMemHostRegister_v2(host + 100, 1, CU_MEMHOSTREGISTER_READ_ONLY));
  for (const size_t at : {0, 100, 200}) EXPECT_EQ(CUDA_SUCCESS, cuMemHostUnregister(host + at));
}

TEST_F(ShimMemory, RangesAreFoundFromEveryByte) {
  const CUdeviceptr memory = Alloc(100);
  CUdeviceptr base = 0;
  size_t bytes = 0, total = 0;
  for (const size_t at : {0, 50, 99}) {
    EXPECT_EQ(CUDA_SUCCESS, cuMemGetAddressRange_v2(&base, &bytes, memory + at));
    EXPECT_EQ(memory, base);
    EXPECT_EQ(100u, bytes);
  }
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetAddressRange_v2(nullptr, nullptr, memory));
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&base, &bytes, memory + 100));
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&base, &bytes, 1));
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetInfo_v2(&bytes, &total));
  EXPECT_EQ(1000u, bytes);
  EXPECT_EQ(size_t{1} << 30, total);
  bytes = total = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetInfo_v2(nullptr, &total));
  EXPECT_EQ(size_t{1} << 30, total);
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetInfo_v2(&bytes, nullptr));
  EXPECT_EQ(1000u, bytes);
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetInfo_v2(nullptr, nullptr));
}

// What each attribute of a pointer is, 64 bits wide; ~0 where the query is refused.
struct Answers {
  uint64_t context, type, device, host, managed, ipc, ordinal, start, size, mapped;
};
constexpr uint64_t kRefused = ~uint64_t{0};

Answers Ask(CUdeviceptr address) {
  const auto one = [address](int attribute) {
    uint64_t value = 0;
    const CUresult result = cuPointerGetAttribute(&value, attribute, address);
    return result == CUDA_SUCCESS ? value : kRefused;
  };
  return {one(CU_POINTER_ATTRIBUTE_CONTEXT),        one(CU_POINTER_ATTRIBUTE_MEMORY_TYPE),
          one(CU_POINTER_ATTRIBUTE_DEVICE_POINTER), one(CU_POINTER_ATTRIBUTE_HOST_POINTER),
          one(CU_POINTER_ATTRIBUTE_IS_MANAGED),     one(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE),
          one(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL), one(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR),
          one(CU_POINTER_ATTRIBUTE_RANGE_SIZE),     one(CU_POINTER_ATTRIBUTE_MAPPED)};
}
void Expect(const Answers& expected, const Answers& told, const char* what) {
  EXPECT_EQ(0, memcmp(&expected, &told, sizeof told)) << what;
}

TEST_F(ShimMemory, PointersTellAllOfThemselves) {
  const auto context = reinterpret_cast<uint64_t>(context_);
  const CUdeviceptr device = Alloc(100);
  Expect({context, 2, device + 7, kRefused, 0, 0, 0, device, 100, 1}, Ask(device + 7), "device");
  CUdeviceptr managed = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
  Expect({context, 2, managed + 7, managed + 7, 1, 0, 0, managed, 100, 1}, Ask(managed + 7), "managed");
  void* host = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&host, 100, 0));
  const auto pinned = reinterpret_cast<CUdeviceptr>(host);
  Expect({context, 1, kRefused, pinned + 7, 0, 0, 0, pinned, 100, 1}, Ask(pinned + 7), "pinned");
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&host, 100, CU_MEMHOSTALLOC_DEVICEMAP));
  const auto mapped = reinterpret_cast<CUdeviceptr>(host);
  Expect({context, 1, mapped + 7, mapped + 7, 0, 0, 0, mapped, 100, 1}, Ask(mapped + 7), "mapped");
  char foreign = 0;
  Expect({kRefused, kRefused, kRefused, kRefused, kRefused, kRefused, kRefused, kRefused, kRefused, kRefused},
         Ask(reinterpret_cast<CUdeviceptr>(&foreign)), "nobody's");
  uint64_t value = 0;
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_P2P_TOKENS, device));
  for (int unknown : {0, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE + 1, 9999, -1}) {
    void* data[] = {&value};
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&value, unknown, device)) << unknown;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttributes(1, &unknown, data, device)) << unknown;
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_CONTEXT, device));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(reinterpret_cast<void*>(mapped)));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(reinterpret_cast<void*>(pinned)));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(managed));
}

// cuFFT of CUDA 12 asks for the buffer's number before it copies a plan's tables.
TEST_F(ShimMemory, MemoryHasANumberThatIsNeverGivenAgain) {
  const auto number = [](CUdeviceptr address, int attribute = CU_POINTER_ATTRIBUTE_BUFFER_ID) {
    uint64_t value = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttribute(&value, attribute, address));
    return value;
  };
  const CUdeviceptr device = Alloc(100);
  void* host = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&host, 100, 0));
  const auto pinned = reinterpret_cast<CUdeviceptr>(host);
  const uint64_t first = number(device + 7);
  EXPECT_NE(0u, first);
  EXPECT_EQ(first, number(device));
  EXPECT_EQ(first, number(device, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID));
  EXPECT_NE(first, number(pinned));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(host));
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&host, 100, 0));
  EXPECT_NE(first, number(reinterpret_cast<CUdeviceptr>(host)));
  EXPECT_EQ(device, number(device + 7, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR));
  EXPECT_EQ(100u, number(device, CU_POINTER_ATTRIBUTE_MAPPING_SIZE));
  EXPECT_EQ(3u, number(device, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS)) << "read and write";
  EXPECT_EQ(0u, number(device, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE)) << "of no pool";
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(host));
}

TEST_F(ShimMemory, FillsAreWaitedForWhereTheProgramWantsIt) {
  const CUdeviceptr device = Alloc(100), other = Alloc(100);
  const auto waits = [&](CUdeviceptr address) {
    Wire::Get().TakeAll();
    EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8_v2(address, 1, 100));
    return Wire::Get().TakeAll().size() > 1;  // what follows the fill is waited for
  };
  unsigned on = 1, off = 0, told = 7;
  EXPECT_FALSE(waits(device));
  EXPECT_EQ(CUDA_SUCCESS, cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device + 7));
  EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
  EXPECT_EQ(1u, told);
  EXPECT_TRUE(waits(device));
  EXPECT_FALSE(waits(other));
  EXPECT_EQ(CUDA_SUCCESS, cuPointerSetAttribute(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
  EXPECT_FALSE(waits(device));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_BUFFER_ID, device));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 0x10));
}

// The runtime asks whose memory a pointer is before it has made a context (PyTorch's pin_memory as the first call).
TEST_F(ShimMemory, PointersTellOfThemselvesWithoutAContext) {
  const auto context = reinterpret_cast<uint64_t>(context_);
  const CUdeviceptr device = Alloc(100);
  void* host = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuMemHostAlloc(&host, 100, 0));
  const auto pinned = reinterpret_cast<CUdeviceptr>(host);
  std::thread([&] {
    CUcontext current = context_;
    ASSERT_EQ(CUDA_SUCCESS, cuCtxGetCurrent(&current));
    ASSERT_EQ(nullptr, current);
    Expect({context, 2, device + 7, kRefused, 0, 0, 0, device, 100, 1}, Ask(device + 7), "device");
    Expect({0, 1, kRefused, pinned + 7, 0, 0, 0, pinned, 100, 1}, Ask(pinned + 7), "pinned");
    int attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE, kind = 7;
    void* data = &kind;
    EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttributes(1, &attribute, &data, reinterpret_cast<CUdeviceptr>(&kind)));
    EXPECT_EQ(0, kind);
  }).join();
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeHost(host));
}

// As the driver says: asked for several attributes, foreign memory is no error.
TEST_F(ShimMemory, SeveralAttributesOfForeignMemoryAreZero) {
  int attributes[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,       CU_POINTER_ATTRIBUTE_MAPPED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT,          CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
      CU_POINTER_ATTRIBUTE_HOST_POINTER,   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  uint64_t values[9];
  void* data[9];
  for (int i = 0; i < 9; ++i) data[i] = &values[i];
  memset(values, 0x55, sizeof values);
  constexpr uint64_t kUpper = 0x5555555500000000;  // attributes that are an int leave the rest alone
  ASSERT_EQ(CUDA_SUCCESS, cuPointerGetAttributes(9, attributes, data, 0x10));
  const uint64_t expected[9] = {kUpper, kUpper, kUpper, kUpper | 0xfffffffe, 0, 0, 0, 0, 0};
  for (int i = 0; i < 9; ++i) EXPECT_EQ(expected[i], values[i]) << attributes[i];
  const CUdeviceptr device = Alloc(100);
  ASSERT_EQ(CUDA_SUCCESS, cuPointerGetAttributes(9, attributes, data, device));
  EXPECT_EQ(kUpper | 2, values[0]);
  EXPECT_EQ(kUpper, values[3]);
  EXPECT_EQ(device, values[5]);
  EXPECT_EQ(0u, values[6]) << "no host address";
  EXPECT_EQ(100u, values[8]);
  int unknown = CU_POINTER_ATTRIBUTE_P2P_TOKENS;
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, cuPointerGetAttributes(1, &unknown, data, device));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttributes(0, attributes, data, device));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttributes(1, nullptr, data, device));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttributes(1, attributes, nullptr, device));
  data[1] = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttributes(1, attributes, data, device));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttributes(2, attributes, data, device));
}

// The status of a call may be that of an earlier operation: then the memory was granted all the same.
TEST_F(ShimMemory, GrantedMemoryIsGivenBackWhenTheCallFails) {
  const CUdeviceptr memory = Alloc(16);
  Wire::Get().Refuse(VGPU_OP_FILL, CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(memory, 1, 16, nullptr));
  CUdeviceptr address = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&address, 16));
  EXPECT_EQ(0u, address);
  EXPECT_EQ(1u, Take(VGPU_OP_MEM_FREE).size());
}

}  // namespace
