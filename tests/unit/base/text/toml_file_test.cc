// SPDX-License-Identifier: Apache-2.0
#include "base/text/toml_file.h"

#include <gtest/gtest.h>

namespace vgpud {
namespace {

TEST(TomlFileTest, TheFileIsReadAndNothingIsWrong) {
  TomlErrors errors("f.toml");
  int64_t weight = 0;
  ReadToml("weight = 3\n", errors, [&](const toml::table& file) { weight = file["weight"].value_or(int64_t{0}); });
  EXPECT_EQ(3, weight);
  EXPECT_TRUE(errors.empty());
}

TEST(TomlFileTest, EachErrorHasItsPlaceAndALine) {
  TomlErrors errors("f.toml");
  ReadToml("a = 1\n  b = 2\n", errors, [&](const toml::table& file) {
    for (const auto& [key, node] : file) errors.Add(key.source(), std::string(key.str()) + " is\n\x1b[1mwrong");
  });
  EXPECT_EQ("f.toml:1:1: a is??[1mwrong\nf.toml:2:3: b is??[1mwrong", errors.Refuse().value().context);
}

TEST(TomlFileTest, WhatIsNoTomlIsRefusedWithItsPlace) {
  TomlErrors errors("f.toml");
  ReadToml("a = 1\nb = \n", errors, [](const toml::table&) { FAIL() << "there is no table"; });
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(0u, errors.Refuse().value().context.find("f.toml:2:")) << errors.Refuse().value().context;
}

}  // namespace
}  // namespace vgpud
