// SPDX-License-Identifier: Apache-2.0
// Memory that is mapped to addresses later: where it may go, what is refused, that its bytes go with it, and that
// kernels and copies reach it there and nowhere else.
#include "gpu/soft/memory/mappable_memory.h"

#include <cstring>
#include <optional>
#include <vector>

#include "base/sanitizer.h"
#include "gpu/soft/soft_gpu.h"
#include "guest-driver-shim/include/uapi/vgpu_abi.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kPage = MappableMemory::kGrain;
constexpr uint64_t kVram = 8 * kPage;
constexpr uint64_t kMapped = 0x780000000000;

constexpr char kPtx[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 at){
.reg .b32 %r<3>; .reg .b64 %rd<3>;
ld.param.u64 %rd1,[at];
ld.global.u32 %r1,[%rd1]; add.u32 %r1,%r1,1; st.global.u32 [%rd1],%r1; ld.u32 %r2,[%rd1];
ret;
}
)";

class Mappable : public testing::Test {
 protected:
  void SetUp() override {
    if (!kFixedAddresses) GTEST_SKIP() << "its memory may be there";
    reach.device_memory = reinterpret_cast<std::byte*>(uint64_t{0x310000000000});
    gpu.emplace(kVram, BestIsa(), 1, nullptr, kDefaultCapability, reach);
    ASSERT_EQ(1u, gpu->Info().attributes[VGPU_ATTRIBUTE_MAPPABLE_MEMORY]);
    auto loaded = gpu->Load(std::as_bytes(std::span(kPtx, sizeof kPtx - 1)));
    ASSERT_TRUE(loaded);
    module = std::move(*loaded);
  }
  CuStatus Run(uint64_t at) {
    const auto grid =
        gpu->Launch(*module->Function("add"), {{1, 1, 1}, {1, 1, 1}, 0}, std::as_bytes(std::span(&at, 1)), 0);
    EXPECT_TRUE(grid);
    std::atomic<uint32_t> word{1};
    const auto result = (*grid)->Run({&word, 1}, 1000);
    return result ? CuStatus::kSuccess : result.error().status;
  }
  CuStatus Map(uint64_t block, uint64_t offset, uint64_t at, uint64_t bytes) {
    const auto mapped = gpu->MapMemory(block, offset, GpuVa{at}, bytes);
    return mapped ? CuStatus::kSuccess : mapped.error().status;
  }
  CuStatus Unmap(uint64_t at, uint64_t bytes) {
    const auto unmapped = gpu->UnmapMemory(GpuVa{at}, bytes);
    return unmapped ? CuStatus::kSuccess : unmapped.error().status;
  }
  uint32_t Word(uint64_t at) {
    const auto word = gpu->ReadWord(GpuVa{at}, 4);
    EXPECT_TRUE(word) << at;
    return word ? static_cast<uint32_t>(*word) : 0;
  }
  ReachSpace reach;
  std::optional<SoftGpu> gpu;
  std::unique_ptr<GpuModule> module;
};

TEST_F(Mappable, ItTakesWhatIsFreeHoweverScattered) {
  std::vector<GpuVa> all;
  for (uint64_t n = 0; n < kVram / kPage; ++n) all.push_back(*gpu->Alloc(kPage));
  for (const size_t gone : {0, 2, 3, 6}) ASSERT_TRUE(gpu->Free(all[gone]));
  EXPECT_FALSE(gpu->CreateMappable(5 * kPage));
  const uint64_t block = *gpu->CreateMappable(4 * kPage);
  EXPECT_FALSE(gpu->Alloc(1)) << "nothing is left";
  ASSERT_EQ(CuStatus::kSuccess, Map(block, 0, kMapped, 4 * kPage));
  for (uint32_t n = 0; n < 4; ++n)
    for (uint32_t times = 0; times <= n; ++times) EXPECT_EQ(CuStatus::kSuccess, Run(kMapped + n * kPage));
  ASSERT_EQ(CuStatus::kSuccess, Unmap(kMapped, 4 * kPage));
  ASSERT_EQ(CuStatus::kSuccess, Map(block, kPage, kMapped + 8 * kPage, 2 * kPage)) << "across two of its pieces";
  EXPECT_EQ(2u, Word(kMapped + 8 * kPage));
  EXPECT_EQ(3u, Word(kMapped + 9 * kPage));
  ASSERT_EQ(CuStatus::kSuccess, Map(block, 3 * kPage, kMapped, kPage));
  EXPECT_EQ(4u, Word(kMapped));
  ASSERT_EQ(CuStatus::kSuccess, Unmap(kMapped + 8 * kPage, 2 * kPage));
  ASSERT_EQ(CuStatus::kSuccess, Unmap(kMapped, kPage));
  EXPECT_EQ(4 * kPage, *gpu->ReleaseMappable(block));
  for (const size_t kept : {1, 4, 5, 7}) ASSERT_TRUE(gpu->Free(all[kept]));
  EXPECT_TRUE(gpu->Alloc(kVram)) << "all of it is one range again";
}

TEST_F(Mappable, KernelsAndCopiesReachItWhileItIsMapped) {
  const uint64_t block = *gpu->CreateMappable(2 * kPage);
  EXPECT_EQ(CuStatus::kIllegalAddress, Run(kMapped));
  ASSERT_EQ(CuStatus::kSuccess, Map(block, 0, kMapped + kPage, 2 * kPage));
  EXPECT_EQ(CuStatus::kSuccess, Run(kMapped + kPage));
  EXPECT_EQ(CuStatus::kSuccess, Run(kMapped + 3 * kPage - 4));
  EXPECT_EQ(1u, Word(kMapped + 3 * kPage - 4));
  EXPECT_EQ(CuStatus::kIllegalAddress, Run(kMapped + 3 * kPage));
  EXPECT_EQ(CuStatus::kIllegalAddress, Run(kMapped + kPage - 4));
  EXPECT_TRUE(gpu->Contains(GpuVa{kMapped + kPage}, 2 * kPage));
  EXPECT_FALSE(gpu->Contains(GpuVa{kMapped + kPage}, 2 * kPage + 1));
  EXPECT_FALSE(gpu->Contains(GpuVa{kMapped + kPage - 1}, 2));
  EXPECT_FALSE(gpu->Contains(GpuVa{kMapped + kPage}, ~uint64_t{0}));
  const GpuVa device = *gpu->Alloc(4096);
  EXPECT_TRUE(gpu->CopyDev(device, GpuVa{kMapped + kPage}, 4));
  EXPECT_EQ(1u, Word(Raw(device)));
  ASSERT_EQ(CuStatus::kSuccess, Unmap(kMapped + kPage, 2 * kPage));
  EXPECT_EQ(CuStatus::kIllegalAddress, Run(kMapped + kPage));
  EXPECT_FALSE(gpu->CopyDev(device, GpuVa{kMapped + kPage}, 4));
}

TEST_F(Mappable, ItsBytesGoWithIt) {
  const uint64_t block = *gpu->CreateMappable(3 * kPage);
  ASSERT_EQ(CuStatus::kSuccess, Map(block, kPage, kMapped, kPage));
  EXPECT_TRUE(gpu->WriteWord(GpuVa{kMapped + 4096}, 4, 77));
  ASSERT_EQ(CuStatus::kSuccess, Unmap(kMapped, kPage));
  ASSERT_EQ(CuStatus::kSuccess, Map(block, 0, kMapped + 10 * kPage, 3 * kPage));
  EXPECT_EQ(77u, Word(kMapped + 11 * kPage + 4096));
  EXPECT_EQ(0u, Word(kMapped + 10 * kPage + 4096));
  ASSERT_EQ(CuStatus::kSuccess, Unmap(kMapped + 10 * kPage, 3 * kPage));
  EXPECT_EQ(3 * kPage, *gpu->ReleaseMappable(block));
  const uint64_t fresh = *gpu->CreateMappable(3 * kPage);
  ASSERT_EQ(CuStatus::kSuccess, Map(fresh, 0, kMapped, 3 * kPage));
  EXPECT_EQ(0u, Word(kMapped + kPage + 4096)) << "nobody sees what was there before";
}

TEST_F(Mappable, SeveralPiecesAreOneRange) {
  const uint64_t one = *gpu->CreateMappable(2 * kPage), two = *gpu->CreateMappable(kPage);
  ASSERT_EQ(CuStatus::kSuccess, Map(one, 0, kMapped, 2 * kPage));
  ASSERT_EQ(CuStatus::kSuccess, Map(two, 0, kMapped + 2 * kPage, kPage));
  EXPECT_TRUE(gpu->Contains(GpuVa{kMapped + 100}, 3 * kPage - 100));
  EXPECT_TRUE(gpu->Fill(GpuVa{kMapped}, 5, 4, 3 * kPage / 4));
  EXPECT_EQ(5u, Word(kMapped + 3 * kPage - 4));
  EXPECT_EQ(CuStatus::kInvalidValue, Unmap(kMapped, kPage)) << "a part of a piece";
  EXPECT_EQ(CuStatus::kInvalidValue, Unmap(kMapped + kPage, 2 * kPage)) << "from the middle of a piece";
  EXPECT_EQ(CuStatus::kInvalidValue, Unmap(kMapped, 4 * kPage)) << "more than there is";
  EXPECT_EQ(CuStatus::kInvalidValue, Unmap(kMapped, 0));
  EXPECT_EQ(CuStatus::kInvalidValue, Unmap(kMapped, ~uint64_t{0}));
  EXPECT_EQ(CuStatus::kSuccess, Unmap(kMapped, 3 * kPage));
  EXPECT_FALSE(gpu->Contains(GpuVa{kMapped}, 1));
}

TEST_F(Mappable, WhatCannotBeIsRefused) {
  EXPECT_EQ(CuStatus::kInvalidValue, gpu->CreateMappable(0).error().status);
  EXPECT_EQ(CuStatus::kInvalidValue, gpu->CreateMappable(kPage + 4096).error().status);
  EXPECT_EQ(CuStatus::kOutOfMemory, gpu->CreateMappable(kVram + kPage).error().status);
  EXPECT_EQ(CuStatus::kOutOfMemory, gpu->CreateMappable(~(kPage - 1)).error().status);
  const uint64_t block = *gpu->CreateMappable(2 * kPage);
  const uint64_t end = kMapped + (uint64_t{1} << 40);
  const struct {
    uint64_t block, offset, at, bytes;
    CuStatus status;
  } rows[] = {{block + 1, 0, kMapped, kPage, CuStatus::kInvalidHandle},
              {0, 0, kMapped, kPage, CuStatus::kInvalidHandle},
              {block, 0, kMapped, 0, CuStatus::kInvalidValue},
              {block, 0, kMapped + 4096, kPage, CuStatus::kInvalidValue},
              {block, 4096, kMapped, kPage, CuStatus::kInvalidValue},
              {block, 0, kMapped, kPage / 2, CuStatus::kInvalidValue},
              {block, kPage, kMapped, 2 * kPage, CuStatus::kInvalidValue},
              {block, 3 * kPage, kMapped, kPage, CuStatus::kInvalidValue},
              {block, ~(kPage - 1), kMapped, kPage, CuStatus::kInvalidValue},
              {block, 0, kMapped - kPage, kPage, CuStatus::kInvalidValue},
              {block, 0, end - kPage, 2 * kPage, CuStatus::kInvalidValue},
              {block, 0, end, kPage, CuStatus::kInvalidValue},
              {block, 0, 0, kPage, CuStatus::kInvalidValue},
              {block, 0, kMapped, ~(kPage - 1), CuStatus::kInvalidValue},
              {block, 0, 0x700000000000, kPage, CuStatus::kInvalidValue}};
  for (const auto& row : rows)
    EXPECT_EQ(row.status, Map(row.block, row.offset, row.at, row.bytes))
        << row.block << ' ' << row.offset << ' ' << row.at << ' ' << row.bytes;
  EXPECT_EQ(CuStatus::kSuccess, Map(block, kPage, end - kPage, kPage)) << "the last one";
  EXPECT_EQ(CuStatus::kNotSupported, Map(block, 0, kMapped, 2 * kPage)) << "a part of it has an address";
  const uint64_t other = *gpu->CreateMappable(kPage);
  EXPECT_EQ(CuStatus::kInvalidValue, Map(other, 0, end - kPage, kPage)) << "something is there";
  EXPECT_EQ(CuStatus::kInvalidValue, gpu->ReleaseMappable(block).error().status) << "it is mapped";
  EXPECT_EQ(CuStatus::kInvalidHandle, gpu->ReleaseMappable(99).error().status);
  EXPECT_EQ(kPage, *gpu->ReleaseMappable(other));
  EXPECT_EQ(CuStatus::kInvalidHandle, gpu->ReleaseMappable(other).error().status);
}

TEST_F(Mappable, ItsStorageIsNobodysAddress) {
  const uint64_t block = *gpu->CreateMappable(kVram - kPage);
  EXPECT_FALSE(gpu->Contains(GpuVa{kVramVa + kPage}, 1));
  EXPECT_FALSE(gpu->Free(GpuVa{kVramVa + kPage}));
  EXPECT_EQ(CuStatus::kIllegalAddress, Run(kVramVa + kPage));
  EXPECT_FALSE(gpu->Alloc(2 * kPage)) << "it is taken";
  EXPECT_EQ(kVram - kPage, *gpu->ReleaseMappable(block));
  const auto all = gpu->Alloc(kVram - kPage);
  ASSERT_TRUE(all) << "and given back";
  EXPECT_TRUE(gpu->Fill(*all, 1, 1, kVram - kPage));
}

TEST_F(Mappable, SuchAContextIsNotSaved) {
  GpuModule* const modules[] = {module.get()};
  const auto sink = [](std::span<const std::byte>) -> GpuResult<void> { return {}; };
  EXPECT_TRUE(gpu->Save(sink, modules, {}));
  ASSERT_TRUE(gpu->CreateMappable(kPage));
  EXPECT_EQ(CuStatus::kNotSupported, gpu->Save(sink, modules, {}).error().status);
}

TEST(MappableMemory, ADeviceThatIsAnywhereHasNone) {
  SoftGpu gpu(kVram, BestIsa());
  EXPECT_EQ(0u, gpu.Info().attributes[VGPU_ATTRIBUTE_MAPPABLE_MEMORY]);
  EXPECT_EQ(CuStatus::kNotSupported, gpu.CreateMappable(kPage).error().status);
  EXPECT_FALSE(gpu.Contains(GpuVa{kMapped}, 1));
}

}  // namespace
}  // namespace vgpud::soft
