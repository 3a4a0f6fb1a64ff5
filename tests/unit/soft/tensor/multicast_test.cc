// SPDX-License-Identifier: Apache-2.0
// Boxes that several blocks of a cluster get at once, and that a block loads into another's shared memory.
#include "tests/unit/soft/rig/tensor_fixture.h"

namespace vgpud::soft {
namespace {

constexpr uint32_t kWords = 32;
// Each block waits for a box of 32 words in `tile` and writes it out.
constexpr const char* kWaiting = R"(
    ld.param.u64 %rd1, [map]; ld.param.u64 %rd2, [out]; mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r30, %tid.x;
    mov.u32 %r5, %cluster_ctarank; setp.ne.u32 %p1, %r30, 0; setp.ne.u32 %p2, %r5, 1; or.pred %p3, %p1, %p2;
    @!%p1 mbarrier.init.shared.b64 [%r2], 1; @!%p1 mbarrier.arrive.expect_tx.shared.b64 %rd6, [%r2], 128;
    barrier.cluster.arrive; barrier.cluster.wait;
    @%p3 bra WAIT;
    LOAD
  WAIT: mbarrier.try_wait.parity.shared.b64 %p4, [%r2], 0; @!%p4 bra WAIT;
    mov.u32 %r6, %ctaid.x; mad.lo.u32 %r6, %r6, 32, %r30; mul.wide.u32 %rd7, %r6, 4; add.u64 %rd7, %rd2, %rd7;
    shl.b32 %r7, %r30, 2; add.u32 %r7, %r1, %r7; ld.shared.u32 %r8, [%r7]; st.global.u32 [%rd7], %r8;
    barrier.cluster.arrive; barrier.cluster.wait;)";

std::vector<uint32_t> RunCluster(const std::string& load, Outcome* ran, uint64_t most = 100'000) {
  TensorMachine m;
  std::string body = kWaiting;
  body.replace(body.find("LOAD"), 4, load);
  const Outcome loaded = m.LoadBody(".param .u64 map, .param .u64 out", body,
                                    ".shared .align 1024 .b8 tile[1024]; .shared .align 8 .b8 bar[8];");
  *ran = loaded;
  if (loaded.status != CuStatus::kSuccess) return {};
  std::vector<uint32_t> line(100);
  for (uint32_t n = 0; n < line.size(); ++n) line[n] = n;
  const TensorCase c = {"", VGPU_TENSOR_U32, 4, {100}, {kWords}, {0}};
  const GpuVa map = m.Upload(std::vector<vgpu_tensor_map>{MapOf(c, m.Upload(line))});
  const GpuVa out = m.Alloc(4 * kWords * 4);
  LaunchShape shape{{4, 1, 1}, {kWords, 1, 1}, 0};
  shape.cluster[0] = 4;
  shape.cluster[1] = shape.cluster[2] = 1;
  *ran = m.Run("k", shape, Params().Add(map).Add(out), UINT64_MAX, most);
  return m.Download<uint32_t>(out, 4 * kWords);
}

TEST(TensorMulticast, TheBlocksOfTheMaskGetTheBoxAndAreTold) {
  Outcome ran;
  const auto out = RunCluster(
      "mov.u16 %rs1, 15; "
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%r1], [%rd1, {7}], [%r2], %rs1;",
      &ran);
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  for (uint32_t n = 0; n < 4 * kWords; ++n) EXPECT_EQ(out[n], 7 + n % kWords) << n;
}

TEST(TensorMulticast, OthersWaitOn) {
  Outcome ran;
  RunCluster(
      "mov.u16 %rs1, 11; "
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%r1], [%rd1, {7}], [%r2], %rs1;",
      &ran);
  EXPECT_EQ(ran.status, CuStatus::kLaunchTimeout) << "the block of rank 2 was told";
}

TEST(TensorMulticast, ABlockThatIsNotThereEndsTheKernel) {
  Outcome ran;
  RunCluster(
      "mov.u16 %rs1, 31; "
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%r1], [%rd1, {7}], [%r2], %rs1;",
      &ran);
  EXPECT_EQ(ran.status, CuStatus::kIllegalAddress) << ran.text;
}

TEST(TensorMulticast, AnAddressBeyondTheClusterEndsTheKernel) {
  for (const char* places : {"[%r13], [%rd1, {7}], [%r2]", "[%r1], [%rd1, {7}], [%r13]"}) {
    Outcome ran;
    RunCluster(std::string("mov.u16 %rs1, 15; mov.u32 %r13, 0x70000000; "
                           "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
                           ".multicast::cluster ") +
                   places + ", %rs1;",
               &ran);
    EXPECT_EQ(ran.status, CuStatus::kIllegalAddress) << places << ran.text;
  }
}

TEST(TensorMulticast, ABlockLoadsForAnother) {
  Outcome ran;
  const auto out = RunCluster(R"(
    mov.u32 %r9, 0;
  EACH: mapa.shared::cluster.u32 %r10, %r1, %r9; mapa.shared::cluster.u32 %r11, %r2, %r9; mul.lo.u32 %r12, %r9, 10;
    cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd1, {%r12}], [%r11];
    add.u32 %r9, %r9, 1; setp.lt.u32 %p5, %r9, 4; @%p5 bra EACH;)",
                              &ran);
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  for (uint32_t n = 0; n < 4 * kWords; ++n) EXPECT_EQ(out[n], n / kWords * 10 + n % kWords) << n;
}

}  // namespace
}  // namespace vgpud::soft
