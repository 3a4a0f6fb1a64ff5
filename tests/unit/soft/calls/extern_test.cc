// SPDX-License-Identifier: Apache-2.0
// Functions of the device runtime: which there are, what they take, and what they answer.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "gpu/soft/calls/extern_functions.h"
#include "gpu/soft/run/device_launches.h"
#include "tests/unit/soft/rig/soft_fixture.h"
#include "tests/unit/soft/state/family_ptx.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;
using Uses = ExternFunction::Uses;

TEST(SoftExtern, TheTableIsThatOfTheDeviceRuntime) {
  struct Case {
    const char* name;
    size_t arguments;
    Uses uses;
  };
  for (const Case& c : {Case{"vprintf", 2, Uses::kNothing},
                        {"__assertfail", 5, Uses::kNothing},
                        {"malloc", 1, Uses::kHeap},
                        {"__nv_aligned_device_malloc", 2, Uses::kHeap},
                        {"free", 1, Uses::kHeap},
                        {"cudaGraphSetConditional", 2, Uses::kNothing},
                        {"__cudaCDP2GetParameterBufferV2", 4, Uses::kLaunches},
                        {"__cudaCDP2LaunchDeviceV2", 2, Uses::kLaunches},
                        {"__cudaCDP2LaunchDeviceV2_ptsz", 2, Uses::kLaunches},
                        {"__cudaCDP2GetLastError", 0, Uses::kLaunches},
                        {"__cudaCDP2PeekAtLastError", 0, Uses::kLaunches},
                        {"__cudaCDP2Malloc", 2, Uses::kHeap},
                        {"__cudaCDP2Free", 1, Uses::kHeap},
                        {"__cudaCDP2StreamCreateWithFlags", 2, Uses::kNothing},
                        {"__cudaCDP2StreamDestroy", 1, Uses::kNothing},
                        {"__cudaCDP2StreamWaitEvent", 3, Uses::kNothing},
                        {"__cudaCDP2StreamWaitEvent_ptsz", 3, Uses::kNothing},
                        {"__cudaCDP2EventCreateWithFlags", 2, Uses::kNothing},
                        {"__cudaCDP2EventRecord", 2, Uses::kNothing},
                        {"__cudaCDP2EventRecord_ptsz", 2, Uses::kNothing},
                        {"__cudaCDP2EventDestroy", 1, Uses::kNothing},
                        {"__cudaCDP2GetDevice", 1, Uses::kNothing},
                        {"__cudaCDP2GetDeviceCount", 1, Uses::kNothing}}) {
    const ExternFunction* f = FindExternFunction(c.name);
    ASSERT_NE(f, nullptr) << c.name;
    EXPECT_EQ(f->name, c.name);
    EXPECT_EQ(f->arguments, c.arguments) << c.name;
    EXPECT_EQ(f->uses, c.uses) << c.name;
  }
  for (const char* none : {"", "mallo", "malloc2", "printf"}) EXPECT_EQ(FindExternFunction(none), nullptr) << none;
}

// A kernel of 8 threads: each calls `name` with `arguments` ("b64 %rd1", ...) and stores what comes back, then the word
// at its own place.
class SoftExternCall : public testing::Test {
 protected:
  Outcome Run(const std::string& name, const std::vector<std::string>& arguments, const std::string& result,
              const std::string& before = "") {
    std::string declared, made, list;
    for (size_t n = 0; n < arguments.size(); ++n) {
      const std::string type = arguments[n].substr(0, 3), value = arguments[n].substr(4);
      declared += fmt::format("{}.param .{} p{}", n == 0 ? "" : ", ", type, n);
      made += fmt::format(".param .{0} a{1}; st.param.{0} [a{1}], {2};\n", type, n, value);
      list += fmt::format("{}a{}", n == 0 ? "" : ", ", n);
    }
    const std::string back = result.empty() ? "" : "(r), ";
    const std::string body =
        "ld.param.u64 %rd10, [out]; mov.u32 %r10, %tid.x; mul.wide.u32 %rd11, %r10, 16; add.u64 %rd10, %rd10, "
        "%rd11;\n" +
        before + "\n{\n" + made + (result.empty() ? "" : fmt::format(".param .{} r;\n", result)) +
        fmt::format("call {}{}, ({});\n", back, name, list) +
        (result.empty() ? "" : fmt::format("ld.param.{} %rd20, [r]; st.global.b64 [%rd10+8], %rd20;\n", result)) + "}";
    const Outcome loaded = m.LoadBody(
        ".param .u64 out", body,
        fmt::format(".extern .func {} {}({});\n", result.empty() ? "" : "(.param ." + result + " r)", name, declared));
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text << body;
    const GpuVa out = m.Alloc(8 * 16);
    const Outcome ran = m.Run("k", {{1, 1, 1}, {8, 1, 1}, 0}, Params().Add(out));
    words = m.Download<uint64_t>(out, 16);
    return ran;
  }
  void ExpectAll(uint64_t stored, uint64_t returned) {
    for (uint32_t t = 0; t < 8; ++t) {
      EXPECT_EQ(words[2 * t], stored) << t;
      EXPECT_EQ(words[2 * t + 1], returned) << t;
    }
  }
  SoftMachine m;
  std::vector<uint64_t> words;
};

TEST_F(SoftExternCall, StreamsAndEventsAreHandlesThatServe) {
  for (const char* name : {"__cudaCDP2StreamCreateWithFlags", "__cudaCDP2EventCreateWithFlags"}) {
    ASSERT_EQ(Run(name, {"b64 %rd10", "b32 1"}, "b32").status, CuStatus::kSuccess) << name;
    for (uint32_t t = 0; t < 8; ++t) {
      EXPECT_NE(words[2 * t], 0u) << "no handle";
      EXPECT_EQ(words[2 * t + 1], 0u);
    }
    const Outcome null = Run(name, {"b64 16", "b32 1"}, "b32");
    EXPECT_EQ(null.status, CuStatus::kIllegalAddress);
    EXPECT_THAT(null.text, HasSubstr("write of 8 bytes at 0x10"));
    EXPECT_EQ(Run(name, {"b64 %rd10", "b32 1"}, "b32", "add.u64 %rd10, %rd10, 4;").status, CuStatus::kIllegalAddress);
  }
  for (const char* name : {"__cudaCDP2StreamDestroy", "__cudaCDP2EventDestroy"}) {
    ASSERT_EQ(Run(name, {"b64 16"}, "b32").status, CuStatus::kSuccess) << name;
    ExpectAll(0, 0);
  }
  for (const char* name : {"__cudaCDP2EventRecord", "__cudaCDP2EventRecord_ptsz"}) {
    ASSERT_EQ(Run(name, {"b64 16", "b64 16"}, "b32").status, CuStatus::kSuccess) << name;
    ExpectAll(0, 0);
  }
}

TEST_F(SoftExternCall, ThereIsOneDeviceNumberZero) {
  const std::string ones = "mov.u64 %rd9, -1; st.global.u64 [%rd10], %rd9;";
  ASSERT_EQ(Run("__cudaCDP2GetDevice", {"b64 %rd10"}, "b32", ones).status, CuStatus::kSuccess);
  ExpectAll(0xffffffff00000000, 0);
  ASSERT_EQ(Run("__cudaCDP2GetDeviceCount", {"b64 %rd10"}, "b32", ones).status, CuStatus::kSuccess);
  ExpectAll(0xffffffff00000001, 0);
  EXPECT_EQ(Run("__cudaCDP2GetDeviceCount", {"b64 %rd10"}, "b32", "add.u64 %rd10, %rd10, 2;").status,
            CuStatus::kIllegalAddress);
  EXPECT_THAT(Run("__cudaCDP2GetDevice", {"b64 8"}, "b32").text, HasSubstr("write of 4 bytes at 0x8"));
}

TEST_F(SoftExternCall, AConditionIsTheWordAtItsHandle) {
  const std::string ones = "mov.u64 %rd9, -1; st.global.u64 [%rd10], %rd9;";
  ASSERT_EQ(Run("cudaGraphSetConditional", {"b64 %rd10", "b32 7"}, "", ones).status, CuStatus::kSuccess);
  ExpectAll(0xffffffff00000007, 0);
  EXPECT_EQ(Run("cudaGraphSetConditional", {"b64 16", "b32 7"}, "").status, CuStatus::kIllegalAddress);
  EXPECT_EQ(Run("cudaGraphSetConditional", {"b64 %rd10", "b32 7"}, "", "add.u64 %rd10, %rd10, 2;").status,
            CuStatus::kIllegalAddress);
}

TEST_F(SoftExternCall, MemoryOfTheHeapOrTheCodeOfAnError) {
  ASSERT_TRUE(m.gpu.SetHeapBytes(64 << 10));
  ASSERT_EQ(Run("__cudaCDP2Malloc", {"b64 %rd10", "b64 100"}, "b32").status, CuStatus::kSuccess);
  for (uint32_t t = 0; t < 8; ++t) {
    EXPECT_NE(words[2 * t], 0u);
    EXPECT_EQ(words[2 * t] % 16, 0u);
    EXPECT_EQ(words[2 * t + 1], 0u) << "cudaSuccess";
  }
  ASSERT_EQ(Run("__cudaCDP2Malloc", {"b64 %rd10", "b64 1000000"}, "b32").status, CuStatus::kSuccess);
  ExpectAll(0, 2);  // cudaErrorMemoryAllocation
  EXPECT_EQ(Run("__cudaCDP2Malloc", {"b64 16", "b64 100"}, "b32").status, CuStatus::kIllegalAddress);
  ASSERT_EQ(Run("__cudaCDP2Free", {"b64 0"}, "b32").status, CuStatus::kSuccess);
  ExpectAll(0, 0);
  ASSERT_EQ(Run("__cudaCDP2Free", {"b64 4096"}, "b32").status, CuStatus::kSuccess);
  ExpectAll(0, 1);  // cudaErrorInvalidValue
}

TEST_F(SoftExternCall, AlignedMemory) {
  ASSERT_TRUE(m.gpu.SetHeapBytes(1 << 20));
  for (const uint64_t align : {1ull, 16ull, 256ull, 4096ull}) {
    ASSERT_EQ(Run("__nv_aligned_device_malloc", {"b64 40", fmt::format("b64 {}", align)}, "b64").status,
              CuStatus::kSuccess);
    for (uint32_t t = 0; t < 8; ++t) {
      EXPECT_NE(words[2 * t + 1], 0u);
      EXPECT_EQ(words[2 * t + 1] % align, 0u) << align;
    }
  }
  for (const uint64_t align : {0ull, 3ull, 48ull}) {
    ASSERT_EQ(Run("__nv_aligned_device_malloc", {"b64 40", fmt::format("b64 {}", align)}, "b64").status,
              CuStatus::kSuccess);
    ExpectAll(0, 0);
  }
}

TEST_F(SoftExternCall, NullIsNoFormatAndNothingToFree) {
  ASSERT_EQ(Run("vprintf", {"b64 0", "b64 0"}, "b32").status, CuStatus::kSuccess);
  ExpectAll(0, 0xffffffff);
  EXPECT_EQ(Run("free", {"b64 0"}, "").status, CuStatus::kSuccess);
  const Outcome unreadable = Run("vprintf", {"b64 16", "b64 0"}, "b32");
  EXPECT_EQ(unreadable.status, CuStatus::kIllegalAddress);
  EXPECT_THAT(unreadable.text, HasSubstr("printf was given 0x10, from which not all can be read"));
}

// A call that passes fewer arguments than there are: the rest is 0.
TEST_F(SoftExternCall, MissingArgumentsAreZero) {
  ASSERT_TRUE(m.gpu.SetHeapBytes(64 << 10));
  ASSERT_EQ(Run("__nv_aligned_device_malloc", {"b64 40"}, "b64").status, CuStatus::kSuccess);
  ExpectAll(0, 0);
  EXPECT_EQ(Run("__cudaCDP2GetDevice", {}, "b32").status, CuStatus::kIllegalAddress);
  EXPECT_EQ(Run("free", {}, "").status, CuStatus::kSuccess);
}

TEST_F(SoftExternCall, WhatIsNotProvidedIsNamed) {
  const Outcome ran = Run("cudaNobody", {"b32 1"}, "b32");
  EXPECT_EQ(ran.status, CuStatus::kIllegalInstruction);
  EXPECT_THAT(ran.text, HasSubstr("the device function cudaNobody is not provided by the soft GPU"));
  EXPECT_THAT(ran.text, HasSubstr("thread (0,0,0)"));
}

// Kernels that need more than what every kernel has, themselves or in what they call.
TEST(SoftExternNeeds, AreThoseOfAllThatIsCalled) {
  struct Case {
    const char* name;
    const char* call;
    bool heap;
  };
  for (const Case& c : {Case{"vprintf", "{ .param .b64 a, b; .param .b32 r; call (r), vprintf, (a, b); }", false},
                        {"malloc", "{ .param .b64 a, r; call (r), malloc, (a); }", true},
                        {"free", "{ .param .b64 a; call free, (a); }", true},
                        {"last error", "{ .param .b32 r; call (r), __cudaCDP2GetLastError, (); }", true},
                        {"nothing", "", false}}) {
    SoftMachine m;
    const std::string functions =
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.extern .func (.param .b64 r) "
        "malloc(.param "
        ".b64 a);\n.extern .func free(.param .b64 a);\n.extern .func (.param .b32 r) __cudaCDP2GetLastError();\n"
        ".func inner() { " +
        std::string(c.call) + " ret; }\n.func outer() { call inner; ret; }\n";
    ASSERT_EQ(m.LoadBody("", "call outer;", functions).status, CuStatus::kSuccess) << c.name;
    EXPECT_EQ(m.module->Function("k")->uses_heap, c.heap) << c.name;
    ASSERT_EQ(m.LoadBody("", "ret;", functions).status, CuStatus::kSuccess) << c.name;
    EXPECT_FALSE(m.module->Function("k")->uses_heap) << c.name;
  }
}

// As the device runtime has it: who launches without looking whether there is a buffer is told why there was none.
TEST(ExternTest, ALaunchWithoutABufferGivesTheReasonOfItsRefusal) {
  SoftMachine m;
  const Outcome loaded = m.Load(family_ptx::kHeader + family_ptx::Kernel("child", "") +
                                family_ptx::Kernel("parent", family_ptx::Prepare("child", "1", "5000") +
                                                                 family_ptx::Start() + "st.global.u32 [%rd1], %r9;\n"));
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const GpuVa out = m.Upload(std::vector<uint32_t>(1));
  EXPECT_EQ(m.Run("parent", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(out).Add(uint32_t{0})).status, CuStatus::kSuccess);
  EXPECT_EQ(m.Download<uint32_t>(out, 1)[0], static_cast<uint32_t>(DeviceError::kInvalidConfiguration));
}

}  // namespace
}  // namespace vgpud::soft
