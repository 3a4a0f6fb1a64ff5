// SPDX-License-Identifier: Apache-2.0
// Large modules: their kernels are decoded when somebody asks for them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

// Long enough to be loaded by function.
std::string Large(const std::string& text) { return text + "//" + std::string(256 << 10, 'x') + "\n"; }

std::string Func(const std::string& name, const std::string& body) {
  return ".func (.param .b32 res) " + name +
         "(.param .b32 n)\n{ .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>; ld.param.u32 %r1, [n];\n" + body +
         "\nst.param.b32 [res], %r1; ret; }\n";
}
std::string CallOf(const std::string& callee, const std::string& behind = "") {
  return "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call (r), " + callee + ", (a)" + behind +
         "; ld.param.b32 %r1, [r]; }\n";
}
std::string Kernel(const std::string& name, const std::string& body) {
  return ".visible .entry " + name +
         "(.param .u64 out)\n{ .reg .b32 %r<9>; .reg .b64 %rd<9>; ld.param.u64 %rd1, [out]; mov.u32 %r1, 1;\n" + body +
         "\nst.global.u32 [%rd1], %r1; ret; }\n";
}

// Kernels that go down in different ways; one that can't be decoded, and one that is no PTX.
std::string Text() {
  std::string text =
      ".version 7.8\n.target sm_75\n.address_size 64\n"
      ".global .align 4 .u32 base = 1000;\n.shared .align 4 .b8 tile[64];\n"
      ".extern .func (.param .b32 res) vprintf(.param .b64 format, .param .b64 arguments);\n";
  text += Func("add0", "add.u32 %r1, %r1, 1;");
  for (int n = 1; n <= 20; ++n)
    text += Func("add" + std::to_string(n), CallOf("add" + std::to_string(n - 1)) + "add.u32 %r1, %r1, 1;");
  text += Func("count", "setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE; sub.u32 %r1, %r1, 1;\n" + CallOf("count") +
                            "add.u32 %r1, %r1, 3;\nDONE:");
  text += Func("twice", "shl.b32 %r1, %r1, 1;");
  text += ".global .align 8 .u64 table[2] = {twice, add0};\n";
  text += Kernel("plain", "ld.global.u32 %r2, [base]; add.u32 %r1, %r1, %r2; st.global.u32 [base], %r1;");
  text += Kernel("shallow", CallOf("add1"));
  text += Kernel("deep", CallOf("add20"));
  text += Kernel("recursive", "mov.u32 %r1, 7;\n" + CallOf("count"));
  text += Kernel(
      "pointer",
      "PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);\nmov.u32 %r1, 21; ld.global.u64 %rd2, [table];\n" +
          CallOf("%rd2", ", PROTO"));
  text += Kernel("taken",
                 "PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);\nmov.u32 %r1, 4; mov.u64 %rd2, twice;\n" +
                     CallOf("%rd2", ", PROTO"));
  text += Kernel("unknown", "no.such.instruction %r1, %r2;");
  text += Kernel("shared", "mov.u32 %r2, 5; st.shared.u32 [tile+60], %r2; ld.shared.u32 %r1, [tile+60];");
  text += ".visible .entry broken() { mov.u32 %nothing, 1; }\n";
  return text;
}

constexpr std::pair<const char*, uint32_t> kResults[] = {{"plain", 1001},   {"shallow", 3},  {"deep", 22},
                                                         {"recursive", 21}, {"pointer", 42}, {"taken", 8},
                                                         {"shared", 5},     {"plain", 1002}};

class SoftByFunction : public testing::Test {
 protected:
  uint32_t Result(const std::string& kernel) {
    const GpuVa out = m.Alloc(4);
    const Outcome ran = m.Run(kernel, {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(out), 50);
    EXPECT_EQ(ran.status, CuStatus::kSuccess) << kernel << ": " << ran.text;
    return m.Download<uint32_t>(out, 1)[0];
  }
  SoftMachine m;
};

TEST_F(SoftByFunction, KernelsDoWhatTheyDo) {
  ASSERT_EQ(m.Load(Large(Text())).status, CuStatus::kSuccess);
  EXPECT_EQ(m.module->Function("plain"), nullptr);
  for (const auto& [kernel, result] : kResults) EXPECT_EQ(Result(kernel), result) << kernel;
}

TEST_F(SoftByFunction, ASmallModuleIsLoadedAsAWhole) {
  const Outcome loaded = m.Load(Text());
  EXPECT_EQ(loaded.status, CuStatus::kInvalidPtx);
  EXPECT_THAT(loaded.text, HasSubstr("nothing"));
}

TEST_F(SoftByFunction, WhatIsKnownWithoutTheCode) {
  ASSERT_EQ(m.Load(Large(Text())).status, CuStatus::kSuccess);
  EXPECT_EQ(m.module->function_count(), 9u);
  EXPECT_THAT(m.module->FunctionNames(), testing::ElementsAre("plain", "shallow", "deep", "recursive", "pointer",
                                                              "taken", "unknown", "shared", "broken"));
  EXPECT_TRUE(m.module->FindGlobal("base"));
  for (const char* name : {"plain", "broken"}) EXPECT_TRUE(m.module->NeedsLoading(name)) << name;
  for (const char* name : {"add1", "nobody", "vprintf", ""}) {
    EXPECT_FALSE(m.module->NeedsLoading(name)) << name;
    EXPECT_EQ(m.module->Function(name), nullptr) << name;
  }
}

TEST_F(SoftByFunction, AKernelIsLoadedOnceAndItsInfoStays) {
  ASSERT_EQ(m.Load(Large(Text())).status, CuStatus::kSuccess);
  ASSERT_TRUE(m.module->LoadFunction("deep"));
  EXPECT_FALSE(m.module->NeedsLoading("deep"));
  const FunctionInfo* info = m.module->Function("deep");
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->param_bytes, 8u);
  EXPECT_GE(info->registers, 2u);
  ASSERT_TRUE(m.module->LoadFunction("shallow"));
  ASSERT_TRUE(m.module->LoadFunction("deep"));
  EXPECT_EQ(m.module->Function("deep"), info);
}

// Only what the kernel can come to is read.
TEST_F(SoftByFunction, LittleIsReadForOneKernel) {
  const std::string text = Text();
  ASSERT_EQ(m.Load(Large(text)).status, CuStatus::kSuccess);
  EXPECT_LT(*m.module->LoadFunction("plain"), 400u);
  EXPECT_LT(*m.module->LoadFunction("shallow"), 4000u);
}

TEST_F(SoftByFunction, AnErrorIsThatOfItsKernel) {
  ASSERT_EQ(m.Load(Large(Text())).status, CuStatus::kSuccess);
  const auto broken = m.module->LoadFunction("broken");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().status, CuStatus::kInvalidPtx);
  EXPECT_THAT(broken.error().text, HasSubstr("nothing"));
  EXPECT_TRUE(m.module->NeedsLoading("broken"));
  ASSERT_TRUE(m.module->LoadFunction("unknown"));
  const auto grid =
      m.gpu.Launch(*m.module->Function("unknown"), {{1, 1, 1}, {1, 1, 1}, 0}, std::vector<std::byte>(8), 0);
  ASSERT_FALSE(grid);
  EXPECT_THAT(grid.error().text, HasSubstr("no.such.instruction"));
  EXPECT_EQ(Result("plain"), 1001u);
}

// A call through a pointer into a kernel's program finds what is not there, whatever the pointer is.
TEST_F(SoftByFunction, AHandleOfWhatIsNotLoadedIsAFault) {
  std::string text = Text() + Kernel("wild",
                                     "PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
                                     "mov.u64 %rd2, 0x00f0000000000000; ld.global.u32 %r3, [base]; cvt.u64.u32 %rd3, "
                                     "%r3; add.u64 %rd2, %rd2, %rd3;\n" +
                                         CallOf("%rd2", ", PROTO"));
  ASSERT_EQ(m.Load(Large(text)).status, CuStatus::kSuccess);
  for (const uint32_t index : {24u, 28u, 32u, 33u, 1000u}) {
    ASSERT_TRUE(m.gpu.CopyIn(m.module->FindGlobal("base")->address, std::as_bytes(std::span(&index, 1))));
    const Outcome ran = m.Run("wild", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(m.Alloc(4)));
    EXPECT_NE(ran.status, CuStatus::kSuccess) << index;
  }
}

TEST_F(SoftByFunction, SuchAContextIsNotSaved) {
  ASSERT_EQ(m.Load(Large(Text())).status, CuStatus::kSuccess);
  GpuModule* modules[] = {m.module.get()};
  const auto saved = m.gpu.Save([](std::span<const std::byte>) { return GpuResult<void>(); }, modules, {});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().status, CuStatus::kNotSupported);
}

// Kernels with much in common, all of which somebody wants: it is not read over and over.
TEST_F(SoftByFunction, AllKernelsCostNoMoreThanTwiceTheText) {
  std::string text = ".version 7.8\n.target sm_75\n.address_size 64\n" +
                     Func("common", std::string(60'000, ' ') + "add.u32 %r1, %r1, 5;");
  for (int n = 0; n < 300; ++n)
    text += Kernel(fmt::format("k{}", n), fmt::format("mov.u32 %r1, {};\n", n) + CallOf("common"));
  text = Large(text);
  ASSERT_EQ(m.Load(text).status, CuStatus::kSuccess);
  uint64_t read = 0;
  for (int n = 0; n < 300; ++n) {
    const auto loaded = m.module->LoadFunction(fmt::format("k{}", n));
    ASSERT_TRUE(loaded);
    read += *loaded;
  }
  EXPECT_LT(read, 2 * text.size() + 100'000);
  for (int n = 0; n < 300; n += 23) EXPECT_EQ(Result(fmt::format("k{}", n)), n + 5u);
}

// Two modules of the same text have variables of their own.
TEST_F(SoftByFunction, ModulesOfOneTextAreTwo) {
  const std::string text = Large(Text());
  ASSERT_EQ(m.Load(text).status, CuStatus::kSuccess);
  EXPECT_EQ(Result("plain"), 1001u);
  const auto first = std::move(m.module);
  ASSERT_EQ(m.Load(text).status, CuStatus::kSuccess);
  EXPECT_EQ(m.gpu.images().hits(), 1u);
  EXPECT_EQ(Result("plain"), 1001u);
}

}  // namespace
}  // namespace vgpud::soft
