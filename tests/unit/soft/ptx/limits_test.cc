// SPDX-License-Identifier: Apache-2.0
// What a text may hold: each limit is reached, and one more is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "gpu/ptx/parser.h"

namespace vgpud::ptx {
namespace {

constexpr const char* kHeader = ".version 9.0\n.target sm_75\n.address_size 64\n";

// "" if the text is taken, else why not.
std::string Why(const std::string& text) {
  const auto module = Parse(kHeader + text);
  return module ? "" : module.error().text;
}
std::string InKernel(const std::string& body) { return Why(fmt::format(".entry k() {{ {} }}", body)); }
bool Says(const std::string& why, const std::string& words) { return why.find(words) != std::string::npos; }

std::string Repeated(const std::string& what, int times) {
  std::string out;
  out.reserve(what.size() * static_cast<size_t>(times));
  for (int n = 0; n < times; ++n) out += what;
  return out;
}

TEST(PtxLimits, TextOf64MiB) {
  std::string text(64u << 20, ' ');
  text.replace(0, std::string(kHeader).size(), kHeader);
  EXPECT_TRUE(Parse(text));
  text += ' ';
  const auto refused = Parse(text);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "PTX text of 67108865 bytes: the limit is 67108864");
}

TEST(PtxLimits, BlocksIn64Levels) {
  EXPECT_EQ(InKernel(Repeated("{", 63) + Repeated("}", 63)), "");
  EXPECT_TRUE(Says(InKernel(Repeated("{", 64) + Repeated("}", 64)), "blocks nested too deeply"));
}

TEST(PtxLimits, ModifiersOfAnInstruction) {
  EXPECT_EQ(InKernel(fmt::format("ret{};", Repeated(".a", 64))), "");
  EXPECT_TRUE(Says(InKernel(fmt::format("ret{};", Repeated(".a", 65))), "too many modifiers"));
}

TEST(PtxLimits, RegistersOfAFunctionAndOfAModule) {
  const auto function = [](const std::string& name, const std::string& registers) {
    return fmt::format(".func {}() {{ {} }}\n", name, registers);
  };
  const std::string most = ".reg .b32 %r<1000000>;";
  EXPECT_TRUE(Says(Why(function("f", most + ".reg .b32 a;")), "too many registers, near `a`"));
  EXPECT_TRUE(Says(Why(function("f", ".reg .b32 a; " + most)), "too many registers, near `%r`"));
  std::string four;
  for (const char* name : {"a", "b", "c", "d"}) four += function(name, most);
  EXPECT_EQ(Why(four), "");
  EXPECT_TRUE(Says(Why(four + function("e", ".reg .b32 x;")), "too many registers, near `;`"));
}

TEST(PtxLimits, StatementsOfAModule) {
  // Labels count as instructions do. So many of one name are an error of their own, but only where they end.
  EXPECT_TRUE(Says(InKernel(Repeated("A:", 1'000'000)), "label defined twice"));
  EXPECT_TRUE(Says(InKernel(Repeated("A:", 1'000'001)), "too many statements"));
  EXPECT_TRUE(Says(InKernel(Repeated("A:", 1'000'000) + "ret;"), "too many instructions"));
}

// A list of parameters has at most 32764, so there are many lists.
TEST(PtxLimits, VariablesAndParametersOfAModule) {
  const auto prototype = [](const std::string& name, int count) {
    return fmt::format("{}: .callprototype _ ({}.param .b8 _);", name, Repeated(".param .b8 _,", count - 1));
  };
  std::string lists;
  for (int n = 0; n < 30; ++n) lists += prototype(fmt::format("p{}", n), 32764);
  EXPECT_EQ(InKernel(lists + prototype("q", 1'000'000 - 30 * 32764)), "");
  EXPECT_TRUE(Says(InKernel(lists + prototype("q", 1'000'001 - 30 * 32764)), "too many parameters"));
  EXPECT_TRUE(
      Says(Why(fmt::format(".entry k() {{ {}{} }}\n.global .b8 x;", lists, prototype("q", 1'000'000 - 30 * 32764))),
           "too many variables"));
}

TEST(PtxLimits, FunctionsOfAModule) {
  std::string text;
  for (int n = 0; n < 100'000; ++n) text += fmt::format(".func f{}();\n", n);
  EXPECT_EQ(Why(text), "");
  EXPECT_TRUE(Says(Why(text + ".func g();"), "too many functions"));
}

TEST(PtxLimits, BytesOfParameters) {
  EXPECT_EQ(Why(".entry k(.param .b8 a[32764]) { }"), "");
  EXPECT_EQ(Why(".entry k(.param .b8 a[32760], .param .b32 b) { }"), "");
  EXPECT_EQ(Why(".entry k(.param .b16 a[16382]) { }"), "");
  for (const char* list : {".param .b8 a[32764], .param .b8 b", ".param .b8 a[32761], .param .b32 b",
                           ".param .b16 a[16383]", ".param .b64 a[4096]"})
    EXPECT_TRUE(Says(Why(fmt::format(".entry k({}) {{ }}", list)), "parameters above 32764 bytes")) << list;
  EXPECT_EQ(InKernel(".param .b8 a[32764];"), "");
  EXPECT_TRUE(Says(InKernel(".param .b8 a[32765];"), "number above 32764"));
  EXPECT_TRUE(Says(InKernel(".param .b16 a[16383];"), "parameters above 32764 bytes"));
  EXPECT_TRUE(Says(InKernel(".param .b8 a[32764], b;"), "parameters above 32764 bytes"));
  EXPECT_TRUE(Says(InKernel(".param .b8 a[32761]; .param .b32 b;"), "parameters above 32764 bytes"));
}

TEST(PtxLimits, BytesOfAVariable) {
  EXPECT_EQ(Why(".global .b8 x[1099511627776];"), "");
  EXPECT_TRUE(Says(Why(".global .b8 x[1099511627777];"), "array size"));
  EXPECT_EQ(Why(".global .b8 x[2][549755813888];"), "");
  EXPECT_TRUE(Says(Why(".global .b8 x[2][549755813889];"), "variable above 1099511627776 bytes"));
  EXPECT_TRUE(Says(Why(".global .b8 x[0];"), "array size"));
  EXPECT_TRUE(Says(Why(".global .b8 x[1.0];"), "array size"));
  EXPECT_EQ(Why(fmt::format(".global .b8 x{};", Repeated("[1]", 16))), "");
  EXPECT_TRUE(Says(Why(fmt::format(".global .b8 x{};", Repeated("[1]", 17))), "too many dimensions"));
}

TEST(PtxLimits, BytesOfInitialisers) {
  EXPECT_EQ(Why(".global .b8 x[2][67108863] = {{1}, {1}};"), "");
  EXPECT_TRUE(Says(Why(".global .b8 x[2][67108864] = {{1}, {1}};"), "initialisers above 67108864 bytes"));
  EXPECT_TRUE(
      Says(Why(".global .b8 x[2][67108863] = {{1}, {1}};\n.global .b8 y = 1;"), "initialisers above 67108864 bytes"));
}

TEST(PtxLimits, Alignment) {
  EXPECT_EQ(Why(".global .align 65536 .b8 x;"), "");
  EXPECT_TRUE(Says(Why(".global .align 131072 .b8 x;"), "number above 65536"));
  for (const char* align : {"0", "3", "6", "65535"})
    EXPECT_TRUE(Says(Why(fmt::format(".global .align {} .b8 x;", align)), "an alignment must be a power of two"));
  for (uint32_t align = 1; align <= 32768; align *= 2) {
    const auto module = Parse(fmt::format("{}.global .align {} .b8 x;", kHeader, align));
    ASSERT_TRUE(module);
    EXPECT_EQ((*module)->variables[0].align, align);
  }
}

TEST(PtxLimits, SourceFiles) {
  std::string text = ".entry k() {";
  for (int n = 0; n < 65540; ++n) text += fmt::format(".loc {} 1 0\nret;\n", n);
  const auto module = Parse(kHeader + text + "}");
  ASSERT_TRUE(module) << module.error().text;
  EXPECT_EQ((*module)->files.size(), 65536u);
  const auto& lines = (*module)->functions[0]->source_lines;
  EXPECT_EQ(lines.at(0).file, 0u);
  EXPECT_EQ(lines.at(65535).file, 65535u);
  EXPECT_EQ(lines.at(65536).file, kNoIndex);
}

TEST(PtxLimits, MessagesQuoteFortyBytes) {
  const std::string name(50, 'x');
  EXPECT_EQ(Why(name), fmt::format("PTX line 4: unknown directive, near `{}`", std::string(40, 'x')));
  EXPECT_EQ(Why("\x1f"), "PTX line 4: unknown directive, near `?`");
  EXPECT_EQ(Why("~"), "PTX line 4: unknown directive, near `~`");
  EXPECT_EQ(Why("\x7f"), "PTX line 4: unknown directive, near `?`");
}

}  // namespace
}  // namespace vgpud::ptx
