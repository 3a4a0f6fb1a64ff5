// SPDX-License-Identifier: Apache-2.0
// cp.async and mbarrier.
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

class SoftAsync : public testing::Test {
 protected:
  Outcome Run(const std::string& body, uint32_t threads, const std::vector<uint32_t>& in, uint32_t words) {
    const Outcome loaded = m.LoadBody(".param .u64 in, .param .u64 out",
                                      ".shared .align 16 .b8 tile[1024];\n.shared .align 8 .b8 bar[8];\n"
                                      "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r39, %tid.x;\n" +
                                          body);
    if (loaded.status != CuStatus::kSuccess) return loaded;
    const GpuVa from = m.Upload(in);
    const GpuVa to = m.Alloc(words * 4);
    const Outcome ran = m.Run("k", {{1, 1, 1}, {threads, 1, 1}, 0}, Params().Add(from).Add(to), 997, 1'000'000);
    out = m.Download<uint32_t>(to, words);
    return ran;
  }
  SoftMachine m;
  std::vector<uint32_t> out;
};

TEST_F(SoftAsync, CopiesAndFillsWithZeros) {
  std::vector<uint32_t> in(128);
  for (uint32_t n = 0; n < in.size(); ++n) in[n] = n + 1;
  const Outcome ran = Run(R"(
    mul.wide.u32 %rd3, %r39, 16; add.u64 %rd4, %rd1, %rd3; cvt.u32.u64 %r1, %rd3; mov.u32 %r2, tile; add.u32 %r3, %r2, %r1;
    and.b32 %r4, %r39, 1; mul.lo.u32 %r4, %r4, 8; add.u32 %r4, %r4, 8;
    cp.async.cg.shared.global [%r3], [%rd4], 16, %r4;
    cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;
    ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r3]; add.u64 %rd5, %rd2, %rd3;
    st.global.v4.u32 [%rd5], {%r5, %r6, %r7, %r8};
    cp.async.ca.shared.global [%r3+4], [%rd4+8], 4; ld.shared.u32 %r9, [%r3+4]; st.global.u32 [%rd5+4], %r9;)",
                          32, in, 128);
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  for (uint32_t t = 0; t < 32; ++t) {
    EXPECT_EQ(out[4 * t], 4 * t + 1);
    EXPECT_EQ(out[4 * t + 1], 4 * t + 3);
    EXPECT_EQ(out[4 * t + 2], t % 2 == 1 ? 4 * t + 3 : 0) << t;
    EXPECT_EQ(out[4 * t + 3], t % 2 == 1 ? 4 * t + 4 : 0) << t;
  }
}

TEST_F(SoftAsync, ACopyFromNowhereIsAFault) {
  const Outcome ran =
      Run("mov.u64 %rd3, 4096; mov.u32 %r1, tile; cp.async.ca.shared.global [%r1], [%rd3], 8;", 32, {0}, 1);
  EXPECT_EQ(ran.status, CuStatus::kIllegalAddress);
  EXPECT_THAT(ran.text, HasSubstr("asynchronous copy"));
}

TEST_F(SoftAsync, ACopyOfAnOddSizeIsNoInstruction) {
  const Outcome ran = Run("mov.u32 %r1, tile; cp.async.ca.shared.global [%r1], [%rd1], 6;", 32, {0}, 1);
  EXPECT_EQ(ran.status, CuStatus::kInvalidPtx);
  EXPECT_THAT(ran.text, HasSubstr("4, 8 or 16 bytes"));
}

// Warp 1 waits three times for a phase in which warp 0 arrives with all its threads, by state and by parity.
TEST_F(SoftAsync, AWarpWaitsForTheArrivalsOfAnother) {
  const Outcome ran = Run(R"(
    mov.u32 %r1, bar; setp.ne.u32 %p1, %r39, 0; @%p1 bra READY;
    mbarrier.init.shared.b64 [%r1], 33;
  READY: bar.sync 0;
    mov.u32 %r2, 0; mov.u32 %r5, tile;
    setp.ge.u32 %p2, %r39, 32; @%p2 bra CONSUMER;
  PRODUCER:
    add.u32 %r2, %r2, 1; st.shared.u32 [%r5], %r2;
    mbarrier.arrive.shared.b64 %rd3, [%r1];
  FULL: mbarrier.test_wait.shared.b64 %p3, [%r1], %rd3; @!%p3 bra FULL;
    setp.lt.u32 %p4, %r2, 3; @%p4 bra PRODUCER;
    bra END;
  CONSUMER:
    setp.ne.u32 %p5, %r39, 32; @%p5 bra END;
    mov.u32 %r6, 0;
  NEXT:
    add.u32 %r2, %r2, 1;
    nanosleep.u32 100;
    mbarrier.arrive.shared.b64 _, [%r1], 1;
  WAIT: mbarrier.try_wait.parity.shared.b64 %p6, [%r1], %r6; @!%p6 bra WAIT;
    xor.b32 %r6, %r6, 1;
    setp.lt.u32 %p7, %r2, 3; @%p7 bra NEXT;
    ld.shared.u32 %r7, [%r5]; st.global.u32 [%rd2], %r7;
    mbarrier.arrive.shared.b64 %rd4, [%r1]; mbarrier.pending_count.b64 %r8, %rd4; st.global.u32 [%rd2+4], %r8;
    mbarrier.inval.shared.b64 [%r1];
  END:)",
                          64, {0}, 2);
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  EXPECT_EQ(out[0], 3u);
  EXPECT_EQ(out[1], 33u);
}

TEST_F(SoftAsync, DroppedArrivalsAreNotExpectedAgain) {
  const Outcome ran = Run(R"(
    mov.u32 %r1, bar; mbarrier.init.shared.b64 [%r1], 3;
    mbarrier.arrive_drop.shared.b64 %rd3, [%r1];
    mbarrier.arrive.noComplete.shared.b64 %rd4, [%r1], 1;
    mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0; selp.u32 %r2, 1, 0, %p1;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];
    mbarrier.test_wait.parity.shared.b64 %p2, [%r1], 0; selp.u32 %r3, 1, 0, %p2;
    mbarrier.arrive.shared.b64 %rd5, [%r1], 2; mbarrier.pending_count.b64 %r4, %rd5;
    mbarrier.test_wait.parity.shared.b64 %p3, [%r1], 1; selp.u32 %r5, 1, 0, %p3;
    st.global.v4.u32 [%rd2], {%r2, %r3, %r4, %r5};)",
                          1, {0}, 4);
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  EXPECT_THAT(out, testing::ElementsAre(0, 1, 2, 1));
}

}  // namespace
}  // namespace vgpud::soft
