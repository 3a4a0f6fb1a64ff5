// SPDX-License-Identifier: Apache-2.0
// What a function is given and gives back: every type, through registers of either width, for all lanes and some.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

struct Case {
  const char* type;
  uint32_t bytes;
  bool is_signed;
};
constexpr Case kTypes[] = {{"b8", 1, false},  {"u8", 1, false},  {"s8", 1, true},   {"b16", 2, false},
                           {"u16", 2, false}, {"s16", 2, true},  {"b32", 4, false}, {"u32", 4, false},
                           {"s32", 4, true},  {"f32", 4, false}, {"b64", 8, false}, {"u64", 8, false},
                           {"s64", 8, true},  {"f64", 8, false}};

uint64_t Extended(uint64_t value, uint32_t bytes, bool is_signed) {
  const uint32_t unused = 64 - 8 * bytes;
  const uint64_t up = value << unused;
  return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(up) >> unused) : up >> unused;
}

class SoftParameters : public testing::Test {
 protected:
  // `body` for 32 lanes: %rd1 has a value of the lane, %rd2 what is stored.
  std::vector<uint64_t> Run(const std::string& functions, const std::string& body) {
    const Outcome loaded = m.LoadBody(".param .u64 in, .param .u64 out",
                                      "ld.param.u64 %rd10, [in]; ld.param.u64 %rd11, [out]; mov.u32 %r10, %tid.x;\n"
                                      "mul.wide.u32 %rd12, %r10, 8; add.u64 %rd10, %rd10, %rd12; add.u64 %rd11, %rd11, "
                                      "%rd12; ld.global.u64 %rd1, [%rd10]; cvt.u32.u64 %r1, %rd1;\n" +
                                          body + "\nst.global.u64 [%rd11], %rd2;\nEND:",
                                      functions);
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text << body;
    for (uint32_t lane = 0; lane < 32; ++lane) values[lane] = 0x9e3779b97f4a7c15 * (lane + 1);
    const GpuVa out = m.Alloc(256);
    const Outcome ran = m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(m.Upload(values)).Add(out));
    EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    return m.Download<uint64_t>(out, 32);
  }
  SoftMachine m;
  std::vector<uint64_t> values = std::vector<uint64_t>(32);
};

TEST_F(SoftParameters, EveryTypeGoesInAndComesBack) {
  for (const Case& t : kTypes) {
    for (const bool wide : {false, true}) {
      if (!wide && t.bytes == 8) continue;
      for (const bool some : {false, true}) {
        const char* const reg = wide ? "%rd" : "%r";
        const std::string function = fmt::format(
            ".func (.param .b8 pad, .param .{0} r) f(.param .b8 first, .param .{0} x, .param .b8 last)\n{{\n"
            ".reg .b{1} {2}<4>; .reg .b16 %rs<4>; ld.param.{0} {2}1, [x]; ld.param.u8 %rs1, [first]; ld.param.u8 %rs2, "
            "[last];\nst.param.{0} [r], {2}1; add.u16 %rs1, %rs1, %rs2; st.param.u8 [pad], %rs1; ret;\n}}\n",
            t.type, wide ? 64 : 32, reg);
        const std::string body = fmt::format(
            "{3} {{ .param .b8 a, c, p; .param .{0} b, r; st.param.b8 [a], 3; st.param.{0} [b], {1}1; st.param.b8 [c], "
            "4;\n"
            "call (p, r), f, (a, b, c); ld.param.{0} {1}2, [r]; ld.param.u8 %rs1, [p]; }}\n{2}\n"
            "setp.ne.u16 %p2, %rs1, 7; @%p2 trap;",
            t.type, reg,
            wide          ? ""
            : t.is_signed ? "cvt.s64.s32 %rd2, %r2;"
                          : "cvt.u64.u32 %rd2, %r2;",
            some ? "and.b32 %r9, %r10, 3; setp.eq.u32 %p1, %r9, 1; @%p1 bra END;" : "");
        const auto got = Run(function, body);
        for (uint32_t lane = 0; lane < 32; ++lane) {
          const uint64_t expected = some && lane % 4 == 1 ? 0 : Extended(values[lane], t.bytes, t.is_signed);
          ASSERT_EQ(got[lane], expected) << t.type << (wide ? " wide" : "") << (some ? " some" : "") << " lane "
                                         << lane;
        }
      }
    }
  }
}

TEST_F(SoftParameters, VectorsAndOffsets) {
  const auto got = Run(
      ".func (.param .align 16 .b8 r[16]) f(.param .align 16 .b8 x[16])\n{\n.reg .b32 %r<5>;\n"
      "ld.param.v4.b32 {%r1, %r2, %r3, %r4}, [x]; st.param.v2.b32 [r], {%r4, %r3}; st.param.v2.b32 [r+8], {%r2, %r1};\n"
      "ret;\n}\n",
      "{ .param .align 16 .b8 a[16]; .param .align 16 .b8 b[16]; st.param.v2.b64 [a], {%rd1, 5}; call (b), f, (a);\n"
      "ld.param.v4.b32 {_, %r3, %r4, %r5}, [b]; mov.b64 %rd2, {%r5, %r4}; cvt.u64.u32 %rd3, %r3; "
      "add.u64 %rd2, %rd2, %rd3; }");
  for (uint32_t lane = 0; lane < 32; ++lane) ASSERT_EQ(got[lane], values[lane] + 5) << lane;
}

TEST_F(SoftParameters, LanesReachTheirParametersUnderGuardsToo) {
  const auto got =
      Run(".func (.param .b32 r) f(.param .b32 x, .param .b32 y)\n{\n.reg .b32 %r<3>; .reg .pred %p<2>;\n"
          "ld.param.b32 %r2, [y]; setp.lt.u32 %p1, %r2, 20; mov.u32 %r1, 5; @%p1 ld.param.b32 %r1, [x];\n"
          "st.param.b32 [r], 6; @!%p1 st.param.b32 [r], %r2; @%p1 st.param.b32 [r], %r1; ret;\n}\n",
          "setp.lt.u32 %p1, %r10, 30; mov.u32 %r2, 7; add.u32 %r3, %r10, 100;\n"
          "{ .param .b32 a, b, c; st.param.b32 [a], %r3; @%p1 st.param.b32 [b], %r10; @!%p1 st.param.b32 [b], 77;\n"
          "call (c), f, (a, b); @%p1 ld.param.b32 %r2, [c]; } cvt.u64.u32 %rd2, %r2;");
  for (uint32_t lane = 0; lane < 32; ++lane)
    ASSERT_EQ(got[lane], lane < 20 ? lane + 100 : lane < 30 ? lane : 7) << lane;
}

// Lanes that call different functions through pointers, and one that calls what is no function.
TEST_F(SoftParameters, PointersAreThoseOfFunctions) {
  const std::string functions =
      ".func (.param .b32 r) f() { st.param.b32 [r], 10; ret; }\n.func (.param .b32 r) g() { st.param.b32 [r], 20; "
      "ret; "
      "}\n";
  const auto got = Run(functions,
                       "P: .callprototype (.param .b32 _) _ ();\nmov.u64 %rd5, f; mov.u64 %rd6, g; "
                       "and.b32 %r9, %r10, 1; setp.eq.u32 %p1, %r9, 0; selp.b64 %rd7, %rd5, %rd6, %p1;\n"
                       "{ .param .b32 r; call (r), %rd7, (), P; ld.param.b32 %r2, [r]; } cvt.u64.u32 %rd2, %r2;");
  for (uint32_t lane = 0; lane < 32; ++lane) ASSERT_EQ(got[lane], lane % 2 == 0 ? 10u : 20u);
  struct Bad {
    const char* change;
    const char* text;
  };
  // f is function 0, g is 1, the kernel 2.
  for (const Bad& bad : {Bad{"add.u64 %rd5, %rd5, 2;", "call of 0xf0000000000002, which is no function"},
                         {"add.u64 %rd5, %rd5, 3;", "call of 0xf0000000000003"},
                         {"mov.u64 %rd5, 1;", "call of 0x1,"},
                         {"add.u64 %rd5, %rd5, 0x100000000;", "call of 0xf0000100000000"}}) {
    SoftMachine other;
    ASSERT_EQ(
        other
            .LoadBody("",
                      std::string("mov.u32 %r1, %tid.x; mov.u64 %rd5, f; setp.lt.u32 %p1, %r1, 9; @%p1 bra END;\n") +
                          bad.change + "call %rd5, ();\nEND:",
                      functions)
            .status,
        CuStatus::kSuccess);
    const Outcome ran = other.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params());
    EXPECT_EQ(ran.status, CuStatus::kInvalidPc) << bad.change;
    EXPECT_THAT(ran.text, HasSubstr(bad.text));
    EXPECT_THAT(ran.text, HasSubstr("thread (9,0,0)"));
  }
}

// Each call has local memory of its own, behind that of its caller.
TEST_F(SoftParameters, LocalVariablesOfCallersAndCalleesAreApart) {
  const auto got =
      Run(".func (.param .b64 r) f(.param .b32 x)\n{\n.local .b8 pad[5]; .local .align 8 .b8 mine[16]; .reg .b64 "
          "%rd<6>; .reg .b32 "
          "%r<5>; .reg .pred %p<2>;\n"
          "ld.param.b32 %r1, [x]; mov.b64 %rd1, mine; mov.b32 %r2, mine; st.local.u32 [%r2+4], %r1; st.local.u32 "
          "[mine], 0;\n"
          "setp.eq.u32 %p1, %r1, 0; @%p1 bra LAST; sub.u32 %r3, %r1, 1;\n"
          "{ .param .b32 a; .param .b64 b; st.param.b32 [a], %r3; call (b), f, (a); ld.param.b64 %rd3, [b]; }\n"
          "ld.local.u32 %r4, [%rd1+4]; cvt.u64.u32 %rd4, %r4; add.u64 %rd3, %rd3, %rd4; st.param.b64 [r], %rd3; ret;\n"
          "LAST: st.param.b64 [r], 0; ret;\n}\n",
          ".local .align 8 .b8 own[8]; st.local.u64 [own], %rd1;\n"
          "{ .param .b32 a; .param .b64 b; st.param.b32 [a], %r10; call (b), f, (a); ld.param.b64 %rd2, [b]; }\n"
          "ld.local.u64 %rd3, [own]; setp.ne.u64 %p1, %rd3, %rd1; @%p1 trap;");
  for (uint32_t lane = 0; lane < 32; ++lane) ASSERT_EQ(got[lane], lane * (lane + 1) / 2) << lane;
}

}  // namespace
}  // namespace vgpud::soft
