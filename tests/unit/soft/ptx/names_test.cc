// SPDX-License-Identifier: Apache-2.0
#include "gpu/ptx/names.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "gpu/ptx/ir.h"

namespace vgpud::ptx {
namespace {

using Kind = Binding::Kind;

TEST(PtxNames, AreThoseOfTheInnermostScope) {
  NameTable names;
  EXPECT_EQ(names.depth(), 1u);
  EXPECT_TRUE(names.Declare("a", {Kind::kLocalVariable, 1}));
  EXPECT_FALSE(names.Declare("a", {Kind::kLocalVariable, 2}));
  names.OpenScope();
  EXPECT_EQ(names.depth(), 2u);
  EXPECT_EQ(names.Find("a")->index, 1u);
  EXPECT_TRUE(names.Declare("a", {Kind::kParam, 3}));
  EXPECT_TRUE(names.Declare("b", {Kind::kParam, 4}));
  EXPECT_EQ(names.Find("a")->index, 3u);
  EXPECT_EQ(names.Find("a")->kind, Kind::kParam);
  names.OpenScope();
  EXPECT_TRUE(names.Declare("a", {Kind::kParam, 5}));
  names.CloseScope();
  EXPECT_EQ(names.Find("a")->index, 3u);
  names.CloseScope();
  EXPECT_EQ(names.Find("a")->index, 1u);
  EXPECT_FALSE(names.Find("b"));
  EXPECT_FALSE(names.Find(""));
}

TEST(PtxNames, RangesHaveTheirMembersAndNoOthers) {
  NameTable names;
  ASSERT_TRUE(names.DeclareRange("%r", 10, 1'000'000));
  EXPECT_FALSE(names.DeclareRange("%r", 0, 1));
  struct Case {
    const char* name;
    std::optional<uint32_t> index;
  };
  for (const Case& c : {Case{"%r0", 10},
                        {"%r1", 11},
                        {"%r9", 19},
                        {"%r10", 20},
                        {"%r999999", 1'000'009},
                        {"%r1000000", std::nullopt},
                        {"%r01", std::nullopt},
                        {"%r", std::nullopt},
                        {"%r1x", std::nullopt},
                        {"%q1", std::nullopt},
                        {"%r/", std::nullopt},
                        {"%r:", std::nullopt},
                        {"%r00000001", std::nullopt},
                        {"7", std::nullopt}}) {
    const auto found = names.Find(c.name);
    ASSERT_EQ(found.has_value(), c.index.has_value()) << c.name;
    if (!found) continue;
    EXPECT_EQ(found->index, *c.index) << c.name;
    EXPECT_EQ(found->kind, Kind::kRegister) << c.name;
    EXPECT_EQ(found->count, 1u) << c.name;
  }
}

TEST(PtxNames, OfTwoRangesTheInnermostThatHasTheMemberWins) {
  NameTable names;
  ASSERT_TRUE(names.DeclareRange("%r", 0, 100));
  names.OpenScope();
  ASSERT_TRUE(names.DeclareRange("%r1", 1000, 5));
  EXPECT_EQ(names.Find("%r12")->index, 1002u);
  EXPECT_EQ(names.Find("%r15")->index, 15u);
  ASSERT_TRUE(names.Declare("%r13", {Kind::kRegister, 7}));
  EXPECT_EQ(names.Find("%r13")->index, 7u);
  names.OpenScope();
  ASSERT_TRUE(names.DeclareRange("%r", 2000, 14));
  EXPECT_EQ(names.Find("%r13")->index, 2013u);
  EXPECT_EQ(names.Find("%r14")->index, 1004u);
  names.CloseScope();
  names.CloseScope();
  EXPECT_EQ(names.Find("%r12")->index, 12u);
  EXPECT_EQ(names.Find("%r13")->index, 13u);
}

// In one scope: a name of its own wins against a member, the longer prefix does not matter.
TEST(PtxNames, ANameWinsAgainstAMemberOfItsScope) {
  NameTable names;
  ASSERT_TRUE(names.DeclareRange("%r", 0, 100));
  ASSERT_TRUE(names.Declare("%r5", {Kind::kRegister, 700}));
  EXPECT_EQ(names.Find("%r5")->index, 700u);
  EXPECT_EQ(names.Find("%r6")->index, 6u);
}

// PTX ISA 9.0, "Special Registers".
TEST(PtxNames, SpecialRegistersAreThoseOfTheIsa) {
  for (const std::string vector :
       {"%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"}) {
    for (const char* component : {".x", ".y", ".z", ".w"}) EXPECT_TRUE(IsSpecialRegister(vector + component)) << vector;
    for (const char* other : {"", ".", ".v", ".xy", "xx", ".X", ".0"})
      EXPECT_FALSE(IsSpecialRegister(vector + other)) << vector + other;
  }
  for (const std::string scalar : {"WARP_SZ",
                                   "%laneid",
                                   "%warpid",
                                   "%nwarpid",
                                   "%smid",
                                   "%nsmid",
                                   "%gridid",
                                   "%is_explicit_cluster",
                                   "%cluster_ctarank",
                                   "%cluster_nctarank",
                                   "%lanemask_eq",
                                   "%lanemask_le",
                                   "%lanemask_lt",
                                   "%lanemask_ge",
                                   "%lanemask_gt",
                                   "%clock",
                                   "%clock_hi",
                                   "%clock64",
                                   "%globaltimer",
                                   "%globaltimer_lo",
                                   "%globaltimer_hi",
                                   "%reserved_smem_offset_begin",
                                   "%reserved_smem_offset_end",
                                   "%reserved_smem_offset_cap",
                                   "%reserved_smem_offset_0",
                                   "%reserved_smem_offset_1",
                                   "%total_smem_size",
                                   "%aggr_smem_size",
                                   "%dynamic_smem_size",
                                   "%current_graph_exec"}) {
    EXPECT_TRUE(IsSpecialRegister(scalar)) << scalar;
    EXPECT_FALSE(IsSpecialRegister(scalar + ".x")) << scalar;
    EXPECT_FALSE(IsSpecialRegister(scalar + "2")) << scalar;
  }
  for (int n = 0; n < 40; ++n) {
    const std::string number = std::to_string(n);
    EXPECT_EQ(IsSpecialRegister("%envreg" + number), n < 32) << n;
    EXPECT_EQ(IsSpecialRegister("%pm" + number), n < 8) << n;
    EXPECT_EQ(IsSpecialRegister("%pm" + number + "_64"), n < 8) << n;
    EXPECT_FALSE(IsSpecialRegister("%envreg" + number + "_64")) << n;
  }
  for (const char* none : {"", "%", "x", ".x", "%envreg", "%pm", "%pm_64", "%pm1_6", "%pm1_644", "%pmx", "%envreg1x",
                           "%envreg-1", "%tid.x.x", "%Laneid"})
    EXPECT_FALSE(IsSpecialRegister(none)) << none;
}

// PTX ISA 9.0, "Fundamental Types" and "Alternate Floating-Point Data Formats".
TEST(PtxTypes, HaveTheirNamesAndSizes) {
  struct Case {
    const char* name;
    Type type;
    uint32_t bytes;
  };
  for (const Case& c : {Case{"b8", Type::kB8, 1},      {"b16", Type::kB16, 2},
                        {"b32", Type::kB32, 4},        {"b64", Type::kB64, 8},
                        {"b128", Type::kB128, 16},     {"u8", Type::kU8, 1},
                        {"u16", Type::kU16, 2},        {"u32", Type::kU32, 4},
                        {"u64", Type::kU64, 8},        {"s8", Type::kS8, 1},
                        {"s16", Type::kS16, 2},        {"s32", Type::kS32, 4},
                        {"s64", Type::kS64, 8},        {"f16", Type::kF16, 2},
                        {"f16x2", Type::kF16x2, 4},    {"bf16", Type::kBf16, 2},
                        {"bf16x2", Type::kBf16x2, 4},  {"tf32", Type::kTf32, 4},
                        {"e4m3", Type::kE4m3, 1},      {"e5m2", Type::kE5m2, 1},
                        {"e4m3x2", Type::kE4m3x2, 2},  {"e5m2x2", Type::kE5m2x2, 2},
                        {"e2m3x2", Type::kE2m3x2, 2},  {"e3m2x2", Type::kE3m2x2, 2},
                        {"e2m1x2", Type::kE2m1x2, 1},  {"ue8m0x2", Type::kUe8m0x2, 2},
                        {"u16x2", Type::kU16x2, 4},    {"s16x2", Type::kS16x2, 4},
                        {"f32x2", Type::kF32x2, 8},    {"f32", Type::kF32, 4},
                        {"f64", Type::kF64, 8},        {"pred", Type::kPred, 0},
                        {"texref", Type::kTexref, 8},  {"samplerref", Type::kSamplerref, 8},
                        {"surfref", Type::kSurfref, 8}}) {
    EXPECT_EQ(TypeFromName(c.name), c.type) << c.name;
    EXPECT_EQ(SizeOf(c.type), c.bytes) << c.name;
  }
  for (const char* none : {"", "b", "f8", "u128", "F32", "b32 "}) EXPECT_EQ(TypeFromName(none), Type::kNone) << none;
  EXPECT_EQ(SizeOf(Type::kNone), 0u);
}

}  // namespace
}  // namespace vgpud::ptx
