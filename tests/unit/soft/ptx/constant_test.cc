// SPDX-License-Identifier: Apache-2.0
// Constant expressions: C's operators with C's precedence, on 64-bit integers (PTX ISA, "Constant Expressions").
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "gpu/ptx/parser.h"

namespace vgpud::ptx {
namespace {

GpuResult<std::unique_ptr<Module>> ParseOperand(const std::string& text) {
  return Parse(".version 9.0\n.target sm_75\n.entry k() { .reg .b64 %rd<4>; mov.b64 %rd1, " + text + "; }");
}

struct Case {
  const char* text;
  int64_t value;
};
// Each binary operator beside one of the level above it and one of its own level.
constexpr Case kCases[] = {
    {"2+3*4", 14},
    {"10-2*3", 4},
    {"8/2*2", 8},
    {"3*5/2", 7},
    {"9*2% 4", 2},
    {"10-4-3", 3},
    {"10-(4-3)", 9},
    {"1<<2+1", 8},
    {"16>>1+1", 4},
    {"0<4>>1", 1},
    {"8>4>>1", 1},
    {"0<=4>>1", 1},
    {"8>=4>>1", 1},
    {"1==2>1", 1},
    {"0!=2>1", 1},
    {"6&2==2", 0},
    {"5^1&3", 4},
    {"1|6^7", 1},
    {"0&&1|1", 0},
    {"1||0&&0", 1},
    {"1||0?4:5", 4},
    // Values.
    {"7/2", 3},
    {"-7/2", -3},
    {"-7% 3", -1},
    {"7%-3", 1},
    {"(-9223372036854775807-1)%-1", 0},
    {"6/-1", -6},
    {"12&10", 8},
    {"12|10", 14},
    {"12^10", 6},
    {"2<2", 0},
    {"1<2", 1},
    {"2>2", 0},
    {"3>2", 1},
    {"2<=2", 1},
    {"3<=2", 0},
    {"2>=2", 1},
    {"1>=2", 0},
    {"2==2", 1},
    {"2==3", 0},
    {"2!=2", 0},
    {"2!=3", 1},
    {"2&&1", 1},
    {"0&&1", 0},
    {"1&&0", 0},
    {"0||0", 0},
    {"0||2", 1},
    {"3||0", 1},
    {"!5", 0},
    {"!0", 1},
    {"~5", -6},
    {"+5", 5},
    {"- -5", 5},
    {"2?1:0", 1},
    {"0?1:2", 2},
    {"1?0?3:4:5", 4},
    {"2*WARP_SZ", 64},
    // Shifts clamp at the width.
    {"1<<63", INT64_MIN},
    {"1<<64", 0},
    {"-1>>63", -1},
    {"-1>>64", -1},
    {"1>>64", 0},
    {"0>>64", 0},
    {"-8>>1", -4},
    {"0xFFFFFFFFFFFFFFFFU>>63", 1},
    {"0xFFFFFFFFFFFFFFFFU>>64", 0},
    // A U, or a value above INT64_MAX, makes the operation unsigned.
    {"0-1>0", 0},
    {"0U-1>0", 1},
    {"1-2<0", 1},
    {"1-2<0U", 0},
    {"-1>>1U", INT64_MAX},
    {"(0-1)/2U", INT64_MAX},
    {"9223372036854775807>-1", 1},
    {"9223372036854775808>-1", 0},
    {"(.u64)-1>0", 1},
    {"(.u64)(0-1)/2", INT64_MAX},
    {"(.s64)0xFFFFFFFFFFFFFFFF<0", 1},
};

TEST(PtxConstant, HasTheValueThatCGivesIt) {
  for (const Case& c : kCases) {
    const auto module = ParseOperand(c.text);
    ASSERT_TRUE(module) << c.text << ": " << module.error().text;
    const Operand& operand = (*module)->functions[0]->code[0].operands[1];
    EXPECT_EQ(operand.kind, Operand::Kind::kImmediate) << c.text;
    EXPECT_FALSE(operand.is_float) << c.text;
    EXPECT_EQ(static_cast<int64_t>(operand.bits), c.value) << c.text;
  }
}

TEST(PtxConstant, FloatsHaveASignAndNothingElse) {
  struct FloatCase {
    const char* text;
    bool is_f32;
    uint64_t bits;
  };
  for (const FloatCase& c : {FloatCase{"1.5", false, 0x3ff8000000000000},
                             {"+1.5", false, 0x3ff8000000000000},
                             {"-1.5", false, 0xbff8000000000000},
                             {"-0f3F800000", true, 0xbf800000},
                             {"+0f3F800000", true, 0x3f800000},
                             {"-0d3FF0000000000000", false, 0xbff0000000000000},
                             {"(1.5)", false, 0x3ff8000000000000}}) {
    const auto module = ParseOperand(c.text);
    ASSERT_TRUE(module) << c.text << ": " << module.error().text;
    const Operand& operand = (*module)->functions[0]->code[0].operands[1];
    EXPECT_TRUE(operand.is_float) << c.text;
    EXPECT_EQ(operand.is_f32, c.is_f32) << c.text;
    EXPECT_EQ(operand.bits, c.bits) << c.text;
  }
  for (const char* text : {"1.0+1", "1+1.0", "1.0*0f3F800000", "~1.0", "!0f3F800000"}) {
    const auto module = ParseOperand(text);
    ASSERT_FALSE(module) << text;
    EXPECT_NE(module.error().text.find("arithmetic on floating-point constants"), std::string::npos) << text;
  }
}

TEST(PtxConstant, WhatIsNoExpressionIsRefused) {
  struct ErrorCase {
    const char* text;
    const char* why;
  };
  for (const ErrorCase& c : {ErrorCase{"1/0", "division by zero"},
                             {"1% 0", "division by zero"},
                             {"1/(2-2)", "division by zero"},
                             {"(1", "expected `)`"},
                             {"1?2", "expected `:`"},
                             {"(.u64 5", "expected `)`"},
                             {"1+", "expected an operand"},
                             {"(.u32)5", "expected an operand"},
                             {"*5", "expected an operand"},
                             {"1?2:", "expected an operand"}}) {
    const auto module = ParseOperand(c.text);
    ASSERT_FALSE(module) << c.text;
    EXPECT_NE(module.error().text.find(c.why), std::string::npos) << c.text << ": " << module.error().text;
  }
}

std::string Repeated(const std::string& what, int times) {
  std::string out;
  for (int n = 0; n < times; ++n) out += what;
  return out;
}

// 64 levels of each kind, and one more is too deep. What is closed counts no longer.
TEST(PtxConstant, NestsSixtyFourLevels) {
  const auto parentheses = [](int n) { return Repeated("(", n) + "7" + Repeated(")", n); };
  const auto signs = [](int n) { return Repeated("- ", n) + "7"; };
  const auto choices = [](int n) { return Repeated("1?", n) + "7" + Repeated(":0", n); };
  for (const auto& nested : {std::function<std::string(int)>(parentheses), {signs}, {choices}}) {
    EXPECT_TRUE(ParseOperand(nested(64))) << nested(64);
    EXPECT_TRUE(ParseOperand(nested(64) + "; mov.b64 %rd2, " + nested(64))) << nested(64);
    const auto deeper = ParseOperand(nested(65));
    ASSERT_FALSE(deeper) << nested(65);
    EXPECT_NE(deeper.error().text.find("expression nested too deeply"), std::string::npos) << deeper.error().text;
  }
  EXPECT_TRUE(ParseOperand(Repeated("(.s64)", 64) + "7"));
  EXPECT_FALSE(ParseOperand(Repeated("(.s64)(", 33) + "7" + Repeated(")", 33)));
}

TEST(PtxConstant, OffsetsAreSumsOfProducts) {
  for (const Case& c : {Case{"2*3", 6}, {"2*3-4", 2}, {"16/4+1", 5}, {"7% 4", 3}, {"1+2+3", 6}, {"-1", -1}}) {
    const auto module = Parse(".version 9.0\n.target sm_75\n.entry k() { .reg .b64 %rd<2>; ld.global.b64 %rd1, [%rd1+" +
                              std::string(c.text) + "]; }");
    ASSERT_TRUE(module) << c.text << ": " << module.error().text;
    EXPECT_EQ((*module)->functions[0]->code[0].operands[1].offset, c.value) << c.text;
  }
}

}  // namespace
}  // namespace vgpud::ptx
