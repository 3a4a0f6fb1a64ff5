// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels, in the form that nvcc gives such launches.
#include "gpu/soft/run/device_launches.h"
#include "tests/unit/soft/rig/soft_fixture.h"
#include "tests/unit/soft/state/family_ptx.h"

namespace vgpud::soft {
namespace {

using family_ptx::Kernel;
using family_ptx::kHeader;
using family_ptx::kTail;
using family_ptx::LastError;
using family_ptx::Launch;
using family_ptx::Note;
using family_ptx::Prepare;
using family_ptx::Start;

class GridFamilyTest : public testing::Test {
 protected:
  // The list that `k` and its descendants write.
  std::vector<uint32_t> List(const std::string& kernels, uint64_t budget = UINT64_MAX, uint64_t heap = 8 << 20) {
    SoftMachine m;
    EXPECT_TRUE(m.gpu.SetHeapBytes(heap));
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

TEST_F(GridFamilyTest, AKernelWithoutParametersIsLaunchedToo) {
  const std::string kernels =
      ".visible .global .u32 sum;\n.visible .entry plain() { .reg .b32 %r<3>; mov.u32 %r1, 1;\n"
      "red.global.add.u32 [sum], %r1; ret; }\n" +
      Kernel("show", "ld.global.u32 %r1, [sum];\n" + Note()) +
      Kernel("k", Prepare("plain", "3", "2") + Start() + Launch("show", "0", kTail));
  EXPECT_EQ(List(kernels), std::vector<uint32_t>{6});
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

TEST_F(GridFamilyTest, WhatCannotBeLaunchedHasNoBuffer) {
  const std::string note = "cvt.u32.u64 %r1, %rd9;\n" + Note();
  const std::string kernels = ".func nothing() { ret; }\n" + Kernel("leaf", Note()) +
                              Kernel("k", Prepare("leaf", "0", "1") + note + Prepare("leaf", "1", "1025") + note +
                                              Prepare("nothing", "1", "1") + note);
  EXPECT_EQ(List(kernels), (std::vector<uint32_t>{0, 0, 0}));
}

TEST_F(GridFamilyTest, ABudgetIsForAllOfThem) {
  SoftMachine m;
  ASSERT_EQ(m.Load(kHeader + Kernel("leaf", "L: bra L;\n") + Kernel("k", Launch("leaf", "1"))).status,
            CuStatus::kSuccess);
  const auto family = m.Launch("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().Add(m.Alloc(16)).Add(0u));
  uint64_t ran = 0;
  for (const uint64_t budget : {3, 5, 1000, 1, 500}) {
    EXPECT_EQ(*family->Run({&m.word, 0}, budget), GpuGrid::Progress::kYield);
    ran += budget;
    EXPECT_EQ(family->warp_instructions(), ran);
  }
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
  const std::string last = LastError() + "mov.u32 %r1, %r3;\n" + Note();
  const std::string function = ".func nothing() { ret; }\n";
  const std::string kernels = function + Kernel("leaf", Note()) +
                              Kernel("k", Prepare("leaf", "1", "1025") + last + last + Prepare("nothing", "1", "1") +
                                              last + "mov.u64 %rd9, 64;\n" + Start() + last);
  EXPECT_EQ(List(kernels), (std::vector<uint32_t>{9, 0, 98, 1}));
}

// 69: cudaErrorLaunchPendingCountExceeded, 2: cudaErrorMemoryAllocation
TEST_F(GridFamilyTest, WhatThereIsNoRoomForSaysWhichRoom) {
  const std::string loop = "mov.u32 %r5, 0;\nLOOP:\n" + Prepare("leaf", "1", "1") +
                           "setp.eq.u64 %p1, %rd9, 0; @%p1 bra END; add.u32 %r5, %r5, 1; bra LOOP;\n"
                           "END: mov.u32 %r1, %r5;\n" +
                           Note() + LastError() + "mov.u32 %r1, %r3;\n" + Note();
  const std::string kernels = Kernel("leaf", Note()) + Kernel("k", loop);
  EXPECT_EQ(List(kernels), (std::vector<uint32_t>{65536, 69}));
  EXPECT_EQ(List(kernels, UINT64_MAX, 256), (std::vector<uint32_t>{4, 2})) << "each takes 64 bytes of the heap";
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
