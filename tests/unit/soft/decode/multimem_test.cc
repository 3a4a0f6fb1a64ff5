// SPDX-License-Identifier: Apache-2.0
// multimem: functions that contain it load and run, as long as it is not reached.
#include <gmock/gmock.h>

#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kForms[] = {
    "multimem.ld_reduce.acquire.sys.global.min.u64 %rd2, [%rd1];",
    "multimem.ld_reduce.relaxed.gpu.global.add.f32 %f1, [%rd1+16];",
    "multimem.ld_reduce.weak.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];",
    "multimem.ld_reduce.global.add.acc::f32.v4.f16x2 {%r1, %r2, %r3, %r4}, [%rd1];",
    "multimem.ld_reduce.global.max.v8.f16 {%rs1, %rs2, %rs3, %rs4, %rs5, %rs6, %rs7, %rs8}, [%rd1];",
    "multimem.ld_reduce.and.b32 %r1, [%rd1];",
    "multimem.st.global.b32 [%rd1], %r2;",
    "multimem.st.release.sys.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};",
    "multimem.red.release.sys.global.add.u64 [%rd1+8], %rd2;",
    "multimem.red.global.add.v2.bf16x2 [%rd1], {%r1, %r2};",
};

TEST(SoftMultimem, WhatIsNotReachedChangesNothing) {
  for (const char* form : kForms) {
    SoftMachine m;
    const Outcome loaded =
        m.LoadBody(".param .u64 out",
                   std::string("ld.param.u64 %rd1, [out];\nmov.u32 %r9, %ntid.x;\nsetp.eq.u32 %p1, %r9, 99;\n@%p1 ") +
                       form + "\nst.global.u32 [%rd1], 5;");
    ASSERT_EQ(loaded.status, CuStatus::kSuccess) << form << loaded.text;
    const GpuVa out = m.Alloc(4);
    EXPECT_EQ(m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(out)).status, CuStatus::kSuccess) << form;
    EXPECT_THAT(m.Download<uint32_t>(out, 1), ElementsAre(5));
  }
}

TEST(SoftMultimem, NoAddressIsOfSuchMemory) {
  for (const char* form : kForms) {
    SoftMachine m;
    ASSERT_EQ(m.LoadBody(".param .u64 out", std::string("ld.param.u64 %rd1, [out];\n") + form).status,
              CuStatus::kSuccess);
    const GpuVa out = m.Alloc(64);
    const Outcome ran = m.Run("k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().Add(out));
    EXPECT_EQ(ran.status, CuStatus::kIllegalAddress) << form;
    EXPECT_THAT(ran.text, HasSubstr("memory that several GPUs have in common")) << form;
    EXPECT_THAT(m.Download<uint32_t>(out, 16), testing::Each(0u)) << form;
  }
}

TEST(SoftMultimem, OtherFormsAreRefused) {
  for (const char* form :
       {"multimem.ld.global.u32 %r1, [%rd1];", "multimem.st.red.global.u32 [%rd1], %r1;",
        "multimem.st.global [%rd1], %r1;", "multimem.st.shared.u32 [%rd1], %r1;", "multimem.st.global.u32 [%r1], %r1;",
        "multimem.st.global.u32 [%rd1];", "multimem.st.wrong.global.u32 [%rd1], %r1;",
        "multimem.ld_reduce.global.add.u32 %p1, [%rd1];", "multimem.red.global.add.v2.f32 [%rd1], {%f1, %p1};"}) {
    SoftMachine m;
    EXPECT_EQ(m.LoadBody(".param .u64 out", std::string("ld.param.u64 %rd1, [out];\n") + form).status,
              CuStatus::kInvalidPtx)
        << form;
  }
}

}  // namespace
}  // namespace vgpud::soft
