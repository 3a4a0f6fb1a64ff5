// SPDX-License-Identifier: Apache-2.0
// Texts of which not every body is read.
#include <gtest/gtest.h>

#include <set>

#include "gpu/ptx/parser.h"

namespace vgpud::ptx {
namespace {

// Braces where they mean nothing, nested ones, and a line that everything behind depends on.
constexpr const char* kText = R"(.version 7.8
.target sm_75
.address_size 64
.func helper(.param .b32 a)
{ // }
.reg .b32 %r<4>; /* { { { */
{ mov.u32 %r1, 1; { mov.u32 %r2, 2; } }
.pragma "} {";
ret;
}
.global .u32 between;
.visible .entry first(.param .u64 out) { .reg .b32 %r<4>; mov.u32 %r1, 7; ret; }
.visible .entry second() { this is not an instruction at all } .visible .entry third()
{
.reg .b32 %r<4>;
mov.u32 %r1, 7;
mov.u32 %r2, %nothing;
}
)";

GpuResult<std::unique_ptr<Module>> Read(const std::set<std::string, std::less<>>& bodies,
                                        const BodyEnds* ends = nullptr) {
  return Parse(kText, {[&](std::string_view name) { return bodies.count(name) != 0; }, ends});
}

BodyEnds EndsOf(const Module& module) {
  BodyEnds ends;
  for (const auto& f : module.functions)
    if (f->is_left_out) ends[f->places.body_open] = {f->places.body_close, f->places.body_close_line};
  return ends;
}

TEST(PtxReading, HeadersAreReadAndBodiesAreNot) {
  const auto module = Read({});
  ASSERT_TRUE(module) << module.error().text;
  ASSERT_EQ((*module)->functions.size(), 4u);
  for (const auto& f : (*module)->functions) {
    EXPECT_TRUE(f->is_left_out) << f->name;
    EXPECT_FALSE(f->is_extern) << f->name;
    EXPECT_TRUE(f->code.empty() && f->registers.empty()) << f->name;
    EXPECT_EQ(kText[f->places.body_open], '{') << f->name;
    EXPECT_EQ(kText[f->places.body_close], '}') << f->name;
  }
  EXPECT_EQ((*module)->functions[0]->params.size(), 1u);
  EXPECT_EQ((*module)->functions[1]->param_bytes, 8u);
  EXPECT_EQ((*module)->functions[0]->places.body_close_line, 10u);
  EXPECT_EQ((*module)->variables.size(), 1u);
  EXPECT_EQ((*module)->variables[0].line, 11u);
}

TEST(PtxReading, WhatIsWantedIsRead) {
  const auto headers = Read({});
  ASSERT_TRUE(headers);
  const BodyEnds ends = EndsOf(**headers);
  ASSERT_EQ(ends.size(), 4u);
  for (const BodyEnds* known : {static_cast<const BodyEnds*>(nullptr), &ends}) {
    const auto module = Read({"first", "helper"}, known);
    ASSERT_TRUE(module) << module.error().text;
    const auto& functions = (*module)->functions;
    ASSERT_EQ(functions.size(), 4u);
    EXPECT_EQ(functions[0]->code.size(), 3u);
    EXPECT_EQ(functions[0]->code[2].line, 9u);
    EXPECT_EQ(functions[1]->code.size(), 2u);
    EXPECT_EQ(functions[1]->code[0].line, 12u);
    EXPECT_TRUE(functions[2]->is_left_out && functions[3]->is_left_out);
  }
}

TEST(PtxReading, ErrorsAreOfWhatIsReadAndNameItsLine) {
  const auto headers = Read({});
  ASSERT_TRUE(headers);
  const BodyEnds ends = EndsOf(**headers);
  for (const BodyEnds* known : {static_cast<const BodyEnds*>(nullptr), &ends}) {
    const auto second = Read({"second"}, known);
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().text.find("PTX line 13: "), std::string::npos) << second.error().text;
    const auto third = Read({"third"}, known);
    ASSERT_FALSE(third);
    EXPECT_NE(third.error().text.find("PTX line 17: "), std::string::npos) << third.error().text;
  }
}

TEST(PtxReading, ABodyWithoutAnEndIsAnError) {
  for (const char* text : {".version 7.8\n.entry k() { { }", ".version 7.8\n.entry k() {",
                           ".version 7.8\n.entry k() { /* } */", ".version 7.8\n.entry k() { // }"}) {
    const auto module = Parse(text, {[](std::string_view) { return false; }});
    ASSERT_FALSE(module) << text;
    EXPECT_NE(module.error().text.find("function without its closing `}`"), std::string::npos) << module.error().text;
  }
}

// Ends that are of another text lead to an error or to nonsense, and not outside of the text.
TEST(PtxReading, WrongEndsDoNoHarm) {
  const auto headers = Read({});
  ASSERT_TRUE(headers);
  for (const uint32_t offset : {0u, 5u, 400u, 100'000u, UINT32_MAX - 1}) {
    BodyEnds ends = EndsOf(**headers);
    for (auto& [open, place] : ends) place = {offset, 1};
    if (offset >= 400) (void)Read({}, &ends);
  }
}

}  // namespace
}  // namespace vgpud::ptx
