// SPDX-License-Identifier: Apache-2.0
// Forms of instructions that came with compute capability 8.9 and later: what is taken, and why the others are not.
#include "tests/unit/soft/rig/form_case.h"

namespace vgpud::soft {
namespace {

constexpr const char* kNoWide = "a 128-bit register can be moved, loaded, stored and exchanged, nothing else";

void ExpectForms(std::span<const FormCase> cases) {
  for (const FormCase& c : cases) Expect(c, {.declared = ".reg .b128 %q<4>; .reg .b8 %b<4>;"});
}

constexpr FormCase kWideAccesses[] = {
    {"ld.global.v8.u32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", ""},
    {"ld.shared.v8.u32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", kUnknown},
    {"ld.v8.u32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", kUnknown},
    {"ld.global.v8.u64 {%rd1, %rd2, %rd3, %rd4, %rd5, %rd6, %rd7, %rd8}, [%rd1];", kUnknown},
    {"st.global.v8.f32 [%rd1], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};", ""},
    {"st.global.v8.f32 [%rd1], {%f1, %f2, %f3, %f4};", kElements},
    {"ld.global.b128 %rd2, [%rd1];", "a 128-bit register was expected"},
    {"ld.global.b128 %q1, [%rd1];", ""},
    {"ld.global.v2.b128 {%q1, %q2}, [%rd1];", kUnknown},
    {"st.shared.b128 [%rd1], %q1;", ""},
    {"ld.global.u64 %q1, [%rd1];", kNoWide},
    {"st.global.u64 [%rd1], %q1;", kNoWide},
    {"ld.global.u32 %r1, [%q1];", kNoWide},
    {"add.u64 %q1, %rd1, %rd2;", kNoWide},
    {"add.u64 %rd1, %q1, %rd2;", kNoWide},
    {"mov.b128 %q1, %q2;", ""},
    {"mov.b128 %q1, {%rd1, %rd2};", ""},
    {"mov.b128 {%rd1, _}, %q1;", ""},
    {"mov.b128 %q1, 5;", "a 128-bit register was expected"},
    {"mov.b128 %q1, {%rd1, %r2};", "the elements do not have the size of the whole"},
    {"mov.b128 %q1, {%rd1, %rd2, %rd3};", "128 bits are two elements of 64"},
    {"mov.b64 %q1, %rd1;", kNoWide},
    {"atom.global.exch.b128 %q1, [%rd1], %q2;", ""},
    {"atom.cas.b128 %q1, [%rd1], %q2, %q3;", ""},
    {"atom.global.add.b128 %q1, [%rd1], %q2;", kUnknown},
    {"red.global.exch.b128 [%rd1], %q2;", kUnknown},
    {"atom.global.exch.b128 %rd2, [%rd1], %q2;", "a 128-bit register was expected"},
    {"atom.global.add.v2.f32 {%f1, %f2}, [%rd1], {%f3, %f4};", ""},
    {"red.global.add.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};", ""},
    {"red.global.add.v4.f32 [%rd1], {%f1, %f2, %f3};", kElements},
    {"red.global.add.v4.f32 [%rd1], %f1;", kElements},
    {"red.global.add.v8.f32 [%rd1], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};", kUnknown},
    {"red.shared.add.v2.f32 [%rd1], {%f1, %f2};", kUnknown},
    {"red.global.min.v2.f32 [%rd1], {%f1, %f2};", kUnknown},
    {"red.global.add.v2.u32 [%rd1], {%r1, %r2};", kUnknown},
    {"red.global.add.noftz.v2.f16x2 [%rd1], {%r1, %r2};", ""},
    {"red.global.add.v2.f16x2 [%rd1], {%r1, %r2};", kUnknown},
    {"red.global.min.noftz.v8.f16 [%rd1], {%rs1, %rs2, %rs3, %rs4, %rs5, %rs6, %rs7, %rs8};", ""},
    {"red.global.min.noftz.f16 [%rd1], %rs1;", kUnknown},
    {"red.global.add.v2.v4.f32 [%rd1], {%f1, %f2};", kUnknown},
};
TEST(SoftRefusedLater, WideAccesses) { ExpectForms(kWideAccesses); }

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

constexpr FormCase kBulkReductions[] = {
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], %r2;", ""},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%rd1], [%r1], %r2;", ""},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd1], [%r1], %r2;", kUnknown},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.min.noftz.f16 [%rd1], [%r1], %r2;", kUnknown},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%rd1], [%r1], %r2;", kUnknown},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.exch.b32 [%rd1], [%r1], %r2;", kUnknown},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.add.u32 [%rd1], [%r1], %r2;", kUnknown},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1];", kUnknown},
    {"cp.reduce.async.bulk.global.shared::cluster.bulk_group.add.u32 [%rd1], [%r1], %r2;", kUnknown},
    {"cp.reduce.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%rd1], [%r1], %r2, [%r3];",
     kUnknown},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64 [%r3], [%r1], %r2, "
     "[%r4];",
     ""},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.and.b64 [%r3], [%r1], %r2, "
     "[%r4];",
     kUnknown},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [%r3], [%r1], %r2, "
     "[%r4];",
     kUnknown},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.bulk_group.add.u32 [%r3], [%r1], %r2;", kUnknown},
};
TEST(SoftRefusedLater, BulkReductions) { ExpectForms(kBulkReductions); }

constexpr FormCase kArithmetic[] = {
    {"add.rn.ftz.f32x2 %rd1, %rd2, %rd3;", ""},
    {"add.rn.sat.f32x2 %rd1, %rd2, %rd3;", kUnknown},
    {"min.f32x2 %rd1, %rd2, %rd3;", kUnknown},
    {"min.f32 %f1, %f2, %f3, %f4;", ""},
    {"max.ftz.NaN.abs.f32 %f1, %f2, %f3, %f4;", ""},
    {"max.three.f32 %f1, %f2, %f3, %f4;", kUnknown},
    {"max.three.f32 %f1, %f2, %f3;", kUnknown},
    {"max.abs.f32 %f1, %f2, %f3;", kUnknown},
    {"max.xorsign.abs.f32 %f1, %f2, %f3, %f4;", kUnknown},
    {"min.s32 %r1, %r2, %r3, %r4;", kUnknown},
    {"min.f32 %f1, %f2, %f3, %f4, %f5;", "there are too many operands"},
    {"add.rz.sat.f32.bf16 %f1, %rs1, %f2;", ""},
    {"add.ftz.f32.bf16 %f1, %rs1, %f2;", kUnknown},
    {"mul.f32.bf16 %f1, %rs1, %f2;", kUnknown},
    {"sub.s16x2 %r1, %r2, %r3;", kUnknown},
    {"min.relu.s32 %r1, %r2, %r3;", ""},
    {"min.relu.u32 %r1, %r2, %r3;", kUnknown},
    {"redux.sync.min.abs.NaN.f32 %f1, %f2, -1;", ""},
    {"redux.sync.add.f32 %f1, %f2, -1;", kUnknown},
    {"setmaxnreg.inc.sync.aligned.u32 240;", ""},
    {"setmaxnreg.sync.aligned.u32 240;", kUnknown},
    {"setmaxnreg.inc.sync.aligned.u32 16;", "a number of registers is a multiple of 8 from 24 to 256"},
    {"setmaxnreg.inc.sync.aligned.u32 36;", "a number of registers is a multiple of 8 from 24 to 256"},
    {"setmaxnreg.inc.sync.aligned.u32 264;", "a number of registers is a multiple of 8 from 24 to 256"},
    {"setmaxnreg.inc.sync.aligned.u32 %r1;", "a number of registers is a multiple of 8 from 24 to 256"},
};
TEST(SoftRefusedLater, Arithmetic) { ExpectForms(kArithmetic); }

}  // namespace
}  // namespace vgpud::soft
