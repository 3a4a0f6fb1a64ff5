// SPDX-License-Identifier: Apache-2.0
// Rare instructions against golden values, rows of addresses of every shape, and modules of which a part cannot run.
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

struct Golden {
  const char* name;
  const char* ptx;  // leaves the result in %r10; %rd1 is 64 bytes of zeros
  uint32_t expected;
};
class SoftRare : public testing::TestWithParam<std::tuple<Isa, Golden>> {};

TEST_P(SoftRare, IsTheGoldenValue) {
  const auto& [isa, golden] = GetParam();
  SoftMachine m(isa);
  const Outcome loaded = m.LoadBody(
      ".param .u64 out", "ld.param.u64 %rd1, [out];\n" + std::string(golden.ptx) + "\nst.global.u32 [%rd1], %r10;");
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const GpuVa out = m.Alloc(64);
  const Outcome ran = m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(out));
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  EXPECT_EQ(m.Download<uint32_t>(out, 1)[0], golden.expected);
}

#define HALVES(a, b) "mov.b16 %rs1, " a "; mov.b16 %rs2, " b "; "
#define TO_R10 " cvt.u32.u16 %r10, %rs3;"
constexpr Golden kGolden[] = {
    {"seed_of_a_huge_number",
     "mov.b64 %rd2, 0x7fe8000000000000; mov.b64 %fd1, %rd2; rcp.approx.ftz.f64 %fd2, %fd1; mov.b64 {%r9, %r10}, %fd2;",
     0},
    {"seed_of_a_huge_negative_number",
     "mov.b64 %rd2, 0xffe8000000000000; mov.b64 %fd1, %rd2; rcp.approx.ftz.f64 %fd2, %fd1; mov.b64 {%r9, %r10}, %fd2;",
     0x80000000},
    {"lt_f16", HALVES("0xc000", "0x3c00") "setp.lt.f16 %p1, %rs1, %rs2; selp.u32 %r10, 1, 0, %p1;", 1},
    {"lt_f16_nan", HALVES("0x7e00", "0x3c00") "setp.lt.f16 %p1, %rs1, %rs2; selp.u32 %r10, 1, 0, %p1;", 0},
    {"geu_f16_nan", HALVES("0x7e00", "0x3c00") "setp.geu.f16 %p1, %rs1, %rs2; selp.u32 %r10, 1, 0, %p1;", 1},
    {"abs_f16", HALVES("0xbe00", "0") "abs.f16 %rs3, %rs1;" TO_R10, 0x3e00},
    {"neg_f16", HALVES("0x3e00", "0") "neg.f16 %rs3, %rs1;" TO_R10, 0xbe00},
    {"neg_f16x2", "mov.u32 %r1, 0x3c00be00; neg.f16x2 %r10, %r1;", 0xbc003e00},
    {"min_f16", HALVES("0xc000", "0x3c00") "min.f16 %rs3, %rs1, %rs2;" TO_R10, 0xc000},
    {"min_f16_nan", HALVES("0x7e00", "0x3c00") "min.f16 %rs3, %rs1, %rs2;" TO_R10, 0x3c00},
    {"min_f16_zeros", HALVES("0x0000", "0x8000") "min.f16 %rs3, %rs1, %rs2;" TO_R10, 0x8000},
    {"max_f16_zeros", HALVES("0x8000", "0x0000") "max.f16 %rs3, %rs1, %rs2;" TO_R10, 0x0000},
    {"max_NaN_f16", HALVES("0x7e00", "0x3c00") "max.NaN.f16 %rs3, %rs1, %rs2;" TO_R10, 0x7fff},
    {"set_f16x2", "mov.u32 %r1, 0x40003c00; mov.u32 %r2, 0x3c003c00; set.gt.f16x2.f16x2 %r10, %r1, %r2;", 0x3c000000},
    {"set_f16", HALVES("0x3c00", "0x3c00") "set.eq.f16.f16 %rs3, %rs1, %rs2;" TO_R10, 0x3c00},
    {"mov_f16", HALVES("0xbe00", "0") "mov.f16 %rs3, %rs1;" TO_R10, 0xbe00},
    {"mov_f16x2", "mov.u32 %r1, 0x3c00be00; mov.f16x2 %r10, %r1;", 0x3c00be00},
    {"selp_pred",
     "mov.u32 %r1, 1; setp.ne.u32 %p1, %r1, 0; not.pred %p2, %p1; selp.pred %p3, %p2, %p1, %p1;\n"
     "selp.pred %p4, %p2, %p1, %p2; selp.u32 %r10, 1, 0, %p3; @%p4 add.u32 %r10, %r10, 2;",
     2},
    {"f16_of_s32", "mov.u32 %r1, -3; cvt.rn.f16.s32 %rs3, %r1;" TO_R10, 0xc200},
    {"f16_of_s32_tie", "mov.u32 %r1, 2049; cvt.rn.f16.s32 %rs3, %r1;" TO_R10, 0x6800},
    {"f16_of_u32_infinite", "mov.u32 %r1, 65520; cvt.rn.f16.u32 %rs3, %r1;" TO_R10, 0x7c00},
    {"s32_of_f16", HALVES("0xc100", "0") "cvt.rzi.s32.f16 %r10, %rs1;", 0xfffffffe},
    {"s32_of_f16_nearest", HALVES("0xc100", "0") "cvt.rni.s32.f16 %r10, %rs1;", 0xfffffffe},
    {"s16_of_f16", HALVES("0xc300", "0") "cvt.rni.s16.f16 %rs3, %rs1;" TO_R10, 0xfffc},
    {"u8_of_f16_saturates", HALVES("0x5c80", "0") "cvt.rzi.u8.f16 %r10, %rs1;", 255},
    {"floor_f16", HALVES("0xbe00", "0") "cvt.rmi.f16.f16 %rs3, %rs1;" TO_R10, 0xc000},
    {"vabsdiff4", "mov.u32 %r1, 0x01ff1000; mov.u32 %r2, 0x02001004; vabsdiff4.u32.u32.u32 %r10, %r1, %r2, 0;",
     0x01ff0004},
    {"vabsdiff4_add", "mov.u32 %r1, 0x01ff1000; mov.u32 %r2, 0x02001004; vabsdiff4.u32.u32.u32.add %r10, %r1, %r2, 10;",
     10 + 1 + 255 + 4},
    {"vabsdiff2_add", "mov.u32 %r1, 0x00010005; mov.u32 %r2, 0x01000003; vabsdiff2.u32.u32.u32.add %r10, %r1, %r2, 0;",
     255 + 2},
    {"atom_add_f16x2",
     "mov.u32 %r1, 0x3c003800; atom.global.add.noftz.f16x2 %r2, [%rd1+16], %r1; ld.global.u32 %r10, [%rd1+16];",
     0x50004c00},
    {"bf16_of_f32_tie", "mov.f32 %f1, 0f3F808000; cvt.rn.bf16.f32 %rs3, %f1;" TO_R10, 0x3f80},
    {"bf16_of_f32_tie_to_even", "mov.f32 %f1, 0f3F818000; cvt.rn.bf16.f32 %rs3, %f1;" TO_R10, 0x3f82},
    {"bf16_of_f32_to_zero", "mov.f32 %f1, 0f3F80FFFF; cvt.rz.bf16.f32 %rs3, %f1;" TO_R10, 0x3f80},
    {"bf16_of_f32_nan", "mov.f32 %f1, 0f7FC00001; cvt.rn.bf16.f32 %rs3, %f1;" TO_R10, 0x7fff},
    {"bf16_of_f32_relu", "mov.f32 %f1, 0fBF800000; cvt.rn.relu.bf16.f32 %rs3, %f1;" TO_R10, 0},
    {"bf16x2_of_f32", "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; cvt.rn.bf16x2.f32 %r10, %f1, %f2;",
     0x3f804000},
    {"f16x2_of_f32", "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; cvt.rn.f16x2.f32 %r10, %f1, %f2;", 0x3c004000},
    {"f32_of_bf16", HALVES("0xc040", "0") "cvt.f32.bf16 %f1, %rs1; mov.b32 %r10, %f1;", 0xc0400000},
    {"tf32_of_f32_tie", "mov.f32 %f1, 0f3F801000; cvt.rna.tf32.f32 %r10, %f1;", 0x3f802000},
    {"tf32_of_f32_below", "mov.f32 %f1, 0f3F800FFF; cvt.rna.tf32.f32 %r10, %f1;", 0x3f800000},
    {"add_bf16", HALVES("0x3f80", "0x4000") "add.rn.bf16 %rs3, %rs1, %rs2;" TO_R10, 0x4040},
    {"sub_bf16", HALVES("0x3f80", "0x4000") "sub.rn.bf16 %rs3, %rs1, %rs2;" TO_R10, 0xbf80},
    {"mul_bf16x2", "mov.u32 %r1, 0x40004040; mov.u32 %r2, 0xc0003f80; mul.rn.bf16x2 %r10, %r1, %r2;", 0xc0804040},
    {"fma_bf16_sticky", HALVES("0x3f81", "0x3f81") "mov.b16 %rs4, 0x0d80; fma.rn.bf16 %rs3, %rs1, %rs2, %rs4;" TO_R10,
     0x3f82},
    {"fma_bf16_relu", HALVES("0xbf80", "0x3f80") "mov.b16 %rs4, 0; fma.rn.relu.bf16 %rs3, %rs1, %rs2, %rs4;" TO_R10, 0},
    {"min_bf16", HALVES("0x8000", "0x0000") "min.bf16 %rs3, %rs1, %rs2;" TO_R10, 0x8000},
    {"max_bf16_nan", HALVES("0x7fc0", "0x3f80") "max.bf16 %rs3, %rs1, %rs2;" TO_R10, 0x3f80},
    {"max_NaN_bf16", HALVES("0x7fc0", "0x3f80") "max.NaN.bf16 %rs3, %rs1, %rs2;" TO_R10, 0x7fff},
    {"neg_bf16x2", "mov.u32 %r1, 0x3f80bf80; neg.bf16x2 %r10, %r1;", 0xbf803f80},
    {"abs_bf16", HALVES("0xbf80", "0") "abs.bf16 %rs3, %rs1;" TO_R10, 0x3f80},
    {"mul24_hi", "mov.u32 %r1, 0xff800001; mov.u32 %r2, 0x00400000; mul24.hi.u32 %r10, %r1, %r2;", 0x20000040},
    {"mul24_hi_signed", "mov.u32 %r1, 0x00800001; mov.u32 %r2, 0x00400000; mul24.hi.s32 %r10, %r1, %r2;", 0xe0000040},
    {"mad24_lo", "mov.u32 %r1, 0x01000003; mov.u32 %r2, 5; mad24.lo.u32 %r10, %r1, %r2, 100;", 115},
    {"mad24_hi_signed", "mov.u32 %r1, 0x00ffffff; mov.u32 %r2, 0x10000; mad24.hi.s32 %r10, %r1, %r2, 10;", 9},
    {"dp2a_lo", "mov.u32 %r1, 0x00020003; mov.u32 %r2, 0x0b0a0705; dp2a.lo.u32.u32 %r10, %r1, %r2, 100;",
     100 + 3 * 5 + 2 * 7},
    {"dp2a_hi", "mov.u32 %r1, 0x00020003; mov.u32 %r2, 0x0b0a0705; dp2a.hi.u32.u32 %r10, %r1, %r2, 100;",
     100 + 3 * 10 + 2 * 11},
    {"dp2a_signed", "mov.u32 %r1, 0xfffe0003; mov.u32 %r2, 0x0000ff05; dp2a.lo.s32.s32 %r10, %r1, %r2, 100;",
     100 + 3 * 5 + 2},
    {"fns_up", "mov.u32 %r1, 0x0000f0f0; fns.b32 %r10, %r1, 5, 4;", 12},
    {"fns_down", "mov.u32 %r1, 0x0000f0f0; fns.b32 %r10, %r1, 12, -2;", 7},
    {"fns_here", "mov.u32 %r1, 0x0000f0f0; fns.b32 %r10, %r1, 8, 0;", 0xffffffff},
    {"fns_none", "mov.u32 %r1, 0x0000f0f0; fns.b32 %r10, %r1, 16, 1;", 0xffffffff},
    {"brx_idx",
     "mov.u32 %r1, 2;\nT: .branchtargets A, B, C;\nbrx.idx %r1, T;\nA: mov.u32 %r10, 1; bra E;\n"
     "B: mov.u32 %r10, 2; bra E;\nC: mov.u32 %r10, 3;\nE:",
     3},
};
INSTANTIATE_TEST_SUITE_P(, SoftRare, testing::Combine(testing::ValuesIn(AvailableIsas()), testing::ValuesIn(kGolden)),
                         [](const auto& p) {
                           return std::string(NameOf(std::get<0>(p.param))) + "_" + std::get<1>(p.param).name;
                         });

class SoftRows : public testing::TestWithParam<Isa> {};

// Lane l reads element `index(l)` of global and of shared memory, all lanes and only some of them.
TEST_P(SoftRows, EveryShapeOfAddressesReadsAndWritesTheSame) {
  struct Shape {
    const char* name;
    uint32_t (*index)(uint32_t lane);
  };
  constexpr Shape kShapes[] = {
      {"stretch", [](uint32_t l) { return l + 3; }},
      {"same", [](uint32_t) { return 7u; }},
      {"two rows", [](uint32_t l) { return l % 16 + (l / 16) * 40; }},
      {"same by halves", [](uint32_t l) { return l / 16 * 5; }},
      {"four rows", [](uint32_t l) { return l % 8 + (l / 8) * 11; }},
      {"stride", [](uint32_t l) { return l * 3; }},
      {"backwards", [](uint32_t l) { return 31 - l; }},
      {"one astray", [](uint32_t l) { return l == 21 ? 90u : l; }},
  };
  struct Type {
    const char* name;
    uint32_t bytes;
    const char* reg;
  };
  constexpr Type kTypes[] = {
      {"u8", 1, "%r9"}, {"s16", 2, "%r9"}, {"u32", 4, "%r9"}, {"f32", 4, "%f9"}, {"u64", 8, "%rd9"}};
  std::vector<uint64_t> data(128);
  for (size_t n = 0; n < data.size(); ++n) data[n] = 0x9e3779b97f4a7c15u * (n + 1);
  for (const Type& type : kTypes) {
    const std::string t = type.name;
    const std::string size = std::to_string(type.bytes);
    const std::string store = t[0] == 's' ? "u16" : t;
    for (const char* only : {"mov.u32 %r8, 0;", "@%p1 bra END;"}) {
      SoftMachine m(GetParam());
      // The whole shared tile is filled by each lane in turn of 32, then read like global memory.
      const Outcome loaded = m.LoadBody(".param .u64 in, .param .u64 index, .param .u64 out",
                                        R"(
          ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [index]; ld.param.u64 %rd3, [out];
          mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 8; mov.u32 %r2, tile;
          cvt.u32.u64 %r3, %rd4; add.u32 %r3, %r3, %r2; add.u64 %rd5, %rd1, %rd4;
          ld.global.u64 %rd6, [%rd5]; st.shared.u64 [%r3], %rd6;
          ld.global.u64 %rd6, [%rd5+256]; st.shared.u64 [%r3+256], %rd6;
          ld.global.u64 %rd6, [%rd5+512]; st.shared.u64 [%r3+512], %rd6;
          ld.global.u64 %rd6, [%rd5+768]; st.shared.u64 [%r3+768], %rd6;
          bar.sync 0;
          mul.wide.u32 %rd7, %r1, 4; add.u64 %rd7, %rd2, %rd7; ld.global.u32 %r4, [%rd7];
          mul.lo.u32 %r5, %r4, )" + size + R"(; cvt.u64.u32 %rd8, %r5; add.u64 %rd8, %rd1, %rd8; add.u32 %r6, %r2, %r5;
          add.u64 %rd10, %rd3, %rd4;
          and.b32 %r7, %r1, 5; setp.eq.u32 %p1, %r7, 4;
          )" + only + "\nld.global." + t + " " +
                                            type.reg + ", [%rd8];\nst.global." + store + " [%rd10], " + type.reg +
                                            ";\nld.shared." + t + " " + type.reg + ", [%r6];\nst.global." + store +
                                            " [%rd10+256], " + type.reg + ";\nEND:",
                                        ".shared .align 8 .b8 tile[1024];");
      ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
      const bool some = only[0] == '@';
      for (const Shape& shape : kShapes) {
        std::vector<uint32_t> index(32);
        for (uint32_t l = 0; l < 32; ++l) index[l] = shape.index(l);
        const GpuVa out = m.Alloc(512);
        const Outcome ran =
            m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(m.Upload(data)).Add(m.Upload(index)).Add(out));
        ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
        const auto got = m.Download<uint64_t>(out, 64);
        for (uint32_t l = 0; l < 64; ++l) {
          uint64_t expected = 0;
          if (!(some && (l & 5) == 4))
            std::memcpy(&expected, reinterpret_cast<const char*>(data.data()) + index[l % 32] * type.bytes, type.bytes);
          ASSERT_EQ(got[l], expected) << shape.name << " " << t << (some ? " some" : " all") << " lane " << l;
        }
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, SoftRows, testing::ValuesIn(AvailableIsas()),
                         [](const auto& p) { return std::string(NameOf(p.param)); });

constexpr const char* kHead = ".version 7.8\n.target sm_75\n.address_size 64\n";

TEST(SoftPartial, AKernelThatCannotRunFailsAtItsLaunchOnly) {
  SoftMachine m;
  const Outcome loaded = m.Load(std::string(kHead) + R"(.visible .entry good() { ret; }
.visible .entry bad() { .reg .b32 %r<3>; mov.u32 %r1, 0;
frobnicate.u32 %r1, %r1;
ret; })");
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  EXPECT_EQ(m.Run("good", {{1, 1, 1}, {32, 1, 1}, 0}, {}).status, CuStatus::kSuccess);
  const FunctionInfo* bad = m.module->Function("bad");
  ASSERT_NE(bad, nullptr);
  const auto grid = m.gpu.Launch(*bad, {{1, 1, 1}, {32, 1, 1}, 0}, {}, 0);
  ASSERT_FALSE(grid);
  EXPECT_EQ(grid.error().status, CuStatus::kIllegalInstruction);
  EXPECT_THAT(grid.error().text, HasSubstr("PTX line 6"));
  EXPECT_THAT(grid.error().text, HasSubstr("frobnicate.u32"));
}

TEST(SoftPartial, AFunctionThatCannotRunFailsTheKernelThatCallsIt) {
  SoftMachine m;
  const Outcome loaded = m.Load(std::string(kHead) + R"(.func f() { .reg .b32 %r<3>; frobnicate.u32 %r1, %r2; ret; }
.visible .entry good() { ret; }
.visible .entry bad() { call f; ret; })");
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const auto grid = m.gpu.Launch(*m.module->Function("bad"), {{1, 1, 1}, {32, 1, 1}, 0}, {}, 0);
  ASSERT_FALSE(grid);
  EXPECT_THAT(grid.error().text, HasSubstr("frobnicate.u32"));
}

TEST(SoftPartial, AModuleWithoutAKernelThatCanRunIsRefused) {
  SoftMachine m;
  const Outcome loaded =
      m.Load(std::string(kHead) + ".visible .entry bad() { .reg .b32 %r<3>; frobnicate.u32 %r1, %r2; ret; }");
  EXPECT_EQ(loaded.status, CuStatus::kInvalidPtx);
  EXPECT_THAT(loaded.text, HasSubstr("frobnicate.u32"));
}

TEST(SoftRareRules, PartsOfRegistersAreForVideoInstructions) {
  for (const std::string line :
       {"add.s32 %r1, %r2.b1, %r3;", "mov.b32 %r1.h0, %r2;", "vadd.s32.s32.s32 %r1, %r2.b4, %r3;",
        "vadd2.s32.s32.s32 %r1, %r2.h14, %r3, %r4;", "vadd.s32.s32.s32 %r1, %r2, %r3, %r4;",
        "vadd4.s32.s32.s32 %r1, %r2, %r3.b3210;", "vadd.s32.s32 %r1, %r2, %r3;"}) {
    SoftMachine m;
    const Outcome loaded = m.LoadBody("", line);
    EXPECT_EQ(loaded.status, CuStatus::kInvalidPtx) << line;
    EXPECT_NE(loaded.text.find(line.substr(0, line.size() - 1)), std::string::npos) << loaded.text;
  }
}

}  // namespace
}  // namespace vgpud::soft
