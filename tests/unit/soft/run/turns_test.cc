// SPDX-License-Identifier: Apache-2.0
// Whose turn it is: for how many warp instructions a warp and a block run, who comes next, how many are resident, and
// what threads know of their place.
#include <gmock/gmock.h>

#include "gpu/soft/run/grid.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::ElementsAre;

// Each warp has two words: it has begun, and how often it went through a loop that never ends.
std::string Endless(const std::string& in_loop) {
  return R"(
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; shr.u32 %r1, %r1, 5; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nwarpid;
    mad.lo.u32 %r1, %r2, %r3, %r1; mul.wide.u32 %rd2, %r1, 8; add.u64 %rd2, %rd1, %rd2; mov.u32 %r4, 0;
    st.global.u32 [%rd2], 1;
  LOOP:
)" + in_loop +
         "add.u32 %r4, %r4, 1; st.global.u32 [%rd2+4], %r4; bra LOOP;";
}

class Turns : public testing::Test {
 protected:
  void Begin(uint32_t blocks, uint32_t warps, const std::string& in_loop = "") {
    const Outcome loaded = m.LoadBody(".param .u64 out", Endless(in_loop));
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    warps_ = blocks * warps;
    out_ = m.Alloc(8 * warps_);
    grid = m.Launch("k", {{blocks, 1, 1}, {32 * warps, 1, 1}, 0}, Params().Add(out_));
    ran_ = 0;
  }
  void RunUpTo(uint64_t instructions) {
    ASSERT_GE(instructions, ran_);
    if (instructions != ran_) {
      ASSERT_EQ(*grid->Run({&m.word, 0}, instructions - ran_), GpuGrid::Progress::kYield);
    }
    ran_ = instructions;
  }
  uint32_t Word(size_t n) { return m.Download<uint32_t>(out_, 2 * warps_)[n]; }
  bool HasBegun(size_t warp) { return Word(2 * warp) != 0; }
  uint32_t Rounds(size_t warp) { return Word(2 * warp + 1); }
  // Instructions of a warp until it says that it has begun.
  uint64_t ToBegin() {
    Begin(1, 1);
    for (uint64_t n = 1; n < 100; ++n) {
      RunUpTo(n);
      if (HasBegun(0)) return n;
    }
    return 0;
  }
  // Runs until `warp` has begun.
  void RunToBeginOf(size_t warp) {
    for (int n = 0; n < 10'000 && !HasBegun(warp); ++n) RunUpTo(ran_ + 1);
    ASSERT_TRUE(HasBegun(warp));
  }
  // The instruction with which `warp` begins is number `instruction`.
  void ExpectBegins(size_t warp, uint64_t instruction) {
    RunUpTo(instruction - 1);
    EXPECT_FALSE(HasBegun(warp)) << warp;
    RunUpTo(instruction);
    EXPECT_TRUE(HasBegun(warp)) << warp;
  }

  SoftMachine m;
  std::unique_ptr<GpuGrid> grid;

 private:
  GpuVa out_{};
  size_t warps_ = 0;
  uint64_t ran_ = 0;
};

TEST_F(Turns, AWarpHas4096Instructions) {
  const uint64_t begin = ToBegin();
  Begin(1, 3);
  for (uint64_t warp = 0; warp < 3; ++warp) ExpectBegins(warp, 4096 * warp + begin);
  RunUpTo(3 * 4096);
  const uint32_t rounds = Rounds(0);
  EXPECT_EQ(Rounds(1), rounds);
  EXPECT_EQ(Rounds(2), rounds);
  RunUpTo(3 * 4096 + 3);
  EXPECT_EQ(Rounds(0), rounds + 1) << "the first one again";
}

TEST_F(Turns, ABlockHas65536Instructions) {
  const uint64_t begin = ToBegin();
  Begin(3, 2);
  ExpectBegins(0, begin);
  ExpectBegins(1, 4096 + begin);
  ExpectBegins(2, 65536 + begin);
  ExpectBegins(3, 65536 + 4096 + begin);
  ExpectBegins(4, 2 * 65536 + begin);
  RunUpTo(3 * 65536);
  EXPECT_EQ(Rounds(0), Rounds(2));
  EXPECT_EQ(Rounds(0), Rounds(4));
  const uint32_t rounds = Rounds(0);
  RunUpTo(3 * 65536 + 4);
  EXPECT_GT(Rounds(0), rounds) << "the first one again";
  EXPECT_EQ(Rounds(2), rounds);
}

TEST_F(Turns, SixteenBlocksAreResident) {
  const uint64_t begin = ToBegin();
  Begin(18, 1);
  for (uint64_t block = 0; block < 16; ++block) ExpectBegins(block, 65536 * block + begin);
  RunUpTo(32 * 65536);
  EXPECT_FALSE(HasBegun(16));
  EXPECT_EQ(Rounds(15), Rounds(0));
  EXPECT_EQ(Rounds(7), Rounds(0));
}

TEST_F(Turns, ASleepCountsLikeAWholeTurn) {
  Begin(2, 1, "nanosleep.u32 1;\n");
  RunToBeginOf(1);
  EXPECT_EQ(Rounds(0), 15u) << "sixteen sleeps are the turn of a block";
  Begin(1, 2, "nanosleep.u32 1;\n");
  RunToBeginOf(1);
  EXPECT_EQ(Rounds(0), 0u);
}

TEST_F(Turns, AWarpThatPollsGivesItsTurnAway) {
  Begin(1, 2, "membar.gl;\n");
  RunToBeginOf(1);
  EXPECT_EQ(Rounds(0), 32u);
  Begin(2, 1, "membar.gl;\n");
  RunToBeginOf(1);
  EXPECT_EQ(Rounds(0), 16u * 33 - 1 - 15);
}

// Which block comes after one that ends.
TEST_F(Turns, WhoeverWasBehindABlockThatEndsIsNext) {
  const std::string ends =
      "mov.u32 %r6, %ctaid.x; setp.eq.u32 %p1, %r6, {}; setp.ge.and.u32 %p2, %r4, 5, %p1; @%p2 exit;\n";
  const auto with = [&](const std::string& block) { return std::string(ends).replace(ends.find("{}"), 2, block); };
  const uint64_t begin = ToBegin();
  // The last of three ends in its first turn: then it is the first one's.
  Begin(3, 1, with("2"));
  ExpectBegins(2, 2 * 65536 + begin);
  const uint32_t first = Rounds(0), second = Rounds(1);
  RunUpTo(2 * 65536 + 200);
  EXPECT_GT(Rounds(0), first);
  EXPECT_EQ(Rounds(1), second);
  EXPECT_EQ(Rounds(2), 5u);
  // One of four in the middle ends, then a new one begins, and the one behind is next.
  Begin(4, 1, with("1"));
  ExpectBegins(1, 65536 + begin);
  RunToBeginOf(2);
  EXPECT_EQ(Rounds(1), 5u);
  EXPECT_FALSE(HasBegun(3));
}

TEST_F(Turns, ABlockThatWaitsForItselfIsAFault) {
  ASSERT_EQ(m.LoadBody("",
                       "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 exit; setp.lt.u32 %p1, %r1, 64;\n"
                       "@%p1 bra L; bar.sync 0; bra END;\nL: bar.sync 1;\nEND:")
                .status,
            CuStatus::kSuccess);
  const Outcome ran = m.Run("k", {{1, 1, 1}, {96, 1, 1}, 0}, Params());
  EXPECT_EQ(ran.status, CuStatus::kLaunchTimeout);
  EXPECT_THAT(ran.text, testing::HasSubstr("thread (32,0,0): deadlock, every thread of the block waits at a barrier"));
}

TEST_F(Turns, OthersAreCalledAfter8192Instructions) {
  SoftMachine two(BestIsa(), 64 << 20, 2);
  ASSERT_EQ(two.LoadBody("", "L: bra L;").status, CuStatus::kSuccess);
  const auto run = [&](GpuGrid& launched, uint64_t budget) {
    EXPECT_EQ(*launched.Run({&two.word, 0}, budget), GpuGrid::Progress::kYield);
    return two.gpu.workers().started();
  };
  const auto alone = two.Launch("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params());
  EXPECT_EQ(run(*alone, 100'000), 0u) << "one block is nothing to share";
  const auto shared = two.Launch("k", {{2, 1, 1}, {32, 1, 1}, 0}, Params());
  EXPECT_EQ(run(*shared, 8192), 0u);
  EXPECT_EQ(run(*shared, 2047), 0u) << "too little to wake anybody up for";
  EXPECT_EQ(run(*shared, 2048), 1u);
}

// Each block sleeps all the time, so all are resident when others are called.
TEST(TurnsOfThreads, ResidentBlocksAreSpreadAndAllGoOn) {
  for (const uint32_t blocks : {2u, 3u, 5u, 16u})
    for (const uint32_t threads : {2u, 3u}) {
      SoftMachine m(BestIsa(), 64 << 20, threads);
      ASSERT_EQ(m.LoadBody(".param .u64 out", Endless("nanosleep.u32 1;\n")).status, CuStatus::kSuccess);
      const GpuVa out = m.Alloc(8 * blocks);
      const auto grid = m.Launch("k", {{blocks, 1, 1}, {32, 1, 1}, 0}, Params().Add(out));
      ASSERT_EQ(*grid->Run({&m.word, 0}, 8192), GpuGrid::Progress::kYield);
      auto before = m.Download<uint32_t>(out, 2 * blocks);
      for (uint32_t n = 0; n < blocks; ++n) ASSERT_EQ(before[2 * n], 1u) << "block " << n << " has not begun";
      for (int round = 0; round < 3; ++round) {
        ASSERT_EQ(*grid->Run({&m.word, 0}, 200'000), GpuGrid::Progress::kYield);
        const auto after = m.Download<uint32_t>(out, 2 * blocks);
        for (uint32_t n = 0; n < blocks; ++n) EXPECT_GT(after[2 * n + 1], before[2 * n + 1]) << n << " of " << blocks;
        before = after;
      }
    }
}

TEST_F(Turns, LanesAreCountedWhereThatIsAskedFor) {
  ASSERT_EQ(m.LoadBody("",
                       "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 3; @%p1 bra L; add.u32 %r2, %r1, 1;\n"
                       "add.u32 %r2, %r2, 1; bra END;\nL: add.u32 %r2, %r1, 2;\nEND:")
                .status,
            CuStatus::kSuccess);
  grid = m.Launch("k", {{2, 1, 1}, {40, 1, 1}, 0}, Params());
  auto& counting = dynamic_cast<Grid&>(*grid);
  counting.CountThreads();
  ASSERT_EQ(m.Finish(*grid).status, CuStatus::kSuccess);
  // Of each block 3 lanes run 3 + 1, 37 run 3 + 3, all 40 the return.
  EXPECT_EQ(counting.thread_instructions(), 2u * (3 * 4 + 37 * 6 + 40));
  EXPECT_EQ(grid->warp_instructions(), 2u * (3 + 3 + 1 + 1 + 3 + 3 + 1));
}

TEST_F(Turns, ResidentBlocksTakeAtMostAGiB) {
  const std::string body = ".local .align 4 .b8 mem[65536]; mov.u64 %rd2, mem; st.local.u32 [%rd2+65532], 1;";
  for (const auto& [threads, block, blocks] :
       {std::tuple(1u, 1024u, 15u), {4u, 1024u, 3u}, {20u, 1024u, 1u}, {1u, 512u, 16u}, {1u, 32u, 16u}}) {
    SoftMachine machine(BestIsa(), 64 << 20, threads);
    ASSERT_EQ(machine.LoadBody("", body).status, CuStatus::kSuccess);
    const auto launched = machine.Launch("k", {{40, 1, 1}, {block, 1, 1}, 0}, Params());
    const auto& facts = dynamic_cast<const Grid&>(*launched).facts();
    EXPECT_EQ(facts.max_resident, blocks) << threads << " threads of the host, " << block;
    EXPECT_EQ(facts.ctas, 40u);
    EXPECT_EQ(facts.threads, block);
    EXPECT_EQ(facts.warps_per_cta, block / 32);
    EXPECT_EQ(launched->short_of(), facts.layout.bytes);
  }
}

TEST_F(Turns, ACooperativeGridNeedsRoomForAllOfItsBlocks) {
  ASSERT_EQ(m.LoadBody("", "").status, CuStatus::kSuccess);
  const auto together = m.Launch("k", {{40, 1, 1}, {32, 1, 1}, 0, true}, Params());
  const auto& facts = dynamic_cast<const Grid&>(*together).facts();
  EXPECT_EQ(facts.max_resident, 40u);
  EXPECT_EQ(together->short_of(), 40 * facts.layout.bytes);
}

// Of blocks {5, 3, 3} in a grid {9, 2, 2}, each thread writes what it knows.
TEST_F(Turns, ThreadsKnowTheirPlace) {
  const char* const names[] = {"tid.x",  "tid.y",    "tid.z",    "ctaid.x",  "ctaid.y", "ctaid.z", "ntid.x", "ntid.y",
                               "ntid.z", "nctaid.x", "nctaid.y", "nctaid.z", "warpid",  "nwarpid", "laneid", "smid"};
  std::string body =
      "ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.z; mov.u32 %r2, %ctaid.y; mad.lo.u32 %r1, %r1, 2, %r2;\n"
      "mov.u32 %r2, %ctaid.x; mad.lo.u32 %r1, %r1, 9, %r2; mov.u32 %r2, %tid.z; mad.lo.u32 %r1, %r1, 3, %r2;\n"
      "mov.u32 %r2, %tid.y; mad.lo.u32 %r1, %r1, 3, %r2; mov.u32 %r2, %tid.x; mad.lo.u32 %r1, %r1, 5, %r2;\n"
      "mul.wide.u32 %rd2, %r1, 64; add.u64 %rd1, %rd1, %rd2;\n";
  for (size_t n = 0; n < std::size(names); ++n)
    body += std::string("mov.u32 %r3, %") + names[n] + "; st.global.u32 [%rd1+" + std::to_string(4 * n) + "], %r3;\n";
  ASSERT_EQ(m.LoadBody(".param .u64 out", body).status, CuStatus::kSuccess);
  constexpr uint32_t kThreads = 9 * 2 * 2 * 45;
  const GpuVa out = m.Alloc(64 * kThreads);
  ASSERT_EQ(m.Run("k", {{9, 2, 2}, {5, 3, 3}, 0}, Params().Add(out)).status, CuStatus::kSuccess);
  const auto words = m.Download<uint32_t>(out, 16 * kThreads);
  for (uint32_t n = 0; n < kThreads; ++n) {
    const uint32_t thread = n % 45, block = n / 45;
    const uint32_t x = block % 9, y = block / 9 % 2, z = block / 18;
    ASSERT_THAT(std::vector<uint32_t>(words.begin() + 16 * n, words.begin() + 16 * n + 16),
                ElementsAre(thread % 5, thread / 5 % 3, thread / 15, x, y, z, 5, 3, 3, 9, 2, 2, thread / 32, 2,
                            thread % 32, (x + y + z) % 8))
        << n;
  }
}

TEST_F(Turns, SharedMemoryHasTheSizeOfTheLaunch) {
  ASSERT_EQ(m.LoadBody(".param .u64 out",
                       ".shared .align 4 .b8 tile[20]; ld.param.u64 %rd1, [out]; mov.u32 %r1, %total_smem_size;\n"
                       "mov.u32 %r2, %dynamic_smem_size; mov.u32 %r3, tile; mov.u32 %r4, more; sub.u32 %r4, %r4, %r3;\n"
                       "st.shared.u32 [tile], %r1; st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};",
                       ".extern .shared .align 16 .b8 more[];")
                .status,
            CuStatus::kSuccess);
  const GpuVa out = m.Alloc(16);
  for (const uint32_t dynamic : {0u, 1u, 100u}) {
    ASSERT_EQ(m.Run("k", {{1, 1, 1}, {1, 1, 1}, dynamic}, Params().Add(out)).status, CuStatus::kSuccess);
    EXPECT_THAT(m.Download<uint32_t>(out, 4), ElementsAre(dynamic == 0 ? 20 : 32 + dynamic, dynamic, 0, 32));
  }
}

}  // namespace
}  // namespace vgpud::soft
