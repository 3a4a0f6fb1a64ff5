// SPDX-License-Identifier: Apache-2.0
// A Gpu with a drill around it: what it cuts, what it keeps account of, and that an executor leaves where it cuts.
#include "gpu/exec/drill/drill_gpu.h"

#include <gmock/gmock.h>

#include "base/log.h"
#include "tests/unit/exec/fakes/exec_rig.h"

namespace vgpud::exec {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

std::vector<std::string>& Lines() {
  static std::vector<std::string> lines;
  return lines;
}
bool Keep(std::optional<LogLevel>, std::string_view, std::string_view text) {
  Lines().emplace_back(text);
  return true;
}

struct DrillRig : ExecRig {
  explicit DrillRig(uint64_t every) : drill(every) {
    around = [this](std::unique_ptr<Gpu> gpu) { return std::make_unique<DrillGpu>(std::move(gpu), drill); };
    EXPECT_EQ(0u, Status(guest.Submit({VGPU_OP_CONTEXT_RESET})));
  }
  uint64_t preempts() const { return slot_page.slots[3].preempts.load(); }
  PreemptDrill drill;
};

TEST(DrillGpu, TheExecutorLeavesAtEachCutAndTheKernelEnds) {
  DrillRig rig(1000);
  const uint64_t kernel = rig.Kernel("long");  // 20000 steps
  rig.Grant();
  const uint64_t left_before = rig.preempts();
  EXPECT_EQ(0u, rig.Status(rig.guest.Launch(kernel, 0)));
  EXPECT_EQ(20u, rig.drill.cuts());
  EXPECT_EQ(19u, rig.preempts() - left_before) << "the last cut was at its end";
  EXPECT_THAT(rig.drill.Report(), HasSubstr("every=1000 cuts=20 instructions=20000 "));
}

TEST(DrillGpu, WithoutCutsNothingIsLeft) {
  DrillRig rig(0);
  const uint64_t kernel = rig.Kernel("long");
  rig.Grant();
  EXPECT_EQ(0u, rig.Status(rig.guest.Launch(kernel, 0)));
  EXPECT_EQ(nullptr, rig.script->trip);
  EXPECT_EQ(0u, rig.preempts());
  EXPECT_THAT(rig.drill.Report(), HasSubstr("every=0 cuts=0 instructions=20000 "));
}

TEST(DrillGpu, AGpuThatCannotTripIsNotCut) {
  PreemptDrill drill(10);
  auto script = std::make_shared<FakeGpu::Script>();
  script->bare = true;
  DrillGpu gpu(std::make_unique<FakeGpu>(script), drill);
  EXPECT_EQ(nullptr, script->trip);
  EXPECT_EQ(nullptr, gpu.capabilities().async_work);
  EXPECT_EQ(nullptr, gpu.capabilities().output);
}

TEST(DrillGpu, ASavedContextIsNotForIt) {
  PreemptDrill drill(0);
  DrillGpu gpu(std::make_unique<FakeGpu>(std::make_shared<FakeGpu::Script>()), drill);
  EXPECT_EQ(nullptr, gpu.capabilities().saved_context);
  EXPECT_NE(nullptr, gpu.capabilities().spill_room);
}

TEST(DrillGpu, WhatTheProgramGetsIsInTheAccount) {
  DrillRig rig(0);
  rig.Grant();
  const uint64_t at = rig.Alloc(70000);
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_FILL, {at, 7, 1, 70000}})));
  EXPECT_EQ(0u, rig.drill.account()) << "the program has got nothing yet";
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_COPY_OUT, {at}, 0, rig.guest.Take(70000)})));
  rig.script->printed = "a line\n";
  EXPECT_EQ(0u, rig.Status(rig.guest.Submit({VGPU_OP_PRINT_READ, {}, 0, rig.guest.Take(64)})));
  PreemptDrill expected(0);
  const std::string sevens(65536, 7);
  expected.AddCopy(GpuVa{at}, BytesOf(sevens));
  expected.AddCopy(GpuVa{at + 65536}, BytesOf(std::string_view(sevens).substr(0, 70000 - 65536)));
  expected.AddPrinted(BytesOf("a line\n"));
  EXPECT_EQ(expected.account(), rig.drill.account());
}

TEST(DrillGpu, WhatGoesBehindAKernelIsDrilledToo) {
  DrillRig rig(0);
  rig.script->launches_behind = true;
  rig.script->room_for_launch = 512;
  const uint64_t a = rig.Kernel("a"), b = rig.Kernel("b");
  rig.Grant();
  const uint64_t first = rig.guest.Launch(a, 0), second = rig.guest.Launch(b, 0);
  EXPECT_EQ(0u, rig.Status(second));
  EXPECT_EQ(0u, rig.Status(first));
  EXPECT_THAT(rig.script->behind, Contains("b behind a"));
  EXPECT_THAT(rig.drill.Report(), HasSubstr("instructions=20 "));
  EXPECT_EQ(0, rig.script->live_grids);
}

class DrillWords : public testing::Test {
 protected:
  static void SetUpTestSuite() { SetLogSink(&Keep); }
  static void TearDownTestSuite() { SetLogSink(nullptr); }

  // What the log says of a kernel of 10 instructions into which, after 3 of them, `copies` came.
  std::vector<std::string> SaidAfter(std::initializer_list<std::pair<uint64_t, size_t>> copies) {
    auto script = std::make_shared<FakeGpu::Script>();
    PreemptDrill drill(0);
    DrillGpu gpu(std::make_unique<FakeGpu>(script), drill);
    const std::string_view image = "kernel k 10\n";
    const auto module = *gpu.Load(BytesOf(image));
    const GpuVa memory = *gpu.Alloc(1 << 20);
    const auto grid = *gpu.Launch(*module->Function("k"), {{1, 1, 1}, {1, 1, 1}, 0}, {}, 0);
    const std::atomic<uint32_t> word{0};
    EXPECT_TRUE(grid->Run({&word, 0}, 3));
    const std::vector<std::byte> zeros(1 << 17);
    for (const auto& [offset, bytes] : copies)
      EXPECT_TRUE(gpu.CopyIn(GpuVa{Raw(memory) + offset}, std::span(zeros).first(bytes)));
    Lines().clear();
    EXPECT_EQ(GpuGrid::Progress::kDone, *grid->Run({&word, 0}, 100));
    return std::exchange(Lines(), {});
  }
  const testing::Matcher<std::vector<std::string>> told_ = Contains(HasSubstr("word: k "));
};

TEST_F(DrillWords, AWordIsNoticedAndALongerCopyIsNot) {
  EXPECT_THAT(SaidAfter({{64, 4}}), Contains("word: k threads=1 blocks=1 launched=10 after=7"));
  EXPECT_THAT(SaidAfter({{64, 8}}), testing::Not(told_));
}

TEST_F(DrillWords, TheEndOfALongerCopyIsNoWord) {
  EXPECT_THAT(SaidAfter({{0, 65536}, {65536, 4}}), testing::Not(told_));
  EXPECT_THAT(SaidAfter({{0, 65536}, {0, 4}}), told_);
}

TEST_F(DrillWords, WordsBesideEachOtherAreWords) {
  EXPECT_THAT(SaidAfter({{0, 65536}, {65536, 4}, {65540, 4}}), told_);
}

}  // namespace
}  // namespace vgpud::exec
