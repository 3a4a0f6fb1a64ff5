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

#define ABC "{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}"
#define SCALED_MMA(kind, shape, types) "mma.sync.aligned." shape ".row.col.kind::" kind ".f32." types " " ABC ", %r7, "
constexpr const char* kSelector = "a selector of scales names a byte or a thread that has none";
constexpr FormCase kMma[] = {
    {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 " ABC ";", ""},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e2m1.f32 " ABC ";", kUnknown},
    {"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32 " ABC ";", ""},
    {"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.kind::f8f6f4.f32.e4m3.e2m1.f32 " ABC ";", kUnknown},
    {"mma.sync.aligned.m16n8k32.row.col.kind::f16.f32.e4m3.e2m1.f32 " ABC ";", kUnknown},
    {"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.block_scale.f32.e4m3.e2m1.f32 " ABC ";", kUnknown},
    {"mma.sync.aligned.m16n8k32.row.col.satfinite.f32.e4m3.e4m3.f32 " ABC ";", kUnknown},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f16 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
     "{%r1, %r2};",
     kUnknown},
    {SCALED_MMA("mxf8f6f4.block_scale", "m16n8k32", "e2m1.e5m2.f32.ue8m0") "{3, 1}, %r8, {1, 3};", ""},
    {SCALED_MMA("mxf8f6f4.block_scale", "m16n8k32", "e2m1.e5m2.f32.ue8m0") "{%rs1, %rs2}, %r8, {%rs3, 3};", ""},
    {SCALED_MMA("mxf8f6f4.block_scale.scale_vec::1X", "m16n8k32", "e2m1.e5m2.f32.ue8m0") "{4, 1}, %r8, {1, 3};",
     kSelector},
    {SCALED_MMA("mxf8f6f4.block_scale.scale_vec::1X", "m16n8k32", "e2m1.e5m2.f32.ue8m0") "{3, 2}, %r8, {1, 3};",
     kSelector},
    {SCALED_MMA("mxf8f6f4.block_scale.scale_vec::1X", "m16n8k32", "e2m1.e5m2.f32.ue8m0") "{3, 1}, %r8, {1, 4};",
     kSelector},
    {SCALED_MMA("mxf8f6f4.block_scale.scale_vec::2X", "m16n8k32", "e2m1.e5m2.f32.ue8m0") "{0, 1}, %r8, {0, 3};",
     kUnknown},
    {SCALED_MMA("mxf8f6f4", "m16n8k32", "e2m1.e5m2.f32.ue8m0") "{3, 1}, %r8, {1, 3};", kUnknown},
    {SCALED_MMA("mxf8f6f4.block_scale", "m16n8k32", "e2m1.e5m2.f32") "{3, 1}, %r8, {1, 3};", kUnknown},
    {SCALED_MMA("mxf8f6f4.block_scale", "m16n8k32", "e2m1.e5m2.f32.ue8m0") "{3, 1}, %r8;", kMissingOrMany},
    {SCALED_MMA("mxf8f6f4.block_scale", "m16n8k32", "e2m1.e5m2.f32.ue8m0") "{3, 1}, %r8, 3;",
     "the fragment has 1 registers instead of 2"},
    {SCALED_MMA("mxf4.block_scale", "m16n8k64", "e2m1.e2m1.f32.ue8m0") "{2, 1}, %r8, {0, 3};", ""},
    {SCALED_MMA("mxf4.block_scale", "m16n8k64", "e2m1.e2m1.f32.ue8m0") "{1, 1}, %r8, {0, 3};", kSelector},
    {SCALED_MMA("mxf4.block_scale.scale_vec::4X", "m16n8k64", "e2m1.e2m1.f32.ue8m0") "{0, 1}, %r8, {0, 3};", kUnknown},
    {SCALED_MMA("mxf4.block_scale", "m16n8k64", "e2m1.e2m3.f32.ue8m0") "{0, 1}, %r8, {0, 3};", kUnknown},
    {SCALED_MMA("mxf4nvf4.block_scale", "m16n8k64", "e2m1.e2m1.f32.ue8m0") "{0, 1}, %r8, {0, 3};", kUnknown},
    {SCALED_MMA("mxf4nvf4.block_scale.scale_vec::4X", "m16n8k64", "e2m1.e2m1.f32.ue4m3") "{0, 1}, %r8, {0, 3};", ""},
    {SCALED_MMA("mxf4nvf4.block_scale.scale_vec::4X", "m16n8k64", "e2m1.e2m1.f32.ue4m3") "{2, 1}, %r8, {0, 3};",
     kSelector},
    {SCALED_MMA("mxf4nvf4.block_scale.scale_vec::3X", "m16n8k64", "e2m1.e2m1.f32.ue4m3") "{0, 1}, %r8, {0, 3};",
     kUnknown},
    {"wmma.mma.sync.aligned.row.col.kind::f8f6f4.m16n16k16.f32.f32 {%r1};", kUnknown},
    {"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, "
     "%r8}, {%f1, %f2, %f3, %f4}, %r9, 1;",
     ""},
    {"mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, "
     "%r4}, {%r5, %r6, %r7, %r8}, {%f1, %f2, %f3, %f4}, %r9, 4;",
     "the sparsity selector is a number from 0 to 3"},
    {"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, "
     "%r8}, {%f1, %f2, %f3, %f4}, %r9, %r10;",
     "the sparsity selector is a number from 0 to 3"},
    {"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, "
     "%r8}, {%f1, %f2, %f3, %f4}, %r9;",
     kMissingOrMany},
    {"mma.sp.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1}, {%r5}, {%f1}, %r9, 0;",
     kUnknown},
    {"mma.sp.sync.aligned.m16n8k64.row.col.f64.f64.f64.f64 {%f1, %f2, %f3, %f4}, {%r1}, {%r5}, {%f1}, %r9, 0;",
     kUnknown},
};
TEST(SoftRefusedLater, Mma) { ExpectForms(kMma); }

constexpr FormCase kTransfers[] = {
    {"ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r1}, [%r9];", ""},
    {"ldmatrix.sync.aligned.m8n16.x1.shared.b4x16_p64 {%r1}, [%r9];", kUnknown},
    {"ldmatrix.sync.aligned.m8n16.x1.shared.b8x16 {%r1}, [%r9];", kUnknown},
    {"ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r1}, [%r9];", kUnknown},
    {"ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b4x16_p64 {%r1}, [%r9];", kUnknown},
    {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r9];", ""},
    {"ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r1, %r2}, [%r9];", kUnknown},
    {"ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r1, %r2}, [%r9];", kUnknown},
    {"ldmatrix.sync.aligned.m16n16.m8n8.x1.trans.shared.b8 {%r1, %r2}, [%r9];", kUnknown},
    {"ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b6x16_p32 {%r1, %r2}, [%r9];",
     "the fragment has 2 registers instead of 4"},
    {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r9], {%r1};", ""},
    {"stmatrix.sync.aligned.m8n8.x2.trans.b16 [%rd1], {%r1, %r2};", ""},
    {"stmatrix.sync.aligned.m8n8.x2.trans.b16 [%r9], {%r1, %r2};", "the address is a 32-bit register"},
    {"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r9], {%r1, %r2};", "the fragment has 2 registers instead of 4"},
    {"stmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r9];", "this kind of operand does not fit here"},
    {"stmatrix.sync.aligned.m8n8.x1.shared.b8 [%r9], {%r1};", kUnknown},
    {"stmatrix.sync.aligned.m16n8.x1.shared.b8 [%r9], {%r1};", kUnknown},
    {"stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r9], {%r1};", ""},
    {"stmatrix.sync.aligned.m16n16.x1.trans.shared.b8 [%r9], {%r1};", kUnknown},
    {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r9], {%r1}, 5;", kMissingOrMany},
    {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r9];", kMissingOrMany},
};
TEST(SoftRefusedLater, Transfers) { ExpectForms(kTransfers); }

}  // namespace
}  // namespace vgpud::soft
