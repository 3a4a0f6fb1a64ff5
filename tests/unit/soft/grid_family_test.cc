// Kernels that launch kernels, in the form that nvcc gives such launches.
#include "gpu/soft/device_launches.h"
#include "tests/unit/soft/soft_fixture.h"

namespace vgpud::soft {
namespace {

constexpr const char* kHeader = R"(.version 9.0
.target sm_75
.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2
(.param .b64 a, .param .align 4 .b8 b[12], .param .align 4 .b8 c[12], .param .b32 d);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);
.extern .func (.param .b32 r) __cudaCDP2GetLastError();
)";

// %rd9: the buffer, 0 = refused.
std::string Prepare(const std::string& kernel, const std::string& blocks, const std::string& threads) {
  return "{ .param .b64 p0; .param .align 4 .b8 p1[12]; .param .align 4 .b8 p2[12]; .param .b32 p3; .param .b64 q;\n"
         "mov.u64 %rd8, " +
         kernel + "; st.param.b64 [p0+0], %rd8;\nst.param.b32 [p1+0], " + blocks +
         "; st.param.b32 [p1+4], 1; st.param.b32 [p1+8], 1;\nst.param.b32 [p2+0], " + threads +
         "; st.param.b32 [p2+4], 1; st.param.b32 [p2+8], 1;\nst.param.b32 [p3+0], 0;\n"
         "call.uni (q), __cudaCDP2GetParameterBufferV2, (p0, p1, p2, p3);\nld.param.b64 %rd9, [q+0]; }\n";
}
std::string Start(const std::string& stream = "0") {
  return "{ .param .b64 p0; .param .b64 p1; .param .b32 q; st.param.b64 [p0+0], %rd9; st.param.b64 [p1+0], " + stream +
         ";\ncall.uni (q), __cudaCDP2LaunchDeviceV2, (p0, p1);\nld.param.b32 %r9, [q+0]; }\n";
}
std::string Kernel(const std::string& name, const std::string& body) {
  return ".visible .entry " + name +
         "(.param .u64 out, .param .u32 value)\n{\n.reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n.reg .pred %p<4>;\n"
         "ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [value];\n" +
         body + "ret;\n}\n";
}
// Adds `value` to the end of the list at out: count, then its members.
std::string Note() {
  return "atom.global.add.u32 %r2, [%rd1], 1; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd1, %rd2;\n"
         "st.global.u32 [%rd2+4], %r1;\n";
}
std::string Launch(const std::string& kernel, const std::string& value, const std::string& stream = "0") {
  return Prepare(kernel, "1", "1") + "st.u64 [%rd9], %rd1; st.u32 [%rd9+8], " + value + ";\n" + Start(stream);
}
constexpr const char* kTail = "3";

class GridFamilyTest : public testing::Test {
 protected:
  // The list that `k` and its descendants write.
  std::vector<uint32_t> List(const std::string& kernels, uint64_t budget = UINT64_MAX) {
    SoftMachine m;
    const Outcome loaded = m.Load(kHeader + kernels);
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    const GpuVa out = m.Alloc(4096);
    outcome_ = m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(out).Add(0u), budget);
    const uint32_t count = m.Download<uint32_t>(out, 1)[0];
    EXPECT_LT(count, 1000u);
    return m.Download<uint32_t>(GpuVa{Raw(out) + 4}, std::min(count, 1000u));
  }
  Outcome outcome_;
};

TEST_F(GridFamilyTest, ChildrenRunAfterTheirParentInTheirOrderEachWithItsOwn) {
  const std::string kernels = Kernel("leaf", Note()) +
                              Kernel("child", Note() + "add.u32 %r3, %r1, 1;\n" + Launch("leaf", "%r3")) +
                              Kernel("k", Launch("child", "10") + Launch("child", "20") + Note());
  EXPECT_EQ(List(kernels), (std::vector<uint32_t>{0, 10, 11, 20, 21}));
  EXPECT_EQ(outcome_.status, CuStatus::kSuccess) << outcome_.text;
}

TEST_F(GridFamilyTest, TailLaunchesComeLast) {
  const std::string kernels =
      Kernel("leaf", Note()) + Kernel("k", Launch("leaf", "1", kTail) + Launch("leaf", "2") + Note());
  EXPECT_EQ(List(kernels), (std::vector<uint32_t>{0, 2, 1}));
}

TEST_F(GridFamilyTest, CutsAnywhereChangeNothing) {
  const std::string kernels = Kernel("leaf", Note()) +
                              Kernel("child", Note() + "add.u32 %r3, %r1, 1;\n" + Launch("leaf", "%r3")) +
                              Kernel("k", Launch("child", "10") + Note());
  for (const uint64_t budget : {1, 2, 3, 7}) EXPECT_EQ(List(kernels, budget), (std::vector<uint32_t>{0, 10, 11}));
}

TEST_F(GridFamilyTest, AChainOfAnyLengthTakesNoMoreRoom) {
  // Each member launches the next until the value is 100000; all note in the same word.
  const std::string kernels = Kernel("k",
                                     "atom.global.add.u32 %r2, [%rd1], 1; setp.ge.u32 %p1, %r1, 100000; @%p1 bra END;\n"
                                     "add.u32 %r3, %r1, 1;\n" +
                                         Launch("k", "%r3") + "END:\n");
  SoftMachine m;
  ASSERT_EQ(m.Load(kHeader + kernels).status, CuStatus::kSuccess);
  const GpuVa out = m.Alloc(4096);
  const Outcome ran = m.Run("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(out).Add(0u));
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  EXPECT_EQ(m.Download<uint32_t>(out, 1)[0], 100001u);
}

TEST_F(GridFamilyTest, AFaultOfAChildIsTheLaunchsFault) {
  const std::string kernels = Kernel("bad", "trap;\n") + Kernel("k", Launch("bad", "1") + Launch("bad", "2"));
  List(kernels);
  EXPECT_EQ(outcome_.status, CuStatus::kLaunchFailed);
  EXPECT_NE(outcome_.text.find("kernel bad"), std::string::npos) << outcome_.text;
}

TEST_F(GridFamilyTest, WhatCannotBeLaunchedGivesAnErrorToTheKernel) {
  // 9: cudaErrorInvalidConfiguration, 98: cudaErrorInvalidDeviceFunction; asked for twice: 0
  const std::string last =
      "{ .param .b32 q; call.uni (q), __cudaCDP2GetLastError, (); ld.param.b32 %r1, [q+0]; }\n" + Note();
  const std::string function = ".func nothing() { ret; }\n";
  const std::string kernels = function + Kernel("leaf", Note()) +
                              Kernel("k", Prepare("leaf", "1", "1025") + last + last + Prepare("nothing", "1", "1") +
                                              last + "mov.u64 %rd9, 64;\n" + Start() + last);
  EXPECT_EQ(List(kernels), (std::vector<uint32_t>{9, 0, 98, 1}));
}

TEST_F(GridFamilyTest, PendingLaunchesAreBounded) {
  const std::string kernels = Kernel("leaf", Note()) +
                              Kernel("k", "mov.u32 %r5, 0;\nLOOP:\n" + Prepare("leaf", "1", "1") +
                                              "setp.eq.u64 %p1, %rd9, 0; @%p1 bra END; add.u32 %r5, %r5, 1; bra LOOP;\n"
                                              "END: mov.u32 %r1, %r5;\n" +
                                              Note());
  EXPECT_EQ(List(kernels), std::vector<uint32_t>{DeviceLaunches::kMostPending});
}

}  // namespace
}  // namespace vgpud::soft
