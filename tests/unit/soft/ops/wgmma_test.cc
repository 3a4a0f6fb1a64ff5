// SPDX-License-Identifier: Apache-2.0
// wgmma: matrices that are not in the block's shared memory, forms that there are not, and where code for 9.0a runs.
// Values: tests/golden/forms/forms_wgmma.py.
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::HasSubstr;

constexpr const char* kProduct =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;";

Outcome RunProduct(uint64_t a, uint64_t b) {
  SoftMachine m(BestIsa(), 64 << 20, 1, **FindComputeCapability("9.0"));
  const Outcome loaded = m.LoadBody(
      ".param .u64 a, .param .u64 b",
      ".shared .align 128 .b8 tile[4096]; ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];" + std::string(kProduct));
  if (loaded.status != CuStatus::kSuccess) return loaded;
  return m.Run("k", {{1, 1, 1}, {128, 1, 1}, 0}, Params().Add(a).Add(b));
}
// Offsets in bytes.
uint64_t Descriptor(uint64_t start, uint64_t leading, uint64_t stride, uint64_t mode = 0) {
  return start / 16 | leading / 16 << 16 | stride / 16 << 32 | mode << 62;
}

TEST(SoftWgmma, MatricesLieInTheSharedMemoryOfTheBlock) {
  const uint64_t good = Descriptor(0, 128, 256);
  EXPECT_EQ(RunProduct(good, Descriptor(2048, 128, 256)).status, CuStatus::kSuccess);
  EXPECT_EQ(RunProduct(good, Descriptor(4096 - 256, 128, 256)).status, CuStatus::kSuccess) << "to its last byte";
  const std::pair<uint64_t, uint64_t> outside[] = {
      {good, Descriptor(4096 - 240, 128, 256)}, {Descriptor(2064, 128, 256), good},
      {good, Descriptor(0x3fff0, 128, 256)},    {Descriptor(0, 0x3fff0, 256), good},
      {Descriptor(0, 128, 0x3fff0), good},      {good, ~uint64_t{0}},
      {Descriptor(0, 0, 1024, 1), good},
  };
  for (const auto& [a, b] : outside) {
    const Outcome ran = RunProduct(a, b);
    EXPECT_EQ(ran.status, CuStatus::kIllegalAddress) << std::hex << a << " " << b;
    EXPECT_THAT(ran.text, HasSubstr("matrix in shared memory"));
  }
}

TEST(SoftWgmma, WhatThereIsNotIsNamedWhenItIsLoaded) {
  const std::string d = "{%f1, %f2, %f3, %f4}, ";
  const std::string words = "{%r1, %r2, %r3, %r4}, ";
  const std::string start = "wgmma.mma_async.sync.aligned.";
  const std::pair<std::string, const char*> forms[] = {
      {start + "m64n8k16.f32.f16.f16 " + d + "%rd1, %rd2, %p1, 1, 1, 0, 0", nullptr},
      {start + "m64n8k16.f32.f16.f16 " + d + words + "%rd2, %p1, 1, -1, 1", nullptr},
      {start + "m64n8k32.s32.s8.u8.satfinite " + words + "%rd1, %rd2, %p1", nullptr},
      {"wgmma.wait_group.sync.aligned 3", nullptr},
      {"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 " + d + "%rd1, %rd2, %r9, 1, %p1, 1, 1, 0, 0", nullptr},
      {"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 " + d + "%rd1, %rd2, %r9, 2, %p1, 1, 1, 0, 0",
       "the sparsity selector is a number below 2"},
      {"wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.s8 " + words + "%rd1, %rd2, %r9, 1, %p1",
       "the sparsity selector is a number below 1"},
      {"wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.f16.f16 " + d + "%rd1, %rd2, %r9, 1, %p1, 1, 1, 0, 0",
       "no such instruction"},
      {start + "m64n8k16.f32.f16.f16 " + d + "%rd1, %rd2, %p1", "operands are missing"},
      {start + "m64n8k16.f32.f16.f16 " + d + words + "%rd2, %p1, 1, 1, 0, 0", "operands are missing"},
      {start + "m64n8k16.f32.f16.f16 " + d + "%rd1, %rd2, %p1, 2, 1, 0, 0", "a sign is 1 or -1"},
      {start + "m64n8k16.f32.f16.f16 " + d + "%rd1, %rd2, %p1, 1, 1, 2, 0", "a sign is 1 or -1"},
      {start + "m64n8k16.f32.f16.f16 " + d + "%rd1, %rd2, %p1, 1, 1, %r1, 0", "a sign is 1 or -1"},
      {start + "m64n16k16.f32.f16.f16 " + d + "%rd1, %rd2, %p1, 1, 1, 0, 0", "4 registers instead of 8"},
      {start + "m64n8k16.f32.f16.f16 " + d + "{%r1, %r2}, %rd2, %p1, 1, 1, 0", "A has four registers"},
      {start + "m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %rd4}, %rd1, %rd2, %p1, 1, 1, 0, 0", "registers of 32 bits"},
      {start + "m64n12k16.f32.f16.f16 " + d + "%rd1, %rd2, %p1, 1, 1, 0, 0", "no such instruction"},
      {start + "m64n264k16.f32.f16.f16 " + d + "%rd1, %rd2, %p1, 1, 1, 0, 0", "no such instruction"},
      {start + "m64n40k32.s32.s8.u8 " + words + "%rd1, %rd2, %p1", "no such instruction"},
      {start + "m64n8k8.f32.f16.f16 " + d + "%rd1, %rd2, %p1, 1, 1, 0, 0", "no such instruction"},
      {start + "m64n8k16.f16.bf16.bf16 {%r1, %r2}, %rd1, %rd2, %p1, 1, 1, 0, 0", "no such instruction"},
      {start + "m64n8k256.s32.b1.b1.xor.popc " + words + "%rd1, %rd2, %p1", "no such instruction"},
      {start + "m64n8k16.satfinite.f32.f16.f16 " + d + "%rd1, %rd2, %p1, 1, 1, 0, 0", "no such instruction"},
      {"wgmma.mma_async.m64n8k16.f32.f16.f16 " + d + "%rd1, %rd2, %p1, 1, 1, 0, 0", "no such instruction"},
      {"wgmma.fence", "no such instruction"},
      {"wgmma.wait_group.sync.aligned", "no such instruction"},
  };
  for (const auto& [text, why] : forms) {
    SoftMachine m;
    const Outcome loaded = m.LoadBody("", text + ";");
    EXPECT_EQ(loaded.status, why == nullptr ? CuStatus::kSuccess : CuStatus::kInvalidPtx) << text << loaded.text;
    EXPECT_THAT(loaded.text, HasSubstr(why == nullptr ? "" : why)) << text;
  }
}

TEST(SoftWgmma, CodeFor90aRunsOn90Alone) {
  const std::string ptx =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
      ".reg .f32 %f<5>; .reg .b64 %rd<3>;\n" +
      std::string("wgmma.fence.sync.aligned;") + "ret;\n}\n";
  for (const char* capability : {"7.5", "8.9", "9.0", "10.0", "12.0"}) {
    SoftMachine m(BestIsa(), 64 << 20, 1, **FindComputeCapability(capability));
    const Outcome loaded = m.Load(ptx);
    EXPECT_EQ(loaded.status == CuStatus::kSuccess, capability == std::string_view("9.0")) << capability;
  }
}

}  // namespace
}  // namespace vgpud::soft
