// SPDX-License-Identifier: Apache-2.0
// The check mode: what it finds, what it says, and that it says nothing about sound programs.
#include "gpu/soft/run/access_check.h"

#include <gmock/gmock.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;
using testing::Not;

class SoftCheck : public testing::Test {
 protected:
  SoftCheck() { m.gpu.SetCheck(); }
  // Runs the body with %rd1 = an allocation of 100 bytes; what was reported.
  std::string Reports(const std::string& body, uint32_t threads = 32, uint32_t blocks = 1) {
    const Outcome loaded = m.LoadBody(".param .u64 out", "ld.param.u64 %rd1, [out];\n" + body,
                                      ".shared .align 8 .b8 tile[256];\n.shared .align 8 .b8 bar[8];");
    EXPECT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    if (loaded.status != CuStatus::kSuccess) return loaded.text;
    if (Raw(out) == 0) out = m.Alloc(100);
    ran = m.Run("k", {{blocks, 1, 1}, {threads, 1, 1}, 0}, Params().Add(out));
    return Printed();
  }
  std::string Printed() {
    std::string text(1 << 16, '\0');
    bool to_stderr = false;
    text.resize(m.gpu.TakePrinted(std::as_writable_bytes(std::span(text)), &to_stderr));
    EXPECT_TRUE(text.empty() || to_stderr);
    return text;
  }
  SoftMachine m;
  GpuVa out{};
  Outcome ran;
};

TEST_F(SoftCheck, AStoreBehindAnAllocationIsReportedAndGoesOn) {
  const std::string text = Reports("st.global.u32 [%rd1+96], 7;\nst.global.u32 [%rd1+100], 7;");
  EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  EXPECT_THAT(text, HasSubstr("check: kernel k, PTX line 16, block (0,0,0), thread (0,0,0): store of 4 bytes at"));
  EXPECT_THAT(text, HasSubstr("0 bytes after the allocation of 100 bytes at 0x7000"));
  EXPECT_EQ(m.gpu.check()->reports(), 1u) << "the 32 lanes of one instruction are one report";
}

TEST_F(SoftCheck, AnAccessAcrossTheEndIsReported) {
  EXPECT_THAT(Reports("ld.global.u64 %rd2, [%rd1+96];"), HasSubstr("across the end of the allocation of 100 bytes"));
}

TEST_F(SoftCheck, OnlyTheLaneThatIsOutsideIsNamed) {
  const std::string text = Reports(R"(mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd3, %rd1, %rd2;
ld.global.u32 %r2, [%rd3];)");
  EXPECT_THAT(text, HasSubstr("thread (25,0,0): load of 4 bytes"));
}

TEST_F(SoftCheck, UseAfterFreeIsReported) {
  const GpuVa other = m.Alloc(512);
  out = m.Alloc(100);
  ASSERT_TRUE(m.gpu.Free(out));
  const std::string text = Reports("ld.global.u32 %r1, [%rd1+8];");
  EXPECT_THAT(text, HasSubstr("8 bytes into an allocation of 100 bytes at"));
  EXPECT_THAT(text, HasSubstr("that was freed"));
  EXPECT_TRUE(m.gpu.Free(other));
}

TEST_F(SoftCheck, GenericAddressesAndAtomicsAreChecked) {
  EXPECT_THAT(Reports("st.u8 [%rd1+100], 1;"), HasSubstr("store of 1 bytes"));
  EXPECT_THAT(Reports("red.global.add.u32 [%rd1+104], 1;"), HasSubstr("atomic operation of 4 bytes"));
  EXPECT_THAT(Reports("setp.eq.u32 %p1, 1, 1;\n@%p1 st.global.u32 [%rd1+200], 1;"), HasSubstr("100 bytes after"));
}

TEST_F(SoftCheck, UnwrittenSharedMemoryIsReported) {
  const std::string text =
      Reports("st.shared.u32 [tile+4], 1;\nld.shared.u32 %r1, [tile+4];\nld.shared.u64 %rd2, [tile];");
  EXPECT_THAT(text, HasSubstr("PTX line 17"));
  EXPECT_THAT(text, HasSubstr("shared load of 8 bytes at 0x0, where the block has written nothing"));
  EXPECT_EQ(m.gpu.check()->reports(), 1u);
}

TEST_F(SoftCheck, EachBlockAndEachLaunchBeginsUnwritten) {
  const char* body = R"(mov.u32 %r1, %ctaid.x;
setp.eq.u32 %p1, %r1, 0;
@%p1 st.shared.u32 [tile], 1;
ld.shared.u32 %r2, [tile];)";
  EXPECT_EQ(Reports(body, 1, 1), "");
  EXPECT_THAT(Reports(body, 1, 2), HasSubstr("block (1,0,0)"));
  EXPECT_EQ(Reports("st.shared.u32 [tile], 1;", 1), "");
  EXPECT_THAT(Reports("ld.shared.u32 %r2, [tile];", 1), HasSubstr("written nothing"));
}

TEST_F(SoftCheck, WritesThatAreNotFollowedAreNotMistaken) {
  EXPECT_EQ(Reports("mov.u32 %r1, bar;\nmbarrier.init.shared.b64 [%r1], 1;\nld.shared.u64 %rd2, [%r1];", 1), "");
}

TEST_F(SoftCheck, ReportsAreBounded) {
  const std::string text = Reports(
      "mov.u32 %r1, 0;\nL: ld.global.u8 %r2, [%rd1+100];\nld.global.u8 %r2, [%rd1+101];\n"
      "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 1000;\n@%p1 bra L;");
  EXPECT_EQ(m.gpu.check()->reports(), 2000u);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<ptrdiff_t>(AccessCheck::kMostReports) + 1);
  EXPECT_THAT(text, HasSubstr("this was the last report"));
}

TEST_F(SoftCheck, FreedMemoryIsNamedUpToItsLastByte) {
  m.Alloc(512);
  out = m.Alloc(100);
  ASSERT_TRUE(m.gpu.Free(out));
  EXPECT_THAT(Reports("ld.global.u8 %r1, [%rd1];"), HasSubstr(": 0 bytes into an allocation of 100 bytes"));
  EXPECT_THAT(Reports("ld.global.u8 %r1, [%rd1+99];"), HasSubstr(": 99 bytes into an allocation of 100 bytes"));
  EXPECT_THAT(Reports("ld.global.u8 %r1, [%rd1+100];"), HasSubstr("100 bytes after the allocation of 512 bytes"));
}

TEST_F(SoftCheck, TheLast1024FreedAllocationsAreKnown) {
  out = m.Alloc(512);
  std::vector<GpuVa> freed;
  for (int n = 0; n < 1025; ++n) freed.push_back(m.Alloc(512));
  for (const GpuVa va : freed) ASSERT_TRUE(m.gpu.Free(va));
  EXPECT_THAT(Reports("ld.global.u8 %r1, [%rd1+512];"), HasSubstr("0 bytes after the allocation of 512 bytes"));
  EXPECT_THAT(Reports("ld.global.u8 %r1, [%rd1+1024];"), HasSubstr("that was freed"));
}

TEST_F(SoftCheck, SharedMemoryIsFollowedToItsLastByte) {
  EXPECT_THAT(Reports("ld.shared.u64 %rd2, [bar];", 1), HasSubstr("shared load of 8 bytes at 0x0"));
  EXPECT_EQ(Reports("st.shared.u64 [bar], 1;\nld.shared.u64 %rd2, [bar];", 1), "");
  EXPECT_THAT(Reports("st.shared.u32 [bar], 1;\nld.shared.u64 %rd2, [bar];", 1), HasSubstr("shared load of 8 bytes"));
  EXPECT_THAT(Reports("atom.shared.add.u32 %r1, [tile+8], 1;", 1),
              HasSubstr("shared atomic operation of 4 bytes at 0x8"));
  EXPECT_EQ(Reports("st.shared.u32 [tile], 1;\natom.shared.add.u32 %r1, [tile], 1;", 1), "");
}

TEST_F(SoftCheck, GenericAddressesOfOtherSpacesAreNotGlobalMemory) {
  const std::string shared = "mov.u64 %rd2, tile;\ncvta.shared.u64 %rd2, %rd2;\n";
  EXPECT_THAT(Reports(shared + "ld.u32 %r1, [%rd2+12];", 1), HasSubstr("shared load of 4 bytes at 0xc"));
  EXPECT_EQ(Reports(shared + "st.u32 [%rd2], 1;\nld.shared.u32 %r1, [tile];", 1), "");
  EXPECT_EQ(Reports(".local .align 4 .b8 mem[16];\nmov.u64 %rd2, mem;\ncvta.local.u64 %rd2, %rd2;\n"
                    "st.u32 [%rd2+12], 1;\nld.u32 %r1, [%rd2+12];",
                    1),
            "");
  EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
}

TEST_F(SoftCheck, RealKernelsAreSound) {
  ASSERT_EQ(m.Load(ReadPtx("vectoradd")).status, CuStatus::kSuccess);
  const GpuVa a = m.Alloc(4000), b = m.Alloc(4000), c = m.Alloc(4000);
  EXPECT_EQ(m.Run("vectoradd", {{4, 1, 1}, {256, 1, 1}, 0}, Params().Add(a).Add(b).Add(c).Add(1000u)).status,
            CuStatus::kSuccess);
  EXPECT_EQ(Printed(), "");
  EXPECT_EQ(m.Run("vectoradd", {{4, 1, 1}, {256, 1, 1}, 0}, Params().Add(a).Add(b).Add(c).Add(1001u)).status,
            CuStatus::kSuccess);
  EXPECT_THAT(Printed(), HasSubstr("thread (232,0,0)"));
}

TEST(SoftCheckOff, NothingIsDecodedOrSaid) {
  SoftMachine off, on;
  on.gpu.SetCheck();
  const auto size = [](SoftMachine& m) {
    EXPECT_EQ(m.Load(ReadPtx("vectoradd")).status, CuStatus::kSuccess);
    return static_cast<SoftModule&>(*m.module).program()->code.size();
  };
  EXPECT_EQ(size(on), size(off) + 3) << "two loads and a store";
  EXPECT_EQ(off.gpu.check(), nullptr);
}

}  // namespace
}  // namespace vgpud::soft
