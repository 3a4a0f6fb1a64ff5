// SPDX-License-Identifier: Apache-2.0
// Virtual memory management of libcuda.so.1, call by call: what reaches the executor, and what is refused before.
#include "tests/integration/shim_calls/wire.h"

namespace {

constexpr uint64_t kGrain = VGPU_MAPPED_GRAIN;
using Handle = unsigned long long;

class ShimMapping : public ShimWire {
 protected:
  static CUmemAllocationProp_st Told() {
    CUmemAllocationProp_st told{};
    told.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    told.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return told;
  }
  static CUresult Access(CUdeviceptr at, size_t bytes, int flags, int ordinal = 0) {
    const CUmemAccessDesc_st wanted{{CU_MEM_LOCATION_TYPE_DEVICE, ordinal}, flags};
    return cuMemSetAccess(at, bytes, &wanted, 1);
  }
  CUdeviceptr Reserve(size_t bytes) {
    CUdeviceptr at = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuMemAddressReserve(&at, bytes, 0, 0, 0));
    return at;
  }
  Handle Create(size_t bytes) {
    Handle handle = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuMemCreate(&handle, bytes, &told_, 0));
    return handle;
  }
  const CUmemAllocationProp_st told_ = Told();
};

TEST_F(ShimMapping, AddressesAreReservedOnce) {
  const CUdeviceptr one = Reserve(3 * kGrain), two = Reserve(kGrain);
  EXPECT_LE(VGPU_MAPPED_VA, one);
  EXPECT_EQ(0u, one % kGrain);
  EXPECT_TRUE(two >= one + 3 * kGrain || two + kGrain <= one);
  CUdeviceptr at = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemAddressReserve(&at, kGrain, 64 * kGrain, 0, 0));
  EXPECT_EQ(0u, at % (64 * kGrain));
  EXPECT_EQ(CUDA_SUCCESS, cuMemAddressFree(at, kGrain));
  EXPECT_EQ(CUDA_SUCCESS, cuMemAddressReserve(&at, kGrain, 0, one + 500 * kGrain, 0));
  EXPECT_EQ(one + 500 * kGrain, at) << "where it was wished";
  CUdeviceptr other = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemAddressReserve(&other, kGrain, 0, at, 0));
  EXPECT_NE(at, other) << "what is taken is given elsewhere";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&other, kGrain + 1, 0, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&other, 0, 0, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&other, kGrain, 3 * kGrain, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&other, kGrain, 0, 0, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(nullptr, kGrain, 0, 0, 0));
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAddressReserve(&other, VGPU_MAPPED_BYTES, 0, 0, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(one, 2 * kGrain));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(one + kGrain, kGrain));
  for (const auto& [address, bytes] : {std::pair{one, 3 * kGrain}, {two, kGrain}, {at, kGrain}, {other, kGrain}})
    EXPECT_EQ(CUDA_SUCCESS, cuMemAddressFree(address, bytes));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(one, 3 * kGrain)) << "twice";
}

TEST_F(ShimMapping, MemoryIsDescribed) {
  size_t grain = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetAllocationGranularity(&grain, &told_, 1));
  EXPECT_EQ(kGrain, grain);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationGranularity(&grain, &told_, 2));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationGranularity(nullptr, &told_, 0));
  Handle handle = 0;
  const auto refused = [&](CUresult wanted, auto change, size_t bytes = kGrain) {
    CUmemAllocationProp_st told = told_;
    change(told);
    EXPECT_EQ(wanted, cuMemCreate(&handle, bytes, &told, 0));
  };
  refused(
      CUDA_ERROR_INVALID_VALUE, [](auto&) {}, kGrain / 2);
  refused(
      CUDA_ERROR_INVALID_VALUE, [](auto&) {}, 0);
  refused(CUDA_ERROR_INVALID_VALUE, [](auto& told) { told.type = CU_MEM_ALLOCATION_TYPE_INVALID; });
  refused(CUDA_ERROR_NOT_SUPPORTED, [](auto& told) { told.type = CU_MEM_ALLOCATION_TYPE_MANAGED; });
  refused(CUDA_ERROR_NOT_SUPPORTED, [](auto& told) { told.location.type = CU_MEM_LOCATION_TYPE_HOST; });
  refused(CUDA_ERROR_INVALID_DEVICE, [](auto& told) { told.location.id = 99; });
  refused(CUDA_ERROR_NOT_SUPPORTED, [](auto& told) { told.requestedHandleTypes = 8; });
  refused(CUDA_ERROR_NOT_SUPPORTED, [](auto& told) { told.allocFlags.gpuDirectRDMACapable = 1; });
  refused(CUDA_ERROR_NOT_SUPPORTED, [](auto& told) { told.allocFlags.usage = 1; });
  refused(CUDA_ERROR_INVALID_VALUE, [](auto& told) { told.allocFlags.compressionType = 2; });
  refused(CUDA_ERROR_INVALID_VALUE, [](auto& told) { told.allocFlags.reserved[3] = 1; });
  refused(CUDA_ERROR_INVALID_VALUE, [](auto& told) { told.win32HandleMetaData = &told; });
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, kGrain, nullptr, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, kGrain, &told_, 1));
  EXPECT_EQ(Rows{}, ArgsOf(VGPU_OP_MEM_CREATE, 1));
  handle = Create(2 * kGrain);
  EXPECT_EQ((Rows{{2 * kGrain}}), ArgsOf(VGPU_OP_MEM_CREATE, 1));
  CUmemAllocationProp_st told{};
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetAllocationPropertiesFromHandle(&told, handle));
  EXPECT_EQ(0, memcmp(&told, &told_, sizeof told));
  CUmemAllocationProp_st compressible = told_;
  compressible.allocFlags.compressionType = 1;
  Handle compressed = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemCreate(&compressed, kGrain, &compressible, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetAllocationPropertiesFromHandle(&told, compressed));
  EXPECT_EQ(0, told.allocFlags.compressionType) << "it was a hint, and nothing is compressed";
  EXPECT_EQ(CUDA_SUCCESS, cuMemRelease(compressed));
  EXPECT_EQ(1u, ArgsOf(VGPU_OP_MEM_RELEASE, 1).size());
  EXPECT_EQ(CUDA_SUCCESS, cuMemRelease(handle));
  EXPECT_EQ(1u, ArgsOf(VGPU_OP_MEM_RELEASE, 1).size());
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationPropertiesFromHandle(&told, handle));
  Wire::Get().Refuse(VGPU_OP_MEM_CREATE, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&handle, kGrain, &told_, 0));
  Wire::Get().Refuse(VGPU_OP_MEM_CREATE, 0);
}

TEST_F(ShimMapping, TheDeviceHasItWhileItMayAccessIt) {
  const CUdeviceptr at = Reserve(4 * kGrain);
  const Handle handle = Create(2 * kGrain);
  EXPECT_EQ(CUDA_SUCCESS, cuMemMap(at + kGrain, 2 * kGrain, 0, handle, 0));
  EXPECT_EQ(Rows{}, ArgsOf(VGPU_OP_MEM_MAP, 4)) << "nobody may access it";
  unsigned host = 0;
  const auto copy = [&](CUdeviceptr from, CUdeviceptr to) { return cuMemcpy(to, from, sizeof host); };
  const auto here = reinterpret_cast<CUdeviceptr>(&host);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, copy(at + kGrain, here)) << "no access";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, copy(here, at + kGrain));
  EXPECT_EQ(Rows{}, ArgsOf(VGPU_OP_COPY_OUT, 1)) << "known here, nobody has to be asked";
  CUdeviceptr base = 0;
  size_t bytes = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetAddressRange_v2(&base, &bytes, at + kGrain + 5));
  EXPECT_EQ(at + kGrain, base);
  EXPECT_EQ(2 * kGrain, bytes);
  unsigned type = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + kGrain));
  EXPECT_EQ(unsigned{CU_MEMORYTYPE_DEVICE}, type);
  EXPECT_EQ(CUDA_SUCCESS, Access(at + kGrain, 2 * kGrain, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  const auto mapped = ArgsOf(VGPU_OP_MEM_MAP, 4);
  ASSERT_EQ(1u, mapped.size());
  EXPECT_EQ(0u, mapped[0][1]);
  EXPECT_EQ(at + kGrain, mapped[0][2]);
  EXPECT_EQ(2 * kGrain, mapped[0][3]);
  const CUmemLocation_st device{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  unsigned long long flags = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemGetAccess(&flags, &device, at + 2 * kGrain));
  EXPECT_EQ(unsigned{CU_MEM_ACCESS_FLAGS_PROT_READWRITE}, flags);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(&flags, &device, at));
  EXPECT_EQ(CUDA_SUCCESS, Access(at + kGrain, 2 * kGrain, CU_MEM_ACCESS_FLAGS_PROT_NONE));
  EXPECT_EQ((Rows{{at + kGrain, 2 * kGrain}}), ArgsOf(VGPU_OP_MEM_UNMAP, 2));
  Handle same = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuMemRetainAllocationHandle(&same, reinterpret_cast<void*>(at + kGrain + 1)));
  EXPECT_EQ(handle, same);
  EXPECT_EQ(CUDA_SUCCESS, cuMemRelease(handle));
  EXPECT_EQ(CUDA_SUCCESS, cuMemRelease(handle));
  EXPECT_EQ(Rows{}, ArgsOf(VGPU_OP_MEM_RELEASE, 1)) << "it is mapped";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(at, 4 * kGrain));
  EXPECT_EQ(CUDA_SUCCESS, cuMemUnmap(at + kGrain, 2 * kGrain));
  EXPECT_EQ(1u, ArgsOf(VGPU_OP_MEM_RELEASE, 1).size());
  EXPECT_EQ(CUDA_SUCCESS, cuMemAddressFree(at, 4 * kGrain));
}

TEST_F(ShimMapping, WrongMappingsAreRefused) {
  const CUdeviceptr at = Reserve(4 * kGrain);
  const Handle handle = Create(2 * kGrain);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, 2 * kGrain, 0, handle + 1, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, 2 * kGrain, 0, handle, 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, 2 * kGrain, kGrain, handle, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, kGrain, ~(kGrain - 1), handle, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemMap(at + 1, kGrain, 0, handle, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemMap(at, kGrain / 2, 0, handle, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemMap(at + 3 * kGrain, 2 * kGrain, 0, handle, 0)) << "beyond what is reserved";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemMap(at - kGrain, kGrain, 0, handle, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemMap(at, kGrain, 0, handle, 0));
  EXPECT_EQ(CUDA_SUCCESS, cuMemMap(at + kGrain, kGrain, kGrain, handle, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemMap(at + kGrain, kGrain, 0, handle, 0)) << "something is there";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Access(at, 3 * kGrain, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) << "a hole";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Access(at, kGrain / 2, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, Access(at, kGrain, 2));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, Access(at, kGrain, CU_MEM_ACCESS_FLAGS_PROT_READ));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, Access(at, kGrain, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 99));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(at, kGrain, nullptr, 1));
  EXPECT_EQ(Rows{}, ArgsOf(VGPU_OP_MEM_MAP, 4));
  EXPECT_EQ(CUDA_SUCCESS, Access(at, 2 * kGrain, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_EQ(2u, ArgsOf(VGPU_OP_MEM_MAP, 4).size());
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(at, kGrain / 2));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(at + kGrain, 2 * kGrain));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(at, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(at + 2 * kGrain, kGrain));
  EXPECT_EQ(CUDA_SUCCESS, cuMemUnmap(at, 2 * kGrain));
  EXPECT_EQ(CUDA_SUCCESS, cuMemRelease(handle));
  EXPECT_EQ(CUDA_SUCCESS, cuMemAddressFree(at, 4 * kGrain));
}

}  // namespace
