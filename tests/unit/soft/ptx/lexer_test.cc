// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/lexer.h"

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
                             {"upper_f32", "0F3f800000 ", Kind::kFloat, "0F3f800000", 0x3f800000},
                             {"upper_f64", "0D4000000000000000", Kind::kFloat, "0D4000000000000000", 1ull << 62},
                             {"short_f64", "0d3FF000000000000 ", Kind::kBad, "0d3FF000000000000 ", 0},
                             {"no_hex_digit", "0f3F80000G", Kind::kBad, "0f3F80000G", 0},
                             {"upper_hex", "0X1f", Kind::kInteger, "0X1f", 31},
                             {"upper_binary", "0B11", Kind::kInteger, "0B11", 3},
                             {"no_digits", "0x;", Kind::kBad, "0x", 0},
                             {"bad_binary", "0b12", Kind::kBad, "0b12", 0},
                             {"hex_ends_at_a_dot", "0x1.5", Kind::kInteger, "0x1", 1},
                             {"binary_ends_at_a_dot", "0b1.5", Kind::kInteger, "0b1", 1},
                             {"hex_e_is_a_digit", "0x1e-1", Kind::kInteger, "0x1e", 30},
                             {"zero", "0;", Kind::kInteger, "0", 0},
                             {"octal_zero", "00", Kind::kInteger, "00", 0},
                             {"two_suffixes", "5UU", Kind::kBad, "5UU", 0},
                             {"letter_behind", "5x", Kind::kBad, "5x", 0},
                             {"two_dots", "1.5.2", Kind::kBad, "1.5.2", 0},
                             {"upper_exponent", "1E+2", Kind::kFloat, "1E+2", std::bit_cast<uint64_t>(100.0)},
                             {"no_exponent", "1e-;", Kind::kBad, "1e-", 0},
                             {"fraction_of_octal", "017.5", Kind::kFloat, "017.5", std::bit_cast<uint64_t>(17.5)},
                             {"plus_is_no_exponent", "4+2", Kind::kInteger, "4", 4},
                             {"escaped_quote", "\"a\\\"b\" c", Kind::kString, "a\\\"b", 0},
                             {"escape_at_the_end", "\"a\\", Kind::kBad, "\"", 0},
                             {"empty_string", "\"\" c", Kind::kString, "", 0},
                             {"name_ends_at_percent", "a%b", Kind::kIdentifier, "a", 0},
                             {"name_of_letters", "azAZ09_$.x", Kind::kIdentifier, "azAZ09_$", 0},
                             {"lone_dot", ". x", Kind::kPunct, ".", 0},
                             {"one_colon", ".a:b", Kind::kDotWord, ".a", 0},
                             {"colons_at_the_end", ".a:: ", Kind::kDotWord, ".a", 0},
                             {"three_colons", ".a:::b", Kind::kDotWord, ".a", 0},
                             {"slash", "/ /", Kind::kPunct, "/", 0},
                             {"at", "@p", Kind::kPunct, "@", 0},
                             {"open_comment_star", "/* x *", Kind::kEnd, "", 0},
                             {"short_comment", "/**/y", Kind::kIdentifier, "y", 0},
                             {"no_short_comment", "/*/ y */z", Kind::kIdentifier, "z", 0},
                             {"comment_at_the_end", "// x", Kind::kEnd, "", 0},
                         }),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(Lexer, TakesTheLongestPunctuation) {
  for (const std::string two : {"&&", "||", "==", "!=", "<=", ">=", "<<", ">>"}) {
    const std::string text = two + two[0];
    Lexer lexer(text);
    EXPECT_TRUE(lexer.Next().Is(two)) << two;
    EXPECT_EQ(lexer.Next().text, two.substr(0, 1)) << two;
  }
  const std::string all = "{ } ( ) [ ] < > , ; : @ | + - ! ~ * / % & ^ ? = .";
  Lexer lexer(all);
  for (size_t at = 0; at < all.size(); at += 2) {
    const Token token = lexer.Next();
    EXPECT_EQ(token.kind, Kind::kPunct) << all[at];
    EXPECT_EQ(token.text, all.substr(at, 1));
    EXPECT_EQ(token.offset, at);
  }
  for (const char* none : {"#", "`", "'", "\\", "\x7f", "\x01"}) {
    const std::string text = none;
    Lexer other(text);
    EXPECT_EQ(other.Next().kind, Kind::kBad) << none;
  }
}

TEST(Lexer, SkipsSpaceOfEveryKind) {
  const std::string text = std::string(" \t\r\n\v\f") + '\0' + "a";
  Lexer lexer(text);
  const Token token = lexer.Next();
  EXPECT_EQ(token.text, "a");
  EXPECT_EQ(token.offset, 7u);
  EXPECT_EQ(token.line, 2u);
}

TEST(Lexer, IntegersAboveInt64AreUnsigned) {
  struct Case {
    const char* text;
    bool is_unsigned;
  };
  for (const Case& c : {Case{"5", false},
                        {"5U", true},
                        {"5u", true},
                        {"0x5u", true},
                        {"9223372036854775807", false},
                        {"9223372036854775808", true},
                        {"0x7FFFFFFFFFFFFFFF", false},
                        {"0x8000000000000000", true}}) {
    const std::string text = c.text;
    Lexer lexer(text);
    const Token token = lexer.Next();
    EXPECT_EQ(token.kind, Kind::kInteger) << c.text;
    EXPECT_EQ(token.is_unsigned, c.is_unsigned) << c.text;
    EXPECT_FALSE(token.is_f32) << c.text;
  }
  for (const Case& c : {Case{"0f3F800000", true}, {"0d3FF0000000000000", false}, {"1.5", false}}) {
    const std::string text = c.text;
    Lexer lexer(text);
    EXPECT_EQ(lexer.Next().is_f32, c.is_unsigned) << c.text;
  }
}

TEST(Lexer, CountsLinesInCommentsAndStrings) {
  const std::string text = "// a\n// b\n/* \n\n */ c \"x\" @@DWARF x\nd";
  Lexer lexer(text);
  EXPECT_EQ(lexer.Next().line, 5u);
  EXPECT_EQ(lexer.Next().line, 5u);
  EXPECT_EQ(lexer.Next().line, 6u);
}

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
