// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"

#include <gtest/gtest.h>

namespace vgpud {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

TEST(CheckedSize, AddsAndMultipliesWhatFits) {
  EXPECT_EQ((CheckedSize(5u) + CheckedSize(7u)).To<uint32_t>(), 12u);
  EXPECT_EQ((CheckedSize(1u << 20) * CheckedSize(1u << 20)).To<uint64_t>(), uint64_t{1} << 40);
  EXPECT_EQ((CheckedSize(kMost - 2) + CheckedSize(1u)).To<uint64_t>(), kMost - 1);
}

TEST(CheckedSize, ASumThatWrapsIsTooBig) {
  EXPECT_TRUE((CheckedSize(kMost - 1) + CheckedSize(2u)).too_big());
  EXPECT_TRUE((CheckedSize(kMost - 1) + CheckedSize(1u)).too_big());
}

TEST(CheckedSize, EitherSideMayBeTooBig) {
  const CheckedSize two(2u);
  for (const CheckedSize& result : {CheckedSize::TooBig() + two, two + CheckedSize::TooBig(),
                                    CheckedSize::TooBig() * two, two * CheckedSize::TooBig()}) {
    EXPECT_TRUE(result.too_big());
  }
  EXPECT_EQ(CheckedSize(6u), CheckedSize(2u) * CheckedSize(3u));
  EXPECT_EQ(0u, CheckedSize().saturated());
  EXPECT_EQ(5u, CheckedSize(5u).AlignedUp(1).saturated());
  EXPECT_EQ(6u, CheckedSize(5u).AlignedUp(2).saturated());
}

TEST(CheckedSize, AProductThatWrapsIsTooBig) {
  EXPECT_TRUE((CheckedSize(uint64_t{1} << 32) * CheckedSize(uint64_t{1} << 32)).too_big());
}

TEST(CheckedSize, TooBigStaysTooBig) {
  CheckedSize size = CheckedSize::TooBig();
  size += CheckedSize(1u);
  EXPECT_TRUE(size.too_big());
  size *= CheckedSize(0u);
  EXPECT_TRUE(size.too_big());
  EXPECT_TRUE(size.AlignedUp(8).too_big());
  EXPECT_FALSE(size.Fits(kMost));
  EXPECT_EQ(size.To<uint64_t>(), std::nullopt);
}

TEST(CheckedSize, AlignsUpToAnyNumber) {
  EXPECT_EQ(CheckedSize(13u).AlignedUp(8).saturated(), 16u);
  EXPECT_EQ(CheckedSize(16u).AlignedUp(8).saturated(), 16u);
  EXPECT_EQ(CheckedSize(13u).AlignedUp(6).saturated(), 18u);
  EXPECT_EQ(CheckedSize(13u).AlignedUp(0).saturated(), 13u);
  EXPECT_TRUE(CheckedSize(kMost - 3).AlignedUp(64).too_big());
}

TEST(CheckedSize, NarrowsOnlyWhatFits) {
  EXPECT_EQ(CheckedSize(0xffffffffu).To<uint32_t>(), 0xffffffffu);
  EXPECT_EQ(CheckedSize(uint64_t{1} << 32).To<uint32_t>(), std::nullopt);
  EXPECT_TRUE(CheckedSize(64u).Fits(64));
  EXPECT_FALSE(CheckedSize(65u).Fits(64));
}

TEST(Inside, RefusesWhatWrapsOrStandsOut) {
  EXPECT_TRUE(Inside(0, 0, 0));
  EXPECT_TRUE(Inside(3, 5, 8));
  EXPECT_FALSE(Inside(3, 6, 8));
  EXPECT_FALSE(Inside(9, 0, 8));
  EXPECT_FALSE(Inside(kMost, 2, 8));
  EXPECT_FALSE(Inside(4, kMost, 8));
}

TEST(MustFit, KeepsWhatFits) {
  EXPECT_EQ(MustFit<uint8_t>(255), 255);
  EXPECT_EQ(MustFit<int32_t>(uint64_t{7}), 7);
  EXPECT_EQ(MustFit<uint32_t>(CheckedSize(9u)), 9u);
}

TEST(MustFitDeathTest, AbortsInsteadOfNarrowing) {
  EXPECT_DEATH(MustFit<uint32_t>(uint64_t{1} << 32), "invariant broken");
  EXPECT_DEATH(MustFit<uint32_t>(-1), "invariant broken");
  EXPECT_DEATH(MustFit<uint32_t>(CheckedSize::TooBig()), "invariant broken");
}

}  // namespace
}  // namespace vgpud
