// SPDX-License-Identifier: Apache-2.0
// Kernels that are launched before the one in front of them has ended.
#include "gpu/cuda/self_test_ptx.h"
#include "gpu/cuda/slot_rooms.h"
#include "tests/unit/cuda/cuda_fixture.h"

namespace vgpud::driver {
namespace {

using Grid = std::unique_ptr<GpuGrid>;
constexpr char kOne[] = "launched\n";
constexpr char kTurn[] = "turn of 60 blocks (60) from 0 0 0 of 5 4 3, control 0\n";

TEST(KernelLengthTest, ALongerOneCountsAtOnceAShorterOneBitByBit) {
  KernelLength length;
  EXPECT_FALSE(length.Expect(1));
  length.Note(800, 4);
  EXPECT_EQ(800u, length.Expect(4));
  EXPECT_EQ(800u, length.Expect(2)) << "fewer blocks may take as long";
  EXPECT_EQ(1600u, length.Expect(5));
  length.Note(0, 4);
  EXPECT_EQ(700u, length.Expect(4));
  length.Note(900, 2);
  EXPECT_EQ(900u, length.Expect(4));
  length.Note(300, 2);
  EXPECT_EQ(900u, length.Expect(4)) << "that fewer blocks took less tells nothing";
  length.Note(UINT64_MAX, UINT64_MAX);
  EXPECT_EQ(UINT64_MAX, length.Expect(UINT64_MAX));
  EXPECT_EQ(UINT64_MAX, length.Expect(0));
}

class CudaBehindTest : public CudaTurnsTest {
 protected:
  static const driver::Kernel& AsKernel(const FunctionInfo* function) {
    return static_cast<const driver::Kernel&>(*function);
  }
  const driver::Kernel& Load(const char* text) {
    module_ = *gpu_->Load(Bytes(text, std::strlen(text)));
    return AsKernel(module_->Function("kernel"));
  }
  Grid First(const driver::Kernel& kernel, const LaunchShape& shape = kShape) {
    return *gpu_->Launch(kernel, shape, std::vector<std::byte>(12), 100'000);
  }
  bool Behind(Grid& grid, Grid& before, const driver::Kernel& kernel, const LaunchShape& shape = kShape,
              size_t param_bytes = 12) {
    return gpu_->LaunchBehind(grid, *before, kernel, shape, std::vector<std::byte>(param_bytes), 100'000);
  }
  GpuGrid::Progress Run(Grid& grid, const StopWord& stop) { return *grid->Run(stop, 1); }

  const Told told_{"queries=1000000"};
};

TEST_F(CudaBehindTest, AtTheGateAsManyAsAreSoonDone) {
  const auto& kernel = Load(kWaitsForAll);
  kernel.length.Note(100'000, 60);
  Grid first = First(kernel), second, third;
  EXPECT_TRUE(Behind(second, first, kernel));
  EXPECT_FALSE(Behind(third, second, kernel)) << "0.3 ms is too much";
  EXPECT_EQ(nullptr, third);
  EXPECT_EQ(GpuGrid::Progress::kDone, Run(first, stopped_)) << "it is waited for";
  EXPECT_EQ(std::string(kOne) + kOne + "waited for a kernel\n", Printed());
  EXPECT_TRUE(Busy()) << "the second is there";
  EXPECT_EQ(GpuGrid::Progress::kDone, Run(second, stopped_));
  EXPECT_FALSE(Busy());
}

TEST_F(CudaBehindTest, AtTheGateNoneOfWhichNothingIsKnown) {
  const auto& kernel = Load(kWaitsForAll);
  Grid first = First(kernel), second;
  EXPECT_FALSE(Behind(second, first, kernel));
  kernel.length.Note(1, 60);
  EXPECT_FALSE(Behind(second, first, kernel)) << "the first was launched when nothing was known";
}

TEST_F(CudaBehindTest, NothingBehindWhatIsNotOnTheGpu) {
  const auto& kernel = Load(kWaitsForAll);
  kernel.length.Note(1, 60);
  Grid first = First(kernel), second;
  EXPECT_EQ(GpuGrid::Progress::kDone, Run(first, stopped_));
  EXPECT_FALSE(Behind(second, first, kernel));
}

TEST_F(CudaBehindTest, WhatIsWrongWithItIsHeardWhenItComesFirst) {
  const auto& kernel = Load(kStoppable);
  Grid first = First(kernel), second;
  EXPECT_FALSE(Behind(second, first, kernel, kShape, 11));
  const Told told("launch=719");
  EXPECT_FALSE(Behind(second, first, kernel));
}

// Told to leave while the first one runs, the second one has not begun.
TEST_F(CudaBehindTest, InTurnsNoneBeginsBeforeTheOneInFrontHasEnded) {
  const auto& kernel = Load(kStoppable);
  Grid first = First(kernel), second;
  ASSERT_TRUE(Behind(second, first, kernel));
  EXPECT_EQ(GpuGrid::Progress::kStopped, Run(first, stopped_));
  EXPECT_EQ(std::string(kTurn) + kTurn + "waited for a kernel\n", Printed());
  gpu_->WaitUntilIdle();
  EXPECT_FALSE(Behind(second, first, kernel)) << "the first is off the GPU";
  EXPECT_EQ(GpuGrid::Progress::kDone, Run(first, go_on_));
  EXPECT_EQ(GpuGrid::Progress::kYield, Run(second, go_on_)) << "its turn had ended, too";
  EXPECT_EQ(GpuGrid::Progress::kDone, Run(second, go_on_));
  EXPECT_EQ(std::string("turn of 59 blocks (59) from 1 0 0 of 5 4 3, control 0\n") + kTurn, Printed());
  EXPECT_FALSE(Busy());
}

TEST_F(CudaBehindTest, NothingThatCantBeStoppedIsBehindWhatCanLeave) {
  const auto& kernel = Load(kStoppable);
  const auto& whole = AsKernel(module_->Function("whole"));
  whole.length.Note(1, 60);
  Grid first = First(kernel), second;
  EXPECT_FALSE(Behind(second, first, whole)) << "blocks of the first may be left when it begins";
  Grid waits = First(whole), in_turns;
  EXPECT_TRUE(Behind(in_turns, waits, kernel)) << "the other way round it is all right";
}

TEST_F(CudaBehindTest, NothingIsBehindAPartOfAGrid) {
  const auto& kernel = Load(kStoppable);
  Grid large = First(kernel, {{1 << 21, 1, 1}, {32, 1, 1}, 0}), second;
  EXPECT_FALSE(Behind(second, large, kernel)) << "its launch is not all of it";
}

TEST_F(CudaBehindTest, NorAnythingThatWasToldToLeave) {
  const auto& kernel = Load(kStoppable);
  Grid first = First(kernel), second;
  gpu_->WaitUntilIdle();
  EXPECT_FALSE(Behind(second, first, kernel)) << "it would run, and blocks of the first may be left";
}

// In the next turn it is behind it again. Each in a room of its own.
TEST_F(CudaBehindTest, BlocksThatAreLeftInTheMiddleComeFirst) {
  const GpuVa memory = *gpu_->Alloc(64 + 4 * 64 * 16), counts = *gpu_->Alloc(64);
  module_ = *gpu_->Load(Bytes(kSelfTestPtx, sizeof kSelfTestPtx));
  const auto &endless = AsKernel(module_->Function("endless")), &many = AsKernel(module_->Function("many"));
  const LaunchShape four{{4, 1, 1}, {64, 1, 1}, 0}, hundred{{100, 1, 1}, {32, 1, 1}, 0};
  const uint64_t params[] = {Raw(memory) + 64, Raw(memory)}, many_params[] = {Raw(counts), 1};
  ASSERT_TRUE(gpu_->MakeRoom(gpu_->RoomFor(endless, four)));
  Grid first = *gpu_->Launch(endless, four, Bytes(params, sizeof params), 0), second;
  const auto behind = [&] { return gpu_->LaunchBehind(second, *first, many, hundred, Bytes(many_params, 12), 0); };
  if (gpu_->RoomFor(many, hundred) != 0) {
    EXPECT_FALSE(behind()) << "there is no second room";
    ASSERT_TRUE(gpu_->MakeRoom(gpu_->RoomFor(many, hundred)));
  }
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_EQ(GpuGrid::Progress::kYield, Run(first, go_on_));
    ASSERT_TRUE(behind()) << turn;
    ASSERT_TRUE(behind()) << "it is there";
    ASSERT_EQ(GpuGrid::Progress::kStopped, Run(first, stopped_));
    gpu_->WaitUntilIdle();
  }
  uint64_t counted = 1;
  ASSERT_TRUE(gpu_->CopyOut(std::as_writable_bytes(std::span{&counted, 1}), counts));
  EXPECT_EQ(0u, counted) << "no block has run before the first was over";
  ASSERT_EQ(GpuGrid::Progress::kYield, Run(first, go_on_));
  ASSERT_TRUE(behind());
  ASSERT_TRUE(gpu_->WriteWord(memory, 4, 1));
  while (Run(first, go_on_) != GpuGrid::Progress::kDone) {
  }
  while (Run(second, go_on_) != GpuGrid::Progress::kDone) {
  }
  ASSERT_TRUE(gpu_->CopyOut(std::as_writable_bytes(std::span{&counted, 1}), counts));
  EXPECT_EQ(100u, counted);
}

}  // namespace
}  // namespace vgpud::driver
