// SPDX-License-Identifier: Apache-2.0
// Memory pools of libcuda.so.1: what they keep, count and refuse.
#include "tests/integration/shim_calls/wire.h"

namespace {

const auto kWild = reinterpret_cast<CUmemoryPool>(0x1234);

CUmemPoolProps_st Properties() {
  CUmemPoolProps_st properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return properties;
}

class ShimPools : public ShimWire {
 protected:
  void SetUp() override {
    ShimWire::SetUp();
    const CUmemPoolProps_st properties = Properties();
    ASSERT_EQ(CUDA_SUCCESS, cuMemPoolCreate(&pool_, &properties));
    SetThreshold(~uint64_t{0});
  }
  void TearDown() override {
    EXPECT_EQ(CUDA_SUCCESS, cuMemPoolDestroy(pool_));
    ShimWire::TearDown();
  }
  void SetThreshold(uint64_t bytes) {
    EXPECT_EQ(CUDA_SUCCESS, cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
  }
  uint64_t Attribute(int which) {
    uint64_t value = ~uint64_t{0};
    EXPECT_EQ(CUDA_SUCCESS, cuMemPoolGetAttribute(pool_, which, &value)) << which;
    return value;
  }
  CUdeviceptr Take512(size_t bytes, CUstream stream = nullptr) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuMemAllocFromPoolAsync(&address, bytes, pool_, stream));
    return address;
  }
  void Free(CUdeviceptr address, CUstream stream = nullptr) {
    EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(address, stream));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  }
  CUmemoryPool pool_ = nullptr;
};

TEST_F(ShimPools, BlocksAreMultiplesOf512Bytes) {
  for (const size_t bytes : {1, 512, 513, 1024}) {
    const uint64_t whole = (bytes + 511) / 512 * 512;
    const CUdeviceptr address = Take512(bytes);
    EXPECT_EQ((Rows{{whole}}), ArgsOf(VGPU_OP_MEM_ALLOC, 1)) << bytes;
    EXPECT_EQ(whole, Attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
    size_t range = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuMemGetAddressRange_v2(nullptr, &range, address));
    EXPECT_EQ(whole, range);
    Free(address);
    EXPECT_EQ(0u, Attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
    EXPECT_EQ(whole, Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    EXPECT_EQ(CUDA_SUCCESS, cuMemPoolTrimTo(pool_, 0));
    EXPECT_EQ((Rows{{address}}), ArgsOf(VGPU_OP_MEM_FREE, 1));
  }
  CUdeviceptr address;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&address, 0, pool_, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(nullptr, 8, pool_, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&address, 8, kWild, nullptr));
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&address, ~size_t{0} - 511, pool_, nullptr));
  EXPECT_EQ(0u, Take(VGPU_OP_MEM_ALLOC).size());
  Wire::Get().Refuse(VGPU_OP_MEM_ALLOC, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&address, ~size_t{0} - 512, pool_, nullptr));
  EXPECT_EQ((Rows{{~uint64_t{0} - 511}}), ArgsOf(VGPU_OP_MEM_ALLOC, 1)) << "the most that can be rounded up";
}

TEST_F(ShimPools, TheSmallestIdleBlockThatFitsIsTaken) {
  const CUdeviceptr small = Take512(1024), large = Take512(4096), middle = Take512(2048);
  for (const CUdeviceptr address : {large, middle, small}) Free(address);
  EXPECT_EQ(small, Take512(513));
  EXPECT_EQ(middle, Take512(1025)) << "not the one of 4096, though it comes first";
  Free(middle);
  EXPECT_EQ(middle, Take512(1024)) << "up to twice what is wanted";
  Free(middle);
  const CUdeviceptr fresh = Take512(512);
  EXPECT_NE(middle, fresh) << "but no more";
  EXPECT_NE(large, fresh);
  EXPECT_EQ(middle, Take512(2048)) << "exactly as large";
  EXPECT_EQ(large, Take512(2049));
  for (const CUdeviceptr address : {small, middle, large, fresh}) Free(address);
}

TEST_F(ShimPools, CountersFollowWhatIsUsedAndReserved) {
  const CUdeviceptr a = Take512(1024), b = Take512(2048);
  EXPECT_EQ(3072u, Attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  Free(a);
  EXPECT_EQ(2048u, Attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  EXPECT_EQ(3072u, Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  const CUdeviceptr c = Take512(4096);
  EXPECT_EQ(6144u, Attribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH));
  EXPECT_EQ(7168u, Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH));
  Free(b), Free(c);
  EXPECT_EQ(6144u, Attribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH)) << "a high-water mark stays";
  EXPECT_EQ(7168u, Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolTrimTo(pool_, 0));
  uint64_t zero = 0, one = 1;
  for (const int high : {CU_MEMPOOL_ATTR_USED_MEM_HIGH, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool_, high, &one));
    EXPECT_EQ(CUDA_SUCCESS, cuMemPoolSetAttribute(pool_, high, &zero));
    EXPECT_EQ(0u, Attribute(high));
  }
  for (const int now : {CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT})
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool_, now, &zero));
}

TEST_F(ShimPools, AttributesAreKeptOneByOne) {
  for (const int which : {1, 2, 3}) {
    int value = -1;
    EXPECT_EQ(CUDA_SUCCESS, cuMemPoolGetAttribute(pool_, which, &value));
    EXPECT_EQ(1, value) << which;
    value = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuMemPoolSetAttribute(pool_, which, &value));
    value = -1;
    EXPECT_EQ(CUDA_SUCCESS, cuMemPoolGetAttribute(pool_, which, &value));
    EXPECT_EQ(0, value) << which;
  }
  SetThreshold(0x123456789a);
  EXPECT_EQ(0x123456789au, Attribute(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
  uint64_t value = 0;
  for (const int which : {0, 9})
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAttribute(pool_, which, &value)) << which;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAttribute(pool_, 1, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAttribute(kWild, 1, &value));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(kWild, 1, &value));
  CUmemoryPool fresh = nullptr;
  const CUmemPoolProps_st properties = Properties();
  ASSERT_EQ(CUDA_SUCCESS, cuMemPoolCreate(&fresh, &properties));
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolGetAttribute(fresh, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
  EXPECT_EQ(0u, value) << "the default: keep nothing";
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolDestroy(fresh));
}

TEST_F(ShimPools, SynchronisationTrimsToTheThreshold) {
  SetThreshold(1536);
  const CUdeviceptr a = Take512(1024), b = Take512(512), c = Take512(512);
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(a, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(b, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(nullptr));
  EXPECT_EQ(2048u, Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)) << "1536 idle are allowed";
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(c, nullptr));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(nullptr));
  EXPECT_EQ((Rows{{a}}), ArgsOf(VGPU_OP_MEM_FREE, 1)) << "the oldest goes first, and no more than needed";
  EXPECT_EQ(1024u, Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
}

TEST_F(ShimPools, TrimmingCountsWhatIsInUse) {
  const CUdeviceptr used = Take512(1024), a = Take512(512), b = Take512(512);
  Free(a), Free(b);
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolTrimTo(pool_, 2048));
  EXPECT_EQ(2048u, Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolTrimTo(pool_, 1536));
  EXPECT_EQ(1536u, Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolTrimTo(pool_, 512));
  EXPECT_EQ(1024u, Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)) << "what is in use stays";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolTrimTo(kWild, 0));
  Free(used);
}

TEST_F(ShimPools, MemoryThatRanOutIsLookedForAmongIdleBlocks) {
  const CUdeviceptr idle = Take512(512);
  Free(idle);
  Take(VGPU_OP_MEM_ALLOC);
  Wire::Get().Refuse(VGPU_OP_MEM_ALLOC, CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr address = 0;
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&address, 8192, pool_, nullptr));
  EXPECT_EQ(2u, Wire::Get().Take(VGPU_OP_MEM_ALLOC).size()) << "once more, when the idle block was given back";
  EXPECT_EQ((Rows{{idle}}), ArgsOf(VGPU_OP_MEM_FREE, 1));
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&address, 8192, pool_, nullptr));
  EXPECT_EQ(1u, Wire::Get().Take(VGPU_OP_MEM_ALLOC).size()) << "nothing is idle";
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&address, 16));
  EXPECT_EQ(2u, Wire::Get().Take(VGPU_OP_MEM_ALLOC).size());
  Wire::Get().Refuse(VGPU_OP_MEM_ALLOC, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&address, 16));
  EXPECT_EQ(1u, Wire::Get().Take(VGPU_OP_MEM_ALLOC).size()) << "another error";
}

// The programming guide: memory of cudaMalloc can be freed with cudaFreeAsync.
TEST_F(ShimPools, MemoryThatNoPoolGaveOutIsFreedInAStream) {
  CUstream stream, other;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CUdeviceptr pitched = 0, managed = 0;
  size_t pitch = 0;
  const CUdeviceptr plain = Alloc(16);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocPitch_v2(&pitched, &pitch, 16, 4, 4));
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&managed, 16, CU_MEM_ATTACH_GLOBAL));
  {
    StreamHold hold;
    hold.Put(stream);
    EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(plain, stream));
    EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(pitched, stream));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(plain, stream)) << "it is freed already";
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(pitched));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(other));
    EXPECT_EQ(0u, Wire::Get().Take(VGPU_OP_MEM_FREE).size()) << "its stream is not there yet";
    EXPECT_EQ(0u, Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)) << "no pool has it";
  }
  EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ((Rows{{plain}, {pitched}}), ArgsOf(VGPU_OP_MEM_FREE, 1));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(managed, stream));
  EXPECT_EQ((Rows{{managed}}), ArgsOf(VGPU_OP_MEM_FREE, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(managed, stream));
  for (CUstream each : {stream, other}) EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(each));
}

TEST_F(ShimPools, MemoryThatWaitsForItsStreamIsTakenWhenThereIsNoOther) {
  const CUdeviceptr plain = Alloc(16);
  ASSERT_EQ(CUDA_SUCCESS, cuMemFreeAsync(plain, nullptr));
  Wire::Get().Refuse(VGPU_OP_MEM_ALLOC, CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr address = 0;
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&address, 8192, pool_, nullptr));
  EXPECT_EQ((Rows{{plain}}), ArgsOf(VGPU_OP_MEM_FREE, 1));
}

TEST_F(ShimPools, APoolHasItsMaximumSize) {
  CUmemPoolProps_st properties = Properties();
  properties.maxSize = 4096;
  CUmemoryPool small = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuMemPoolCreate(&small, &properties));
  uint64_t keep = ~uint64_t{0};
  ASSERT_EQ(CUDA_SUCCESS, cuMemPoolSetAttribute(small, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  const auto take = [&](size_t bytes, CUresult expected) {
    CUdeviceptr address = 0;
    EXPECT_EQ(expected, cuMemAllocFromPoolAsync(&address, bytes, small, nullptr)) << bytes;
    return address;
  };
  take(4097, CUDA_ERROR_OUT_OF_MEMORY);
  take(~size_t{0} - 512, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(Rows{}, ArgsOf(VGPU_OP_MEM_ALLOC, 1)) << "the device is not asked";
  const CUdeviceptr a = take(3072, CUDA_SUCCESS), b = take(1024, CUDA_SUCCESS);
  take(1, CUDA_ERROR_OUT_OF_MEMORY);
  Free(b);
  take(1025, CUDA_ERROR_OUT_OF_MEMORY);
  const CUdeviceptr c = take(1024, CUDA_SUCCESS);
  Free(a);
  Free(c);
  const CUdeviceptr d = take(4096, CUDA_SUCCESS);
  EXPECT_NE(0u, d) << "what is idle makes way";
  Free(d);
  Wire::Get().Refuse(VGPU_OP_MEM_ALLOC, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolTrimTo(small, 0));
  take(4096, CUDA_ERROR_OUT_OF_MEMORY);
  Wire::Get().Refuse(VGPU_OP_MEM_ALLOC, 0);
  Free(take(4096, CUDA_SUCCESS));  // what was refused does not count
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolDestroy(small));
}

// It stays in use for as long as it is there, whoever ends it.
TEST_F(ShimPools, WhatGoesWithItsContextIsNoLongerUsed) {
  CUcontext other = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v2(&other, 0, 0));
  const CUdeviceptr address = Take512(512);
  EXPECT_EQ(512u, Attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy_v2(other));
  EXPECT_EQ((Rows{{address}}), ArgsOf(VGPU_OP_MEM_FREE, 1));
  EXPECT_EQ(0u, Attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
}

TEST_F(ShimPools, MemoryOfAPoolHasNoContext) {
  const CUdeviceptr pooled = Take512(16), plain = Alloc(16);
  CUcontext context = context_;
  CUmemoryPool pool = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pooled));
  EXPECT_EQ(nullptr, context);
  EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pooled));
  EXPECT_EQ(pool_, pool);
  EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, plain));
  EXPECT_EQ(context_, context);
  Free(pooled);
}

TEST_F(ShimPools, OnlyMemoryOfThisDeviceIsFreedInAStream) {
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(0, nullptr));
  const CUdeviceptr pooled = Take512(16);
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuMemFreeAsync(pooled, reinterpret_cast<CUstream>(3)));
  CUdeviceptr address;
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuMemAllocAsync(&address, 8, reinterpret_cast<CUstream>(3)));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuMemAllocFromPoolAsync(&address, 8, pool_, reinterpret_cast<CUstream>(3)));
  Free(pooled);
}

TEST_F(ShimPools, TheCurrentPoolServesPlainCalls) {
  CUmemoryPool told = nullptr, standard = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, cuDeviceGetDefaultMemPool(&standard, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuDeviceSetMemPool(0, pool_));
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetMemPool(&told, 0));
  EXPECT_EQ(pool_, told);
  CUdeviceptr address = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocAsync(&address, 512, nullptr));
  EXPECT_EQ(512u, Attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  Free(address);
  CUmemoryPool own = nullptr;
  const CUmemPoolProps_st properties = Properties();
  ASSERT_EQ(CUDA_SUCCESS, cuMemPoolCreate(&own, &properties));
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolDestroy(own));
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetMemPool(&told, 0));
  EXPECT_EQ(pool_, told) << "another pool went";
  ASSERT_EQ(CUDA_SUCCESS, cuMemPoolCreate(&own, &properties));
  ASSERT_EQ(CUDA_SUCCESS, cuDeviceSetMemPool(0, own));
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolDestroy(own));
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetMemPool(&told, 0));
  EXPECT_EQ(standard, told) << "the current one went";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(0, kWild));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceSetMemPool(1, pool_));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetMemPool(&told, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuDeviceGetMemPool(nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(kWild));
}

TEST_F(ShimPools, PoolsAreOfDeviceMemoryForThisProcess) {
  CUmemoryPool made = nullptr;
  const auto result = [&made](void (*change)(CUmemPoolProps_st&)) {
    CUmemPoolProps_st properties = Properties();
    change(properties);
    return cuMemPoolCreate(&made, &properties);
  };
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, result([](CUmemPoolProps_st& p) { p.allocType = 0; }));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, result([](CUmemPoolProps_st& p) { p.handleTypes = 1; }));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, result([](CUmemPoolProps_st& p) { p.usage = 2; }));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result([](CUmemPoolProps_st& p) { p.win32SecurityAttributes = &p; }));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, result([](CUmemPoolProps_st& p) { p.reserved[53] = 1; }));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, result([](CUmemPoolProps_st& p) { p.location.type = 0; }));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, result([](CUmemPoolProps_st& p) { p.location.id = 1; }));
  const CUmemPoolProps_st good = Properties();
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(nullptr, &good));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&made, nullptr));
}

TEST_F(ShimPools, OnlyTheOwnDeviceHasAccess) {
  const CUmemLocation_st here{CU_MEM_LOCATION_TYPE_DEVICE, 0}, there{CU_MEM_LOCATION_TYPE_DEVICE, 1}, host{0, 0};
  const CUmemAccessDesc_st all{here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}, none{here, CU_MEM_ACCESS_FLAGS_PROT_NONE},
      other{there, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}, of_host{host, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolSetAccess(pool_, &all, 1));
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolSetAccess(pool_, nullptr, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolSetAccess(pool_, &other, 0)) << "none of them";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool_, nullptr, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(kWild, &all, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool_, &none, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool_, &other, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool_, &of_host, 1));
  const CUmemAccessDesc_st second[] = {all, other};
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool_, second, 2));
  const struct {
    CUmemLocation_st location;
    int flags;
  } rows[] = {{here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
              {there, CU_MEM_ACCESS_FLAGS_PROT_NONE},
              {host, CU_MEM_ACCESS_FLAGS_PROT_NONE}};
  for (const auto& row : rows) {
    CUmemLocation_st location = row.location;
    int flags = -1;
    EXPECT_EQ(CUDA_SUCCESS, cuMemPoolGetAccess(&flags, pool_, &location));
    EXPECT_EQ(row.flags, flags) << location.type << " " << location.id;
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAccess(&flags, kWild, &location));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAccess(nullptr, pool_, &location));
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAccess(&flags, pool_, nullptr));
  }
}

TEST_F(ShimPools, ABlockIsFreeForOtherStreamsWhenItsStreamIsThere) {
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  StreamHold hold;
  const CUdeviceptr held = Take512(512, stream);
  hold.Put(stream);
  ASSERT_EQ(CUDA_SUCCESS, cuMemFreeAsync(held, stream));
  EXPECT_EQ(CUDA_SUCCESS, cuMemPoolTrimTo(pool_, 0));
  EXPECT_EQ(512u, Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)) << "not before its stream is there";
  CUdeviceptr same = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemAllocFromPoolAsync(&same, 512, pool_, stream));
  EXPECT_EQ(held, same) << "the same stream may";
  EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(same, stream));
  hold.LetGo();
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(held, Take512(512)) << "now any";
  Free(held);
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

TEST_F(ShimPools, WhatHappensToBeDoneIsNotReusedWhereTheProgramForbidsIt) {
  int no = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &no));
  CUstream stream, other;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr first = Take512(512, stream);
  ASSERT_EQ(CUDA_SUCCESS, cuMemFreeAsync(first, stream));
  while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  const CUdeviceptr second = Take512(512, other);
  EXPECT_NE(first, second) << "done, but nobody has waited for it";
  EXPECT_EQ(first, Take512(512, stream)) << "the same stream may";
  ASSERT_EQ(CUDA_SUCCESS, cuMemFreeAsync(first, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(first, Take512(512, other)) << "the host has waited";
  Free(first, other);
  Free(second, other);
  for (CUstream each : {stream, other}) EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(each));
}

TEST_F(ShimPools, AMadeStreamNeedsNoCurrentContext) {
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::thread([&] {
    CUdeviceptr address = 0, of_pool = 0;
    char byte = 0;
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemAllocAsync(&address, 16, nullptr)) << "which device's default stream?";
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemAllocFromPoolAsync(&address, 16, pool_, nullptr));
    EXPECT_EQ(CUDA_SUCCESS, cuMemAllocAsync(&address, 16, stream));
    EXPECT_EQ(CUDA_SUCCESS, cuMemAllocFromPoolAsync(&of_pool, 16, pool_, stream));
    EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8Async(address, 7, 16, stream));
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoHAsync_v2(&byte, address, 1, stream));
    EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
    EXPECT_EQ(7, byte);
    EXPECT_EQ(CUDA_SUCCESS, cuStreamQuery(stream));
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemFreeAsync(address, nullptr));
    EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(address, stream));
    EXPECT_EQ(CUDA_SUCCESS, cuMemFreeAsync(of_pool, stream));
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuStreamSynchronize(nullptr));
    EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuMemFreeAsync(address, reinterpret_cast<CUstream>(0x1234)));
  }).join();
  EXPECT_EQ(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
}

}  // namespace
