// SPDX-License-Identifier: Apache-2.0
// Areas count for as long as they are held, whatever becomes of them.
#include "vfio/channel/held_area.h"

#include <gtest/gtest.h>

#include <optional>

namespace vgpud::vfio {
namespace {

Area Of(size_t pieces) {
  Area area;
  area.pieces.resize(pieces);
  area.bytes = pieces * 4096;
  return area;
}

// How many pieces can still be had.
size_t Left(PieceBudget& budget, size_t most) {
  size_t left = most;
  while (!HeldArea::Hold(budget, Of(left))) --left;
  return left;
}

TEST(HeldArea, CountsUntilItGoes) {
  PieceBudget budget(10);
  {
    const auto held = HeldArea::Hold(budget, Of(7));
    ASSERT_TRUE(held);
    EXPECT_EQ(7u, (*held)->pieces.size());
    EXPECT_EQ(3u, Left(budget, 10));
  }
  EXPECT_EQ(10u, Left(budget, 10));
}

TEST(HeldArea, WhatIsTooMuchIsRefusedAndCountsNothing) {
  PieceBudget budget(10);
  const auto held = HeldArea::Hold(budget, Of(7));
  const auto more = HeldArea::Hold(budget, Of(4));
  ASSERT_FALSE(more);
  EXPECT_EQ(std::errc::not_enough_memory, more.error().code);
  EXPECT_EQ("pinned memory in 4 pieces, the VF has 3 of 10 left", more.error().context);
  EXPECT_EQ(3u, Left(budget, 10));
  EXPECT_TRUE(HeldArea::Hold(budget, Of(3)));
}

TEST(HeldArea, WhoLetsItGoHasTheAreaUncounted) {
  PieceBudget budget(10);
  HeldArea held = *HeldArea::Hold(budget, Of(7));
  const Area area = held.LetGo();
  EXPECT_EQ(7u, area.pieces.size());
  EXPECT_EQ(7u * 4096, area.bytes);
  EXPECT_TRUE(held->pieces.empty());
  EXPECT_EQ(10u, Left(budget, 10));
  EXPECT_TRUE(held.LetGo().pieces.empty()) << "once";
  EXPECT_EQ(10u, Left(budget, 10));
}

TEST(HeldArea, MovesWithItsCount) {
  PieceBudget budget(10);
  std::optional<HeldArea> first = *HeldArea::Hold(budget, Of(4));
  HeldArea second = std::move(*first);
  first.reset();
  EXPECT_EQ(6u, Left(budget, 10)) << "what was moved away counts nothing";
  HeldArea other = *HeldArea::Hold(budget, Of(1));
  other = std::move(second);
  EXPECT_EQ(4u, other->pieces.size());
  (void)second.LetGo();  // it may have what `other` had
  EXPECT_EQ(6u, Left(budget, 10)) << "what it had before is gone";
}

}  // namespace
}  // namespace vgpud::vfio
