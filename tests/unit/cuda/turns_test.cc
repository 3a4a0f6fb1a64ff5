// SPDX-License-Identifier: Apache-2.0
// Kernels that leave by themselves when their turn is over: by blocks.
#include "gpu/cuda/memory/ranges.h"
#include "gpu/cuda/piece_grid.h"
#include "gpu/cuda/rung.h"
#include "gpu/cuda/stops.h"
#include "tests/unit/cuda/cuda_fixture.h"

namespace vgpud::driver {
namespace {

TEST_F(CudaTurnsTest, AKernelGoesInTurnsAndEndsInOneIfNothingStopsIt) {
  auto grid = Launch(kShape);
  ASSERT_TRUE(grid) << grid.error().text;
  EXPECT_EQ(GpuGrid::Progress::kDone, *(*grid)->Run(go_on_, 1));
  EXPECT_FALSE(Busy());
  EXPECT_EQ("turn of 60 blocks (60) from 0 0 0 of 5 4 3, control 0\n", Printed());
}

TEST_F(CudaTurnsTest, WhatAStopLeavesIsLaunchedAgainWithItsOwnBlocks) {
  auto grid = Launch(kShape);
  EXPECT_EQ(GpuGrid::Progress::kStopped, *(*grid)->Run(stopped_, 1)) << "one block had begun";
  EXPECT_FALSE(Busy()) << "nothing is left on the GPU";
  EXPECT_EQ(GpuGrid::Progress::kStopped, *(*grid)->Run(stopped_, 1));
  EXPECT_EQ("turn of 60 blocks (60) from 0 0 0 of 5 4 3, control 0\nwaited for a kernel\n", Printed())
      << "nothing is launched outside of turns";
  EXPECT_EQ(GpuGrid::Progress::kDone, *(*grid)->Run(go_on_, 1));
  EXPECT_EQ("turn of 59 blocks (59) from 1 0 0 of 5 4 3, control 0\n", Printed());
}

// The other way to tell a kernel: a word of the device, written by a copy.
TEST_F(CudaTurnsTest, AStopAlsoGoesByACopy) {
  const auto card = *Card::Open({Library(), {}, rewrite::Rung::kBlocks, false});
  Stops stops(*card);
  ASSERT_TRUE(stops.Prepare());
  const auto word = [&] { return *reinterpret_cast<const uint32_t*>(stops.word()); };
  const uint32_t expected = stops.Begin();
  EXPECT_EQ(expected, word());
  stops.Raise();
  EXPECT_NE(expected, word());
  const uint32_t next = stops.Begin();
  EXPECT_EQ(next, word());
}

TEST_F(CudaTurnsTest, RewritingCanBeSwitchedOff) {
  const auto card = *Card::Open({Library(), {}, rewrite::Rung::kNone});
  Ranges ranges;
  const auto module = *CudaModule::Load(*card, ranges, Bytes(kStoppable, std::strlen(kStoppable)));
  const auto* kernel = static_cast<const driver::Kernel*>(module->Function("kernel"));
  EXPECT_THAT(WhyNotInTurns(*kernel, kShape, 48 << 10), HasSubstr("not changed here"));
}

TEST_F(CudaTurnsTest, WhoeverWaitsForTheGpuEndsTheTurn) {
  auto grid = Launch(kShape);
  gpu_->WaitUntilIdle();
  EXPECT_EQ(GpuGrid::Progress::kYield, *(*grid)->Run(go_on_, 1)) << "it had been told to end";
  EXPECT_EQ(GpuGrid::Progress::kDone, *(*grid)->Run(go_on_, 1));
  EXPECT_EQ(
      "turn of 60 blocks (60) from 0 0 0 of 5 4 3, control 0\nturn of 60 blocks (60) from 0 0 0 of 5 4 3, control 0\n",
      Printed());
}

TEST_F(CudaTurnsTest, LaunchesThatNeedAllBlocksUseTheProgramsKernel) {
  for (const auto& [shape, text] : std::vector<std::pair<LaunchShape, const char*>>{
           {{{5, 4, 3}, {32, 1, 1}, 0, true}, kStoppable},
           {{{4, 1, 1}, {32, 1, 1}, 0, false, {2, 1, 1}}, kStoppable},
           {{{5, 70'000, 3}, {32, 1, 1}, 0}, kStoppable},
           {{{5, 4, 3}, {32, 1, 1}, 0}, kWaitsForAll},
           {{{5, 4, 3}, {32, 1, 1}, 48 << 10}, kStoppable},  // no shared memory is left for a word
           {{{5, 4, 3}, {32, 1, 1}, 0}, ".version 8.0\n"}}) {
    auto grid = Launch(shape, text);
    ASSERT_TRUE(grid);
    EXPECT_EQ(GpuGrid::Progress::kDone, *(*grid)->Run(stopped_, 1));
    EXPECT_EQ("launched\n", Printed());
  }
  EXPECT_TRUE(*(*Launch({{5, 4, 3}, {32, 1, 1}, (48 << 10) - 4}))->Run(go_on_, 1) == GpuGrid::Progress::kDone);
  EXPECT_THAT(Printed(), HasSubstr("turn of 60")) << "a word fits in";
}

TEST_F(CudaTurnsTest, WhatTheDriverRefusesIsLoadedAsItIs) {
  {
    const Told told("turns=218");
    auto grid = Launch(kShape);
    EXPECT_EQ(GpuGrid::Progress::kDone, *(*grid)->Run(go_on_, 1));
    EXPECT_EQ("launched\n", Printed());
  }
  const Told told("maps=801");
  auto grid = Launch(kShape);
  EXPECT_EQ(GpuGrid::Progress::kDone, *(*grid)->Run(go_on_, 1));
  EXPECT_EQ("launched\n", Printed()) << "there is no stop word";
}

TEST_F(CudaTurnsTest, ProgramsDoNotSeeTheKernelsBesideTheirs) {
  (void)Launch(kShape);
  EXPECT_EQ((std::vector<std::string>{"kernel", "whole"}), module_->FunctionNames());
  EXPECT_EQ(2u, module_->function_count());
  EXPECT_EQ(nullptr, module_->Function("kernel$vgpud_turns"));
  EXPECT_EQ(12u, module_->Function("kernel")->param_bytes);
}

TEST(PieceTest, PiecesAreAsLongAsTheyMayBe) {
  EXPECT_EQ(200u, NextPieceBlocks(100, 10'000));
  EXPECT_EQ(100u, NextPieceBlocks(100, 100'000));
  EXPECT_EQ(50u, NextPieceBlocks(100, 126'000));
  EXPECT_EQ(1u, NextPieceBlocks(1, 126'000));
  EXPECT_EQ(uint64_t{1} << 20, NextPieceBlocks(1 << 20, 0));
}

TEST_F(CudaTurnsTest, ProgressThatAKernelHasOverwrittenIsAFault) {
  auto grid = Launch(kShape);
  const Told told("forges=61");
  EXPECT_EQ(CuStatus::kLaunchFailed, (*grid)->Run(stopped_, 1).error().status);
}

// A kernel without loops: by its instructions as long as nothing is known, then by how long it took.
TEST_F(CudaTurnsTest, WhatIsSureToEndSoonIsLeftAsItIs) {
  EXPECT_EQ(GpuGrid::Progress::kDone, *(*Launch(kShape, kNoLoops))->Run(go_on_, 1));
  EXPECT_EQ("launched\n", Printed());
  (void)Launch(kShape, kNoLoops);
  const auto& kernel = static_cast<const driver::Kernel&>(*module_->Function("kernel"));
  EXPECT_EQ(3u, kernel.in_turns->plan.most_instructions);
  EXPECT_EQ(2u * 4096 / 3, FirstPieceBlocks(ShortOf(kernel, kShape, {}), kShape, 2));
  EXPECT_TRUE(EndsSoon(kernel, ShortOf(kernel, kShape, {}), {{2730, 1, 1}, {32, 1, 1}, 0}, 2));
  EXPECT_FALSE(EndsSoon(kernel, ShortOf(kernel, kShape, {}), {{2731, 1, 1}, {32, 1, 1}, 0}, 2));
  EXPECT_FALSE(EndsSoon(kernel, ShortOf(kernel, kShape, {}), {{1366, 1, 1}, {33, 1, 1}, 0}, 2));
  EXPECT_FALSE(EndsSoon(kernel, ShortOf(kernel, kShape, {}), {{UINT32_MAX, 1, 1}, {1024, 1, 1}, 0}, 2));
  kernel.length.Note(200'000, 60);
  EXPECT_TRUE(EndsSoon(kernel, ShortOf(kernel, kShape, {}), kShape, 2));
  EXPECT_FALSE(EndsSoon(kernel, ShortOf(kernel, kShape, {}), {{61, 1, 1}, {32, 1, 1}, 0}, 2));
  kernel.length.Note(260'000, 60);
  EXPECT_FALSE(EndsSoon(kernel, ShortOf(kernel, kShape, {}), kShape, 2));
}

// What a stop leaves is launched in later turns.
TEST_F(CudaTurnsTest, WithoutLoopsAPartOfItsBlocksAtATime) {
  constexpr LaunchShape kMany{{6000, 1, 1}, {32, 1, 1}, 0};
  auto grid = Launch(kMany, kNoLoops);
  EXPECT_EQ(GpuGrid::Progress::kStopped, *(*grid)->Run(stopped_, 1)) << "what was begun is waited for";
  EXPECT_FALSE(Busy());
  EXPECT_EQ(GpuGrid::Progress::kStopped, *(*grid)->Run(stopped_, 1)) << "nothing is launched outside of turns";
  while (*(*grid)->Run(go_on_, 1) != GpuGrid::Progress::kDone) {
  }
  EXPECT_FALSE(Busy());
}

// Its loop goes to a parameter, which says of each launch how long it is.
TEST_F(CudaTurnsTest, ALaunchThatTurnsOutToBeShortNeedsNoTurns) {
  module_ = *gpu_->Load(Bytes(kToParameter, std::strlen(kToParameter)));
  const auto said = [&](uint32_t rounds, uint32_t blocks) {
    const uint64_t params[] = {0, rounds};
    auto grid = gpu_->Launch(*module_->Function("kernel"), {{blocks, 1, 1}, {32, 1, 1}, 0}, Bytes(params, 12), 0);
    while (*(*grid)->Run(go_on_, 1) != GpuGrid::Progress::kDone) {
    }
    return Printed();
  };
  EXPECT_EQ("launched\n", said(4, 300)) << "21 instructions a thread";
  EXPECT_THAT(said(4, 600), StartsWith("piece of 390 1 1 from 0 0 0\n"));
  EXPECT_THAT(said(300, 600), StartsWith("piece of 9 1 1 from 0 0 0\n")) << "what short ones took says nothing";
  EXPECT_THAT(said(400, 600), StartsWith("turn of 600 blocks"));
}

// What goes in turns takes more registers than the program's kernel: it gets a bound, and goes in turns.
TEST_F(CudaTurnsTest, AsManyThreadsAsTheProgramsKernelCanHave) {
  const Told told("turn_threads=480");
  constexpr LaunchShape kLarge{{5, 4, 3}, {512, 1, 1}, 0};
  auto grid = Launch(kLarge);
  EXPECT_EQ(GpuGrid::Progress::kDone, *(*grid)->Run(go_on_, 1));
  EXPECT_THAT(Printed(), HasSubstr("turn of 60"));
}

}  // namespace
}  // namespace vgpud::driver
