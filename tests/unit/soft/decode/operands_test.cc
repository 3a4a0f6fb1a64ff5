// SPDX-License-Identifier: Apache-2.0
// Operands of every kind, and instructions under guards.
#include <fmt/format.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

// 32 lanes run `body`; each stores %rd10 at its place (out + 8 * tid).
class SoftOperands : public testing::Test {
 protected:
  std::vector<uint64_t> Run(const std::string& body, const std::string& globals = "") {
    const Outcome loaded = m.LoadBody(".param .u64 out, .param .u32 word",
                                      "mov.u32 %r30, %tid.x; ld.param.u64 %rd30, [out]; mul.wide.u32 %rd31, %r30, 8;\n"
                                      "add.u64 %rd31, %rd30, %rd31; mov.u64 %rd10, 0;\n" +
                                          body + "\nst.global.u64 [%rd31], %rd10;",
                                      globals);
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text << "\n" << body;
    if (loaded.status != CuStatus::kSuccess) return std::vector<uint64_t>(32);
    EXPECT_TRUE(m.gpu.Fill(out, 0, 1, kBytes));
    const Outcome ran = m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(out).Add(0x89abcdefu));
    EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text << "\n" << body;
    return m.Download<uint64_t>(out, kBytes / 8);
  }
  static constexpr uint64_t kBytes = 1024;
  SoftMachine m;
  const GpuVa out = m.Alloc(kBytes);
};

TEST_F(SoftOperands, ConstantsAndWidths) {
  struct Case {
    const char* body;  // leaves the result in %rd10
    uint64_t value;
  };
  for (const Case& c : {
           Case{"mov.f32 %f1, 0.1; mov.b32 %r1, %f1; cvt.u64.u32 %rd10, %r1;", 0x3dcccccd},
           {"mov.f32 %f1, 0f3DCCCCCD; mov.b32 %r1, %f1; cvt.u64.u32 %rd10, %r1;", 0x3dcccccd},
           {"mov.f32 %f1, 0d3FB999999999999A; mov.b32 %r1, %f1; cvt.u64.u32 %rd10, %r1;", 0x3dcccccd},
           {"mov.f64 %fd1, 0.1; mov.b64 %rd10, %fd1;", 0x3fb999999999999a},
           {"mov.f64 %fd1, 0f3DCCCCCD; mov.b64 %rd10, %fd1;", 0x3fb99999a0000000},
           {"mov.f64 %fd1, 0d3FB999999999999A; mov.b64 %rd10, %fd1;", 0x3fb999999999999a},
           {"mov.b32 %r1, 0f3F800000; cvt.u64.u32 %rd10, %r1;", 0x3f800000},
           {"mov.u64 %rd10, -1;", UINT64_MAX},
           {"mov.u32 %r1, -1; cvt.u64.u32 %rd10, %r1;", 0xffffffff},
           {"mov.u32 %r1, 0x1ffffffff; cvt.u64.u32 %rd10, %r1;", 0xffffffff},
           {"mov.u64 %rd10, 0x123456789abcdef0;", 0x123456789abcdef0},
           // A register of another width: sources are cut or filled with zeros, results as their type says.
           {"mov.u64 %rd1, 0x500000007; add.u32 %r1, %rd1, 1; cvt.u64.u32 %rd10, %r1;", 8},
           {"mov.u32 %r1, -2; add.u64 %rd10, %r1, 1;", 0xffffffff},
           {"mov.u32 %r1, -2; add.s32 %rd10, %r1, 1;", UINT64_MAX},
           {"mov.u32 %r1, -2; add.u32 %rd10, %r1, 1;", 0xffffffff},
           {"mov.u64 %rd1, 0x700000009; add.u64 %r1, %rd1, 1; cvt.u64.u32 %rd10, %r1;", 10},
           {"mov.u32 %r1, 5; mov.u64 %rd10, %r1;", 5},
           {"mov.u64 %rd10, %ntid.x;", 32},
           {"mov.u64 %rd10, WARP_SZ;", 32},
           {"mov.u32 %r1, %nsmid; cvt.u64.u32 %rd10, %r1;", 8},
           {"ld.param.u32 %rd10, [word];", 0x89abcdef},
           {"ld.param.s32 %rd10, [word];", 0xffffffff89abcdef},
           {"ld.param.u16 %rd10, [word+2];", 0x89ab},
           {"ld.param.s16 %rd10, [word+2];", 0xffffffffffff89ab},
           {"ld.param.s8 %r1, [word+1]; cvt.u64.u32 %rd10, %r1;", 0xffffffcd},
           {"ld.param.u8 %r1, [word+1]; cvt.u64.u32 %rd10, %r1;", 0xcd},
           {"mov.b64 %rd1, word; ld.param.u32 %rd10, [%rd1];", 0x89abcdef},
           // Predicates: immediates, negation, sinks.
           {"setp.lt.and.s32 %p1, 1, 2, 1; selp.u64 %rd10, 3, 4, %p1;", 3},
           {"setp.lt.and.s32 %p1, 1, 2, 0; selp.u64 %rd10, 3, 4, %p1;", 4},
           {"setp.lt.or.s32 %p1, 2, 1, 7; selp.u64 %rd10, 3, 4, %p1;", 3},
           {"setp.lt.s32 %p1|%p2, 1, 2; selp.u64 %rd10, 3, 4, %p2;", 4},
           {"setp.lt.s32 %p1|_, 1, 2; selp.u64 %rd10, 3, 4, !%p1;", 4},
           {"setp.lt.s32 %p2, 1, 2; setp.lt.xor.s32 %p1, 1, 2, !%p2; selp.u64 %rd10, 3, 4, %p1;", 3},
           {"mov.u32 %r1, 0x11112222; mov.b32 {%rs1, _}, %r1; mov.b32 {_, %rs2}, %r1; mov.b64 %rd10, {%rs1, %rs2, 5, "
            "%rs1};",
            0x2222000511112222},
           {"mov.b64 %rd1, 0x1111222233334444; mov.b64 {%r1, %r2}, %rd1; mov.b64 %rd10, {%r2, %r1};",
            0x3333444411112222},
           // Carries go from one instruction to the next.
           {"add.cc.u32 %r1, -1, 1; addc.cc.u32 %r2, -1, 0; addc.u32 %r3, 5, 6; mov.b64 %rd10, {%r3, %r2};", 12},
           {"sub.cc.u32 %r1, 0, 1; subc.u32 %r2, 9, 3; cvt.u64.u32 %rd10, %r2;", 5},
           {"mad.lo.cc.u32 %r1, 3, 5, -15; madc.hi.u32 %r2, 3, 5, 7; cvt.u64.u32 %rd10, %r2;", 8},
       }) {
    const auto got = Run(c.body);
    for (uint32_t lane = 0; lane < 32; ++lane) ASSERT_EQ(got[lane], c.value) << c.body << " lane " << lane;
  }
}

TEST_F(SoftOperands, AddressesOfVariables) {
  const std::string globals =
      ".global .align 8 .b32 g[4] = {1, 2, 3, 4}; .const .align 8 .b32 c[4] = {5, 6, 7, 8}; .shared .align 8 .b32 "
      "s[4];\n";
  for (const auto& [body, value] : {
           std::pair{"ld.global.u32 %rd10, [g+8];", 3u},
           {"mov.u64 %rd1, g; ld.global.u32 %rd10, [%rd1+12];", 4u},
           {"mov.u64 %rd1, g+4; ld.u32 %rd10, [%rd1+-4];", 1u},
           {"ld.const.u32 %rd10, [c+4];", 6u},
           {"cvta.const.u64 %rd1, c; ld.u32 %rd10, [%rd1+12];", 8u},
           {"mov.u64 %rd1, g; isspacep.global %p1, %rd1; selp.u64 %rd10, 3, 4, %p1;", 3u},
           {"mov.u64 %rd1, c; isspacep.const %p1, %rd1; selp.u64 %rd10, 3, 4, %p1;", 3u},
           {"cvta.shared.u64 %rd1, s; isspacep.shared %p1, %rd1; selp.u64 %rd10, 3, 4, %p1;", 3u},
           {"cvta.shared.u64 %rd1, s; isspacep.global %p1, %rd1; selp.u64 %rd10, 3, 4, %p1;", 4u},
           {"cvta.local.u64 %rd1, 16777215; isspacep.local %p1, %rd1; selp.u64 %rd10, 3, 4, %p1;", 3u},
           {"cvta.local.u64 %rd1, 16777216; isspacep.local %p1, %rd1; selp.u64 %rd10, 3, 4, %p1;", 4u},
           {"cvta.local.u64 %rd1, -1; isspacep.local %p1, %rd1; selp.u64 %rd10, 3, 4, %p1;", 4u},
           {"cvta.param.u64 %rd1, 0; isspacep.param %p1, %rd1; selp.u64 %rd10, 3, 4, %p1;", 3u},
           {"cvta.shared.u64 %rd1, 40; cvta.to.shared.u64 %rd10, %rd1;", 40u},
           {"cvta.local.u64 %rd1, 41; cvta.to.local.u64 %rd10, %rd1;", 41u},
           {"mov.u64 %rd1, 42; cvta.to.global.u64 %rd10, %rd1;", 42u},
       }) {
    const auto got = Run(body, globals);
    for (uint32_t lane = 0; lane < 32; ++lane) ASSERT_EQ(got[lane], value) << body;
  }
}

TEST_F(SoftOperands, SpecialRegistersOfBlocksInThreeDimensions) {
  const char* const names[] = {"%tid.x",  "%tid.y",   "%tid.z",  "%ctaid.x",          "%ctaid.y",  "%ctaid.z",
                               "%ntid.x", "%ntid.y",  "%ntid.z", "%nctaid.x",         "%nctaid.y", "%nctaid.z",
                               "%warpid", "%nwarpid", "%laneid", "%dynamic_smem_size"};
  std::string body =
      "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mad.lo.u32 %r4, %r3, "
      "3, "
      "%r2; mad.lo.u32 %r4, %r4, 7, %r1;\nmov.u32 %r5, %ctaid.x; mov.u32 %r6, %ctaid.y; mov.u32 %r7, %ctaid.z; "
      "mad.lo.u32 "
      "%r8, %r7, 3, %r6; mad.lo.u32 %r8, %r8, 2, %r5; mad.lo.u32 %r4, %r8, 42, %r4; mul.wide.u32 %rd2, %r4, 64; "
      "add.u64 %rd1, %rd1, %rd2;\n";
  for (size_t n = 0; n < std::size(names); ++n)
    body += fmt::format("mov.u32 %r9, {}; st.global.u32 [%rd1+{}], %r9;\n", names[n], 4 * n);
  ASSERT_EQ(m.LoadBody(".param .u64 out", body).status, CuStatus::kSuccess);
  constexpr uint32_t kThreads = 7 * 3 * 2, kBlocks = 2 * 3 * 2;
  const GpuVa large = m.Alloc(kThreads * kBlocks * 64);
  ASSERT_EQ(m.Run("k", {{2, 3, 2}, {7, 3, 2}, 96}, Params().Add(large)).status, CuStatus::kSuccess);
  const auto got = m.Download<uint32_t>(large, kThreads * kBlocks * 16);
  for (uint32_t block = 0; block < kBlocks; ++block) {
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
      const std::vector<uint32_t> expected = {
          thread % 7, thread / 7 % 3, thread / 21, block % 2, block / 2 % 3, block / 6, 7, 3, 2, 2, 3, 2, thread / 32,
          2,          thread % 32,    96};
      const auto* at = &got[(block * kThreads + thread) * 16];
      ASSERT_EQ(std::vector<uint32_t>(at, at + 16), expected) << "block " << block << " thread " << thread;
    }
  }
}

struct Guarded {
  const char* text;
  bool collective = false;  // what a lane gets depends on which others take part
};
constexpr Guarded kGuarded[] = {
    {"add.u32 %r1, %r2, %r30;"},
    {"add.u64 %rd1, %r2, %r30;"},
    {"add.s32 %rd1, %r2, %r30;"},
    {"mov.b64 %rd1, {%r2, %r30};"},
    {"mov.b64 {%r1, %r2}, %rd31;"},
    {"add.rz.f32 %f1, %f2, 0f33800000;"},
    {"add.cc.u32 %r1, %r30, -1;"},
    {"setp.lt.u32 %p1|%p2, %r30, 9;"},
    {"setp.lt.and.u32 %p1, %r30, 9, !%p2;"},
    {"selp.u32 %r1, %r2, %r30, !%p2;"},
    {"ld.global.u32 %r1, [%rd30];"},
    {"ld.global.u32 %rd1, [%rd31+4];"},
    {"ld.global.u8 %r1, [%rd31];"},
    {"ld.global.v2.u32 {%r1, %r2}, [%rd31];"},
    {"ld.global.v4.u32 {%r1, %r2, %r5, %r6}, [%rd29];"},
    {"ld.global.v2.u64 {%rd1, %rd2}, [%rd29];"},
    {"ld.global.v4.u16 {%r1, %r2, %r5, %r6}, [%rd29];"},
    {"ld.v4.u32 {%r1, %r2, %r5, %r6}, [%rd29];"},
    {"ld.u64 %rd1, [%rd31];"},
    {"st.global.u32 [%rd31+256], %r30;"},
    {"st.global.u8 [%rd31+257], %r30;"},
    {"st.global.v2.u32 [%rd31+256], {%r30, %r2};"},
    {"st.global.v4.u16 [%rd31+256], {%r30, %r2, %r2, %r30};"},
    {"st.v2.u32 [%rd31+256], {%r30, %r2};"},
    {"ld.volatile.global.u32 %r1, [%rd30];"},
    {"atom.global.add.u32 %r1, [%rd31+256], 5;"},
    {"red.global.add.u32 [%rd31+256], 5;"},
    {"ld.param.u32 %r1, [word];"},
    {"mov.u32 %r1, %laneid;"},
    {"mov.u64 %rd1, %tid.x;"},
    {"cvta.shared.u64 %rd1, %rd31;"},
    {"isspacep.global %p1, %rd31;"},
    {"popc.b32 %r1, %r30;"},
    {"div.u32 %r1, %r2, %r30;"},
    {"vadd.u32.u32.u32 %r1.b1, %r2, %r30, %r30;"},
    {"shfl.sync.idx.b32 %r1|%p1, %r30, 5, 31, %r20;", true},
    {"vote.sync.ballot.b32 %r1, %p2, %r20;", true},
    {"vote.sync.all.pred %p1, %p2, %r20;", true},
    {"match.any.sync.b32 %r1, %r2, %r20;", true},
    {"activemask.b32 %r1;", true},
    {"redux.sync.add.u32 %r1, %r30, %r20;", true},
    {"elect.sync %r1|%p1, %r20;", true},
    {"bar.warp.sync %r20;"},
};

TEST_F(SoftOperands, ASingleRegisterMayStandInBraces) {
  const auto plain =
      Run("st.global.u32 [%rd30], %r30; ld.global.u32 %r3, [%rd30]; mov.b32 %r4, %r3;\n"
          "add.u32 %r4, %r4, 7; cvt.u64.u32 %rd10, %r4;");
  EXPECT_EQ(plain, Run("st.global.u32 [%rd30], {%r30}; ld.global.u32 {%r3}, [%rd30]; mov.b32 {%r4}, {%r3};\n"
                       "add.u32 %r4, %r4, 7; cvt.u64.u32 %rd10, %r4;"));
  EXPECT_NE(plain, Run("mov.u64 %rd10, 0;"));
}

// An instruction under a guard does what it does behind a branch: for the lanes that take part what it does for all,
// for the others nothing.
TEST_F(SoftOperands, AGuardIsABranchAround) {
  // %p5: lanes that take part, %r20 their mask.
  const std::string before =
      "mov.u32 %r1, 11; mov.u32 %r2, 0x12345; mov.u64 %rd1, 12; mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f3F800001;\n"
      "mov.u64 %rd2, 13; mov.u32 %r5, 14; mov.u32 %r6, 15; mul.wide.u32 %rd29, %r30, 16; add.u64 %rd29, %rd30, %rd29;\n"
      "setp.eq.u32 %p1, %r30, 3; and.b32 %r3, %r30, 5; setp.ne.u32 %p2, %r3, 4; setp.ne.u32 %p5, %r3, 0;\n"
      "vote.sync.ballot.b32 %r20, %p5, -1; not.pred %p6, %p5; add.cc.u32 %r4, 0, 0;\n";
  const std::string after =
      "\nmov.b32 %r4, %f1; mul.lo.u32 %r4, %r4, 31; add.u32 %r1, %r1, %r4; mad.lo.u32 %r1, %r2, 77, %r1;\n"
      "mad.lo.u32 %r1, %r5, 701, %r1; mad.lo.u32 %r1, %r6, 7001, %r1; @%p1 add.u32 %r1, %r1, 1000;\n"
      "@%p2 add.u32 %r1, %r1, 5000; addc.u32 %r7, 0, 0; mad.lo.u32 %r1, %r7, 90001, %r1; cvt.u64.u32 %rd10, %r1;\n"
      "mad.lo.u64 %rd10, %rd1, 123457, %rd10; mad.lo.u64 %rd10, %rd2, 7654321, %rd10;";
  const auto none = Run(before + after);
  for (const Guarded& g : kGuarded) {
    const auto branch = Run(before + "@!%p5 bra SKIP;\n" + g.text + "\nSKIP:" + after);
    EXPECT_EQ(Run(before + "@%p5 " + g.text + after), branch) << g.text;
    EXPECT_EQ(Run(before + "@!%p6 " + g.text + after), branch) << g.text;
    if (g.collective) continue;
    const auto all = Run(before + g.text + after);
    for (size_t n = 0; n < 64; ++n) ASSERT_EQ(branch[n], (n & 5) != 0 ? all[n] : none[n]) << g.text << " " << n;
  }
}

}  // namespace
}  // namespace vgpud::soft
