// SPDX-License-Identifier: Apache-2.0
// Forms of instructions that came with compute capability 8.9 and later: what is taken, and why the others are not.
#include "tests/unit/soft/rig/form_case.h"

namespace vgpud::soft {
namespace {

void ExpectForms(std::span<const FormCase> cases) {
  for (const FormCase& c : cases) Expect(c, {.declared = ".reg .b8 %b<4>;"});
}

constexpr FormCase kConversions[] = {
    {"cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;", ""},
    {"cvt.satfinite.relu.rn.e4m3x2.f32 %rs1, %f1, %f2;", ""},
    {"cvt.rn.e4m3x2.f32 %rs1, %f1, %f2;", kUnknown},
    {"cvt.rz.satfinite.e4m3x2.f32 %rs1, %f1, %f2;", kUnknown},
    {"cvt.satfinite.e4m3x2.f32 %rs1, %f1, %f2;", kUnknown},
    {"cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1;", "operands are missing"},
    {"cvt.rn.satfinite.e4m3x2.f16x2 %rs1, %r1, %r2;", "there are too many operands"},
    {"cvt.rn.satfinite.e4m3x2.f64 %rs1, %fd1, %fd2;", kUnknown},
    {"cvt.rn.satfinite.e4m3.f32 %rs1, %f1;", kUnknown},
    {"cvt.rn.f16x2.e5m2x2 %r1, %rs1;", ""},
    {"cvt.f16x2.e5m2x2 %r1, %rs1;", kUnknown},
    {"cvt.rn.satfinite.f16x2.e5m2x2 %r1, %rs1;", kUnknown},
    {"cvt.rn.satfinite.e2m1x2.f32 %b1, %f1, %f2;", ""},
    {"cvt.rn.f16x2.e2m1x2 %r1, %b1;", ""},
    {"cvt.rn.satfinite.e1m2x2.f32 %b1, %f1, %f2;", kUnknown},
    {"cvt.rn.satfinite.ue8m0x2.f32 %rs1, %f1, %f2;", kUnknown},
    {"cvt.rp.satfinite.ue8m0x2.bf16x2 %rs1, %r1;", ""},
    {"cvt.rz.ue8m0x2.f16x2 %rs1, %r1;", kUnknown},
    {"cvt.rn.bf16x2.ue8m0x2 %r1, %rs1;", ""},
    {"cvt.rn.f16x2.ue8m0x2 %r1, %rs1;", kUnknown},
    {"cvt.rn.sat.bf16.s32 %rs1, %r1;", kUnknown},
    {"cvt.rp.satfinite.bf16.f32 %rs1, %f1;", kUnknown},
    {"cvt.rn.relu.satfinite.tf32.f32 %r1, %f1;", ""},
};
TEST(SoftRefusedLater, Conversions) { ExpectForms(kConversions); }

}  // namespace
}  // namespace vgpud::soft
