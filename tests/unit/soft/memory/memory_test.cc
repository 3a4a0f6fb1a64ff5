// SPDX-License-Identifier: Apache-2.0
// What a context takes of the host's memory beside its arena: state of blocks, within a budget and between guards.
#include <csignal>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// As much as was granted, and nobody who grants more.
void Grant(HostMemory& memory, uint64_t bytes) {
  EXPECT_EQ(HostMemory::Answer::kLater, memory.Ask(HostMemory::Asker::kRing, bytes));
  const auto delta = memory.TakeRequest();
  ASSERT_TRUE(delta);
  memory.OnReply(static_cast<int64_t>(bytes), true);
}

constexpr char kPtx[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry deep(.param .u64 out){
.local .align 16 .b8 m[65536];
.reg .b32 %r<6>; .reg .b64 %rd<9>;
ld.param.u64 %rd1,[out];
mov.u64 %rd2, m; mov.u32 %r1,%ctaid.x; st.local.u32 [%rd2+65532],%r1; ld.local.u32 %r2,[%rd2+65532];
mul.wide.u32 %rd3,%r1,4; add.u64 %rd4,%rd1,%rd3; add.u32 %r2,%r2,1; st.global.u32 [%rd4],%r2;
ret;
})";

struct Deep {
  explicit Deep(HostMemory& host, uint32_t threads = 1) : gpu(64 << 20, BestIsa(), threads, &host) {
    auto loaded = gpu.Load(std::as_bytes(std::span(kPtx, sizeof kPtx - 1)));
    EXPECT_TRUE(loaded);
    module = std::move(*loaded);
    out = *gpu.Alloc(4096);
  }
  // One warp per block: 2 MiB of local memory each.
  std::unique_ptr<GpuGrid> Launch(uint32_t blocks, bool cooperative = false) {
    LaunchShape shape{{blocks, 1, 1}, {32, 1, 1}, 0, cooperative};
    const Params params = Params().Add(out);
    auto grid = gpu.Launch(*module->Function("deep"), shape, params.bytes(), 0);
    EXPECT_TRUE(grid);
    return std::move(*grid);
  }
  GpuGrid::Progress Run(GpuGrid& grid, uint64_t budget = 1 << 20) {
    std::atomic<uint32_t> word{0};
    const auto progress = grid.Run(StopWord{&word, 0}, budget);
    EXPECT_TRUE(progress);
    return *progress;
  }
  bool Right(uint32_t blocks) {
    for (uint32_t i = 0; i < blocks; ++i) {
      uint32_t value = 0;
      std::memcpy(&value, gpu.HostPointer(GpuVa{Raw(out) + 4 * i}), 4);
      if (value != i + 1) return false;
    }
    return true;
  }
  SoftGpu gpu;
  std::unique_ptr<GpuModule> module;
  GpuVa out{};
};

TEST(HostMemoryOfGrids, IsCountedWhileTheyRunAndComesBack) {
  HostMemory host(256 * kMiB);
  Grant(host, 100 * kMiB);
  Deep deep(host);
  auto grid = deep.Launch(64);
  EXPECT_EQ(GpuGrid::Progress::kYield, deep.Run(*grid, 3));
  EXPECT_GE(host.used(), 2 * kMiB);
  EXPECT_TRUE(grid->holds_blocks());
  grid.reset();
  EXPECT_LT(host.used(), kMiB);
}

class Budgets : public testing::TestWithParam<uint32_t> {};

TEST_P(Budgets, FewerBlocksAreResidentWhereThereIsLessMemory) {
  HostMemory host(256 * kMiB);
  Grant(host, 5 * kMiB);
  Deep deep(host, GetParam());
  auto grid = deep.Launch(300);
  GpuGrid::Progress progress;
  do {
    progress = deep.Run(*grid, 10'000);
    EXPECT_LE(host.used(), 5 * kMiB);
  } while (progress == GpuGrid::Progress::kYield);
  EXPECT_EQ(GpuGrid::Progress::kDone, progress);
  EXPECT_TRUE(deep.Right(300));
}

INSTANTIATE_TEST_SUITE_P(Threads, Budgets, testing::Values(1, 4));

TEST(HostMemoryOfGrids, AGridThatFindsNoneForOneBlockSaysHowMuchItNeedsAndRunsLater) {
  HostMemory host(256 * kMiB);
  Grant(host, kMiB);
  Deep deep(host);
  auto grid = deep.Launch(2);
  EXPECT_EQ(GpuGrid::Progress::kShort, deep.Run(*grid));
  EXPECT_FALSE(grid->holds_blocks());
  EXPECT_GE(grid->short_of(), 2 * kMiB);
  EXPECT_LT(grid->short_of(), 3 * kMiB);
  Grant(host, 3 * kMiB);
  EXPECT_EQ(GpuGrid::Progress::kDone, deep.Run(*grid));
  EXPECT_TRUE(deep.Right(2));
}

TEST(HostMemoryOfGrids, ACooperativeGridHasAllOfItsBlocksOrNone) {
  HostMemory host(256 * kMiB);
  Grant(host, 5 * kMiB);
  Deep deep(host);
  auto grid = deep.Launch(4, true);
  EXPECT_EQ(GpuGrid::Progress::kShort, deep.Run(*grid));
  EXPECT_LT(host.used(), kMiB);
  Grant(host, 16 * kMiB);
  EXPECT_EQ(GpuGrid::Progress::kDone, deep.Run(*grid));
  EXPECT_TRUE(deep.Right(4));
}

TEST(HostMemoryOfGrids, GlobalsThatAreNotAdmittedAreNotTouched) {
  HostMemory host;
  SoftGpu gpu(64 << 20, BestIsa(), 1, &host);
  uint64_t asked = 0;
  gpu.AdmitVram([&](uint64_t bytes) {
    asked = bytes;
    return false;
  });
  const std::string ptx = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .b8 big[33554432];\n";
  const auto module = gpu.Load(std::as_bytes(std::span(ptx.data(), ptx.size())));
  ASSERT_FALSE(module);
  EXPECT_EQ(CuStatus::kOutOfMemory, module.error().status);
  EXPECT_EQ(uint64_t{32} << 20, asked);
}

void Write(std::byte* at) { *reinterpret_cast<volatile std::byte*>(at) = std::byte{1}; }

TEST(GuardsDeathTest, OneByteBehindTheArenaKillsTheWriter) {
  Arena arena(4 << 20);
  Write(arena.memory() + arena.bytes() - 1);
  EXPECT_DEATH(Write(arena.memory() + arena.bytes()), "");
  EXPECT_DEATH(Write(arena.memory() - 1), "");
}

TEST(GuardsDeathTest, OneByteBehindTheStateOfABlockKillsTheWriter) {
  HostMemory host;
  BlockPool pool(host);
  const BlockPool::Region region = pool.Take(192);
  std::byte* const state = region.EndingHere(192);
  Write(state + 191);
  EXPECT_DEATH(Write(state + 192), "");
}

TEST(BlockPool, ARegionThatIsUsedAgainIsZero) {
  HostMemory host;
  BlockPool pool(host);
  { std::memset(pool.Take(8192).EndingHere(8192), 0xff, 8192); }
  EXPECT_EQ(8192u, host.used()) << "kept";
  const BlockPool::Region again = pool.Take(8000);
  for (int i = 0; i < 8000; ++i) ASSERT_EQ(std::byte{0}, again.EndingHere(8000)[i]);
  EXPECT_EQ(8192u, host.used());
}

TEST(BlockPool, KeepsLittleAndNothingWhenSomebodyElseNeedsIt) {
  HostMemory host(64 * kMiB);
  Grant(host, 10 * kMiB);
  BlockPool pool(host);
  { const auto large = pool.Take(3 * kMiB); }
  EXPECT_EQ(0u, host.used()) << "a large one goes back at once";
  {
    std::vector<BlockPool::Region> many;
    for (int i = 0; i < 100; ++i) many.push_back(pool.Take(64 << 10));
  }
  EXPECT_GT(host.used(), 0u);
  const auto all = pool.Take(10 * kMiB);
  EXPECT_TRUE(all) << "what was kept made room";
}

}  // namespace
}  // namespace vgpud::soft
