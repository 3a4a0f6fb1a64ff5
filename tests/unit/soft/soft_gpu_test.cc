// SPDX-License-Identifier: Apache-2.0
// A context from outside: copies, fills and launches at the limits of what they may touch, modules and what they take.
#include "gpu/soft/soft_gpu.h"

#include <gmock/gmock.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

GpuVa Behind(GpuVa address, uint64_t bytes) { return GpuVa{Raw(address) + bytes}; }

class SoftContext : public testing::Test {
 protected:
  SoftContext() : memory(m.Alloc(100)), other(m.Alloc(100)) {}
  std::vector<std::byte> Bytes(size_t count, int value = 7) {
    return std::vector(count, static_cast<std::byte>(value));
  }
  SoftMachine m;
  GpuVa memory, other;
};

struct Range {
  uint64_t at, bytes;
  bool fine;
};
constexpr Range kRanges[] = {{0, 100, true}, {0, 101, false}, {1, 99, true},  {1, 100, false},
                             {99, 1, true},  {100, 1, false}, {100, 0, true}, {101, 0, false},
                             {0, 0, true},   {511, 2, false}, {0, 612, false}};

TEST_F(SoftContext, CopiesStayInsideOneAllocation) {
  for (const Range& r : kRanges) {
    std::vector<std::byte> bytes = Bytes(r.bytes);
    const auto in = m.gpu.CopyIn(Behind(memory, r.at), bytes);
    const auto out = m.gpu.CopyOut(bytes, Behind(memory, r.at));
    const auto from = m.gpu.CopyDev(other, Behind(memory, r.at), r.bytes);
    const auto to = m.gpu.CopyDev(Behind(memory, r.at), other, r.bytes);
    for (const auto& result : {in, out, from, to}) {
      EXPECT_EQ(result.has_value(), r.fine) << r.at << ", " << r.bytes;
      if (result) continue;
      EXPECT_EQ(result.error().status, CuStatus::kInvalidValue);
      EXPECT_THAT(result.error().text, HasSubstr("copy of " + std::to_string(r.bytes) + " bytes at 0x7000"));
    }
  }
}

TEST_F(SoftContext, CopiesMoveBytesAlsoWithinThemselves) {
  std::vector<uint8_t> values(100);
  for (size_t n = 0; n < 100; ++n) values[n] = static_cast<uint8_t>(n);
  ASSERT_TRUE(m.gpu.CopyIn(memory, std::as_bytes(std::span(values))));
  ASSERT_TRUE(m.gpu.CopyDev(Behind(memory, 10), memory, 90));
  EXPECT_THAT(m.Download<uint8_t>(Behind(memory, 8), 4), ElementsAre(8, 9, 0, 1));
  EXPECT_THAT(m.Download<uint8_t>(Behind(memory, 96), 4), ElementsAre(86, 87, 88, 89));
  ASSERT_TRUE(m.gpu.CopyDev(memory, Behind(memory, 96), 1));
  EXPECT_EQ(m.Download<uint8_t>(memory, 1)[0], 86);
  ASSERT_TRUE(m.gpu.CopyDev(other, memory, 100));
  EXPECT_EQ(m.Download<uint8_t>(other, 100), m.Download<uint8_t>(memory, 100));
}

TEST_F(SoftContext, FillsAreOfElementsOf1And2And4Bytes) {
  ASSERT_TRUE(m.gpu.Fill(memory, 0x11223344, 1, 100));
  EXPECT_THAT(m.Download<uint8_t>(memory, 3), ElementsAre(0x44, 0x44, 0x44));
  ASSERT_TRUE(m.gpu.Fill(memory, 0x11223344, 2, 2));
  EXPECT_THAT(m.Download<uint16_t>(memory, 3), ElementsAre(0x3344, 0x3344, 0x4444));
  ASSERT_TRUE(m.gpu.Fill(memory, 0x11223344, 4, 2));
  EXPECT_THAT(m.Download<uint32_t>(memory, 3), ElementsAre(0x11223344, 0x11223344, 0x44444444));
  struct Case {
    uint64_t at;
    uint32_t element;
    uint64_t count;
    const char* text;
  };
  const Case cases[] = {{0, 1, 101, "not inside"},
                        {0, 2, 50, ""},
                        {0, 2, 51, "not inside"},
                        {0, 4, 25, ""},
                        {0, 4, 26, "not inside"},
                        {1, 1, 99, ""},
                        {1, 2, 1, "not aligned"},
                        {2, 2, 49, ""},
                        {2, 4, 1, "not aligned"},
                        {4, 4, 24, ""},
                        {0, 0, 1, "elements of 0"},
                        {0, 3, 1, "elements of 3"},
                        {0, 5, 1, "elements of 5"},
                        {0, 8, 1, "elements of 8"},
                        {0, 4, uint64_t{1} << 62, "not inside"},
                        {0, 4, 0, ""},
                        {0, 1, 0, ""}};
  for (const Case& c : cases) {
    const auto filled = m.gpu.Fill(Behind(memory, c.at), 5, c.element, c.count);
    EXPECT_EQ(filled.has_value(), *c.text == '\0') << c.at << ", " << c.element << ", " << c.count;
    if (filled) continue;
    EXPECT_EQ(filled.error().status, CuStatus::kInvalidValue);
    EXPECT_THAT(filled.error().text, HasSubstr(c.text));
  }
  EXPECT_EQ(m.Download<uint8_t>(other, 1)[0], 0) << "nothing went beyond";
}

TEST_F(SoftContext, WhatIsFreedIsOneAllocation) {
  EXPECT_EQ(m.gpu.AllocationBytes(513), 1024u);
  EXPECT_EQ(m.gpu.Free(Behind(memory, 1)).error().status, CuStatus::kInvalidValue);
  EXPECT_EQ(*m.gpu.Free(memory), 512u);
  EXPECT_EQ(m.gpu.Free(memory).error().status, CuStatus::kInvalidValue);
}

TEST_F(SoftContext, TheHeapIsMadeOnceOfTheSizeThatWasSet) {
  EXPECT_EQ(m.gpu.HeapBytesToMake(), 8u << 20);
  EXPECT_TRUE(m.gpu.SetHeapBytes(0));
  EXPECT_TRUE(m.gpu.MakeHeap());
  EXPECT_TRUE(m.gpu.SetHeapBytes(65 << 20));
  EXPECT_EQ(m.gpu.MakeHeap().error().status, CuStatus::kOutOfMemory);
  EXPECT_TRUE(m.gpu.SetHeapBytes(1 << 20));
  EXPECT_EQ(m.gpu.HeapBytesToMake(), 1u << 20);
  EXPECT_TRUE(m.gpu.MakeHeap());
  EXPECT_EQ(m.gpu.HeapBytesToMake(), 0u);
  EXPECT_FALSE(m.gpu.SetHeapBytes(4096));
  EXPECT_TRUE(m.gpu.MakeHeap()) << "it is there";
  const GpuVa next = m.Alloc(512);
  EXPECT_EQ(Raw(next) - Raw(memory), (1u << 20) + 1024) << "it took its place once";
}

TEST_F(SoftContext, ALaunchNeedsItsParametersAndAKernelThatIsLoaded) {
  ASSERT_EQ(m.LoadBody(".param .u64 a, .param .u32 b", "").status, CuStatus::kSuccess);
  const FunctionInfo* k = m.module->Function("k");
  const LaunchShape shape{{1, 1, 1}, {1, 1, 1}, 0};
  EXPECT_EQ(k->param_bytes, 12u);
  const auto less = m.gpu.Launch(*k, shape, Bytes(11), 0);
  EXPECT_EQ(less.error().status, CuStatus::kInvalidValue);
  EXPECT_THAT(less.error().text, HasSubstr("launch of k: 11 bytes of parameters, the kernel has 12"));
  EXPECT_TRUE(m.gpu.Launch(*k, shape, Bytes(12), 0));
  EXPECT_TRUE(m.gpu.Launch(*k, shape, Bytes(13), 0));
  const FunctionInfo copy = *k;
  EXPECT_EQ(m.gpu.Launch(copy, shape, Bytes(12), 0).error().status, CuStatus::kInvalidHandle);
  EXPECT_EQ(m.module->Function("K"), nullptr);
}

TEST_F(SoftContext, AKernelOfAnyLoadedModuleIsLaunched) {
  std::vector<std::unique_ptr<GpuModule>> modules;
  for (uint32_t n = 1; n <= 3; ++n) {
    const std::string value = std::to_string(n);
    ASSERT_EQ(m.LoadBody(".param .u64 out", "ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], " + value + ";").status,
              CuStatus::kSuccess);
    modules.push_back(std::move(m.module));
  }
  for (uint32_t n = 1; n <= 3; ++n) {
    m.module = std::move(modules[n - 1]);
    EXPECT_EQ(m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(memory)).status, CuStatus::kSuccess);
    EXPECT_EQ(m.Download<uint32_t>(memory, 1)[0], n);
    modules[n - 1] = std::move(m.module);
  }
}

TEST_F(SoftContext, ACooperativeGridIsAsLargeAsTheDevice) {
  ASSERT_EQ(m.LoadBody("", "").status, CuStatus::kSuccess);
  const FunctionInfo* k = m.module->Function("k");
  const auto status = [&](LaunchShape shape) {
    shape.cooperative = true;
    const auto launched = m.gpu.Launch(*k, shape, {}, 64 << 10);
    return launched ? CuStatus::kSuccess : launched.error().status;
  };
  // 8 multiprocessors of 16 blocks, 1024 threads, 64 KiB.
  EXPECT_EQ(status({{128, 1, 1}, {64, 1, 1}, 0}), CuStatus::kSuccess);
  EXPECT_EQ(status({{129, 1, 1}, {64, 1, 1}, 0}), CuStatus::kCooperativeLaunchTooLarge);
  EXPECT_EQ(status({{4, 8, 4}, {4, 4, 4}, 0}), CuStatus::kSuccess);
  EXPECT_EQ(status({{43, 3, 1}, {4, 4, 4}, 0}), CuStatus::kCooperativeLaunchTooLarge);
  EXPECT_EQ(status({{8, 1, 1}, {1024, 1, 1}, 0}), CuStatus::kSuccess);
  EXPECT_EQ(status({{9, 1, 1}, {1024, 1, 1}, 0}), CuStatus::kCooperativeLaunchTooLarge);
  EXPECT_EQ(status({{16, 1, 1}, {32, 1, 1}, 32 << 10}), CuStatus::kSuccess);
  EXPECT_EQ(status({{17, 1, 1}, {32, 1, 1}, 32 << 10}), CuStatus::kCooperativeLaunchTooLarge);
}

TEST_F(SoftContext, TheWorkspaceOfACooperativeGridIsZeroAndGoesWithIt) {
  ASSERT_EQ(m.LoadBody(".param .u64 out",
                       "ld.param.u64 %rd1, [out]; mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2;\n"
                       "mov.b64 %rd2, {%r2, %r1}; st.global.u64 [%rd1], %rd2;\n"
                       "ld.global.u32 %r3, [%rd2+508]; st.global.u32 [%rd1+8], %r3;")
                .status,
            CuStatus::kSuccess);
  const GpuVa before = *m.gpu.Alloc(1);
  ASSERT_TRUE(m.gpu.Free(before));
  auto grid = m.Launch("k", {{1, 1, 1}, {1, 1, 1}, 0, true}, Params().Add(memory));
  EXPECT_EQ(m.Finish(*grid).status, CuStatus::kSuccess);
  EXPECT_EQ(m.Download<uint64_t>(memory, 1)[0], Raw(before));
  EXPECT_EQ(m.Download<uint32_t>(memory, 3)[2], 0u);
  EXPECT_FALSE(m.gpu.Free(before)) << "not the guest's to free";
  grid.reset();
  EXPECT_EQ(*m.gpu.Alloc(1), before);
  const auto alone = m.Launch("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(memory));
  EXPECT_EQ(m.Finish(*alone).status, CuStatus::kIllegalAddress) << "others have none";
}

std::string Module(const std::string& variables) {
  return ".version 7.8\n.target sm_75\n.address_size 64\n" + variables + "\n.visible .entry k() { ret; }\n";
}

TEST_F(SoftContext, ConstantsHaveABankOf64KiB) {
  EXPECT_EQ(m.Load(Module(".const .b8 c[65536];")).status, CuStatus::kSuccess);
  EXPECT_EQ(m.module->Function("k")->const_bytes, 65536u);
  m.module.reset();
  const Outcome more = m.Load(Module(".const .b8 c[65537];"));
  EXPECT_EQ(more.status, CuStatus::kInvalidPtx);
  EXPECT_THAT(more.text, HasSubstr("65537 bytes of .const, the bank has 65536"));
}

TEST_F(SoftContext, AModuleCountsWhatItHas) {
  uint64_t admitted = 0;
  m.gpu.AdmitVram([&](uint64_t bytes) {
    admitted += bytes;
    return true;
  });
  ASSERT_EQ(m.Load(Module(".global .b8 a[513];\n.global .u32 b;\n.const .u64 c;\n.func f() { ret; }\n"
                          ".visible .entry second() { ret; }"))
                .status,
            CuStatus::kSuccess);
  EXPECT_EQ(m.module->function_count(), 2u);
  EXPECT_EQ(m.module->global_count(), 3u);
  EXPECT_EQ(m.module->vram_bytes(), 1024u + 512 + 512);
  EXPECT_EQ(admitted, 2048u);
  EXPECT_EQ(m.module->FindGlobal("a")->bytes, 513u);
  EXPECT_EQ(m.module->FindGlobal("b")->bytes, 4u);
  EXPECT_EQ(m.module->FindGlobal("d").error().status, CuStatus::kNotFound);
  EXPECT_EQ(m.module->Function("f"), nullptr) << "no kernel";
  EXPECT_NE(m.module->Function("second"), nullptr);
  EXPECT_FALSE(m.gpu.Free(m.module->FindGlobal("a")->address));
  EXPECT_GT(m.gpu.code_bytes_read(), 100u);
  admitted = 0;
  ASSERT_EQ(m.Load(Module("")).status, CuStatus::kSuccess);
  EXPECT_EQ(admitted, 0u);
  EXPECT_EQ(m.module->vram_bytes(), 0u);
}

TEST_F(SoftContext, AlignmentsOfVariablesEndAt512) {
  EXPECT_EQ(m.Load(Module(".global .align 512 .b8 a[4];")).status, CuStatus::kSuccess);
  const Outcome more = m.Load(Module(".global .align 1024 .b8 a[4];"));
  EXPECT_EQ(more.status, CuStatus::kInvalidPtx);
  EXPECT_THAT(more.text, HasSubstr("alignment 1024 of a is too large"));
}

TEST_F(SoftContext, InitialisersFillWhatTheySayAndZerosTheRest) {
  ASSERT_EQ(m.Load(Module(".global .u32 a[4] = {1, 2};\n.global .u64 p[3] = {a, a+8, k};\n.global .u32 z[2];\n"
                          ".global .u16 h[2] = {65535, 3};"))
                .status,
            CuStatus::kSuccess);
  const uint64_t a = Raw(m.module->FindGlobal("a")->address);
  EXPECT_THAT(m.Download<uint32_t>(GpuVa{a}, 4), ElementsAre(1, 2, 0, 0));
  const auto p = m.Download<uint64_t>(m.module->FindGlobal("p")->address, 3);
  EXPECT_EQ(p[0], a);
  EXPECT_EQ(p[1], a + 8);
  EXPECT_EQ(p[2] >> 48, 0xf0u) << "a function's handle, never a valid address";
  EXPECT_THAT(m.Download<uint32_t>(m.module->FindGlobal("z")->address, 2), ElementsAre(0, 0));
  EXPECT_THAT(m.Download<uint16_t>(m.module->FindGlobal("h")->address, 2), ElementsAre(65535, 3));
  const GpuVa place = m.module->FindGlobal("a")->address;
  ASSERT_TRUE(m.gpu.Fill(place, 9, 4, 4));
  m.module.reset();
  EXPECT_FALSE(m.gpu.Contains(place, 1));
  ASSERT_EQ(m.Load(Module(".global .u32 a[4] = {1, 2};")).status, CuStatus::kSuccess);
  EXPECT_THAT(m.Download<uint32_t>(m.module->FindGlobal("a")->address, 4), ElementsAre(1, 2, 0, 0));
}

TEST(SoftContextCheck, TheEnvironmentTurnsTheCheckAndTheProfileOn) {
  for (const auto& [value, on] : {std::pair("1", true), {"0", false}, {"", false}, {"11", false}}) {
    for (const bool check : {true, false}) {
      const char* variable = check ? "VGPUD_SOFT_CHECK" : "VGPUD_SOFT_PROFILE";
      ::setenv(variable, value, 1);
      const auto gpu = MakeSoftGpu(2 << 20, 1, nullptr);
      EXPECT_EQ(dynamic_cast<SoftGpu&>(*gpu).check() != nullptr, on && check) << value;
      EXPECT_EQ(dynamic_cast<SoftGpu&>(*gpu).profile() != nullptr, on && !check) << value;
      ::unsetenv(variable);
    }
  }
  EXPECT_EQ(dynamic_cast<SoftGpu&>(*MakeSoftGpu(2 << 20, 1, nullptr)).check(), nullptr);
}

// What PTX may be made for, on devices of several capabilities.
TEST(SoftGpuTarget, PtxForAnotherGpuIsRefusedByName) {
  struct Case {
    const char* target;
    const char* device;
    bool runs;
    const char* hint;
  };
  for (const Case& c : {Case{"sm_75", "7.5", true, ""}, Case{"sm_75", "12.1", true, ""},
                        Case{"sm_80", "7.5", false, "compute_75, or use a vgpud with --soft-gpu-capability 8.0"},
                        Case{"sm_90", "8.9", false, "compute_89, or use a vgpud with --soft-gpu-capability 9.0"},
                        Case{"sm_90", "10.0", true, ""}, Case{"sm_90a", "9.0", true, ""},
                        Case{"sm_90a", "10.0", false, "--soft-gpu-capability 9.0"}, Case{"sm_120f", "12.1", true, ""},
                        Case{"sm_121f", "12.0", false, "--soft-gpu-capability 12.1"},
                        Case{"sm_120a", "12.1", false, "--soft-gpu-capability 12.0"}, Case{"sm_121a", "12.1", true, ""},
                        Case{"sm_150", "12.1", false, "compile for compute_121"}}) {
    SoftMachine m(BestIsa(), 16 << 20, 1, **FindComputeCapability(c.device));
    const Outcome loaded =
        m.Load(std::string(".version 8.8\n.target ") + c.target + "\n.address_size 64\n.entry k() { ret; }");
    EXPECT_EQ(loaded.status, c.runs ? CuStatus::kSuccess : CuStatus::kInvalidPtx) << c.target << " on " << c.device;
    if (c.runs) {
      EXPECT_EQ(m.module->Function("k")->binary_version,
                m.gpu.Info().attributes[75] * 10 + m.gpu.Info().attributes[76]);
      continue;
    }
    EXPECT_THAT(loaded.text, HasSubstr(std::string("the PTX is for ") + c.target + ","));
    EXPECT_THAT(loaded.text, HasSubstr(c.hint));
  }
}

}  // namespace
}  // namespace vgpud::soft
