// SPDX-License-Identifier: Apache-2.0
// Lanes of one warp that are inside of different device functions at the same time.
#include <fmt/format.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

constexpr uint32_t kThreads = 32;
constexpr uint32_t kTurns = 5;  // of each lane

// The lanes take turns, lane after lane, round after round: all of them are inside of their function until the last
// round. `[%rd30]` counts the turns; %r30 is the lane, %r31 the round.
constexpr const char* kTakeTurn = R"(
    mad.lo.u32 %r29, %r31, 32, %r30;
  WAIT{0}:
    ld.volatile.global.u32 %r28, [%rd30];
    setp.ne.u32 %p9, %r28, %r29;
    @%p9 bra WAIT{0};
)";
constexpr const char* kTurnOver = R"(
    add.u32 %r28, %r28, 1;
    st.volatile.global.u32 [%rd30], %r28;
    add.u32 %r31, %r31, 1;
)";
constexpr const char* kRegisters =
    ".reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .pred %p<10>; .reg .b16 %rs<8>;\n"
    "ld.param.u64 %rd30, [turns]; ld.param.u32 %r30, [lane];\n";

std::string Function(const std::string& name, const std::string& begin, const std::string& step,
                     const std::string& end) {
  return fmt::format(".func (.param .b64 res) {}(.param .b64 turns, .param .b32 lane)\n{{\n", name) + kRegisters +
         begin + "mov.u32 %r31, 0;\nAGAIN:\n" + fmt::format(fmt::runtime(kTakeTurn), name) + step + kTurnOver +
         fmt::format("setp.lt.u32 %p8, %r31, {}; @%p8 bra AGAIN;\n", kTurns) + end +
         "st.param.b64 [res], %rd1;\nret;\n}\n";
}

// Three functions whose registers lie in different places: many narrow ones, wide ones, narrow ones and a predicate.
std::string ThreeFunctions() {
  std::string narrow_begin, narrow_step, narrow_end = "mov.u64 %rd1, 0;\n";
  for (uint32_t n = 0; n < 12; ++n) {
    narrow_begin += fmt::format("add.u32 %r{}, %r30, {};\n", n, n);
    narrow_step += fmt::format("mad.lo.u32 %r{}, %r{}, 31, %r31;\n", n, n);
    narrow_end += fmt::format("cvt.u64.u32 %rd2, %r{}; add.u64 %rd1, %rd1, %rd2;\n", n);
  }
  std::string wide_begin, wide_step, wide_end = "mov.u64 %rd1, 0;\n";
  for (uint32_t n = 2; n < 9; ++n) {
    wide_begin += fmt::format("cvt.u64.u32 %rd{}, %r30; add.u64 %rd{}, %rd{}, {};\n", n, n, n, n);
    wide_step += fmt::format("cvt.u64.u32 %rd20, %r31; mad.lo.u64 %rd{}, %rd{}, 0x100000033, %rd20;\n", n, n);
    wide_end += fmt::format("add.u64 %rd1, %rd1, %rd{};\n", n);
  }
  return Function("narrow", narrow_begin, narrow_step, narrow_end) + Function("wide", wide_begin, wide_step, wide_end) +
         Function(
             "mixed", "and.b32 %r1, %r30, 1; setp.ne.u32 %p1, %r1, 0; cvt.u64.u32 %rd1, %r30;\n",
             "@%p1 add.u64 %rd1, %rd1, 0x700000001; @!%p1 mul.lo.u64 %rd1, %rd1, 0x300000005; not.pred %p1, %p1;\n",
             "");
}

uint64_t Expected(uint32_t lane) {
  uint64_t sum = 0;
  switch (lane % 3) {
    case 0:
      for (uint32_t n = 0; n < 12; ++n) {
        uint32_t v = lane + n;
        for (uint32_t round = 0; round < kTurns; ++round) v = v * 31 + round;
        sum += v;
      }
      return sum;
    case 1:
      for (uint32_t n = 2; n < 9; ++n) {
        uint64_t v = lane + n;
        for (uint32_t round = 0; round < kTurns; ++round) v = v * 0x100000033 + round;
        sum += v;
      }
      return sum;
    default:
      sum = lane;
      for (uint32_t round = 0; round < kTurns; ++round)
        sum = ((lane + round) & 1) != 0 ? sum + 0x700000001 : sum * 0x300000005;
      return sum;
  }
}

class SoftCalls : public testing::TestWithParam<Isa> {
 protected:
  SoftCalls() : m(GetParam()) {}
  // `body`: what each lane does; `out` (%rd29): a result of 64 bits per lane, then the count of turns (%rd30).
  std::vector<uint64_t> Run(const std::string& body, const std::string& functions) {
    const Outcome loaded = m.LoadBody(".param .u64 out",
                                      R"(
      ld.param.u64 %rd29, [out]; mov.u32 %r30, %tid.x;
      add.u64 %rd30, %rd29, 256; mul.wide.u32 %rd28, %r30, 8; add.u64 %rd28, %rd29, %rd28;)" +
                                          body + "st.global.u64 [%rd28], %rd1;",
                                      functions);
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    if (loaded.status != CuStatus::kSuccess) return std::vector<uint64_t>(kThreads);
    const GpuVa out = m.Alloc(264);
    const Outcome ran = m.Run("k", {{1, 1, 1}, {kThreads, 1, 1}, 0}, Params().Add(out), 997, 20'000'000);
    EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    return m.Download<uint64_t>(out, kThreads);
  }
  SoftMachine m;
};

constexpr const char* kCall = R"(
    { .param .b64 a; .param .b32 b; .param .b64 r; st.param.b64 [a], %rd30; st.param.b32 [b], %r30;
      call (r), {0}, (a, b){1}; ld.param.b64 %rd1, [r]; }
)";

TEST_P(SoftCalls, LanesInDifferentFunctionsKeepTheirRegisters) {
  const auto call = [](const char* name) {
    std::string text = kCall;
    text.replace(text.find("{0}"), 3, name);
    return text.replace(text.find("{1}"), 3, "");
  };
  const auto r =
      Run("rem.u32 %r1, %r30, 3; setp.eq.u32 %p1, %r1, 0; @%p1 bra N; setp.eq.u32 %p1, %r1, 1; @%p1 bra W;\n" +
              call("mixed") + "bra DONE;\nN:" + call("narrow") + "bra DONE;\nW:" + call("wide") + "DONE:\n",
          ThreeFunctions());
  for (uint32_t lane = 0; lane < kThreads; ++lane) ASSERT_EQ(r[lane], Expected(lane)) << "lane " << lane;
}

TEST_P(SoftCalls, SoDoThoseThatCallThroughAPointer) {
  std::string call = kCall;
  call.replace(call.find("{0}"), 3, "%rd3");
  call.replace(call.find("{1}"), 3, ", PROTO");
  const auto r =
      Run("PROTO: .callprototype (.param .b64 _) _ (.param .b64 _, .param .b32 _);\n"
          "rem.u32 %r1, %r30, 3; mul.wide.u32 %rd2, %r1, 8; mov.u64 %rd3, table; add.u64 %rd3, %rd3, %rd2;\n"
          "ld.global.u64 %rd3, [%rd3];\n" +
              call,
          ThreeFunctions() + ".global .align 8 .u64 table[3] = {narrow, wide, mixed};\n");
  for (uint32_t lane = 0; lane < kThreads; ++lane) ASSERT_EQ(r[lane], Expected(lane)) << "lane " << lane;
}

// Two functions that call each other, to a depth of their own for each lane, and take turns on the bottom.
TEST_P(SoftCalls, LanesAtDifferentDepthsOfARecursionKeepTheirRegisters) {
  const auto down = [](const char* name, const char* other, const char* keep, const char* add) {
    return fmt::format(".func (.param .b64 res) {}(.param .b64 turns, .param .b32 lane, .param .b32 left)\n{{\n",
                       name) +
           kRegisters + "ld.param.u32 %r20, [left];\n" + keep +
           "setp.ne.u32 %p1, %r20, 0; @%p1 bra DEEPER;\nmov.u32 %r31, 0;\nAGAIN:\n" +
           fmt::format(fmt::runtime(kTakeTurn), name) + kTurnOver +
           fmt::format("setp.lt.u32 %p8, %r31, {}; @%p8 bra AGAIN;\nmov.u64 %rd1, 0;\nbra BACK;\nDEEPER:\n", kTurns) +
           fmt::format(
               "sub.u32 %r21, %r20, 1;\n{{ .param .b64 a; .param .b32 b; .param .b32 c; .param .b64 r;\n"
               "st.param.b64 [a], %rd30; st.param.b32 [b], %r30; st.param.b32 [c], %r21;\n"
               "call (r), {}, (a, b, c); ld.param.b64 %rd1, [r]; }}\nBACK:\n",
               other) +
           add + "st.param.b64 [res], %rd1;\nret;\n}\n";
  };
  const auto r = Run(
      "rem.u32 %r1, %r30, 7; setp.ge.u32 %p1, %r30, 16; @%p1 bra B;\n"
      "{ .param .b64 a; .param .b32 b; .param .b32 c; .param .b64 r; st.param.b64 [a], %rd30;\n"
      "st.param.b32 [b], %r30; st.param.b32 [c], %r1; call (r), ping, (a, b, c); ld.param.b64 %rd1, [r]; }\n"
      "bra DONE;\nB:\n"
      "{ .param .b64 a; .param .b32 b; .param .b32 c; .param .b64 r; st.param.b64 [a], %rd30;\n"
      "st.param.b32 [b], %r30; st.param.b32 [c], %r1; call (r), pong, (a, b, c); ld.param.b64 %rd1, [r]; }\nDONE:\n",
      ".func (.param .b64 res) pong(.param .b64 turns, .param .b32 lane, .param .b32 left);\n" +
          down("ping", "pong", "mad.lo.u32 %r1, %r20, 1000, %r30;\n",
               "mul.lo.u64 %rd1, %rd1, 3; cvt.u64.u32 %rd2, %r1; add.u64 %rd1, %rd1, %rd2;\n") +
          down("pong", "ping",
               "mul.wide.u32 %rd3, %r20, 77; add.u64 %rd4, %rd3, 5; mul.wide.u32 %rd5, %r30, 9; mov.u64 %rd6, 1;\n",
               "mul.lo.u64 %rd1, %rd1, 7; add.u64 %rd1, %rd1, %rd3; add.u64 %rd1, %rd1, %rd4;\n"
               "add.u64 %rd1, %rd1, %rd5; sub.u64 %rd1, %rd1, %rd6;\n"));
  for (uint32_t lane = 0; lane < kThreads; ++lane) {
    const uint32_t depth = lane % 7;
    uint64_t v = 0;
    for (uint32_t left = 0; left <= depth; ++left) {
      const bool ping = (lane < 16) == ((depth - left) % 2 == 0);
      v = ping ? v * 3 + left * 1000 + lane : v * 7 + left * 77 + (left * 77 + 5) + lane * 9 - 1;
    }
    ASSERT_EQ(r[lane], v) << "lane " << lane;
  }
}

// Functions that need little stack one by one, but too much side by side.
TEST(SoftCallStack, MoreThanAWarpMayHaveIsToldAtTheLaunch) {
  std::string functions, calls;
  for (uint32_t n = 0; n < 70; ++n) {
    functions += fmt::format(".func f{}()\n{{\n.param .align 4 .b8 room[30000];\nret;\n}}\n", n);
    calls += fmt::format("call f{}, ();\n", n);
  }
  SoftMachine m;
  const Outcome loaded = m.LoadBody("", calls, functions);
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const Outcome ran = m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params());
  EXPECT_EQ(ran.status, CuStatus::kLaunchOutOfResources);
  EXPECT_NE(ran.text.find("kernel k: it and the functions that it can call need more than 67108864 bytes"),
            std::string::npos)
      << ran.text;
}

INSTANTIATE_TEST_SUITE_P(, SoftCalls, testing::ValuesIn(AvailableIsas()),
                         [](const auto& p) { return std::string(NameOf(p.param)); });

}  // namespace
}  // namespace vgpud::soft
