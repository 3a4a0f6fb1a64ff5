// SPDX-License-Identifier: Apache-2.0
// Where a kernel's variables and parameters lie, and what is said of it.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

constexpr const char* kHead = ".version 7.8\n.target sm_75\n.address_size 64\n";

const CodeFunction& Code(SoftMachine& m, const std::string& name) {
  const Program& program = *static_cast<SoftModule&>(*m.module).program();
  return *program.functions[*program.FindFunction(name)];
}

// The addresses that `values` have (a list of names), as the kernel sees them.
std::vector<uint32_t> Addresses(const std::string& globals, const std::vector<std::string>& values,
                                uint32_t dynamic = 0, const std::string& locals = "") {
  SoftMachine m;
  std::string body = locals + "ld.param.u64 %rd1, [out];\n";
  for (size_t n = 0; n < values.size(); ++n)
    body += fmt::format("mov.u32 %r1, {}; st.global.u32 [%rd1+{}], %r1;\n", values[n], 4 * n);
  const Outcome loaded = m.LoadBody(".param .u64 out", body, globals);
  EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const GpuVa out = m.Alloc(values.size() * 4);
  const Outcome ran = m.Run("k", {{1, 1, 1}, {1, 1, 1}, dynamic}, Params().Add(out));
  EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  return m.Download<uint32_t>(out, values.size());
}

TEST(SoftLayout, SharedVariablesLieInTheirOrderAligned) {
  const std::string globals =
      ".shared .b8 a[3]; .shared .b32 b; .shared .b8 unused[100]; .shared .align 16 .b8 c[5]; .shared .b64 d;\n";
  EXPECT_EQ(Addresses(globals, {"a", "b", "c", "d"}), (std::vector<uint32_t>{0, 4, 16, 24}));
  EXPECT_EQ(Addresses(globals, {"d", "a", "d+4"}), (std::vector<uint32_t>{8, 0, 12})) << "only what is used";
  // Those of the kernel itself behind them.
  EXPECT_EQ(Addresses(globals, {"a", "b", "own", "more"}, 0, ".shared .b8 own[2]; .shared .b64 more;\n"),
            (std::vector<uint32_t>{0, 4, 8, 16}));
  EXPECT_EQ(Addresses(".extern .shared .b8 dyn[];\n" + globals, {"a", "dyn", "dyn+8"}, 64)[2],
            Addresses(".extern .shared .b8 dyn[];\n" + globals, {"a", "dyn"}, 64)[1] + 8);
}

TEST(SoftLayout, WhatFunctionsUseLiesBeforeWhatKernelsUse) {
  const std::string globals =
      ".shared .b8 first[8]; .shared .b8 second[8]; .shared .b8 third[8];\n"
      ".func f() { .reg .b32 %r<2>; mov.u32 %r1, second; ld.shared.u32 %r1, [%r1]; ret; }\n";
  EXPECT_EQ(Addresses(globals, {"first", "second", "third"}), (std::vector<uint32_t>{8, 0, 16}));
  EXPECT_EQ(Addresses(globals, {"third"}), (std::vector<uint32_t>{8}));
}

TEST(SoftLayout, LocalVariablesAreAlignedToEight) {
  EXPECT_EQ(Addresses("", {"a", "b", "c", "d"}, 0,
                      ".local .b8 a[3]; .local .b8 b; .local .align 16 .b8 c[1]; .local .b32 d;\n"),
            (std::vector<uint32_t>{0, 8, 16, 24}));
}

TEST(SoftLayout, SharedBytesAreThoseOfAKernel) {
  SoftMachine m;
  ASSERT_EQ(m.Load(std::string(kHead) +
                   ".shared .b8 a[100]; .entry k() { .shared .align 8 .b8 own[3]; .reg .b32 r; mov.u32 r, a; ret; }\n"
                   ".entry none() { ret; }")
                .status,
            CuStatus::kSuccess);
  EXPECT_EQ(m.module->Function("k")->static_shared_bytes, 107u);
  EXPECT_EQ(m.module->Function("none")->static_shared_bytes, 0u);
}

TEST(SoftLayout, ThreadsAreThoseOfItsDirectives) {
  struct Case {
    const char* directive;
    uint32_t max_threads;
    uint32_t required[3];
  };
  for (const Case& c : {Case{"", 1024, {0, 0, 0}},
                        {".maxntid 128", 128, {0, 0, 0}},
                        {".maxntid 8, 4, 2", 64, {0, 0, 0}},
                        {".reqntid 16, 2", 32, {16, 2, 1}},
                        {".maxntid 1024", 1024, {0, 0, 0}},
                        {".maxntid 1025", 1024, {0, 0, 0}},
                        {".maxntid 1, 1, 1", 1, {0, 0, 0}},
                        {".maxntid 7, 0, 0", 7, {0, 0, 0}}}) {
    SoftMachine m;
    ASSERT_EQ(m.Load(fmt::format("{}.entry k() {} {{ ret; }}", kHead, c.directive)).status, CuStatus::kSuccess);
    EXPECT_EQ(m.module->Function("k")->max_threads, c.max_threads) << c.directive;
    for (int n = 0; n < 3; ++n) EXPECT_EQ(Code(m, "k").required_threads[n], c.required[n]) << c.directive;
    EXPECT_EQ(m.module->Function("k")->ptx_version, 75u);
  }
}

TEST(SoftLayout, ParametersAreSaidWithTheirPlaces) {
  SoftMachine m;
  ASSERT_EQ(
      m.Load(std::string(kHead) + ".entry k(.param .u8 a, .param .u64 b, .param .align 16 .b8 c[20]) { ret; }").status,
      CuStatus::kSuccess);
  const FunctionInfo& f = *m.module->Function("k");
  EXPECT_EQ(f.param_bytes, 36u);
  ASSERT_EQ(f.params.size(), 3u);
  EXPECT_EQ(f.params[1].offset, 8u);
  EXPECT_EQ(f.params[1].bytes, 8u);
  EXPECT_EQ(f.params[2].offset, 16u);
  EXPECT_EQ(f.params[2].bytes, 20u);
}

TEST(SoftLayout, ParametersOfFunctionsLieInUnitsOfEight) {
  SoftMachine m;
  ASSERT_EQ(m.Load(std::string(kHead) + ".func (.param .b8 r, .param .align 16 .b8 s[3]) f(.param .b8 x, .param .b32 "
                                        "y, .param .align 16 .b8 z[17])\n"
                                        "{ .param .b8 p; .param .b64 q; ret; }\n.entry k() { ret; }")
                .status,
            CuStatus::kSuccess);
  const CodeFunction& f = Code(m, "f");
  std::vector<uint32_t> offsets;
  for (const auto* list : {&f.params, &f.returns})
    for (const ptx::Param& p : *list) offsets.push_back(p.offset);
  EXPECT_EQ(offsets, (std::vector<uint32_t>{0, 8, 16, 40, 48}));
  // 51 bytes, to the next 16; then those of the body: 16 bytes.
  EXPECT_EQ(f.block_bytes, 80u);
  EXPECT_EQ(f.params_at % 64, 0u);
  EXPECT_EQ(f.frame_bytes, f.params_at + (80 * 32));
}

TEST(SoftLayout, RegistersOfAThreadAreThoseAliveAtOnce) {
  const auto registers = [](uint32_t narrow, uint32_t wide, const char* bounds = "") {
    std::string body =
        fmt::format(".reg .b32 %r<{}>; .reg .b64 %d<{}>; .reg .b64 %a;\nmov.u64 %a, 0;\n", narrow + 1, wide + 1);
    for (uint32_t n = 0; n < narrow; ++n) body += fmt::format("mov.u32 %r{}, %tid.x;\n", n);
    for (uint32_t n = 0; n < wide; ++n) body += fmt::format("mov.u64 %d{}, {};\n", n, n);
    for (uint32_t n = 0; n < narrow; ++n) body += fmt::format("st.global.u32 [%a], %r{};\n", n);
    for (uint32_t n = 0; n < wide; ++n) body += fmt::format("st.global.u64 [%a], %d{};\n", n);
    SoftMachine m;
    EXPECT_EQ(m.Load(fmt::format("{}.entry k() {} {{ {} ret; }}", kHead, bounds, body)).status, CuStatus::kSuccess);
    return m.module->Function("k")->registers;
  };
  // The address takes two.
  EXPECT_EQ(registers(5, 0), 7u);
  EXPECT_EQ(registers(0, 3), 8u);
  EXPECT_EQ(registers(253, 0, ".maxntid 128"), 255u);
  EXPECT_EQ(registers(254, 0, ".maxntid 128"), 255u);
  // No more than so many threads, and blocks, leave each thread.
  EXPECT_EQ(registers(253, 0), 64u) << "of 1024 threads";
  EXPECT_EQ(registers(253, 0, ".maxntid 256, 2"), 128u);
  EXPECT_EQ(registers(253, 0, ".maxntid 128 .minnctapersm 8"), 64u);
  EXPECT_EQ(registers(253, 0, ".maxntid 96 .minnctapersm 7"), 96u) << "a multiple of 8";
  EXPECT_EQ(registers(253, 0, ".maxntid 1024 .minnctapersm 4000000000"), 16u) << "that is not to be had";
  EXPECT_EQ(registers(253, 0, ".maxnreg 40"), 40u);
  EXPECT_EQ(registers(5, 0, ".maxnreg 40"), 7u);
  SoftMachine m;
  ASSERT_EQ(m.Load(std::string(kHead) + ".entry k() { ret; }").status, CuStatus::kSuccess);
  EXPECT_EQ(m.module->Function("k")->registers, 1u);
}

TEST(SoftLayout, OneSlotForEachWayToReadAParameter) {
  SoftMachine m;
  ASSERT_EQ(m.LoadBody(".param .u64 a",
                       "ld.param.u32 %r1, [a]; ld.param.u32 %r2, [a]; ld.param.s32 %r2, [a]; ld.param.u32 %rd1, [a]; "
                       "ld.param.u32 %r2, [a+4]; ld.param.u16 %r2, [a]; ld.param.u64 %rd1, [a];")
                .status,
            CuStatus::kSuccess);
  const CodeFunction& k = Code(m, "k");
  ASSERT_EQ(k.param_slots.size(), 6u);
  // 32-bit slots take 128 bytes, 64-bit ones 256.
  EXPECT_EQ(k.grid_area_bytes, kGridAreaFixed + 4 * 128 + 2 * 256);
  EXPECT_EQ(k.param_slots[0].bytes, 4u);
  EXPECT_EQ(k.param_slots[0].slot_bytes, 4u);
  EXPECT_FALSE(k.param_slots[0].is_signed);
  EXPECT_TRUE(k.param_slots[1].is_signed);
  EXPECT_EQ(k.param_slots[2].slot_bytes, 8u);
  EXPECT_EQ(k.param_slots[3].param_offset, 4u);
  EXPECT_EQ(k.param_slots[4].bytes, 2u);
}

TEST(SoftLayout, VariablesAreInsideOfTheirWindow) {
  const auto why = [](const std::string& variables) {
    SoftMachine m;
    return m.Load(fmt::format("{}.entry k() {{ {} ret; }}", kHead, variables)).text;
  };
  EXPECT_THAT(why(".local .b8 x[16777217];"), HasSubstr("variables of k are too large"));
  EXPECT_THAT(why(".local .b8 x[16777216];"), HasSubstr("of local memory: too much"));
  EXPECT_THAT(why(".shared .b8 x[16777217];"), HasSubstr("variables of k are too large"));
  EXPECT_EQ(why(".shared .b8 x[16777216];"), "");
  EXPECT_THAT(why(".local .b8 x[8388608]; .local .b8 y[8388609];"), HasSubstr("variables of k are too large"));
  EXPECT_EQ(why(".reg .b128 wide;"), "");
}

TEST(SoftLayout, TheGridAreaHasALimit) {
  // Slots of 256 bytes: 32 MiB are as many as this, less what is always there.
  constexpr uint32_t kMost = ((32u << 20) - kGridAreaFixed) / 256;
  const auto why = [](uint32_t slots) -> std::string {
    std::string text = std::string(kHead) + ".entry k(.param .b8 a[32764])\n{\n.reg .b64 %d<2>;\n";
    uint32_t made = 0;
    for (const char* type : {"u8", "s8", "u16", "s16", "u32", "s32", "u64"})
      for (uint32_t at = 0; at < 32756 && made < slots; ++at, ++made)
        text += fmt::format("ld.param.{} %d0, [a+{}];\n", type, at);
    SoftMachine m;
    const Outcome loaded = m.Load(text + "ret;\n}\n");
    if (loaded.status != CuStatus::kSuccess) return loaded.text;
    const auto kernel = m.module->LoadFunction("k");
    return kernel ? "" : kernel.error().text;
  };
  EXPECT_EQ(why(kMost), "");
  EXPECT_THAT(why(kMost + 1), HasSubstr("the parameters that a kernel reads take more than 33554432 bytes"));
}

}  // namespace
}  // namespace vgpud::soft
