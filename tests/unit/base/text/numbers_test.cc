// SPDX-License-Identifier: Apache-2.0
#include "base/text/numbers.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace vgpud {
namespace {

TEST(NumbersTest, AnIntegerIsAllOfTheTextAndFits) {
  EXPECT_EQ(300u, ParseInteger<uint64_t>("300"));
  EXPECT_EQ(-1, ParseInteger<int64_t>("-1"));
  EXPECT_EQ(UINT64_MAX, ParseInteger<uint64_t>("18446744073709551615"));
  for (const char* bad : {"", "-1", "+1", " 1", "1 ", "0x10", "1.0", "18446744073709551616"})
    EXPECT_FALSE(ParseInteger<uint64_t>(bad)) << bad;
}

TEST(NumbersTest, AFractionHasOneValueInBothForms) {
  EXPECT_EQ(0.25, ParseFraction("0.25"));
  EXPECT_EQ(0.25, ParseFraction("25%"));
  EXPECT_EQ(-0.5, ParseFraction("-50%"));
  for (const char* bad : {"", "%", "5 %", "5%%", "1/4", "nan", "inf", "1e3", "0.5 "})
    EXPECT_FALSE(ParseFraction(bad)) << bad;
}

}  // namespace
}  // namespace vgpud
