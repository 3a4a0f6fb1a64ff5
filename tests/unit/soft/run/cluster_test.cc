// SPDX-License-Identifier: Apache-2.0
// Clusters of blocks: who is in one, its barrier, and the shared memory of all its blocks (PTX ISA 9.0, "Cluster", and
// "barrier.cluster", "mapa", "cp.async.bulk").
#include <gmock/gmock.h>

#include "gpu/soft/run/grid.h"
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

LaunchShape Shape(std::array<uint32_t, 3> grid, uint32_t threads, std::array<uint32_t, 3> cluster) {
  LaunchShape shape{{grid[0], grid[1], grid[2]}, {threads, 1, 1}, 0};
  for (uint32_t d = 0; d < 3; ++d) shape.cluster[d] = cluster[d];
  return shape;
}

// %rd1 is where the words of the thread are, %r1 its number in its block, %r2 the rank of its block.
std::string Body(uint32_t words, const std::string& body) {
  return "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank;\n"
         "mov.u32 %r30, %ctaid.x; mov.u32 %r31, %ctaid.y; mov.u32 %r32, %ctaid.z; mov.u32 %r33, %nctaid.x;\n"
         "mov.u32 %r34, %nctaid.y; mad.lo.u32 %r35, %r32, %r34, %r31; mad.lo.u32 %r35, %r35, %r33, %r30;\n"
         "mov.u32 %r36, %ntid.x; mad.lo.u32 %r37, %r35, %r36, %r1; mul.wide.u32 %rd2, %r37, " +
         std::to_string(4 * words) + "; add.u64 %rd1, %rd1, %rd2;\n" + body;
}

class Clusters : public testing::TestWithParam<uint32_t> {
 protected:
  std::vector<uint32_t> Run(const LaunchShape& shape, uint32_t words, const std::string& body,
                            const std::string& globals = "", uint64_t budget = UINT64_MAX) {
    SoftMachine m(BestIsa(), 64 << 20, GetParam(), **FindComputeCapability("9.0"));
    const Outcome loaded = m.LoadBody(".param .u64 out", Body(words, body), globals);
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    if (loaded.status != CuStatus::kSuccess) return {};
    const size_t count = size_t{words} * shape.grid[0] * shape.grid[1] * shape.grid[2] * shape.block[0];
    const GpuVa out = m.Alloc(count * 4);
    ran_ = m.Run("k", shape, Params().Add(out), budget);
    return m.Download<uint32_t>(out, count);
  }
  Outcome ran_;
};
INSTANTIATE_TEST_SUITE_P(, Clusters, testing::Values(1, 3),
                         [](const auto& p) { return "threads_" + std::to_string(p.param); });

TEST_P(Clusters, RegistersSayWhereABlockIs) {
  const auto got = Run(Shape({4, 6, 3}, 1, {2, 3, 1}), 16, R"(
    mov.u32 %r3, %cluster_ctaid.x; mov.u32 %r4, %cluster_ctaid.y; mov.u32 %r5, %cluster_ctaid.z;
    st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r2};
    mov.u32 %r3, %cluster_nctaid.x; mov.u32 %r4, %cluster_nctaid.y; mov.u32 %r5, %cluster_nctaid.z;
    mov.u32 %r6, %cluster_nctarank; st.global.v4.u32 [%rd1+16], {%r3, %r4, %r5, %r6};
    mov.u32 %r3, %clusterid.x; mov.u32 %r4, %clusterid.y; mov.u32 %r5, %clusterid.z;
    mov.pred %p1, %is_explicit_cluster; selp.u32 %r6, 1, 0, %p1; st.global.v4.u32 [%rd1+32], {%r3, %r4, %r5, %r6};
    mov.u32 %r3, %nclusterid.x; mov.u32 %r4, %nclusterid.y; mov.u32 %r5, %nclusterid.z;
    st.global.v4.u32 [%rd1+48], {%r3, %r4, %r5, 0};)");
  ASSERT_EQ(ran_.status, CuStatus::kSuccess) << ran_.text;
  for (uint32_t z = 0; z < 3; ++z)
    for (uint32_t y = 0; y < 6; ++y)
      for (uint32_t x = 0; x < 4; ++x) {
        const size_t at = ((z * 6 + y) * 4 + x) * 16;
        const std::vector<uint32_t> row(got.begin() + static_cast<ptrdiff_t>(at),
                                        got.begin() + static_cast<ptrdiff_t>(at + 16));
        EXPECT_EQ(row, (std::vector<uint32_t>{x % 2, y % 3, 0, x % 2 + 2 * (y % 3), 2, 3, 1, 6, x / 2, y / 3, z, 1, 2,
                                              2, 3, 0}))
            << x << " " << y << " " << z;
      }
}

TEST_P(Clusters, ABlockAloneIsOneThatNobodyAskedFor) {
  const auto got = Run({{2, 1, 1}, {1, 1, 1}, 0}, 4, R"(
    mov.u32 %r3, %cluster_nctarank; mov.u32 %r4, %clusterid.x; mov.pred %p1, %is_explicit_cluster;
    selp.u32 %r5, 1, 0, %p1; barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r2};)");
  ASSERT_EQ(ran_.status, CuStatus::kSuccess) << ran_.text;
  EXPECT_EQ(got, (std::vector<uint32_t>{1, 0, 0, 0, 1, 1, 0, 0}));
}

// Each block's word passes once around its cluster, block by block, through the memory of the next one.
constexpr const char* kAround = R"(
    mov.u32 %r3, word; mad.lo.u32 %r4, %r35, 1000, 7; st.shared.u32 [%r3], %r4;
    mov.u32 %r5, %cluster_nctarank; add.u32 %r6, %r2, 1; rem.u32 %r6, %r6, %r5;
    mov.u32 %r7, 0;
  AROUND:
    barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
    mapa.shared::cluster.u32 %r8, %r3, %r6; ld.shared::cluster.u32 %r9, [%r8];
    barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
    setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r3], %r9;
    add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, %r5; @%p2 bra AROUND;
    bar.sync 0; ld.shared.u32 %r9, [%r3]; sub.u32 %r9, %r9, %r4; st.global.u32 [%rd1], %r9;)";

TEST_P(Clusters, BlocksReadEachOthersSharedMemory) {
  for (const uint64_t budget : {UINT64_MAX, uint64_t{7}})
    for (const uint32_t size : {1, 2, 8, 16}) {
      const auto got = Run(Shape({48, 1, 1}, 70, {size, 1, 1}), 1, kAround, ".shared .align 4 .b8 word[4];", budget);
      ASSERT_EQ(ran_.status, CuStatus::kSuccess) << ran_.text;
      EXPECT_EQ(got, std::vector<uint32_t>(48 * 70, 0)) << size;
    }
}

TEST_P(Clusters, AddressesAndRanks) {
  const auto got = Run(Shape({3, 1, 1}, 1, {3, 1, 1}), 8, R"(
    mov.u32 %r3, word; mov.u64 %rd3, word; cvta.shared.u64 %rd4, %rd3; mov.u32 %r20, 2;
    mapa.shared::cluster.u32 %r4, word, %r20; getctarank.shared::cluster.u32 %r5, %r4;
    mapa.u64 %rd5, %rd4, 1; getctarank.u64 %r6, %rd5; getctarank.u64 %r7, %rd4; getctarank.shared::cluster.u32 %r8, %r3;
    mapa.shared::cluster.u64 %rd6, %rd3, 0; getctarank.shared::cluster.u64 %r9, %rd6;
    st.global.v4.u32 [%rd1], {%r5, %r6, %r7, %r8}; st.global.u32 [%rd1+16], %r9;
    isspacep.shared::cta %p1, %rd5; selp.u32 %r10, 1, 0, %p1; isspacep.shared::cluster %p1, %rd5; selp.u32 %r11, 1, 0, %p1;
    isspacep.shared::cta %p1, %rd4; selp.u32 %r12, 1, 0, %p1; mad.lo.u32 %r10, %r10, 10, %r11; mad.lo.u32 %r10, %r10, 10, %r12;
    st.global.u32 [%rd1+20], %r10;
    barrier.cluster.arrive; barrier.cluster.wait;
    add.u32 %r13, %r2, 40; st.u32 [%rd5], %r13; cvta.to.shared::cluster.u64 %rd7, %rd5;
    barrier.cluster.arrive; barrier.cluster.wait;
    ld.relaxed.cluster.shared::cluster.u32 %r14, [%rd7]; st.global.u32 [%rd1+24], %r14;
    barrier.cluster.arrive; barrier.cluster.wait;
    atom.add.shared::cluster.u32 %r15, [%rd7], 100; red.shared::cluster.add.u32 [%rd7], 1;
    barrier.cluster.arrive; barrier.cluster.wait;
    ld.u32 %r16, [%rd5]; sub.u32 %r16, %r16, %r14; st.global.u32 [%rd1+28], %r16;)",
                       ".shared .align 4 .b8 word[4];");
  ASSERT_EQ(ran_.status, CuStatus::kSuccess) << ran_.text;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    const uint32_t* row = &got[rank * 8];
    EXPECT_EQ(std::vector<uint32_t>(row, row + 6), (std::vector<uint32_t>{2, 1, rank, rank, 0, 11})) << rank;
    EXPECT_GE(row[6], 40u);
    EXPECT_LE(row[6], 42u);
    EXPECT_EQ(row[7], 303u);
  }
}

TEST_P(Clusters, WhoHasEndedIsNotWaitedFor) {
  const auto got = Run(Shape({4, 1, 1}, 64, {4, 1, 1}), 1, R"(
    setp.lt.u32 %p1, %r1, 40; setp.eq.u32 %p2, %r2, 3; and.pred %p1, %p1, %p2; @%p1 bra END;
    barrier.cluster.arrive; barrier.cluster.wait; barrier.cluster.arrive; barrier.cluster.wait;
    st.global.u32 [%rd1], 1;
  END:)");
  ASSERT_EQ(ran_.status, CuStatus::kSuccess) << ran_.text;
  for (size_t n = 0; n < 256; ++n) EXPECT_EQ(got[n], n < 192 || n >= 232 ? 1u : 0u) << n;
}

TEST_P(Clusters, BetweenArrivingAndWaitingThereIsTimeForMore) {
  const auto got = Run(Shape({2, 1, 1}, 40, {2, 1, 1}), 1, R"(
    mov.u32 %r3, word; st.shared.u32 [%r3], %r2; bar.sync 0;
    barrier.cluster.arrive; add.u32 %r4, %r2, 5; bar.sync 1; barrier.cluster.wait;
    xor.b32 %r5, %r2, 1; mapa.shared::cluster.u32 %r6, %r3, %r5; ld.shared::cluster.u32 %r7, [%r6];
    mad.lo.u32 %r4, %r4, 10, %r7; st.global.u32 [%rd1], %r4; barrier.cluster.arrive; barrier.cluster.wait;)",
                       ".shared .align 4 .b8 word[4];");
  ASSERT_EQ(ran_.status, CuStatus::kSuccess) << ran_.text;
  for (size_t n = 0; n < 80; ++n) EXPECT_EQ(got[n], n < 40 ? 51u : 60u) << n;
}

TEST_P(Clusters, WaitingForWhoNeverComesIsNamed) {
  Run(Shape({2, 1, 1}, 32, {2, 1, 1}), 1, R"(
    setp.eq.u32 %p1, %r2, 0; @%p1 bra OTHER; barrier.cluster.arrive; barrier.cluster.wait; bra END;
  OTHER: setp.eq.u32 %p2, %r1, 0; @%p2 bra END; bar.sync 0, 64;
  END:)");
  EXPECT_EQ(ran_.status, CuStatus::kLaunchTimeout);
  EXPECT_THAT(ran_.text, HasSubstr("deadlock, every thread of the cluster waits at a barrier"));
}

TEST_P(Clusters, OnlyTheClusterIsReached) {
  Run(Shape({4, 1, 1}, 1, {2, 1, 1}), 1, "mapa.shared::cluster.u32 %r3, word, 2; ld.shared::cluster.u32 %r4, [%r3];",
      ".shared .align 4 .b8 word[4];");
  EXPECT_EQ(ran_.status, CuStatus::kIllegalAddress) << ran_.text;
  Run(Shape({4, 1, 1}, 1, {2, 1, 1}), 1, "mapa.shared::cluster.u32 %r3, word, 1; ld.shared::cluster.u32 %r4, [%r3+4];",
      ".shared .align 4 .b8 word[4];");
  EXPECT_EQ(ran_.status, CuStatus::kIllegalAddress) << ran_.text;
  Run(Shape({4, 1, 1}, 1, {2, 1, 1}), 1,
      "mapa.shared::cluster.u32 %r3, word, 0xfffffffe; ld.shared::cluster.u32 %r4, [%r3];",
      ".shared .align 4 .b8 word[4];");
  EXPECT_EQ(ran_.status, CuStatus::kIllegalAddress) << ran_.text;
}

// Block 0 sends a line to every block; each waits for the bytes at its own mbarrier.
constexpr const char* kLines =
    ".shared .align 16 .b8 line[64]; .shared .align 16 .b8 got[64]; .shared .align 8 .b8 done[8];";
TEST_P(Clusters, BulkCopiesTellTheMbarrierOfTheirBlock) {
  for (const bool multicast : {false, true}) {
    const std::string send = multicast ? R"(
      mov.u16 %rs1, 15;
      @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r10], [%rd5], 64, [%r11], %rs1;)"
                                       : R"(
      mov.u32 %r20, 0;
    SEND:
      mapa.shared::cluster.u32 %r21, %r10, %r20; mapa.shared::cluster.u32 %r22, %r11, %r20;
      @%p2 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r21], [%r12], 48, [%r22];
      add.u32 %r23, %r21, 48; add.u32 %r24, %r12, 48;
      @%p2 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r23], [%r24], 16, [%r22];
      add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 4; @%p3 bra SEND;)";
    const auto got = Run(Shape({8, 1, 1}, 16, {4, 1, 1}), 4, R"(
      mov.u32 %r10, got; mov.u32 %r11, done; mov.u32 %r12, line;
      mad.lo.u32 %r13, %r35, 100, %r1; shl.b32 %r14, %r1, 2; add.u32 %r15, %r12, %r14; st.shared.u32 [%r15], %r13;
      st.global.u32 [%rd1], %r13; setp.eq.u32 %p1, %r1, 0;
      mul.lo.u32 %r16, %r1, 16; cvt.u64.u32 %rd4, %r16; sub.u64 %rd5, %rd1, %rd4;
      add.u32 %r17, %r10, %r14; st.shared.u32 [%r17], -1;
      @%p1 mbarrier.init.shared::cta.b64 [%r11], 1; @%p1 fence.mbarrier_init.release.cluster;
      @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd5], [%r12], 64; cp.async.bulk.commit_group;
      cp.async.bulk.wait_group.read 0; fence.proxy.async.shared::cta;
      @%p1 mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r11], 64;
      barrier.cluster.arrive; barrier.cluster.wait;
      setp.eq.u32 %p2, %r2, 0; and.pred %p2, %p2, %p1;)" + send + R"(
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r11], 0; @!%p4 bra WAIT;
      ld.shared.u32 %r18, [%r17]; barrier.cluster.arrive; barrier.cluster.wait; st.global.v4.u32 [%rd1], {%r18, 0, 0, 0};)",
                         kLines);
    ASSERT_EQ(ran_.status, CuStatus::kSuccess) << ran_.text;
    for (uint32_t block = 0; block < 8; ++block)
      for (uint32_t t = 0; t < 16; ++t)
        EXPECT_EQ(got[(block * 16 + t) * 4], block / 4 * 400 + t) << multicast << " " << block << " " << t;
  }
}

TEST_P(Clusters, StoresCanTellAnMbarrierToo) {
  const auto got = Run(Shape({2, 1, 1}, 32, {2, 1, 1}), 1, R"(
    mov.u32 %r10, got; mov.u32 %r11, done; setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [%r11], 1; @%p1 st.shared.u32 [%r10+12], 0;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r11], 140;
    barrier.cluster.arrive; barrier.cluster.wait;
    xor.b32 %r3, %r2, 1; mapa.shared::cluster.u32 %r4, %r10, %r3; mapa.shared::cluster.u32 %r5, %r11, %r3;
    add.u32 %r6, %r2, 70;
    @%p1 st.async.mbarrier::complete_tx::bytes.shared::cluster.v2.u32 [%r4], {%r6, 4}, [%r5];
    @%p1 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4+8], 5, [%r5];
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4+12], 3, [%r5];
  WAIT: mbarrier.try_wait.parity.shared.b64 %p4, [%r11], 0; @!%p4 bra WAIT;
    ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r10]; mad.lo.u32 %r20, %r20, 10, %r21; mad.lo.u32 %r20, %r20, 10, %r22;
    mad.lo.u32 %r20, %r20, 1000, %r23; st.global.u32 [%rd1], %r20; barrier.cluster.arrive; barrier.cluster.wait;)",
                       kLines);
  ASSERT_EQ(ran_.status, CuStatus::kSuccess) << ran_.text;
  for (uint32_t n = 0; n < 64; ++n) EXPECT_EQ(got[n], (n < 32 ? 7145u : 7045u) * 1000 + 96) << n;
}

TEST(ClusterLaunch, ShapesThatCannotBe) {
  struct Case {
    std::array<uint32_t, 3> grid, cluster;
    const char* directives;
    const char* text;
  };
  for (const Case& c :
       {Case{{6, 4, 2}, {3, 2, 2}, "", ""}, Case{{16, 1, 1}, {16, 1, 1}, "", ""},
        Case{{17, 1, 1}, {17, 1, 1}, "", "17 blocks of a cluster in dimension 0, allowed 1..16"},
        Case{{8, 4, 1}, {8, 4, 1}, "", "32 blocks in a cluster, at most 16"},
        Case{{5, 4, 2}, {2, 2, 2}, "", "5 blocks in dimension 0, not a multiple of the cluster's 2"},
        Case{{4, 1, 1}, {2, 0, 1}, "", "0 blocks of a cluster in dimension 1, allowed 1..16"},
        Case{{4, 1, 1}, {0, 0, 0}, ".explicitcluster .reqnctapercluster 2", ""},
        Case{{3, 1, 1}, {0, 0, 0}, ".reqnctapercluster 2, 1, 1", "3 blocks in dimension 0, not a multiple"},
        Case{{4, 1, 1}, {4, 1, 1}, ".reqnctapercluster 2", "clusters of 4x1x1 blocks, the kernel was built for 2x1x1"},
        Case{{4, 1, 1}, {2, 1, 1}, ".reqnctapercluster 2", ""},
        Case{{4, 1, 1}, {0, 0, 0}, ".explicitcluster", "can't be launched without the size of its clusters"},
        Case{{4, 1, 1}, {4, 1, 1}, ".explicitcluster .maxclusterrank 4", ""},
        Case{{8, 1, 1}, {8, 1, 1}, ".maxclusterrank 4", "8 blocks in a cluster, at most 4"}}) {
    SoftMachine m(BestIsa(), 16 << 20, 1, **FindComputeCapability("9.0"));
    ASSERT_EQ(
        m.Load(std::string(".version 8.0\n.target sm_90\n.address_size 64\n.entry k() ") + c.directives + " { ret; }")
            .status,
        CuStatus::kSuccess);
    const auto launched = m.gpu.Launch(*m.module->Function("k"), Shape(c.grid, 1, c.cluster), {}, 0);
    EXPECT_EQ(launched ? CuStatus::kSuccess : launched.error().status,
              *c.text == '\0' ? CuStatus::kSuccess : CuStatus::kInvalidClusterSize)
        << c.text;
    if (!launched) {
      EXPECT_THAT(launched.error().text, HasSubstr(c.text));
    }
  }
}

}  // namespace
}  // namespace vgpud::soft
