// SPDX-License-Identifier: Apache-2.0
#include "vgpud/model/uuid.h"

#include <gtest/gtest.h>

namespace vgpud::daemon {
namespace {

constexpr char kText[] = "00010203-0405-0607-0809-0a0b0c0d0eff";

TEST(UuidTextTest, RandomOnesAreOfVersion4) {
  for (int i = 0; i < 100; ++i) {
    const Uuid uuid = RandomUuid();
    EXPECT_EQ(0x40, uuid[6] & 0xf0);
    EXPECT_EQ(0x80, uuid[8] & 0xc0);
  }
}

TEST(UuidTextTest, EachDashAndEachDigitHasItsPlace) {
  const auto uuid = UuidFromText(kText);
  ASSERT_TRUE(uuid);
  for (size_t i = 0; i < 15; ++i) EXPECT_EQ(i, (*uuid)[i]);
  EXPECT_EQ(0xff, (*uuid)[15]);
  EXPECT_EQ(kText, ToText(*uuid));
  for (size_t at = 0; at < sizeof kText - 1; ++at)
    for (const char wrong : {'g', '_', ' ', '-', '0'}) {
      std::string text = kText;
      text[at] = wrong;
      const bool dash = kText[at] == '-';
      EXPECT_EQ(wrong == (dash ? '-' : '0'), UuidFromText(text).has_value()) << text;
    }
}

}  // namespace
}  // namespace vgpud::daemon
