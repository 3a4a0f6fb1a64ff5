// SPDX-License-Identifier: Apache-2.0
// A tensor copy of many lanes can be left between two of them: a stop waits for one lane's copy at most, and each lane
// copies once.
#include "tests/unit/soft/rig/tensor_fixture.h"

namespace vgpud::soft {
namespace {

constexpr uint32_t kLaneCount = 32;
constexpr uint32_t kBoxWords = 4;

struct StopCase {
  const char* name;
  const char* guard;
  uint32_t lanes;  // that copy
};
void PrintTo(const StopCase& c, std::ostream* out) { *out << c.name; }
constexpr StopCase kAllLanes = {"AllLanes", "", kLaneCount};
constexpr StopCase kSomeLanes = {"SomeLanes", "@%p1 ", 12};

class TensorStops : public testing::TestWithParam<std::tuple<Isa, StopCase>> {
 protected:
  // Each lane below `lanes` adds a box of ones to the tensor, at coordinate `at` (%r5: four times the lane's number).
  std::unique_ptr<GpuGrid> Adding(SoftMachine& m, const StopCase& c, const std::string& at, GpuVa tensor) {
    const Outcome loaded =
        m.LoadBody(".param .u64 map",
                   R"(
    .shared .align 128 .b8 tile[128];
    ld.param.u64 %rd1, [map]; mov.u32 %r1, tile; mov.u32 %r30, %tid.x; mov.u32 %r2, 1; shl.b32 %r5, %r30, 2;
    add.u32 %r3, %r1, %r5; st.shared.u32 [%r3], %r2; setp.lt.u32 %p1, %r30, )" +
                       std::to_string(c.lanes) + "; bar.sync 0;\n" + c.guard +
                       "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd1, {" + at + "}], [%r1];");
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    if (loaded.status != CuStatus::kSuccess) return nullptr;
    const TensorCase line = {"", VGPU_TENSOR_U32, 4, {kLaneCount * kBoxWords}, {kBoxWords}, {0}};
    const GpuVa map = m.Upload(std::vector<vgpu_tensor_map>{MapOf(line, tensor)});
    return m.Launch("k", {{1, 1, 1}, {kLaneCount, 1, 1}, 0}, Params().Add(map));
  }
  const Isa isa = std::get<0>(GetParam());
  const StopCase which = std::get<1>(GetParam());
};

// The stop word is the first word of the tensor, so each lane's copy changes it.
TEST_P(TensorStops, TheNextLaneDoesNotCopyAfterAStop) {
  SoftMachine m(isa, 64 << 20, 1, **FindComputeCapability("9.0"));
  const GpuVa tensor = m.Alloc(kLaneCount * kBoxWords * 4);
  auto* word = reinterpret_cast<std::atomic<uint32_t>*>(m.gpu.HostPointer(tensor));
  const auto grid = Adding(m, which, "0", tensor);
  ASSERT_NE(grid, nullptr);
  for (uint32_t round = 1; round <= which.lanes; ++round) {
    const auto r = grid->Run({word, round - 1}, 1'000'000);
    ASSERT_TRUE(r) << r.error().text;
    ASSERT_EQ(*r, GpuGrid::Progress::kStopped);
    ASSERT_EQ(word->load(), round);
  }
  const auto r = grid->Run({word, which.lanes}, 1'000'000);
  ASSERT_TRUE(r) << r.error().text;
  EXPECT_EQ(*r, GpuGrid::Progress::kDone);
  EXPECT_EQ(word->load(), which.lanes);
}

TEST_P(TensorStops, EachLaneCopiesOnceWhateverTheCutsAre) {
  for (const uint64_t budget : {uint64_t{1}, uint64_t{7}, UINT64_MAX}) {
    SoftMachine m(isa, 64 << 20, 1, **FindComputeCapability("9.0"));
    const GpuVa tensor = m.Alloc(kLaneCount * kBoxWords * 4);
    const auto grid = Adding(m, which, "%r5", tensor);
    ASSERT_NE(grid, nullptr);
    const Outcome ran = m.Finish(*grid, budget, 10'000);
    ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    std::vector<uint32_t> expected(kLaneCount * kBoxWords, 0);
    std::fill_n(expected.begin(), which.lanes * kBoxWords, 1u);
    EXPECT_EQ(m.Download<uint32_t>(tensor, expected.size()), expected) << budget;
  }
}

// The blocks of a cluster get a box from each lane of one warp; the mbarriers count every byte of them.
TEST_P(TensorStops, LanesMulticastOnceWhateverTheCutsAre) {
  constexpr uint32_t kBlocks = 4;
  const std::string body = R"(
    ld.param.u64 %rd1, [map]; ld.param.u64 %rd2, [out]; mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r30, %tid.x;
    mov.u32 %r5, %cluster_ctarank; setp.lt.u32 %p1, %r30, LANES; setp.ne.u32 %p2, %r30, 0; setp.ne.u32 %p3, %r5, 1;
    @!%p2 mbarrier.init.shared.b64 [%r2], 1; @!%p2 mbarrier.arrive.expect_tx.shared.b64 %rd6, [%r2], BYTES;
    barrier.cluster.arrive; barrier.cluster.wait;
    @%p3 bra WAIT;
    shl.b32 %r6, %r30, 7; add.u32 %r6, %r1, %r6; shl.b32 %r7, %r30, 2; mov.u16 %rs1, 15;
    GUARD cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
      [%r6], [%rd1, {%r7}], [%r2], %rs1;
  WAIT: mbarrier.try_wait.parity.shared.b64 %p4, [%r2], 0; @!%p4 bra WAIT;
    mov.u32 %r8, %ctaid.x; mad.lo.u32 %r8, %r8, 32, %r30; mul.wide.u32 %rd7, %r8, 4; add.u64 %rd7, %rd2, %rd7;
    shl.b32 %r9, %r30, 7; add.u32 %r9, %r1, %r9; ld.shared.u32 %r10, [%r9+4];
    @%p1 st.global.u32 [%rd7], %r10;
    barrier.cluster.arrive; barrier.cluster.wait;)";
  const auto with = [&] {
    std::string text = body;
    const std::pair<std::string, std::string> all[] = {{"LANES", std::to_string(which.lanes)},
                                                       {"BYTES", std::to_string(which.lanes * kBoxWords * 4)},
                                                       {"GUARD", which.guard}};
    for (const auto& [name, value] : all) text.replace(text.find(name), name.size(), value);
    return text;
  };
  std::vector<uint32_t> line(kLaneCount * kBoxWords);
  for (uint32_t n = 0; n < line.size(); ++n) line[n] = 1000 + n;
  for (const uint64_t budget : {uint64_t{1}, uint64_t{7}, UINT64_MAX}) {
    SoftMachine m(isa, 64 << 20, 1, **FindComputeCapability("9.0"));
    const Outcome loaded = m.LoadBody(".param .u64 map, .param .u64 out", with(),
                                      ".shared .align 128 .b8 tile[4096]; .shared .align 8 .b8 bar[8];");
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    const TensorCase c = {"", VGPU_TENSOR_U32, 4, {line.size()}, {kBoxWords}, {0}};
    const GpuVa map = m.Upload(std::vector<vgpu_tensor_map>{MapOf(c, m.Upload(line))});
    const GpuVa out = m.Alloc(kBlocks * kLaneCount * 4);
    LaunchShape shape{{kBlocks, 1, 1}, {kLaneCount, 1, 1}, 0};
    shape.cluster[0] = kBlocks;
    shape.cluster[1] = shape.cluster[2] = 1;
    const Outcome ran = m.Run("k", shape, Params().Add(map).Add(out), budget, 100'000);
    ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    const auto got = m.Download<uint32_t>(out, kBlocks * kLaneCount);
    for (uint32_t n = 0; n < got.size(); ++n) {
      const uint32_t lane = n % kLaneCount;
      EXPECT_EQ(got[n], lane < which.lanes ? line[lane * kBoxWords + 1] : 0u) << budget << " " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, TensorStops,
                         testing::Combine(testing::ValuesIn(AvailableIsas()), testing::Values(kAllLanes, kSomeLanes)),
                         [](const auto& p) {
                           return std::string(NameOf(std::get<0>(p.param))) + std::get<1>(p.param).name;
                         });

}  // namespace
}  // namespace vgpud::soft
