// SPDX-License-Identifier: Apache-2.0
#include "gpu/soft/ptx/lexer.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

namespace vgpud::ptx {
namespace {

using Kind = Token::Kind;

struct TokenCase {
  const char* name;
  const char* text;
  Kind kind;
  const char* token;
  uint64_t bits;
};
class TokenTest : public testing::TestWithParam<TokenCase> {};

TEST_P(TokenTest, IsTheFirstToken) {
  const TokenCase& c = GetParam();
  const std::string text = c.text;
  Lexer lexer(text);
  const Token token = lexer.Next();
  EXPECT_EQ(token.kind, c.kind);
  EXPECT_EQ(token.text, c.token);
  EXPECT_TRUE(token.kind == Kind::kBad || token.bits == c.bits) << token.bits;
}

INSTANTIATE_TEST_SUITE_P(, TokenTest,
                         testing::ValuesIn(std::vector<TokenCase>{
                             {"percent_name", "%rd12,", Kind::kIdentifier, "%rd12", 0},
                             {"dollar_name", "$L__BB0_3:", Kind::kIdentifier, "$L__BB0_3", 0},
                             {"underscore", "_ ", Kind::kIdentifier, "_", 0},
                             {"remainder", "% 3", Kind::kPunct, "%", 0},
                             {"dot_word", ".global.u32", Kind::kDotWord, ".global", 0},
                             {"dot_digit", ".2d.v4", Kind::kDotWord, ".2d", 0},
                             {"dot_scope", ".shared::cta.b32", Kind::kDotWord, ".shared::cta", 0},
                             {"dot_scopes", ".mbarrier::complete_tx::bytes ", Kind::kDotWord,
                              ".mbarrier::complete_tx::bytes", 0},
                             {"decimal", "123;", Kind::kInteger, "123", 123},
                             {"hex", "0xFFu;", Kind::kInteger, "0xFFu", 255},
                             {"octal", "017", Kind::kInteger, "017", 15},
                             {"binary", "0b101U", Kind::kInteger, "0b101U", 5},
                             {"largest", "18446744073709551615", Kind::kInteger, "18446744073709551615", UINT64_MAX},
                             {"too_large", "18446744073709551616", Kind::kBad, "18446744073709551616", 0},
                             {"bad_octal", "08", Kind::kBad, "08", 0},
                             {"f32_bits", "0f3F800000", Kind::kFloat, "0f3F800000", 0x3f800000},
                             {"f64_bits", "0d3FF0000000000000", Kind::kFloat, "0d3FF0000000000000", 0x3ff0000000000000},
                             {"short_f32", "0f3F80", Kind::kBad, "0f3F80", 0},
                             {"long_f32", "0f3F800000F", Kind::kBad, "0f3F800000", 0},
                             {"fraction", "1.5 ", Kind::kFloat, "1.5", std::bit_cast<uint64_t>(1.5)},
                             {"exponent", "1e-3,", Kind::kFloat, "1e-3", std::bit_cast<uint64_t>(1e-3)},
                             {"minus_is_no_exponent", "4-2", Kind::kInteger, "4", 4},
                             {"string", "\"a b\" c", Kind::kString, "a b", 0},
                             {"open_string", "\"a b\n", Kind::kBad, "\"", 0},
                             {"shift", ">>1", Kind::kPunct, ">>", 0},
                             {"line_comment", "// x\n  y", Kind::kIdentifier, "y", 0},
                             {"block_comment", "/* x\n */ y", Kind::kIdentifier, "y", 0},
                             {"open_comment", "/* x", Kind::kEnd, "", 0},
                             {"dwarf_line", "@@DWARF .b8 1\n y", Kind::kIdentifier, "y", 0},
                             {"strange_byte", "\x80", Kind::kBad, "\x80", 0},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(Lexer, CountsLines) {
  const std::string text = "a\n/* \n */ b\r\nc";
  Lexer lexer(text);
  EXPECT_EQ(lexer.Next().line, 1u);
  EXPECT_EQ(lexer.Next().line, 3u);
  EXPECT_EQ(lexer.PeekSecond().kind, Kind::kEnd);
  EXPECT_EQ(lexer.Next().line, 4u);
  EXPECT_EQ(lexer.Next().kind, Kind::kEnd);
  EXPECT_EQ(lexer.Next().kind, Kind::kEnd);
}

}  // namespace
}  // namespace vgpud::ptx
