// SPDX-License-Identifier: Apache-2.0
// Tensor memory: allocation, what lies where in tcgen05.ld and .st, and what ends a context.
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

const std::string kAlloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 ";
const std::string kDealloc = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 ";

// One warp runs the body, then writes %r1 of each lane to the memory that is given back.
Outcome RunWarp(const std::string& body, std::vector<uint32_t>* result = nullptr) {
  SoftMachine m(BestIsa(), 64 << 20, 1, **FindComputeCapability("10.0"));
  const Outcome loaded = m.LoadBody(
      ".param .u64 out", ".shared .align 8 .b8 slot[8]; mov.u32 %r30, %tid.x; mov.u32 %r1, 0;" + body +
                             "ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r30, 4; add.u64 %rd1, %rd1, %rd2;"
                             "st.global.u32 [%rd1], %r1;");
  if (loaded.status != CuStatus::kSuccess) return loaded;
  const GpuVa out = m.Alloc(128);
  const Outcome ran = m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(out));
  if (result != nullptr) *result = m.Download<uint32_t>(out, 32);
  return ran;
}

TEST(SoftTensorMemory, ColumnsAreGivenAndTakenBack) {
  std::vector<uint32_t> at;
  const std::string read = "ld.shared.u32 %r2, [slot]; shl.b32 %r1, %r1, 12; or.b32 %r1, %r1, %r2;";
  const std::string body = kAlloc + "[slot], 32;" + kAlloc + "[slot], 128;" + read + kDealloc + "0, 32;" + kAlloc +
                           "[slot], 256;" + read + kAlloc + "[slot], 32;" + read;
  const Outcome ran = RunWarp(body, &at);
  EXPECT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  EXPECT_EQ(at[0], 32u << 24 | 160u << 12 | 0u);
}

TEST(SoftTensorMemory, WhatIsNotAllocatedCannotBeReached) {
  const std::string alloc = kAlloc + "[slot], 64;";
  const std::string wide = "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r1, %r2, %r3, %r4}, ";
  struct Case {
    std::string body;
    CuStatus status;
    const char* text;
  };
  const Case cases[] = {
      {alloc + wide + "[60];", CuStatus::kSuccess, ""},
      {wide + "[0];", CuStatus::kIllegalAddress, "not all of the 4 columns"},
      {alloc + wide + "[61];", CuStatus::kIllegalAddress, "not all of the 4 columns from number 61"},
      {alloc + wide + "[65535];", CuStatus::kIllegalAddress, "not all of the 4 columns"},
      {alloc + wide + "[0xffff0000];", CuStatus::kIllegalAddress, "lane 65535"},
      {alloc + wide + "[0x200000];", CuStatus::kIllegalAddress, "lane 32 is not one at which warp 0 may begin"},
      {alloc + wide + "[0x100000];", CuStatus::kIllegalAddress, "lane 16 is not one"},
      {alloc + "tcgen05.st.sync.aligned.16x64b.x1.b32 [0x80000], {%r1};", CuStatus::kIllegalAddress, "lane 8 is not"},
      {alloc + kDealloc + "0, 64;" + wide + "[0];", CuStatus::kIllegalAddress, "not all of the 4"},
      {alloc + kDealloc + "0, 32;", CuStatus::kIllegalAddress, "no such allocation"},
      {alloc + kDealloc + "32, 32;", CuStatus::kIllegalAddress, "no such allocation"},
      {alloc + kDealloc + "0, 128;", CuStatus::kIllegalAddress, "no such allocation"},
      {alloc + kDealloc + "0xffffffe0, 64;", CuStatus::kIllegalAddress, "no such allocation"},
      {alloc + alloc + kDealloc + "0, 128;", CuStatus::kIllegalAddress, "no such allocation"},
      {alloc + kAlloc + "[slot], 512;", CuStatus::kIllegalInstruction, "not free side by side"},
      {kAlloc + "[slot], 48;", CuStatus::kIllegalInstruction, "a power of two from 32 to 512"},
      {kAlloc + "[slot], 16;", CuStatus::kIllegalInstruction, "a power of two from 32 to 512"},
      {kAlloc + "[slot], 1024;", CuStatus::kIllegalInstruction, "a power of two from 32 to 512"},
      {kAlloc + "[slot+8], 32;", CuStatus::kIllegalAddress, "shared memory of the block"},
      {kAlloc + "[slot+2], 32;", CuStatus::kMisalignedAddress, "shared memory of the block"},
      {alloc + "mov.b64 %rd5, 0; tcgen05.cp.cta_group::1.128x128b [0], %rd5;", CuStatus::kIllegalAddress,
       "matrix in shared memory"},
      {alloc + "mov.b64 %rd5, 0; tcgen05.cp.cta_group::1.128x256b [57], %rd5;", CuStatus::kIllegalAddress,
       "not all of the 8 columns"},
      {alloc + "mov.b64 %rd5, 0; tcgen05.cp.cta_group::1.128x256b [0x200000], %rd5;", CuStatus::kIllegalAddress,
       "a copy begins at lane 0"},
      {alloc + "mov.b64 %rd5, 0x6000000000000000; tcgen05.cp.cta_group::1.128x256b [0], %rd5;",
       CuStatus::kIllegalInstruction, "its swizzle mode"},
      {"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" + alloc, CuStatus::kIllegalInstruction,
       "may allocate no more"},
  };
  for (const Case& c : cases) {
    const Outcome ran = RunWarp(c.body);
    EXPECT_EQ(ran.status, c.status) << c.body << ran.text;
    EXPECT_THAT(ran.text, HasSubstr(c.text)) << c.body;
  }
}

// Each place has its lane and column; then a shape is loaded, whose strides are those of the documented fragments.
TEST(SoftTensorMemory, FragmentsLieAsTheirShapesSay) {
  struct Shape {
    const char* name;
    uint32_t registers;
    uint32_t lane_of_bit[5], column_of_bit[5];            // of a thread's number
    uint32_t lane_of_register[3], column_of_register[3];  // of a register's
  };
  const Shape shapes[] = {
      {"32x32b.x8", 8, {1, 2, 4, 8, 16}, {}, {}, {1, 2, 4}},
      {"16x64b.x8", 8, {8, 0, 1, 2, 4}, {0, 1, 0, 0, 0}, {}, {2, 4, 8}},
      {"16x128b.x4", 8, {0, 0, 1, 2, 4}, {1, 2, 0, 0, 0}, {8, 0, 0}, {0, 4, 8}},
      {"16x256b.x2", 8, {0, 0, 1, 2, 4}, {2, 4, 0, 0, 0}, {0, 8, 0}, {1, 0, 8}},
  };
  for (const Shape& s : shapes) {
    for (const uint32_t half : {0u, 16u}) {
      if (half != 0 && s.registers == 8 && s.name[0] == '3') continue;
      SoftMachine m(BestIsa(), 64 << 20, 1, **FindComputeCapability("10.0"));
      std::string body =
          ".shared .align 8 .b8 slot[8]; mov.u32 %r30, %tid.x; setp.ge.u32 %p1, %r30, 32; @%p1 bra THERE;" + kAlloc +
          "[slot], 32; THERE: bar.sync 0; and.b32 %r31, %r30, 96; shl.b32 %r31, %r31, 16;";
      for (uint32_t column = 0; column < 32; ++column)
        body += "mov.u32 %r1, " + std::to_string(column * 256) + "; or.b32 %r1, %r1, %r30; add.u32 %r2, %r31, " +
                std::to_string(column) + "; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r1};";
      body += "tcgen05.wait::st.sync.aligned; tcgen05.ld.sync.aligned." + std::string(s.name) +
              ".b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%r31+" + std::to_string(half << 16 | 4) +
              "]; tcgen05.wait::ld.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;"
              "ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r30, 32; add.u64 %rd1, %rd1, %rd2;"
              "st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.v4.u32 [%rd1+16], {%r5, %r6, %r7, %r8};";
      const Outcome loaded = m.LoadBody(".param .u64 out", body);
      ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
      const GpuVa out = m.Alloc(128 * 8 * 4);
      const Outcome ran = m.Run("k", {{1, 1, 1}, {128, 1, 1}, 0}, Params().Add(out));
      ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
      const auto got = m.Download<uint32_t>(out, 128 * 8);
      for (uint32_t t = 0; t < 128; ++t) {
        for (uint32_t r = 0; r < s.registers; ++r) {
          uint32_t lane = t / 32 * 32 + half;
          uint32_t column = 4;
          for (uint32_t bit = 0; bit < 5; ++bit) {
            lane += (t >> bit & 1) * s.lane_of_bit[bit];
            column += (t >> bit & 1) * s.column_of_bit[bit];
          }
          for (uint32_t bit = 0; bit < 3; ++bit) {
            lane += (r >> bit & 1) * s.lane_of_register[bit];
            column += (r >> bit & 1) * s.column_of_register[bit];
          }
          ASSERT_EQ(got[t * 8 + r], column * 256 + lane) << s.name << " thread " << t << " register " << r;
        }
      }
    }
  }
}

// Words of shared memory have their offsets; rows of 16 or 32 bytes lie in eights, 512 bytes from one to the next.
TEST(SoftTensorMemory, CopiesTakeRowsFromSharedMemory) {
  struct Shape {
    const char* name;
    uint32_t pieces, rows;
  };
  const Shape shapes[] = {{"128x256b", 2, 128}, {"128x128b", 1, 128}, {"32x128b.warpx4", 1, 32}};
  for (const Shape& s : shapes) {
    SoftMachine m(BestIsa(), 64 << 20, 1, **FindComputeCapability("10.0"));
    // Stride 512, leading 128, no swizzle.
    const Outcome loaded = m.LoadBody(
        ".param .u64 out",
        ".shared .align 1024 .b8 tile[8192]; .shared .align 8 .b8 slot[8]; mov.u32 %r30, %tid.x; mov.u32 %r31, 0;"
        "FILL: mad.lo.u32 %r1, %r31, 128, %r30; shl.b32 %r1, %r1, 2; mov.u32 %r2, tile; add.u32 %r2, %r2, %r1;"
        "st.shared.u32 [%r2], %r1; add.u32 %r31, %r31, 1; setp.lt.u32 %p1, %r31, 16; @%p1 bra FILL;"
        "setp.ge.u32 %p1, %r30, 32; @%p1 bra THERE;" +
            kAlloc +
            "[slot], 32; THERE: bar.sync 0; setp.ne.u32 %p1, %r30, 0; mov.b64 %rd5, 0x0000402000080000;"
            "@!%p1 tcgen05.cp.cta_group::1." +
            s.name +
            " [8], %rd5; bar.sync 0;"
            "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [8];"
            "ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r30, 32; add.u64 %rd1, %rd1, %rd2;"
            "st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.v4.u32 [%rd1+16], {%r5, %r6, %r7, %r8};");
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
    const GpuVa out = m.Alloc(128 * 8 * 4);
    const Outcome ran = m.Run("k", {{1, 1, 1}, {128, 1, 1}, 0}, Params().Add(out));
    ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
    const auto got = m.Download<uint32_t>(out, 128 * 8);
    for (uint32_t lane = 0; lane < 128; ++lane) {
      for (uint32_t column = 0; column < 8; ++column) {
        const uint32_t row = lane % s.rows;
        const uint32_t at = row / 8 * 512 + row % 8 * 16 + column / 4 * 128 + column % 4 * 4;
        ASSERT_EQ(got[lane * 8 + column], column < 4 * s.pieces ? at : 0) << s.name << lane << " " << column;
      }
    }
  }
}

// The second block of the same memory finds nothing of the first one's.
TEST(SoftTensorMemory, ANewAllocationIsZero) {
  SoftMachine m(BestIsa(), 64 << 20, 1, **FindComputeCapability("10.0"));
  const Outcome loaded = m.LoadBody(
      ".param .u64 out", ".shared .align 8 .b8 slot[8]; mov.u32 %r30, %tid.x;" + kAlloc +
                             "[slot], 512; mov.u32 %r3, 77; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [500];"
                             "tcgen05.st.sync.aligned.32x32b.x1.b32 [500], {%r3}; ld.param.u64 %rd1, [out];"
                             "atom.global.or.b32 %r4, [%rd1], %r1; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [500];"
                             "atom.global.or.b32 %r4, [%rd1+4], %r2;");
  ASSERT_EQ(loaded.status, CuStatus::kSuccess) << loaded.text;
  const GpuVa out = m.Upload(std::vector<uint32_t>(2));
  const Outcome ran = m.Run("k", {{40, 1, 1}, {32, 1, 1}, 0}, Params().Add(out));
  ASSERT_EQ(ran.status, CuStatus::kSuccess) << ran.text;
  EXPECT_EQ(m.Download<uint32_t>(out, 2), (std::vector<uint32_t>{0, 77}));
}

TEST(SoftTensorMemory, WhatThereIsNotIsNamedWhenItIsLoaded) {
  const std::string ld = "tcgen05.ld.sync.aligned.";
  const std::string mma = "tcgen05.mma.cta_group::1.kind::";
  const std::pair<std::string, const char*> forms[] = {
      {ld + "32x32b.x1.b32 {%r1}, [%r2]", nullptr},
      {ld + "16x256b.x1.b32 {%r1, %r2, %r3, %r4}, [%r2+8]", nullptr},
      {mma + "f16 [%r1], %rd1, %rd2, %r2, %p1", nullptr},
      {mma + "tf32.collector::a::lastuse [%r1], [%r3], %rd2, %r2, {%r4, %r5, %r6, %r7}, %p1, 3", nullptr},
      {"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1]", nullptr},
      {"tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd1]", nullptr},
      {"tcgen05.fence::after_thread_sync", nullptr},
      {ld + "32x32b.x3.b32 {%r1, %r2, %r3}, [%r2]", "no such instruction"},
      {ld + "16x256b.x64.b32 {%r1}, [%r2]", "no such instruction"},
      {ld + "32x32b.x1.pack::16b.b32 {%r1}, [%r2]", "no such instruction"},
      {ld + "16x32bx2.x1.b32 {%r1}, [%r2], 2", "no such instruction"},
      {ld + "32x32b.x2.b32 {%r1}, [%r2]", "1 registers instead of 2"},
      {ld + "32x32b.x1.b32 {%r1}, [%rd2]", "in a register of 32 bits"},
      {ld + "32x32b.x1.b32 {%r1}, %r2", "an address in [] was expected"},
      {"tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r1], 32", "no such instruction"},
      {mma + "f16 [%r1], %rd1, %rd2, %r2, {%r4, %r5}, %p1", "has four registers"},
      {mma + "f16 [%r1], %rd1, %rd2, %r2, %p1, 16", "a number below 16"},
      {mma + "i8 [%r1], %rd1, %rd2, %r2, %p1, 1", "operands are missing or too many"},
      {mma + "f16 [%r1], %rd1, %rd2, %r2", "no such instruction"},
      {mma + "mxf8f6f4.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1", "no such instruction"},
      {"tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1", "no such instruction"},
      {"tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r3], %r2, %p1", "no such instruction"},
      {"tcgen05.mma.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r2, %p1", "no such instruction"},
      {"tcgen05.cp.cta_group::1.128x128b [%r1], %rd1", nullptr},
      {"tcgen05.cp.cta_group::1.4x256b [%r1], %rd1", "no such instruction"},
      {"tcgen05.cp.cta_group::1.64x128b.warpx2::02_13 [%r1], %rd1", "no such instruction"},
      {"tcgen05.cp.cta_group::1.32x128b [%r1], %rd1", "no such instruction"},
      {"tcgen05.cp.cta_group::1.128x256b.b8x16.b6x16_p32 [%r1], %rd1", "no such instruction"},
      {"tcgen05.shift.cta_group::1.down [%r1]", "no such instruction"},
      {"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1], %rs1",
       "no such instruction"},
  };
  for (const auto& [text, why] : forms) {
    SoftMachine m;
    const Outcome loaded = m.LoadBody("", text + ";");
    EXPECT_EQ(loaded.status, why == nullptr ? CuStatus::kSuccess : CuStatus::kInvalidPtx) << text << loaded.text;
    EXPECT_THAT(loaded.text, HasSubstr(why == nullptr ? "" : why)) << text;
  }
}

TEST(SoftTensorMemory, CodeFor100aRunsOn100Alone) {
  for (const char* capability : {"9.0", "10.0", "10.3", "12.0"}) {
    if (!FindComputeCapability(capability)) continue;
    SoftMachine m(BestIsa(), 64 << 20, 1, **FindComputeCapability(capability));
    const Outcome loaded = m.Load(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n"
        "tcgen05.wait::ld.sync.aligned;ret;\n}\n");
    EXPECT_EQ(loaded.status == CuStatus::kSuccess, capability == std::string_view("10.0")) << capability;
  }
}

}  // namespace
}  // namespace vgpud::soft
