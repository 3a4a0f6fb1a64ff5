// SPDX-License-Identifier: Apache-2.0
// Lanes that part and meet: locks, barriers, warp operations, calls.
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

class SoftDivergence : public testing::TestWithParam<Isa> {
 protected:
  SoftDivergence() : m(GetParam()) {}
  std::vector<uint32_t> Run(const std::string& body, uint32_t blocks, uint32_t threads, uint32_t words,
                            const std::string& globals = "") {
    const Outcome loaded =
        m.LoadBody(".param .u64 out", "ld.param.u64 %rd1, [out];\nmov.u32 %r39, %tid.x;\n" + body, globals);
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    if (loaded.status != CuStatus::kSuccess) return std::vector<uint32_t>(words);
    const GpuVa out = m.Alloc(words * 4);
    const Outcome ran = m.Run("k", {{blocks, 1, 1}, {threads, 1, 1}, 0}, Params().Add(out), 997, 20'000'000);
    EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    return m.Download<uint32_t>(out, words);
  }
  SoftMachine m;
};

// 64 threads of each of 4 blocks take one lock 25 times. Word 0 is the lock, word 1 the counter (not atomic).
TEST_P(SoftDivergence, SpinLockWithinAWarpMakesProgress) {
  const auto r = Run(R"(
    mov.u32 %r1, 0;
  again:
    atom.global.cas.b32 %r2, [%rd1], 0, 1;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra again;
    membar.gl;
    ld.volatile.global.u32 %r3, [%rd1+4];
    add.u32 %r3, %r3, 1;
    st.volatile.global.u32 [%rd1+4], %r3;
    membar.gl;
    atom.global.exch.b32 %r4, [%rd1], 0;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, 25;
    @%p2 bra again;)",
                     4, 64, 2);
  EXPECT_EQ(r[1], 4u * 64 * 25);
}

// Lane 0 waits, without leaving its loop, for a flag that lane 1 sets behind the branch.
TEST_P(SoftDivergence, ALaneMayWaitForALaneBehindTheBranch) {
  const auto r = Run(R"(
    setp.ne.u32 %p1, %r39, 0;
    @%p1 bra setter;
  wait:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra wait;
    st.global.u32 [%rd1+4], %r1;
    bra done;
  setter:
    mov.u32 %r2, 9;
    st.volatile.global.u32 [%rd1], %r2;
  done:)",
                     1, 32, 2);
  EXPECT_EQ(r[1], 9u);
}

// Warps and blocks that wait for each other: block 0 waits for the last of 12 blocks.
TEST_P(SoftDivergence, ResidentBlocksRunWhileAnotherSpins) {
  const auto r = Run(R"(
    mov.u32 %r1, %ctaid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra wait;
    atom.global.add.u32 %r2, [%rd1], 1;
    bra done;
  wait:
    ld.acquire.gpu.global.u32 %r3, [%rd1];
    setp.lt.u32 %p2, %r3, 704;
    @%p2 bra wait;
    st.global.u32 [%rd1+4], %r3;
  done:)",
                     12, 64, 2);
  EXPECT_EQ(r[1], 704u);
}

// Each half of a warp comes to the barrier on its own way, some threads have left before.
TEST_P(SoftDivergence, BarrierCountsThreadsNotWarps) {
  const auto r = Run(R"(
    setp.ge.u32 %p1, %r39, 90;
    @%p1 exit;
    mov.u32 %r10, tile;
    shl.b32 %r11, %r39, 2;
    add.u32 %r12, %r10, %r11;
    and.b32 %r1, %r39, 1;
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra even;
    st.shared.u32 [%r12], 1;
    bar.sync 0;
    bra sum;
  even:
    st.shared.u32 [%r12], 100;
    bar.sync 0;
  sum:
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
  loop:
    ld.shared.u32 %r4, [%r10];
    add.u32 %r2, %r2, %r4;
    add.u32 %r10, %r10, 4;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p3, %r3, 90;
    @%p3 bra loop;
    mul.wide.u32 %rd2, %r39, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;)",
                     1, 96, 96, ".shared .align 4 .b8 tile[384];");
  for (uint32_t t = 0; t < 90; ++t) ASSERT_EQ(r[t], 45u * 101) << t;
  for (uint32_t t = 90; t < 96; ++t) ASSERT_EQ(r[t], 0u);
}

TEST_P(SoftDivergence, BarrierReductions) {
  const auto r = Run(R"(
    setp.lt.u32 %p1, %r39, 40;
    bar.red.popc.u32 %r1, 0, %p1;
    bar.red.and.pred %p2, 0, %p1;
    bar.red.or.pred %p3, 0, !%p1;
    selp.u32 %r2, 1, 0, %p2;
    selp.u32 %r3, 1, 0, %p3;
    mul.wide.u32 %rd2, %r39, 12;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    st.global.u32 [%rd3+4], %r2;
    st.global.u32 [%rd3+8], %r3;)",
                     1, 64, 192);
  for (uint32_t t = 0; t < 64; ++t) {
    ASSERT_EQ(r[3 * t], 40u);
    ASSERT_EQ(r[3 * t + 1], 0u);
    ASSERT_EQ(r[3 * t + 2], 1u);
  }
}

// Two named barriers between halves of the block: producer arrives, consumer waits.
TEST_P(SoftDivergence, NamedBarrierWithArrive) {
  const auto r = Run(R"(
    mov.u32 %r10, tile;
    setp.ge.u32 %p1, %r39, 32;
    @%p1 bra consumer;
    st.shared.u32 [%r10], 77;
    bar.arrive 3, 64;
    bra done;
  consumer:
    bar.sync 3, 64;
    ld.shared.u32 %r1, [%r10];
    mul.wide.u32 %rd2, %r39, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
  done:)",
                     1, 64, 64, ".shared .align 4 .b8 tile[4];");
  for (uint32_t t = 32; t < 64; ++t) ASSERT_EQ(r[t], 77u);
}

// shfl and vote name all lanes, but half of them come later.
TEST_P(SoftDivergence, WarpOperationsWaitForTheirMembers) {
  const auto r = Run(R"(
    mov.u32 %r1, %r39;
    and.b32 %r2, %r39, 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra join;
    mov.u32 %r3, 0;
  spin:
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p2, %r3, 50;
    @%p2 bra spin;
    add.u32 %r1, %r1, 1000;
  join:
    shfl.sync.bfly.b32 %r4|%p3, %r1, 1, 31, -1;
    vote.sync.ballot.b32 %r5, %p1, 0xffffffff;
    mul.wide.u32 %rd2, %r39, 8;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r4;
    st.global.u32 [%rd3+4], %r5;)",
                     1, 32, 64);
  for (uint32_t t = 0; t < 32; ++t) {
    ASSERT_EQ(r[2 * t], (t ^ 1) + ((t ^ 1) & 1 ? 1000 : 0)) << t;
    ASSERT_EQ(r[2 * t + 1], 0x55555555u);
  }
}

// The two sides of a branch each do their own warp operation with their own members.
TEST_P(SoftDivergence, WarpOperationsOfAPartialMask) {
  const auto r = Run(R"(
    setp.lt.u32 %p1, %r39, 10;
    @%p1 bra low;
    shfl.sync.idx.b32 %r1|%p2, %r39, 20, 31, 0xfffffc00;
    bra out;
  low:
    shfl.sync.idx.b32 %r1|%p2, %r39, 3, 31, 0x000003ff;
  out:
    bar.warp.sync -1;
    mul.wide.u32 %rd2, %r39, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;)",
                     1, 32, 32);
  for (uint32_t t = 0; t < 32; ++t) ASSERT_EQ(r[t], t < 10 ? 3u : 20u) << t;
}

// A sum over a whole warp of which only the first `active` lanes take part: the others count as 0.
constexpr const char* kWarpSum = R"(
    add.u32 %r1, %r39, 1;
    setp.ge.u32 %p1, %r39, 5;
    @%p1 bra out;
    shfl.sync.down.b32 %r2|%p2, %r1, 16, 31, 0x1f;
    add.u32 %r1, %r1, %r2;
    shfl.sync.down.b32 %r2|%p3, %r1, 8, 31, 0x1f;
    add.u32 %r1, %r1, %r2;
    shfl.sync.down.b32 %r2, %r1, 4, 31, 0x1f;
    add.u32 %r1, %r1, %r2;
    shfl.sync.down.b32 %r2, %r1, 2, 31, 0x1f;
    add.u32 %r1, %r1, %r2;
    shfl.sync.down.b32 %r2, %r1, 1, 31, 0x1f;
    add.u32 %r1, %r1, %r2;
    selp.u32 %r3, 100, 0, %p2;
    add.u32 %r1, %r1, %r3;
    mul.wide.u32 %rd2, %r39, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
  out:)";
TEST_P(SoftDivergence, ShuffleReadsZeroFromLanesThatAreElsewhere) {
  EXPECT_EQ(Run(kWarpSum, 1, 32, 32)[0], 100 + 1u + 2 + 3 + 4 + 5);
}
TEST_P(SoftDivergence, ShuffleReadsZeroFromLanesThatDoNotExist) {
  EXPECT_EQ(Run(kWarpSum, 1, 5, 32)[0], 100 + 1u + 2 + 3 + 4 + 5);
}

TEST_P(SoftDivergence, ShuffleModesAndSegments) {
  const auto r = Run(R"(
    shfl.sync.up.b32 %r1|%p1, %r39, 3, 0, -1;
    shfl.sync.down.b32 %r2|%p2, %r39, 3, 31, -1;
    shfl.sync.down.b32 %r3|%p3, %r39, 1, 0x181f, -1;
    shfl.sync.idx.b32 %r4|%p4, %r39, 5, 0x181f, -1;
    selp.u32 %r5, 1, 0, %p3;
    mul.wide.u32 %rd2, %r39, 20;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    st.global.u32 [%rd3+4], %r2;
    st.global.u32 [%rd3+8], %r3;
    st.global.u32 [%rd3+12], %r4;
    st.global.u32 [%rd3+16], %r5;)",
                     1, 32, 160);
  for (uint32_t t = 0; t < 32; ++t) {
    ASSERT_EQ(r[5 * t], t < 3 ? t : t - 3) << t;
    ASSERT_EQ(r[5 * t + 1], t > 28 ? t : t + 3) << t;
    ASSERT_EQ(r[5 * t + 2], t % 8 == 7 ? t : t + 1) << t;
    ASSERT_EQ(r[5 * t + 3], t / 8 * 8 + 5) << t;
    ASSERT_EQ(r[5 * t + 4], t % 8 == 7 ? 0u : 1u) << t;
  }
}

TEST_P(SoftDivergence, MatchAndActiveMask) {
  const auto r = Run(R"(
    and.b32 %r1, %r39, 3;
    match.any.sync.b32 %r2, %r1, -1;
    match.all.sync.b32 %r3|%p1, %r1, -1;
    activemask.b32 %r4;
    mul.wide.u32 %rd2, %r39, 12;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    st.global.u32 [%rd3+4], %r3;
    st.global.u32 [%rd3+8], %r4;)",
                     1, 32, 96);
  for (uint32_t t = 0; t < 32; ++t) {
    ASSERT_EQ(r[3 * t], 0x11111111u << (t & 3));
    ASSERT_EQ(r[3 * t + 1], 0u);
    ASSERT_EQ(r[3 * t + 2], ~0u);
  }
}

// A recursive function, entered by lanes with different depths.
TEST_P(SoftDivergence, RecursiveCallsReturnToTheirOwnLane) {
  const auto r = Run(R"(
    and.b32 %r1, %r39, 7;
    {
    .param .b32 arg;
    .param .b32 result;
    st.param.b32 [arg+0], %r1;
    call.uni (result), factorial, (arg);
    ld.param.b32 %r2, [result+0];
    }
    mul.wide.u32 %rd2, %r39, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;)",
                     2, 32, 32, R"(
.func (.param .b32 res) factorial(.param .b32 n)
{
  .reg .b32 %r<8>;
  .reg .pred %p<2>;
  ld.param.u32 %r1, [n];
  setp.lt.u32 %p1, %r1, 2;
  mov.u32 %r3, 1;
  @%p1 bra leave;
  sub.u32 %r2, %r1, 1;
  {
  .param .b32 a;
  .param .b32 b;
  st.param.b32 [a+0], %r2;
  call.uni (b), factorial, (a);
  ld.param.b32 %r4, [b+0];
  }
  mul.lo.u32 %r3, %r1, %r4;
leave:
  st.param.b32 [res+0], %r3;
  ret;
}
)");
  const uint32_t factorial[] = {1, 1, 2, 6, 24, 120, 720, 5040};
  for (uint32_t t = 0; t < 32; ++t) ASSERT_EQ(r[t], factorial[t % 8]) << t;
}

// The lanes of one side of a branch call a function; back from it they stop where the others wait for them.
TEST_P(SoftDivergence, LanesThatComeBackFromAFunctionMeetTheOthersBehindTheBranch) {
  const auto r = Run(R"(
    mul.wide.u32 %rd2, %r39, 4;
    add.u64 %rd3, %rd1, %rd2;
    and.b32 %r1, %r39, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra join;
    {
    .param .b32 result;
    call (result), lanes, ();
    ld.param.b32 %r3, [result+0];
    }
    st.global.u32 [%rd3+128], %r3;
  join:
    activemask.b32 %r2;
    st.global.u32 [%rd3], %r2;)",
                     1, 32, 64, R"(
.func (.param .b32 res) lanes()
{
  .reg .b32 %r<2>;
  activemask.b32 %r1;
  st.param.b32 [res+0], %r1;
  ret;
}
)");
  for (uint32_t t = 0; t < 32; ++t) {
    ASSERT_EQ(r[t], 0xffffffffu) << t;
    ASSERT_EQ(r[t + 32], t % 2 == 0 ? 0x55555555u : 0u) << t;
  }
}

TEST_P(SoftDivergence, LocalMemoryIsPrivateAndReachableByGenericAddress) {
  const auto r = Run(R"(
    .local .align 8 .b8 mine[16];
    mov.u64 %rd4, mine;
    cvta.local.u64 %rd5, %rd4;
    add.u32 %r1, %r39, 500;
    st.local.u32 [%rd4+4], %r1;
    ld.u32 %r2, [%rd5+4];
    mul.wide.u32 %rd2, %r39, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.u32 [%rd3], %r2;)",
                     1, 64, 64);
  for (uint32_t t = 0; t < 64; ++t) ASSERT_EQ(r[t], t + 500);
}

INSTANTIATE_TEST_SUITE_P(, SoftDivergence, testing::ValuesIn(AvailableIsas()),
                         [](const auto& p) { return std::string(NameOf(p.param)); });

}  // namespace
}  // namespace vgpud::soft
