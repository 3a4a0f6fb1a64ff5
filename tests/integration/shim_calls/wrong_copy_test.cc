// SPDX-License-Identifier: Apache-2.0
// Copies with the wrong kind, wrong pointers or wrong sizes: refused before memory is touched that is not there.
#include <sys/mman.h>

#include <vector>

#include "tests/integration/shim_calls/wire.h"

namespace {

CUdeviceptr At(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }
void* Host(CUdeviceptr device) { return reinterpret_cast<void*>(device); }

class ShimWrongCopy : public ShimWire {
 protected:
  void SetUp() override {
    ShimWire::SetUp();
    a_ = Alloc(kBytes), b_ = Alloc(kBytes);
    // One page, and behind it more of those that nobody may touch than any copy is long.
    lone_ = mmap(nullptr, 2 * kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, lone_);
    ASSERT_EQ(0, mprotect(lone_, kPage, PROT_READ | PROT_WRITE));
  }
  void TearDown() override {
    EXPECT_EQ(0, munmap(lone_, 2 * kBytes));
    ShimWire::TearDown();
  }
  static constexpr size_t kBytes = 1 << 20, kPage = 4096;
  CUdeviceptr a_ = 0, b_ = 0;
  void* lone_ = nullptr;
  std::vector<unsigned char> host_ = std::vector<unsigned char>(kBytes);
};

TEST_F(ShimWrongCopy, OfTheWrongKind) {
  const CUresult results[] = {
      cuMemcpyHtoD_v2(At(host_.data()), Host(a_), 16), cuMemcpyHtoD_v2(b_, Host(a_), 16),
      cuMemcpyDtoH_v2(Host(a_), At(host_.data()), 16), cuMemcpyDtoH_v2(Host(b_), a_, 16),
      cuMemcpyHtoDAsync_v2(b_, Host(a_), 16, nullptr), cuMemcpyDtoHAsync_v2(Host(b_), a_, 16, nullptr),
      cuMemcpyDtoD_v2(a_, At(host_.data()), 16),       cuMemcpyDtoD_v2(At(host_.data()), a_, 16)};
  for (size_t i = 0; i < std::size(results); ++i) EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, results[i]) << i;
}

TEST_F(ShimWrongCopy, BeyondADeviceAllocation) {
  // More than the host's side has, too: that must not be read.
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a_, lone_, kBytes + 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a_ + kBytes - 4, lone_, kPage + 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(lone_, a_, kBytes + 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a_, lone_, ~size_t{0}));
  EXPECT_EQ(0u, Take(VGPU_OP_COPY_IN).size());
}

TEST_F(ShimWrongCopy, BeyondTheProgramsMemory) {
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a_, lone_, kBytes));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(lone_, a_, kBytes));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy(a_, At(lone_), kPage + 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy(At(lone_), a_, kPage + 1));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy(At(lone_), At(host_.data()), kPage + 1));
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpy(At(lone_), a_, kPage));
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpy(a_, At(lone_), kPage));
}

TEST_F(ShimWrongCopy, FromMemoryWithAHole) {
  auto* const memory =
      static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(MAP_FAILED, static_cast<void*>(memory));
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyHtoD_v2(a_, memory, kBytes));
  ASSERT_EQ(0, munmap(memory + kBytes / 2, kPage));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a_, memory, kBytes));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(memory, a_, kBytes));
  EXPECT_EQ(0, munmap(memory, kBytes));
}

TEST_F(ShimWrongCopy, OfDeviceMemoryThatIsFreed) {
  const CUdeviceptr freed = Alloc(4096);
  ASSERT_EQ(CUDA_SUCCESS, cuMemFree_v2(freed));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy(freed, At(host_.data()), 16));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpy(At(host_.data()), freed, 16));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyAsync(freed, a_, 16, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(freed, host_.data(), 16));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(host_.data(), freed, 16));
}

// Rows of 64 bytes, 256 apart, that a page and the device's MiB have room for 16 and 4096 of.
TEST_F(ShimWrongCopy, OfRowsThatLeaveTheirMemory) {
  const auto copy = [this](auto change) {
    CUDA_MEMCPY3D_st c{};
    c.srcMemoryType = CU_MEMORYTYPE_HOST, c.srcHost = lone_, c.srcPitch = 256;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE, c.dstDevice = a_, c.dstPitch = 256;
    c.WidthInBytes = 64, c.Height = 16, c.Depth = 1;
    change(c);
    return cuMemcpy3D_v2(&c);
  };
  EXPECT_EQ(CUDA_SUCCESS, copy([](CUDA_MEMCPY3D_st&) {}));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, copy([](CUDA_MEMCPY3D_st& c) { c.Height = 17; })) << "beyond the host's page";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, copy([](CUDA_MEMCPY3D_st& c) { c.dstY = 4081; })) << "beyond the allocation";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, copy([](CUDA_MEMCPY3D_st& c) { c.Depth = 2; }));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, copy([](CUDA_MEMCPY3D_st& c) { c.Height = size_t{1} << 56; }));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, copy([](CUDA_MEMCPY3D_st& c) { c.Depth = ~size_t{0}; }));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, copy([this](CUDA_MEMCPY3D_st& c) { c.srcHost = Host(b_); })) << "no host memory";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, copy([this](CUDA_MEMCPY3D_st& c) { c.dstDevice = At(host_.data()); }))
      << "no device memory";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
            copy([](CUDA_MEMCPY3D_st& c) { c.dstMemoryType = CU_MEMORYTYPE_UNIFIED, c.dstDevice = 0x4000; }))
      << "nobody's";
  EXPECT_EQ(CUDA_SUCCESS, copy([this](CUDA_MEMCPY3D_st& c) {
              c.dstMemoryType = CU_MEMORYTYPE_UNIFIED, c.dstDevice = At(host_.data());
            }))
      << "host memory found out by itself";
}

TEST_F(ShimWrongCopy, ManagedMemoryIsOfBothKinds) {
  CUdeviceptr managed = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyHtoD_v2(a_, Host(managed), 4096));
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH_v2(Host(managed), a_, 4096));
  EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoD_v2(managed, a_, 4096));
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(managed));
}

}  // namespace
