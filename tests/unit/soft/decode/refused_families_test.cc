// SPDX-License-Identifier: Apache-2.0
// Forms of matrix and video instructions: what is taken, and why the others are not.
#include "tests/unit/soft/rig/form_case.h"

namespace vgpud::soft {
namespace {

#define SPARSE(variant, selector)                                                                   \
  "mma." variant                                                                                    \
  ".sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, " \
  "%r3, %r4}, {%r5, %r6, %r7, %r8}, {%f5, %f6, %f7, %f8}, %r9, " selector ";"
constexpr FormCase kMma[] = {
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, "
     "%r6}, {%f5, %f6, %f7, %f8};",
     ""},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6};",
     kMissingOrMany},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
     "{%f5, %f6, %f7, %f8}, 5;",
     kMissingOrMany},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
     "{%f5, %f6, %f7, %f8};",
     "the fragment has 3 registers instead of 4"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4, %r7}, {%r5, "
     "%r6}, {%f5, %f6, %f7, %f8};",
     "the fragment has 5 registers instead of 4"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, %r5, {%f5, "
     "%f6, %f7, %f8};",
     "the fragment has 1 registers instead of 2"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
     "{%r5, %r6};",
     "the fragment has 2 registers instead of 4"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %p1}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
     "{%f5, %f6, %f7, %f8};",
     kWrongKind},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %p1}, "
     "{%f5, %f6, %f7, %f8};",
     "a predicate where a value was expected"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, _}, "
     "{%f5, %f6, %f7, %f8};",
     "this kind of operand does not fit here"},
    {"mma.sync.aligned.m16n8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
     "{%f5, %f6, %f7, %f8};",
     kUnknown},
    {"mma.sync.aligned.m016n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, "
     "%r6}, {%f5, %f6, %f7, %f8};",
     kUnknown},
    {"mma.sync.aligned.n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
     "{%f5, %f6, %f7, %f8};",
     kUnknown},
    {"mma.sync.aligned.m16k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
     "{%f5, %f6, %f7, %f8};",
     kUnknown},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
     "{%f5, %f6, %f7, %f8};",
     kUnknown},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, "
     "%r6}, {%f5, %f6, %f7, %f8};",
     kUnknown},
    {"mma.sync.aligned.m16n8k16.row.col {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, "
     "%f8};",
     kUnknown},
    {"mma.sync.aligned.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, "
     "%f6, %f7, %f8};",
     kUnknown},
    {"mma.sync.aligned.m16n8k16.row.col.or.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, "
     "%r6}, {%f5, %f6, %f7, %f8};",
     kUnknown},
    {"mma.sync.aligned.m16n8k16.row.col.load.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, "
     "%r6}, {%f5, %f6, %f7, %f8};",
     kUnknown},
    {"mma.sync.aligned.m16n8k16.row.col.xor.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, "
     "%r6}, {%f5, %f6, %f7, %f8};",
     kUnknown},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, "
     "%f6, %f7, %f8};",
     ""},
    {"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%r1, %r2}, {%r3}, {%r4}, {%r5, %r6};", ""},
    {"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.or.popc {%r1, %r2}, {%r3}, {%r4}, {%r5, %r6};", kUnknown},
    {"mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32 {%r1, %r2}, %r3, %r4, {%r5, %r6};", ""},
    {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1, %fd2}, {%fd3}, {%fd4}, {%fd5, %fd6};", ""},
    {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1, %fd2}, {%fd3}, {%fd4}, {%fd5};",
     "the fragment has 1 registers instead of 2"},
    {"mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16 {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7, %r8}, {%r9, %r10, %r11, "
     "%r12};",
     ""},
    {"mma.sync.aligned.m8n8k4.f16.f16.f16.f16 {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7, %r8}, {%r9, %r10, %r11, %r12};",
     kUnknown},
    {SPARSE("sp::ordered_metadata", "0"), ""},
    {SPARSE("sp::ordered_metadata", "1"), "the sparsity selector of this form is 0"},
    {SPARSE("sp", "0"), kUnknown},
    {"mma %r1;", kUnknown},
    {"wmma %r1;", kUnknown},
};
TEST(SoftRefusedFamilies, Mma) {
  for (const FormCase& c : kMma) Expect(c);
}

constexpr FormCase kConvertFour[] = {
    {"cvt.rs.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;", ""},
    {"cvt.rs.relu.satfinite.e2m1x4.f32 %rs1, {%f1, %f2, %f3, %f4}, %r2;", ""},
    {"cvt.rs.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3}, %r2;", "the list has not four values"},
    {"cvt.rs.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;", kUnknown},
    {"cvt.rn.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;", kUnknown},
    {"cvt.rs.satfinite.ftz.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;", kUnknown},
    {"cvt.rs.satfinite.b4x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;", kUnknown},
    {"cvt.rs.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3, %p1}, %r2;", "a predicate where a value was expected"},
};
TEST(SoftRefusedFamilies, ConvertFour) {
  for (const FormCase& c : kConvertFour) Expect(c);
}

constexpr FormCase kWmmaAndLdmatrix[] = {
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", ""},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1], 16;", ""},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1], 16, 1;",
     kMissingOrMany},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8};", kMissingOrMany},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, %rd1;",
     "an address in [] was expected"},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1], %p1;",
     "a predicate where a value was expected"},
    {"wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%r9];", ""},
    {"wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", ""},
    {"wmma.load.c.sync.aligned.row.m16n16k16.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", ""},
    {"wmma.load.c.sync.aligned.row.m16n16k16.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%r9];",
     "the address is a 32-bit register"},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%r9];",
     "the address is a 32-bit register"},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];",
     kUnknown},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", kUnknown},
    {"wmma.load.c.sync.aligned.row.m16n16k16.satfinite.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, "
     "[%rd1];",
     kUnknown},
    {"wmma.load.c.sync.aligned.row.m16n16k16.xor.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];",
     kUnknown},
    {"wmma.load.e.sync.aligned.row.m16n16k16.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", kUnknown},
    {"wmma.load.d.sync.aligned.row.m16n16k16.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", kUnknown},
    {"wmma.fetch.c.sync.aligned.row.m16n16k16.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", kUnknown},
    {"wmma.load.c.sync.aligned.col.m16n16k16.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", ""},
    {"wmma.load.c.sync.aligned.row.m16n16k4.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", kUnknown},
    {"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8};", ""},
    {"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, %r9;", ""},
    {"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, %r9, "
     "1;",
     kMissingOrMany},
    {"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%r1};", "the fragment has 1 registers instead of 8"},
    {"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];",
     "the fragment has 1 registers instead of 8"},
    {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, "
     "%r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, %r4, %r5, %r6, %r7, "
     "%r8};",
     ""},
    {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, {%r1, %r2, "
     "%r3, %r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, %r4, %r5, %r6, "
     "%r7, %r8};",
     kUnknown},
    {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, "
     "%r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8};",
     kMissingOrMany},
    {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, "
     "%r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, %r4, %r5, %r6, %r7, "
     "%r8}, 1;",
     kMissingOrMany},
    {"wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%fd1}, [%rd1];", ""},
    {"wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1}, [%rd1];", ""},
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r9];", ""},
    {"ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r1}, [%rd1];", ""},
    {"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r9];", ""},
    {"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r1, %r2}, [%rd1];", ""},
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r9];", ""},
    {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1, %r2, %r3, %r4}, [%rd1];", ""},
    {"ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%rd1];", ""},
    {"ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%r9];", "the address is a 32-bit register"},
    {"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1, %r2, %r3}, [%r9];", kUnknown},
    {"ldmatrix.sync.aligned.m8n8.x1.x2.shared.b16 {%r1, %r2}, [%r9];", kUnknown},
    {"ldmatrix.sync.aligned.m8n8.shared.b16 {%r1}, [%r9];", kUnknown},
    {"ldmatrix.sync.aligned.m16n16.x1.shared.b16 {%r1}, [%r9];", kUnknown},
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r1}, [%r9];", kUnknown},
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r9], 5;", kMissingOrMany},
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1};", kMissingOrMany},
    {"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r9];", "the fragment has 1 registers instead of 2"},
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, [%r9];", ""},
    {"movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;", ""},
    {"movmatrix.sync.aligned.m8n8.b16 %r1, %r2;", kUnknown},
};
TEST(SoftRefusedFamilies, WmmaAndLdmatrix) {
  for (const FormCase& c : kWmmaAndLdmatrix) Expect(c);
}

constexpr FormCase kVideo[] = {
    {"vadd.s32.s32.s32 %r1, %r2, %r3;", ""},
    {"vadd.s32.s32.s32 %r1, %r2.b0, %r3;", ""},
    {"vadd.s32.s32.s32 %r1, %r2, %r3.b0;", ""},
    {"vadd.s32.s32.s32 %r1.b0, %r2, %r3, %r4;", ""},
    {"vadd.s32.s32.s32 %r1.b0, %r2, %r3;", kMissingOrMany},
    {"vadd.s32.s32.s32.add %r1.b0, %r2, %r3, %r4;", "a result is merged or combined, not both"},
    {"vadd.s32.s32.s32 %r1, %r2.b1, %r3;", ""},
    {"vadd.s32.s32.s32 %r1, %r2, %r3.b1;", ""},
    {"vadd.s32.s32.s32 %r1.b1, %r2, %r3, %r4;", ""},
    {"vadd.s32.s32.s32 %r1.b1, %r2, %r3;", kMissingOrMany},
    {"vadd.s32.s32.s32.add %r1.b1, %r2, %r3, %r4;", "a result is merged or combined, not both"},
    {"vadd.s32.s32.s32 %r1, %r2.b2, %r3;", ""},
    {"vadd.s32.s32.s32 %r1, %r2, %r3.b2;", ""},
    {"vadd.s32.s32.s32 %r1.b2, %r2, %r3, %r4;", ""},
    {"vadd.s32.s32.s32 %r1.b2, %r2, %r3;", kMissingOrMany},
    {"vadd.s32.s32.s32.add %r1.b2, %r2, %r3, %r4;", "a result is merged or combined, not both"},
    {"vadd.s32.s32.s32 %r1, %r2.b3, %r3;", ""},
    {"vadd.s32.s32.s32 %r1, %r2, %r3.b3;", ""},
    {"vadd.s32.s32.s32 %r1.b3, %r2, %r3, %r4;", ""},
    {"vadd.s32.s32.s32 %r1.b3, %r2, %r3;", kMissingOrMany},
    {"vadd.s32.s32.s32.add %r1.b3, %r2, %r3, %r4;", "a result is merged or combined, not both"},
    {"vadd.s32.s32.s32 %r1, %r2.h0, %r3;", ""},
    {"vadd.s32.s32.s32 %r1, %r2, %r3.h0;", ""},
    {"vadd.s32.s32.s32 %r1.h0, %r2, %r3, %r4;", ""},
    {"vadd.s32.s32.s32 %r1.h0, %r2, %r3;", kMissingOrMany},
    {"vadd.s32.s32.s32.add %r1.h0, %r2, %r3, %r4;", "a result is merged or combined, not both"},
    {"vadd.s32.s32.s32 %r1, %r2.h1, %r3;", ""},
    {"vadd.s32.s32.s32 %r1, %r2, %r3.h1;", ""},
    {"vadd.s32.s32.s32 %r1.h1, %r2, %r3, %r4;", ""},
    {"vadd.s32.s32.s32 %r1.h1, %r2, %r3;", kMissingOrMany},
    {"vadd.s32.s32.s32.add %r1.h1, %r2, %r3, %r4;", "a result is merged or combined, not both"},
    {"vadd.s32.s32.s32 %r1, %r2.b4, %r3;", "no such selector of parts"},
    {"vadd.s32.s32.s32 %r1.b4, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd.s32.s32.s32 %r1, %r2.h2, %r3;", "no such selector of parts"},
    {"vadd.s32.s32.s32 %r1.h2, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd.s32.s32.s32 %r1, %r2.b, %r3;", "no such selector of parts"},
    {"vadd.s32.s32.s32 %r1.b, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd.s32.s32.s32 %r1, %r2.b01, %r3;", "no such selector of parts"},
    {"vadd.s32.s32.s32 %r1.b01, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd.s32.s32.s32 %r1, %r2.w0, %r3;", "no such selector of parts"},
    {"vadd.s32.s32.s32 %r1.w0, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd.s32.s32.s32 %r1, %r2.h10, %r3;", "no such selector of parts"},
    {"vadd.s32.s32.s32 %r1.h10, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd.s32.s32.s32 %r1, %r2, %r3, %r4;", kMissingOrMany},
    {"vadd.s32.s32.s32.add %r1, %r2, %r3;", kMissingOrMany},
    {"vadd.s32.s32.s32.add %r1, %r2, %r3, %r4, %r5;", kMissingOrMany},
    {"vadd.s32.s32.s32 %r1, %r2;", kMissingOrMany},
    {"vadd.s32.s32.s32.add %r1, %r2, %r3, %r4;", ""},
    {"vadd2.s32.s32.s32.add %r1, %r2, %r3, %r4;", ""},
    {"vadd.s32.s32.s32.min %r1, %r2, %r3, %r4;", ""},
    {"vadd2.s32.s32.s32.min %r1, %r2, %r3, %r4;", kUnknown},
    {"vadd.s32.s32.s32.max %r1, %r2, %r3, %r4;", ""},
    {"vadd2.s32.s32.s32.max %r1, %r2, %r3, %r4;", kUnknown},
    {"vadd.s32.s32 %r1, %r2, %r3;", kUnknown},
    {"vadd.s32.s32.s32.s32 %r1, %r2, %r3;", kUnknown},
    {"vadd.s32.s32.u64 %r1, %r2, %r3;", kUnknown},
    {"vadd.s32.s32.s32.eq %r1, %r2, %r3;", kUnknown},
    {"vadd.s32.s32.s32.clamp %r1, %r2, %r3;", kUnknown},
    {"vadd.s32.s32.s32.po %r1, %r2, %r3;", kUnknown},
    {"vadd.s32.s32.s32.shr7 %r1, %r2, %r3;", kUnknown},
    {"vadd2.s32.s32.s32 %r1, %r2, %r3, %r4;", ""},
    {"vadd4.s32.s32.s32 %r1, %r2, %r3, %r4;", ""},
    {"vadd3.s32.s32.s32 %r1, %r2, %r3, %r4;", kUnknown},
    {"vsub2.s32.s32.s32 %r1, %r2, %r3, %r4;", ""},
    {"vsub4.s32.s32.s32 %r1, %r2, %r3, %r4;", ""},
    {"vsub3.s32.s32.s32 %r1, %r2, %r3, %r4;", kUnknown},
    {"vabsdiff2.s32.s32.s32 %r1, %r2, %r3, %r4;", ""},
    {"vabsdiff4.s32.s32.s32 %r1, %r2, %r3, %r4;", ""},
    {"vabsdiff3.s32.s32.s32 %r1, %r2, %r3, %r4;", kUnknown},
    {"vmin2.s32.s32.s32 %r1, %r2, %r3, %r4;", ""},
    {"vmin4.s32.s32.s32 %r1, %r2, %r3, %r4;", ""},
    {"vmin3.s32.s32.s32 %r1, %r2, %r3, %r4;", kUnknown},
    {"vmax2.s32.s32.s32 %r1, %r2, %r3, %r4;", ""},
    {"vmax4.s32.s32.s32 %r1, %r2, %r3, %r4;", ""},
    {"vmax3.s32.s32.s32 %r1, %r2, %r3, %r4;", kUnknown},
    {"vavrg2.u32.u32.u32 %r1, %r2, %r3, %r4;", ""},
    {"vavrg4.u32.u32.u32 %r1, %r2, %r3, %r4;", ""},
    {"vavrg.u32.u32.u32 %r1, %r2, %r3;", kUnknown},
    {"vmad2.u32.u32.u32 %r1, %r2, %r3, %r4;", kUnknown},
    {"vshl2.u32.u32.u32.clamp %r1, %r2, %r3, %r4;", kUnknown},
    {"vset.u32.u32.lt %r1, %r2, %r3;", ""},
    {"vset.u32.u32.u32.lt %r1, %r2, %r3;", kUnknown},
    {"vset.u32.u32 %r1, %r2, %r3;", kUnknown},
    {"vset2.u32.u32.lt %r1, %r2, %r3, %r4;", ""},
    {"vset.u32.u32.lt.gt %r1, %r2, %r3;", kUnknown},
    {"vshl.u32.u32.u32.clamp %r1, %r2, %r3;", ""},
    {"vshl.u32.u32.u32.wrap %r1, %r2, %r3;", ""},
    {"vshl.u32.u32.u32 %r1, %r2, %r3;", kUnknown},
    {"vshr.s32.s32.u32.wrap %r1, %r2, %r3;", ""},
    {"vmad.u32.u32.u32 %r1, %r2, %r3, %r4;", ""},
    {"vmad.u32.u32.u32.po %r1, %r2, %r3, %r4;", ""},
    {"vmad.u32.u32.u32.sat.shr7 %r1, %r2, %r3, %r4;", ""},
    {"vmad.u32.u32.u32.shr15 %r1, %r2, %r3, %r4;", ""},
    {"vmad.u32.u32.u32.shr8 %r1, %r2, %r3, %r4;", kUnknown},
    {"vmad.u32.u32.u32 %r1, %r2, %r3;", kMissingOrMany},
    {"vadd2.s32.s32.s32 %r1, %r2.h10, %r3, %r4;", ""},
    {"vadd2.s32.s32.s32 %r1, %r2, %r3.h10, %r4;", ""},
    {"vadd2.s32.s32.s32 %r1, %r2.h32, %r3, %r4;", ""},
    {"vadd2.s32.s32.s32 %r1, %r2, %r3.h32, %r4;", ""},
    {"vadd2.s32.s32.s32 %r1, %r2.h03, %r3, %r4;", ""},
    {"vadd2.s32.s32.s32 %r1, %r2, %r3.h03, %r4;", ""},
    {"vadd2.s32.s32.s32 %r1, %r2.h21, %r3, %r4;", ""},
    {"vadd2.s32.s32.s32 %r1, %r2, %r3.h21, %r4;", ""},
    {"vadd2.s32.s32.s32 %r1, %r2.h1, %r3, %r4;", "no such selector of parts"},
    {"vadd2.s32.s32.s32 %r1, %r2.h, %r3, %r4;", "no such selector of parts"},
    {"vadd2.s32.s32.s32 %r1, %r2.h104, %r3, %r4;", "no such selector of parts"},
    {"vadd2.s32.s32.s32 %r1, %r2.h14, %r3, %r4;", "no such selector of parts"},
    {"vadd2.s32.s32.s32 %r1, %r2.h40, %r3, %r4;", "no such selector of parts"},
    {"vadd2.s32.s32.s32 %r1, %r2.b10, %r3, %r4;", "no such selector of parts"},
    {"vadd2.s32.s32.s32 %r1, %r2.b3210, %r3, %r4;", "no such selector of parts"},
    {"vadd2.s32.s32.s32 %r1, %r2.h1x, %r3, %r4;", "no such selector of parts"},
    {"vadd4.s32.s32.s32 %r1, %r2.b3210, %r3, %r4;", ""},
    {"vadd4.s32.s32.s32 %r1, %r2.b7654, %r3, %r4;", ""},
    {"vadd4.s32.s32.s32 %r1, %r2.b0527, %r3, %r4;", ""},
    {"vadd4.s32.s32.s32 %r1, %r2.b321, %r3, %r4;", "no such selector of parts"},
    {"vadd4.s32.s32.s32 %r1, %r2.b8210, %r3, %r4;", "no such selector of parts"},
    {"vadd4.s32.s32.s32 %r1, %r2.b32109, %r3, %r4;", "no such selector of parts"},
    {"vadd4.s32.s32.s32 %r1, %r2.h10, %r3, %r4;", "no such selector of parts"},
    {"vadd4.s32.s32.s32 %r1, %r2.b321x, %r3, %r4;", "no such selector of parts"},
    {"vadd2.s32.s32.s32 %r1.h0, %r2, %r3, %r4;", ""},
    {"vadd2.s32.s32.s32 %r1.h1, %r2, %r3, %r4;", ""},
    {"vadd2.s32.s32.s32 %r1.h10, %r2, %r3, %r4;", ""},
    {"vadd2.s32.s32.s32 %r1.h2, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd2.s32.s32.s32 %r1.h, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd2.s32.s32.s32 %r1.b0, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd2.s32.s32.s32 %r1.h12, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd4.s32.s32.s32 %r1.b0, %r2, %r3, %r4;", ""},
    {"vadd4.s32.s32.s32 %r1.b3, %r2, %r3, %r4;", ""},
    {"vadd4.s32.s32.s32 %r1.b320, %r2, %r3, %r4;", ""},
    {"vadd4.s32.s32.s32 %r1.b4, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd4.s32.s32.s32 %r1.h0, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd4.s32.s32.s32 %r1.b34, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd4.s32.s32.s32 %r1.b, %r2, %r3, %r4;", "no such selector of parts"},
    {"vadd2.s32.s32.s32 %r1, %r2, %r3;", kMissingOrMany},
    {"vabsdiff4.u32.u32.u32.add %r1, %r2, %r3, %r4;", ""},
    {"vadd.s32.s32.s32 %p1, %r2, %r3;", kWrongKind},
    {"vadd.s32.s32.s32 %r1, %p2, %r3;", "a predicate where a value was expected"},
    {"v2.s32 %r1, %r2;", kUnknown},
    {"vote2.s32 %r1, %r2;", kUnknown},
};
TEST(SoftRefusedFamilies, Video) {
  for (const FormCase& c : kVideo) Expect(c);
}

}  // namespace
}  // namespace vgpud::soft
