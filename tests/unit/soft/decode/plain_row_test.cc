// SPDX-License-Identifier: Apache-2.0
// Which row of the table an instruction is, and what its other modifiers say.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/soft/code/op_table.h"
#include "gpu/soft/code/program.h"
#include "gpu/soft/code/special_registers.h"
#include "gpu/soft/decode/modifiers.h"

namespace vgpud::soft {
namespace {

struct Case {
  const char* instruction;
  const char* row;  // nullptr: there is none
  uint8_t flags, aux, rounding;
};
// Rounding is the field RC of MXCSR: 1 down, 2 up, 3 to zero. aux: 1 and, 2 or, 3 xor.
constexpr Case kCases[] = {
    {"add.f32", "add.f32", 0, 0, 0},
    {"add.rn.f32", "add.f32", 0, 0, 0},
    {"add.ftz.f32", "add.f32", kFtz, 0, 0},
    {"add.sat.f32", "add.f32", kSat, 0, 0},
    {"add.rm.f32", "add.f32", 0, 0, 1},
    {"add.rp.f32", "add.f32", 0, 0, 2},
    {"add.rz.f32", "add.f32", 0, 0, 3},
    {"add.rz.ftz.sat.f32", "add.f32", kFtz | kSat, 0, 3},
    {"add.sat.rm.ftz.f32", "add.f32", kFtz | kSat, 0, 1},
    {"add.rn.ftz.sat.f32", "add.f32", kFtz | kSat, 0, 0},
    {"add.rp.f64", "add.f64", 0, 0, 2},
    {"setp.lt.f32", "setp.lt.f32", 0, 0, 0},
    {"setp.lt.and.f32", "setp.lt.f32", 0, 1, 0},
    {"setp.lt.or.ftz.f32", "setp.lt.f32", kFtz, 2, 0},
    {"setp.lt.xor.s32", "setp.lt.s32", 0, 3, 0},
    {"add.sat.s32", "add.sat.s32", 0, 0, 0},
    {"add.sat.u32", nullptr, 0, 0, 0},
    {"add.rn.rz.f32", nullptr, 0, 0, 0},
    {"add.rm.rz.f32", nullptr, 0, 0, 0},
    {"add.rm.rm.f32", nullptr, 0, 0, 0},
    {"add.and.f32", nullptr, 0, 0, 0},
    {"add.rn.s32", nullptr, 0, 0, 0},
    {"add.rz.s32", nullptr, 0, 0, 0},
    {"add.ftz.f64", nullptr, 0, 0, 0},
    {"neg.rn.f32", nullptr, 0, 0, 0},
    {"abs.rz.f32", nullptr, 0, 0, 0},
    {"min.rn.f32", nullptr, 0, 0, 0},
    {"setp.rn.lt.f32", nullptr, 0, 0, 0},
    {"add", nullptr, 0, 0, 0},
    {"add.f32.f32", nullptr, 0, 0, 0},
    {"", nullptr, 0, 0, 0},
    {"fence.sc.sys", "fence", 0, 0, 0},
    {"prefetch.global.L2", "prefetch", 0, 0, 0},
    {"prefetchu.L1", "prefetchu", 0, 0, 0},
    {"discard.global.L2", "discard", 0, 0, 0},
    {"applypriority.global", "applypriority", 0, 0, 0},
    {"barrier.cta.sync.aligned", "barrier.sync", 0, 0, 0},
    {"bar.cta.sync", "bar.sync", 0, 0, 0},
};

std::vector<std::string_view> Split(std::string_view text, std::string_view* opcode) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('.', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  *opcode = words.front();
  words.erase(words.begin());
  return words;
}

TEST(SoftPlainRow, SaysWhatTheModifiersMean) {
  const OpTable& table = OpTable::Of(BestIsa());
  for (const Case& c : kCases) {
    std::string_view opcode;
    const auto modifiers = Split(c.instruction, &opcode);
    const PlainRow row = FindPlainRow(table, opcode, modifiers);
    ASSERT_EQ(row.row != nullptr, c.row != nullptr) << c.instruction;
    if (c.row == nullptr) continue;
    std::string_view name;
    const auto words = Split(c.row, &name);
    EXPECT_EQ(row.row, table.Find(OpTable::Key(name, words))) << c.instruction;
    EXPECT_EQ(row.flags, c.flags) << c.instruction;
    EXPECT_EQ(row.aux, c.aux) << c.instruction;
    EXPECT_EQ(row.rounding, c.rounding) << c.instruction;
  }
}

TEST(SoftPlainRow, KeysHaveModifiersInOrderAndTypesAsTheyStand) {
  EXPECT_EQ(OpTable::Key("add", {"sat", "ftz", "f32"}), OpTable::Key("add", {"ftz", "sat", "f32"}));
  EXPECT_NE(OpTable::Key("cvt", {"s32", "f32"}), OpTable::Key("cvt", {"f32", "s32"}));
  EXPECT_EQ(OpTable::Key("cvt", {"s32", "rzi", "f32"}), OpTable::Key("cvt", {"rzi", "s32", "f32"}));
  EXPECT_NE(OpTable::Key("add", {"ftz", "f32"}), OpTable::Key("add", {"f32"}));
}

// MemorySpace and types of an instruction, however its modifiers are ordered.
TEST(SoftModifiers, SpacesAndTypesAreFound) {
  struct SpaceCase {
    std::string_view word;
    ptx::Space space;
  };
  for (const SpaceCase& c : {SpaceCase{"global", ptx::Space::kGlobal},
                             {"const", ptx::Space::kConst},
                             {"shared", ptx::Space::kShared},
                             {"shared::cta", ptx::Space::kShared},
                             {"shared::cluster", ptx::Space::kSharedCluster},
                             {"local", ptx::Space::kLocal},
                             {"param", ptx::Space::kParam},
                             {"param::entry", ptx::Space::kParam},
                             {"param::func", ptx::Space::kParam}}) {
    ptx::Instruction i;
    i.modifiers = {"volatile", c.word, "u32"};
    EXPECT_EQ(SpaceOf(i), c.space) << c.word;
    EXPECT_TRUE(IsSpaceModifier(c.word)) << c.word;
  }
  for (const std::string_view none : {"generic", "shared::all", "", "u32"}) {
    ptx::Instruction i;
    i.modifiers = {none};
    EXPECT_EQ(SpaceOf(i), ptx::Space::kGeneric) << none;
    EXPECT_FALSE(IsSpaceModifier(none)) << none;
  }
  ptx::Instruction i;
  EXPECT_EQ(FirstType(i), ptx::Type::kNone);
  EXPECT_EQ(LastType(i), ptx::Type::kNone);
  i.modifiers = {"rzi", "s32", "ftz", "f64", "sat"};
  EXPECT_EQ(FirstType(i), ptx::Type::kS32);
  EXPECT_EQ(LastType(i), ptx::Type::kF64);
  EXPECT_TRUE(HasModifier(i, "ftz"));
  EXPECT_FALSE(HasModifier(i, "ft"));
  EXPECT_EQ(ClassOf(ptx::Type::kPred), SlotClass::kPredicate);
  EXPECT_EQ(ClassOf(ptx::Type::kF16), SlotClass::k32);
  EXPECT_EQ(ClassOf(ptx::Type::kB32), SlotClass::k32);
  EXPECT_EQ(ClassOf(ptx::Type::kB64), SlotClass::k64);
  for (const ptx::Type type : {ptx::Type::kS8, ptx::Type::kS16, ptx::Type::kS32}) EXPECT_TRUE(IsSigned(type));
  for (const ptx::Type type : {ptx::Type::kU8, ptx::Type::kB16, ptx::Type::kU32, ptx::Type::kF32, ptx::Type::kNone})
    EXPECT_FALSE(IsSigned(type));
}

TEST(SoftSpecialRegisters, LanesHaveTheMasksOfTheIsa) {
  const auto value = [](const char* name, uint32_t lane) { return LaneTableValue(*FindSpecialRegister(name), lane); };
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t below = 0;
    for (uint32_t n = 0; n < lane; ++n) below |= 1u << n;
    const uint32_t self = 1u << lane;
    EXPECT_EQ(value("%laneid", lane), lane);
    EXPECT_EQ(value("%lanemask_eq", lane), self);
    EXPECT_EQ(value("%lanemask_lt", lane), below);
    EXPECT_EQ(value("%lanemask_le", lane), below | self);
    EXPECT_EQ(value("%lanemask_gt", lane), ~(below | self));
    EXPECT_EQ(value("%lanemask_ge", lane), ~below);
  }
}

TEST(SoftSpecialRegisters, ComeFromWhereTheirTableSays) {
  using S = SpecialRegister;
  struct SpecialCase {
    const char* name;
    S::Where where;
    uint64_t value;
  };
  for (const SpecialCase& c : {SpecialCase{"%tid.x", S::kWarp, 0},
                               {"%tid.y", S::kWarp, 1},
                               {"%tid.z", S::kWarp, 2},
                               {"%ctaid.x", S::kWarp, 3},
                               {"%ctaid.y", S::kWarp, 4},
                               {"%ctaid.z", S::kWarp, 5},
                               {"%warpid", S::kWarp, 6},
                               {"%smid", S::kWarp, 7},
                               {"%ntid.x", S::kGrid, 0},
                               {"%ntid.y", S::kGrid, 1},
                               {"%ntid.z", S::kGrid, 2},
                               {"%nctaid.x", S::kGrid, 3},
                               {"%nctaid.y", S::kGrid, 4},
                               {"%nctaid.z", S::kGrid, 5},
                               {"%nwarpid", S::kGrid, 6},
                               {"%gridid", S::kGrid, 7},
                               {"%total_smem_size", S::kGrid, 8},
                               {"%dynamic_smem_size", S::kGrid, 9},
                               {"%envreg1", S::kGrid, 10},
                               {"%envreg2", S::kGrid, 11},
                               {"%nsmid", S::kConstant, 8},
                               {"%envreg0", S::kConstant, 0},
                               {"WARP_SZ", S::kConstant, 32}}) {
    const S* found = FindSpecialRegister(c.name);
    ASSERT_NE(found, nullptr) << c.name;
    EXPECT_EQ(found->where, c.where) << c.name;
    EXPECT_EQ(found->value, c.value) << c.name;
  }
  for (const char* name : {"%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"})
    EXPECT_EQ(FindSpecialRegister(name)->where, S::kRead) << name;
  for (const char* name : {"%tid", "%tid.w", "%envreg3", "", "%laneid2"})
    EXPECT_EQ(FindSpecialRegister(name), nullptr) << name;
}

}  // namespace
}  // namespace vgpud::soft
