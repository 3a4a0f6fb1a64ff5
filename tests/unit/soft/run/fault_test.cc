// SPDX-License-Identifier: Apache-2.0
// What kernels and callers may get wrong, and how they are told.
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

Outcome RunBody(const std::string& body, const std::string& globals = "") {
  SoftMachine m;
  const Outcome loaded = m.LoadBody(".param .u64 out", "ld.param.u64 %rd1, [out];\n" + body, globals);
  if (loaded.status != CuStatus::kSuccess) return loaded;
  const GpuVa out = m.Alloc(4096);
  return m.Run("k", {{2, 1, 1}, {64, 1, 1}, 0}, Params().Add(out));
}

struct FaultCase {
  const char* name;
  const char* body;
  CuStatus status;
  const char* text;
};
class SoftFault : public testing::TestWithParam<FaultCase> {};

TEST_P(SoftFault, HasTheStatusAndSaysWhere) {
  const FaultCase& c = GetParam();
  const Outcome r = RunBody(c.body, ".shared .align 4 .b8 tile[64];");
  EXPECT_EQ(r.status, c.status) << r.text;
  EXPECT_THAT(r.text, HasSubstr(c.text));
  EXPECT_THAT(r.text, HasSubstr("kernel k, PTX line 15, block (0,0,0), thread ("));
}

INSTANTIATE_TEST_SUITE_P(
    , SoftFault,
    testing::Values(
        FaultCase{"null_load", "\nld.global.u32 %r1, [4];", CuStatus::kIllegalAddress, "global load of 4 bytes at 0x4"},
        FaultCase{"far_store", "mov.u32 %r1, 7;\nst.global.u32 [%rd1+67108864], %r1;", CuStatus::kIllegalAddress,
                  "global store of 4 bytes"},
        FaultCase{"negative_offset", "\nld.global.u8 %r1, [%rd1+-140000];", CuStatus::kIllegalAddress, "load of 1"},
        FaultCase{"misaligned", "\nld.global.u32 %r1, [%rd1+2];", CuStatus::kMisalignedAddress, "is misaligned"},
        FaultCase{"misaligned_vector", "\nld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1+8];", CuStatus::kMisalignedAddress,
                  "load of 16 bytes"},
        FaultCase{"shared_end", "mov.u32 %r1, tile;\nst.shared.u32 [%r1+64], %r1;", CuStatus::kIllegalAddress,
                  "shared store of 4 bytes at 0x40"},
        FaultCase{"shared_misaligned", "mov.u32 %r1, tile;\nld.shared.u32 %r2, [%r1+3];", CuStatus::kMisalignedAddress,
                  "at 0x3"},
        FaultCase{"generic_nowhere", "mov.u64 %rd2, 0x123456;\nld.u8 %r1, [%rd2];", CuStatus::kIllegalAddress,
                  "at 0x123456"},
        FaultCase{"atomic_misaligned", "\natom.global.add.u32 %r1, [%rd1+1], 1;", CuStatus::kMisalignedAddress, "at"},
        FaultCase{"atomic_on_local", "cvta.local.u64 %rd2, 0;\natom.add.u32 %r1, [%rd2], 1;",
                  CuStatus::kInvalidAddressSpace, "atomic operation of 4 bytes at 0x6d0000000000 is in a space"},
        FaultCase{"local_misuse_of_cvta", "cvta.to.local.u64 %rd2, %rd1;\nld.local.u32 %r1, [%rd2];",
                  CuStatus::kIllegalAddress, "load of 4 bytes"},
        FaultCase{"shared_vector_misaligned", "mov.u32 %r1, tile;\nld.shared.v4.u32 {%r2,%r3,%r4,%r5}, [%r1+4];",
                  CuStatus::kMisalignedAddress, "shared load of 16 bytes at 0x4 is misaligned"},
        FaultCase{"shared_window", "cvta.shared.u64 %rd2, 4096;\nst.u32 [%rd2], %r1;", CuStatus::kIllegalAddress,
                  "store of 4 bytes at 0x6e0000001000"},
        FaultCase{"far_jump", "mov.u64 %rd2, 42;\ncall %rd2, ();", CuStatus::kInvalidPc, "call of 0x2a"},
        FaultCase{"trap", "\ntrap;", CuStatus::kLaunchFailed, "trap"},
        FaultCase{"brkpt", "\nbrkpt;", CuStatus::kLaunchFailed, "trap"},
        FaultCase{"barrier_count", "\nbar.sync 0, 33;", CuStatus::kIllegalInstruction, "barrier for 33 threads, not a"},
        FaultCase{"barrier_number", "\nbar.sync 16;", CuStatus::kIllegalInstruction, "barrier 16"}),
    [](const auto& p) { return std::string(p.param.name); });

TEST(SoftFaultLane, NamesTheThreadThatDidIt) {
  SoftMachine m;
  ASSERT_EQ(m.LoadBody(".param .u64 out", R"(
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 33554432;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;)")
                .status,
            CuStatus::kSuccess);
  const Outcome r = m.Run("k", {{1, 1, 1}, {8, 4, 1}, 0}, Params().Add(m.Alloc(256)));
  EXPECT_EQ(r.status, CuStatus::kIllegalAddress);
  EXPECT_THAT(r.text, HasSubstr("thread (1,0,0)"));
}

// Recursion without an end is the kernel's fault and costs the host a bounded stack.
TEST(SoftFaultStack, RecursionDeeperThanTheStackIsTold) {
  const Outcome r = RunBody("call down, ();", R"(
.func down()
{
.local .align 8 .b8 room[64];
.reg .b32 %r<2>;
st.local.u32 [room], %r1;
call down, ();
ret;
})");
  EXPECT_EQ(r.status, CuStatus::kHardwareStackError);
  EXPECT_THAT(r.text,
              HasSubstr("kernel k, function down, PTX line 10, block (0,0,0), thread (0,0,0): the call stack is"));
  EXPECT_GE(r.instructions, 3 * 24u);
}

TEST(SoftFaultStack, ModestRecursionFits) {
  SoftMachine m;
  ASSERT_EQ(m.LoadBody(".param .u64 out", "{ .param .b32 a; mov.u32 %r1, 200; st.param.b32 [a], %r1; call down, (a); }",
                       R"(
.func down(.param .b32 left)
{
.reg .b32 %r<3>;
.reg .pred %p<2>;
ld.param.u32 %r1, [left];
setp.eq.u32 %p1, %r1, 0;
@%p1 ret;
sub.u32 %r2, %r1, 1;
{ .param .b32 a; st.param.b32 [a], %r2; call down, (a); }
ret;
})")
                .status,
            CuStatus::kSuccess);
  EXPECT_EQ(m.Run("k", {{1, 1, 1}, {64, 1, 1}, 0}, Params().Add(GpuVa{0})).status, CuStatus::kSuccess);
}

TEST(SoftFaultSticky, AGridThatFailedGoesOnFailing) {
  SoftMachine m;
  ASSERT_EQ(m.LoadBody("", "trap;").status, CuStatus::kSuccess);
  const auto grid = m.Launch("k", {{1, 1, 1}, {1, 1, 1}, 0}, Params());
  EXPECT_FALSE(grid->Run({&m.word, 0}, 10));
  EXPECT_FALSE(grid->Run({&m.word, 0}, 10));
}

TEST(SoftLoad, UnknownInstructionIsNamedWithItsLine) {
  const Outcome r = RunBody("\nfrobnicate.u32 %r1, %r2;");
  EXPECT_EQ(r.status, CuStatus::kInvalidPtx);
  EXPECT_THAT(r.text, HasSubstr("line 15"));
  EXPECT_THAT(r.text, HasSubstr("frobnicate.u32 %r1, %r2"));
}

TEST(SoftLoad, UnknownModifierIsNamedWithItsLine) {
  const Outcome r = RunBody("\nadd.wobbly.u32 %r1, %r2, %r3;");
  EXPECT_EQ(r.status, CuStatus::kInvalidPtx);
  EXPECT_THAT(r.text, HasSubstr("add.wobbly.u32"));
}

TEST(SoftLoad, SaturationWhereThereIsNoneIsRefused) {
  EXPECT_EQ(RunBody("mul.lo.sat.u32 %r1, %r2, %r3;").status, CuStatus::kInvalidPtx);
}

TEST(SoftLaunch, ShapesAreChecked) {
  SoftMachine m;
  ASSERT_EQ(m.LoadBody(".param .u64 out", "").status, CuStatus::kSuccess);
  const FunctionInfo& f = *m.module->Function("k");
  const uint64_t zero = 0;
  const auto params = std::as_bytes(std::span(&zero, 1));
  const auto status = [&](const LaunchShape& shape, std::span<const std::byte> p) {
    auto r = m.gpu.Launch(f, shape, p, 49152);
    return r ? CuStatus::kSuccess : r.error().status;
  };
  EXPECT_EQ(status({{1, 1, 1}, {1024, 1, 1}, 0}, params), CuStatus::kSuccess);
  EXPECT_EQ(status({{0, 1, 1}, {32, 1, 1}, 0}, params), CuStatus::kInvalidValue);
  EXPECT_EQ(status({{1, 65536, 1}, {32, 1, 1}, 0}, params), CuStatus::kInvalidValue);
  EXPECT_EQ(status({{1, 1, 1}, {1024, 2, 1}, 0}, params), CuStatus::kInvalidValue);
  EXPECT_EQ(status({{1, 1, 1}, {1, 1, 65}, 0}, params), CuStatus::kInvalidValue);
  EXPECT_EQ(status({{1, 1, 1}, {32, 1, 1}, 49153}, params), CuStatus::kInvalidValue);
  EXPECT_EQ(status({{1, 1, 1}, {32, 1, 1}, 0}, params.first(7)), CuStatus::kInvalidValue);
}

TEST(SoftMemory, CopiesStayInsideOneAllocation) {
  SoftMachine m;
  const GpuVa a = m.Alloc(100);
  m.Alloc(100);
  std::vector<std::byte> bytes(101);
  EXPECT_TRUE(m.gpu.CopyIn(a, std::span(bytes).first(100)));
  EXPECT_EQ(m.gpu.CopyIn(a, bytes).error().status, CuStatus::kInvalidValue);
  EXPECT_EQ(m.gpu.CopyOut(std::span(bytes).first(1), GpuVa{Raw(a) - 1}).error().status, CuStatus::kInvalidValue);
  EXPECT_EQ(m.gpu.Fill(a, 0, 4, UINT64_MAX / 4).error().status, CuStatus::kInvalidValue);
  EXPECT_EQ(m.gpu.CopyDev(a, GpuVa{0}, 8).error().status, CuStatus::kInvalidValue);
  EXPECT_EQ(m.gpu.Free(GpuVa{Raw(a) + 512}).has_value(), true) << "second allocation";
  EXPECT_EQ(m.gpu.Free(GpuVa{Raw(a) + 1}).error().status, CuStatus::kInvalidValue);
  EXPECT_EQ(*m.gpu.Free(a), m.gpu.AllocationBytes(100));
  EXPECT_EQ(m.gpu.Free(a).error().status, CuStatus::kInvalidValue);
}

TEST(SoftMemory, AllOfItCanBeTakenAndGivenBack) {
  SoftMachine m(BestIsa(), 4 << 20);
  std::vector<GpuVa> taken;
  for (;;) {
    auto va = m.gpu.Alloc(300'000);
    if (!va) {
      EXPECT_EQ(va.error().status, CuStatus::kOutOfMemory);
      break;
    }
    taken.push_back(*va);
  }
  EXPECT_EQ(taken.size(), (4u << 20) / m.gpu.AllocationBytes(300'000));
  for (size_t n = 0; n < taken.size(); n += 2) EXPECT_TRUE(m.gpu.Free(taken[n]));
  for (size_t n = 1; n < taken.size(); n += 2) EXPECT_TRUE(m.gpu.Free(taken[n]));
  EXPECT_TRUE(m.gpu.Alloc(4 << 20));
}

TEST(SoftMemory, GlobalsHaveTheirInitialValuesAndCannotBeFreed) {
  SoftMachine m;
  ASSERT_EQ(m.LoadBody("", "", R"(
.global .align 4 .u32 answer = 42;
.const .align 4 .b8 bytes[8] = {1, 2, 3};
.global .align 8 .u64 pointer = generic(answer);
)")
                .status,
            CuStatus::kSuccess);
  const auto answer = m.module->FindGlobal("answer");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->bytes, 4u);
  EXPECT_EQ(m.Download<uint32_t>(answer->address, 1)[0], 42u);
  EXPECT_EQ(m.Download<uint8_t>(m.module->FindGlobal("bytes")->address, 8),
            (std::vector<uint8_t>{1, 2, 3, 0, 0, 0, 0, 0}));
  EXPECT_EQ(m.Download<uint64_t>(m.module->FindGlobal("pointer")->address, 1)[0], Raw(answer->address));
  EXPECT_EQ(m.gpu.Free(answer->address).error().status, CuStatus::kInvalidValue);
  EXPECT_EQ(m.module->FindGlobal("nothing").error().status, CuStatus::kNotFound);
}

}  // namespace
}  // namespace vgpud::soft
