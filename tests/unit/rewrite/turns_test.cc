// SPDX-License-Identifier: Apache-2.0
// The host's side, without a GPU.
#include "gpu/rewrite/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vgpud::rewrite {
namespace {

KernelPlan Plan() {
  KernelPlan plan;
  plan.rung = Rung::kSafepoints;
  plan.thread_words = 3;
  plan.shared_bytes = 20;
  return plan;
}

TEST(RewriteTurns, CountsFromTheFirstBlockOnInAllDimensions) {
  GridTurns grid(Plan(), {7, 5, 3}, 32, 0, 0);
  EXPECT_EQ(grid.blocks(), 105u);
  GridTurns::Launch launch = grid.Next();
  EXPECT_EQ(launch.blocks, 105u);
  EXPECT_THAT(launch.turn.first, testing::ElementsAre(0, 0, 0));
  launch.control[0] = 7 * 5 + 7 * 2 + 4;
  ASSERT_TRUE(grid.Note(launch, launch.control));
  launch = grid.Next();
  EXPECT_THAT(launch.turn.first, testing::ElementsAre(4, 2, 1));
  EXPECT_THAT(launch.turn.grid, testing::ElementsAre(7, 5, 3));
  EXPECT_EQ(launch.blocks, 105u - 53);
  launch.control[0] = launch.blocks;
  ASSERT_TRUE(grid.Note(launch, launch.control));
  EXPECT_TRUE(grid.done());
}

TEST(RewriteTurns, MoreBlocksThanOneLaunchTakesAreSeveralLaunches) {
  GridTurns grid(Plan(), {1u << 21, 65535, 2}, 32, 0, 0);
  GridTurns::Launch launch = grid.Next();
  EXPECT_EQ(launch.blocks, 1u << 20);
  for (int i = 0; i < 3; ++i) {
    launch.control[0] = launch.blocks;
    ASSERT_TRUE(grid.Note(launch, launch.control));
    launch = grid.Next();
  }
  EXPECT_THAT(launch.turn.first, testing::ElementsAre(1u << 20, 1, 0));
}

TEST(RewriteTurns, BlocksThatWereLeftComeFirst) {
  GridTurns grid(Plan(), {10, 1, 1}, 32, 100, 4);
  GridTurns::Launch launch = grid.Next();
  ASSERT_EQ(launch.control.size(), 10u);
  EXPECT_THAT(launch.control, testing::ElementsAre(0, 0, 0, 1, 2, 3, 0, 0, 0, 0));
  launch.control = {6, 2, 0, 1, 2, 3, 0, 1, 0, 1};  // six have begun, those in slots 1 and 3 are left
  ASSERT_TRUE(grid.Note(launch, launch.control));
  EXPECT_EQ(grid.left_in_the_middle(), 2u);
  launch = grid.Next();
  EXPECT_EQ(launch.blocks, 2u + 4);
  EXPECT_EQ(launch.turn.going_on, 2u);
  EXPECT_EQ(launch.turn.blocks, 4u);
  EXPECT_THAT(launch.control, testing::ElementsAre(0, 0, 1, 3, 0, 2, 0, 1, 0, 1));
  launch.control = {1, 0, 1, 3, 0, 2, 0, 0, 0, 1};  // only the one in slot 1 came to its turn, and has ended
  ASSERT_TRUE(grid.Note(launch, launch.control));
  launch = grid.Next();
  EXPECT_EQ(launch.turn.going_on, 1u);
  EXPECT_EQ(launch.turn.blocks, 4u);
  launch.control = {5, 0, 3, 0, 1, 2, 0, 0, 0, 0};
  ASSERT_TRUE(grid.Note(launch, launch.control));
  EXPECT_TRUE(grid.done());
}

TEST(RewriteTurns, WhatNoKernelCanHaveLeftIsAnError) {
  for (const std::vector<uint32_t>& words : std::vector<std::vector<uint32_t>>{
           {11, 0, 0, 1, 0, 0}, {1, 0, 0, 1, 2, 0}, {1, 0, 0, 1, 1, 1}, {0, 0, 0, 1, 1, 0}, {1, 0, 0, 1, 0}}) {
    GridTurns grid(Plan(), {10, 1, 1}, 32, 0, 2);
    const GridTurns::Launch launch = grid.Next();
    const auto noted = grid.Note(launch, words);
    ASSERT_FALSE(noted);
    EXPECT_THAT(noted.error().text, testing::HasSubstr("was overwritten"));
  }
}

TEST(RewriteTurns, ASlotHoldsAllThreadsAndAllSharedMemory) {
  EXPECT_EQ(SlotBytes(Plan(), 33, 100), 16u + 400 + 32 + 112);
  EXPECT_EQ(GridTurns(Plan(), {1, 1, 1}, 33, 100, 3).slot_area_bytes(), 3 * 560u);
}

// Each block of a grid of three axes is in one piece, and none has more than it may.
TEST(GridTurns, PiecesAreAllOfTheGrid) {
  KernelPlan plan;
  plan.rung = Rung::kBlocks;
  plan.pieces = true;
  const uint32_t grid[3] = {5, 4, 3};
  for (const uint64_t most : {1, 2, 5, 7, 11, 20, 25, 41, 60, 100}) {
    GridTurns turns(plan, grid, 32, 0, 0);
    std::vector<int> seen(60);
    while (!turns.done()) {
      const GridTurns::Launch launch = turns.Next(most);
      EXPECT_LE(launch.blocks, most);
      ASSERT_EQ(launch.blocks, launch.grid[0] * launch.grid[1] * launch.grid[2]);
      ASSERT_NE(launch.blocks, 0u);
      const auto& first = launch.turn.first;
      for (uint32_t b = 0; b < launch.blocks; ++b) {
        const uint32_t x = first[0] + b % launch.grid[0], y = first[1] + b / launch.grid[0] % launch.grid[1];
        const uint32_t z = first[2] + b / launch.grid[0] / launch.grid[1];
        ASSERT_TRUE(x < 5 && y < 4 && z < 3);
        ++seen[(z * 4 + y) * 5 + x];
      }
      ASSERT_TRUE(turns.Note(launch, {}));
    }
    EXPECT_EQ(std::vector<int>(60, 1), seen) << most;
  }
}

}  // namespace
}  // namespace vgpud::rewrite
