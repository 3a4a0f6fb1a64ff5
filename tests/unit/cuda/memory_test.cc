// SPDX-License-Identifier: Apache-2.0
// Memory of the guest's that kernels reach, and memory that gets addresses later, against the made-up driver
// (fake_memory.h): what the driver is asked, and what it never hears of.
#include "base/sanitizer.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"
#include "tests/unit/cuda/cuda_fixture.h"
#include "tests/unit/cuda/fake_memory.h"

namespace vgpud::driver {
namespace {

constexpr uint64_t kGrain = VGPU_MAPPED_GRAIN;
constexpr GpuVa kThere{VGPU_MAPPED_VA + 5 * kGrain};

int32_t AttributeOf(uint32_t attribute) { return (*Card::Open({Library(), {}}))->Describe().attributes[attribute]; }

GpuVa Behind(GpuVa address, uint64_t bytes) { return GpuVa{Raw(address) + bytes}; }

class SharedHostTest : public CudaGpuTest {
 protected:
  void SetUp() override {
    CudaGpuTest::SetUp();
    Notes();
  }
  GpuVa Share(const MemoryFile& file = {}) {
    const auto shared = gpu_->Share(memory_, file);
    EXPECT_TRUE(shared) << shared.error().text;
    return shared ? *shared : GpuVa{0};
  }
  alignas(4096) static inline std::array<std::byte, 8192> memory_;
  uint32_t* words() { return reinterpret_cast<uint32_t*>(memory_.data()); }
};

TEST_F(SharedHostTest, ItIsWhereTheDriverSaysThatKernelsHaveIt) {
  const GpuVa at = Share();
  EXPECT_EQ(reinterpret_cast<uint64_t>(memory_.data()) + fake_cuda::kRegisteredAt, Raw(at));
  EXPECT_TRUE(gpu_->Contains(at, 8192));
  EXPECT_FALSE(gpu_->Contains(at, 8193));
  EXPECT_EQ(at, Share()) << "again";
  EXPECT_EQ("described 8192 from 0 of none\nregister 8192\n", Notes()) << "once";
  gpu_->Unshare(memory_);
  EXPECT_FALSE(gpu_->Contains(at, 1));
  gpu_->Unshare(memory_);
  EXPECT_EQ("unregister\n", Notes()) << "once";
}

TEST_F(SharedHostTest, ADriverOfOursHearsWhichFileItShows) {
  Share({0, 4096});
  EXPECT_THAT(Notes(), StartsWith("described 8192 from 4096 of a file\nregister"));
}

TEST_F(SharedHostTest, WhatIsLeftEndsWithTheContext) {
  Share();
  gpu_.reset();
  EXPECT_THAT(Notes(), testing::EndsWith("unregister\n"));
}

// An address of kernels is none of this process: going through the made-up driver with one would end the test.
TEST_F(SharedHostTest, CopiesFillsAndWordsAreThoseOfTheHost) {
  const GpuVa at = Share();
  const GpuVa device = *gpu_->Alloc(64);
  const uint32_t values[2] = {7, 9};
  ASSERT_TRUE(gpu_->CopyIn(Behind(at, 4), std::as_bytes(std::span{values})));
  EXPECT_EQ(9u, words()[2]);
  ASSERT_TRUE(gpu_->CopyDev(device, Behind(at, 8), 4));
  EXPECT_EQ(9u, *gpu_->ReadWord(device, 4));
  words()[2] = 0;
  ASSERT_TRUE(gpu_->CopyDev(Behind(at, 8), device, 4));
  EXPECT_EQ(9u, words()[2]);
  uint32_t read = 0;
  ASSERT_TRUE(gpu_->CopyOut(std::as_writable_bytes(std::span{&read, 1}), Behind(at, 4)));
  EXPECT_EQ(7u, read);
  ASSERT_TRUE(gpu_->Fill(Behind(at, 16), 0xabcd, 2, 3));
  EXPECT_EQ(0xabcdabcdu, words()[4]);
  EXPECT_EQ(0xabcdu, words()[5]);
  ASSERT_TRUE(gpu_->WriteWord(Behind(at, 32), 8, 0x100000002));
  EXPECT_EQ(1u, words()[9]);
  EXPECT_EQ(0x100000002u, *gpu_->ReadWord(Behind(at, 32), 8));
  EXPECT_EQ(CuStatus::kInvalidValue, gpu_->ReadWord(Behind(at, 34), 4).error().status);
  EXPECT_EQ(CuStatus::kInvalidValue, gpu_->CopyIn(Behind(at, 8188), std::as_bytes(std::span{values})).error().status);
}

TEST_F(SharedHostTest, WhatTheDriverRefusesIsTold) {
  const Told told("register=2");
  const auto refused = gpu_->Share(memory_, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(CuStatus::kOutOfMemory, refused.error().status);
  EXPECT_THAT(refused.error().text, HasSubstr("cuMemHostRegister of 8192 bytes"));
}

TEST(DeviceAttributes, SayWhatMemoryKernelsReach) {
  EXPECT_EQ(1, AttributeOf(VGPU_ATTRIBUTE_SHARED_BUFFERS));
  EXPECT_EQ(1, AttributeOf(VGPU_ATTRIBUTE_MAPPABLE_MEMORY));
  EXPECT_EQ(1, AttributeOf(VGPU_ATTRIBUTE_MANAGED_IN_TURNS));
  const Told told("shares=0 maps_later=0");
  EXPECT_EQ(0, AttributeOf(VGPU_ATTRIBUTE_SHARED_BUFFERS));
  EXPECT_EQ(0, AttributeOf(VGPU_ATTRIBUTE_MAPPABLE_MEMORY));
}

TEST(DeviceAttributes, SayThatNothingIsMappedWhereTheAddressesCantBeHad) {
  {
    const Told told("elsewhere=1");
    EXPECT_EQ(0, AttributeOf(VGPU_ATTRIBUTE_MAPPABLE_MEMORY));
  }
  const Told told("grain=4194304");
  EXPECT_EQ(0, AttributeOf(VGPU_ATTRIBUTE_MAPPABLE_MEMORY));
}

TEST(DeviceAttributes, ADeviceWithoutSharedMemorySharesNone) {
  const Told told("shares=0 maps_later=0");
  const auto card = Card::Open({Library(), {}});
  Ranges ranges;
  SharedHost shared(**card, ranges);
  std::byte some[64];
  EXPECT_EQ(CuStatus::kNotSupported, shared.Share(some, {}).error().status);
  EXPECT_EQ(CuStatus::kNotSupported, Mappable(**card, ranges).Create(kGrain).error().status);
}

class MappableTest : public CudaGpuTest {
 protected:
  void SetUp() override {
    if (!kFixedAddresses) GTEST_SKIP() << "ThreadSanitizer leaves no addresses for it";
    CudaGpuTest::SetUp();
    Notes();
  }
  CuStatus Map(uint64_t memory, uint64_t offset, GpuVa to, uint64_t bytes) {
    const auto mapped = gpu_->MapMemory(memory, offset, to, bytes);
    return mapped ? CuStatus::kSuccess : mapped.error().status;
  }
  CuStatus Unmap(GpuVa at, uint64_t bytes) {
    const auto unmapped = gpu_->UnmapMemory(at, bytes);
    return unmapped ? CuStatus::kSuccess : unmapped.error().status;
  }
};

TEST_F(MappableTest, ItKeepsItsContentsFromOneAddressToTheNext) {
  const uint64_t memory = *gpu_->CreateMappable(kGrain);
  ASSERT_EQ(CuStatus::kSuccess, Map(memory, 0, kThere, kGrain));
  ASSERT_TRUE(gpu_->WriteWord(Behind(kThere, 8), 4, 77));
  EXPECT_EQ(CuStatus::kInvalidValue, gpu_->ReleaseMappable(memory).error().status) << "it is mapped";
  ASSERT_EQ(CuStatus::kSuccess, Unmap(kThere, kGrain));
  EXPECT_EQ(CuStatus::kInvalidValue, gpu_->ReadWord(Behind(kThere, 8), 4).error().status);
  ASSERT_EQ(CuStatus::kSuccess, Map(memory, 0, Behind(kThere, kGrain), kGrain));
  EXPECT_EQ(77u, *gpu_->ReadWord(Behind(kThere, kGrain + 8), 4));
  ASSERT_EQ(CuStatus::kSuccess, Unmap(Behind(kThere, kGrain), kGrain));
  EXPECT_EQ(kGrain, *gpu_->ReleaseMappable(memory));
  EXPECT_EQ(CuStatus::kInvalidHandle, gpu_->ReleaseMappable(memory).error().status);
  EXPECT_EQ("create 2097152\nmap 2097152\nunmap 2097152\nmap 2097152\nunmap 2097152\nrelease with data\n", Notes());
}

TEST_F(MappableTest, PiecesSideBySideAreOneMemory) {
  const uint64_t first = *gpu_->CreateMappable(kGrain), second = *gpu_->CreateMappable(2 * kGrain);
  ASSERT_EQ(CuStatus::kSuccess, Map(first, 0, kThere, kGrain));
  ASSERT_EQ(CuStatus::kSuccess, Map(second, 0, Behind(kThere, kGrain), 2 * kGrain));
  EXPECT_TRUE(gpu_->Contains(kThere, 3 * kGrain));
  EXPECT_FALSE(gpu_->Contains(kThere, 3 * kGrain + 1));
  ASSERT_TRUE(gpu_->Fill(Behind(kThere, kGrain - 4), 0x11, 1, 8));
  EXPECT_EQ(0x11111111u, *gpu_->ReadWord(Behind(kThere, kGrain), 4));
  EXPECT_EQ(CuStatus::kInvalidValue, Unmap(kThere, 2 * kGrain)) << "a part of the second one";
  EXPECT_EQ(CuStatus::kInvalidValue, Unmap(kThere, 4 * kGrain));
  EXPECT_EQ(CuStatus::kSuccess, Unmap(kThere, 3 * kGrain));
  EXPECT_FALSE(gpu_->Contains(kThere, 1));
}

TEST_F(MappableTest, WhatIsWrongNeverReachesTheDriver) {
  const uint64_t memory = *gpu_->CreateMappable(2 * kGrain), other = *gpu_->CreateMappable(kGrain);
  Notes();
  EXPECT_EQ(CuStatus::kInvalidValue, gpu_->CreateMappable(kGrain / 2).error().status);
  EXPECT_EQ(CuStatus::kInvalidValue, gpu_->CreateMappable(0).error().status);
  EXPECT_EQ(CuStatus::kInvalidHandle, Map(99, 0, kThere, kGrain));
  EXPECT_EQ(CuStatus::kInvalidValue, Map(memory, 0, GpuVa{VGPU_MAPPED_VA - kGrain}, kGrain));
  EXPECT_EQ(CuStatus::kInvalidValue, Map(memory, 0, GpuVa{VGPU_MAPPED_VA + VGPU_MAPPED_BYTES - kGrain}, 2 * kGrain));
  EXPECT_EQ(CuStatus::kInvalidValue, Map(memory, 0, Behind(kThere, 4096), kGrain));
  EXPECT_EQ(CuStatus::kInvalidValue, Map(memory, 0, kThere, 3 * kGrain)) << "more than there is";
  EXPECT_EQ(CuStatus::kInvalidValue, Map(memory, UINT64_MAX - kGrain + 1, kThere, 2 * kGrain)) << "it wraps";
  EXPECT_EQ(CuStatus::kNotSupported, Map(memory, kGrain, kThere, kGrain)) << "from the middle on";
  EXPECT_EQ("", Notes());
  ASSERT_EQ(CuStatus::kSuccess, Map(memory, 0, kThere, 2 * kGrain));
  Notes();
  EXPECT_EQ(CuStatus::kInvalidValue, Map(other, 0, Behind(kThere, kGrain), kGrain)) << "over another one";
  EXPECT_EQ(CuStatus::kNotSupported, Map(memory, 0, Behind(kThere, 8 * kGrain), kGrain)) << "at two addresses";
  EXPECT_EQ(CuStatus::kInvalidValue, Unmap(kThere, 0));
  EXPECT_EQ("", Notes());
}

TEST_F(MappableTest, MemoryWithoutAccessIsUnmappedAgain) {
  const uint64_t memory = *gpu_->CreateMappable(kGrain);
  Notes();
  const Told told("access=2");
  EXPECT_EQ(CuStatus::kOutOfMemory, Map(memory, 0, kThere, kGrain));
  EXPECT_EQ("map 2097152\nunmap 2097152\n", Notes());
  EXPECT_FALSE(gpu_->Contains(kThere, 1));
}

TEST_F(MappableTest, WhatIsLeftEndsWithTheContext) {
  ASSERT_EQ(CuStatus::kSuccess, Map(*gpu_->CreateMappable(kGrain), 0, kThere, kGrain));
  Notes();
  gpu_.reset();
  EXPECT_EQ("unmap 2097152\nrelease\n", Notes());
}

TEST_F(CudaGpuTest, TensorMapsAreTheDrivers) {
  vgpu_tensor_map_request request{};
  request.type = 7;
  request.rank = 5;
  request.address = 0x1000;
  request.size[4] = 9;
  request.box[4] = 8;
  request.swizzle = 3;
  const auto map = [&] { return std::string(reinterpret_cast<const char*>(request.map)); };
  ASSERT_TRUE(gpu_->EncodeTensorMap(request));
  EXPECT_EQ("tiled 7 5 0x1000 9 8 3", map());
  request.kind = VGPU_TENSOR_MAP_REPLACE;
  request.rank = 0;
  request.address = 0x2000;
  ASSERT_TRUE(gpu_->EncodeTensorMap(request));
  EXPECT_EQ("tiled 7 5 0x1000 9 8 3 moved to 0x2000", map());
  request.kind = VGPU_TENSOR_MAP_IM2COL;
  request.rank = 4;
  request.lower[0] = -1;
  request.upper[1] = 2;
  request.box[0] = 64;
  request.box[1] = 32;
  request.fill = 1;
  ASSERT_TRUE(gpu_->EncodeTensorMap(request));
  EXPECT_EQ("im2col -1 2 64 32 1", map());
}

TEST_F(CudaGpuTest, RequestsForTensorMapsThatReachNoDriver) {
  vgpu_tensor_map_request request{};
  const auto refused = [&](uint32_t kind, uint32_t rank) {
    request.kind = kind;
    request.rank = rank;
    const auto made = gpu_->EncodeTensorMap(request);
    return made ? CuStatus::kSuccess : made.error().status;
  };
  EXPECT_EQ(CuStatus::kInvalidValue, refused(VGPU_TENSOR_MAP_TILED, 0));
  EXPECT_EQ(CuStatus::kInvalidValue, refused(VGPU_TENSOR_MAP_TILED, 6));
  EXPECT_EQ(CuStatus::kInvalidValue, refused(VGPU_TENSOR_MAP_IM2COL, 2));
  EXPECT_EQ(CuStatus::kInvalidValue, refused(VGPU_TENSOR_MAP_REPLACE + 1, 3));
  EXPECT_EQ(CuStatus::kInvalidValue, refused(UINT32_MAX, 3));
  EXPECT_EQ(CuStatus::kNotSupported, refused(VGPU_TENSOR_MAP_IM2COL_WIDE, 3)) << "the driver has no such call";
  request.type = 16;
  EXPECT_EQ(CuStatus::kInvalidValue, refused(VGPU_TENSOR_MAP_TILED, 1)) << "the driver's own word";
}

TEST_F(CudaGpuTest, TheHeapIsTheDriversAndCountedBeyondItsOwnLimit) {
  EXPECT_EQ(0u, gpu_->HeapBytesAtOnce(8 << 20));
  EXPECT_EQ(1u << 20, gpu_->HeapBytesAtOnce(9 << 20));
  EXPECT_TRUE(gpu_->SetHeapBytes(9 << 20));
  EXPECT_EQ(0u, gpu_->HeapBytesAtOnce(9 << 20));
  EXPECT_TRUE(gpu_->SetHeapBytes(1 << 20));
  EXPECT_EQ(0u, gpu_->HeapBytesAtOnce(9 << 20)) << "it may have had that";
  const Told told("limit=219");
  EXPECT_FALSE(gpu_->SetHeapBytes(16 << 20)) << "too late: it is in use";
  EXPECT_EQ(7u << 20, gpu_->HeapBytesAtOnce(16 << 20));
}

}  // namespace
}  // namespace vgpud::driver
