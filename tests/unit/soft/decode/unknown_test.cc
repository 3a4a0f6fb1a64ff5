// SPDX-License-Identifier: Apache-2.0
// What is no PTX, or none that the soft GPU has, fails when it is loaded, with the instruction and its line: nothing is
// read past.
#include "tests/unit/soft/rig/soft_fixture.h"

namespace vgpud::soft {
namespace {

const char* const kUnknown[] = {
    "add.s32 %r1, !%r2, %r3;",
    "add.s32 %r1|%p1, %r2, %r3;",
    "add.s32 %r1, %r2|%p1, %r3;",
    "add.s32 %r1, %r2;",
    "add.s32 %r1, %r2, %r3, %r4;",
    "add.s32.s32 %r1, %r2, %r3;",
    "add.wide.s32 %r1, %r2, %r3;",
    "add.rz.s32 %r1, %r2, %r3;",
    "add.ftz.f64 %fd1, %fd2, %fd3;",
    "add.sat.u32 %r1, %r2, %r3;",
    "add.rn.rz.f32 %f1, %f2, %f3;",
    "add.foo.f32 %f1, %f2, %f3;",
    "mul.s32 %r1, %r2, %r3;",
    "mad.wide.s64 %rd1, %rd2, %rd3, %rd4;",
    "div.rn.s32 %r1, %r2, %r3;",
    "sqrt.approx.f64 %fd1, %fd2;",
    "fma.f32.f32 %f1, %f2, %f3, %f4;",
    "setp.lt.nand.s32 %p1, %r1, %r2, %p2;",
    "setp.lt.and.s32 %p1, %r1, %r2;",
    "setp.hi.s32 %p1, %r1, %r2;",
    "selp.s32 %r1, %r2, %r3, %r4;",
    "cvt.rn.rz.f32.f64 %f1, %fd1;",
    "cvt.rni.f32.s32 %f1, %r1;",
    "cvt.s32 %r1, %r2;",
    "ld.global.foo.u32 %r1, [%rd1];",
    "ld.global.v3.u32 {%r1, %r2, %r3}, [%rd1];",
    "ld.global.v2.u32 {%r1, %r2, %r3}, [%rd1];",
    "ld.global.u32 %r1, %rd1;",
    "ld.global.u32 [%rd1], %r1;",
    "ld.global.pred %p1, [%rd1];",
    "st.const.u32 [%rd1], %r1;",
    "st.global.nc.u32 [%rd1], %r1;",
    "ld.global.release.gpu.u32 %r1, [%rd1];",
    "st.global.acquire.gpu.u32 [%rd1], %r1;",
    "atom.global.foo.u32 %r1, [%rd1], %r2;",
    "atom.global.add.foo.u32 %r1, [%rd1], %r2;",
    "atom.global.add.sub.u32 %r1, [%rd1], %r2;",
    "atom.global.and.f32 %f1, [%rd1], %f2;",
    "atom.global.add.u32 %r1, [%rd1];",
    "atom.const.add.u32 %r1, [%rd1], %r2;",
    "atom.global.v2.add.u32 %r1, [%rd1], %r2;",
    "red.global.cas.b32 [%rd1], %r1, %r2;",
    "red.global.exch.b32 [%rd1], %r1;",
    "shfl.sync.left.b32 %r1, %r2, 1, 31, -1;",
    "shfl.sync.up.b64 %rd1, %rd2, 1, 31, -1;",
    "vote.sync.none.pred %p1, %p2, -1;",
    "bar.sync;",
    "bar.sync 0, 32, 1;",
    "bar.red.xor.pred %p1, 0, %p2;",
    "membar.foo;",
    "fence.foo;",
    "griddepcontrol.foo;",
    "griddepcontrol.wait %r1;",
    "bra.foo NOWHERE;",
    "bra NOWHERE;",
    "call nobody;",
    "ret.foo;",
    "exit.foo;",
    "trap %r1;",
    "nanosleep.u64 %rd1;",
    "cvta.foo.u64 %rd1, %rd2;",
    "cvta.to.global.u64 %rd1, %r1, %r2;",
    "isspacep.foo %p1, %rd1;",
    "prefetch.foo [%rd1];",
    "prefetch.global.L3 [%rd1];",
    "mov.b32 %r1, {%r2, %r3};",
    "mov.b64 {%r1, %r2, %r3}, %rd1;",
    "mov.b32 %r1, %p1;",
    "lop3.b32 %r1, %r2, %r3, %r4, %r5, %r6;",
    "prmt.b32.foo %r1, %r2, %r3, %r4;",
    "dp4a.u32 %r1, %r2, %r3, %r4;",
    "createpolicy.range.L2::evict_last.b64 %rd1, [%rd2];",
    "createpolicy.fractional.L3::evict_last.b64 %rd1, 1.0;",
    "ld.global.u32 %r1, [%rd1], %rd2;",
    "ld.global.L2::cache_hint.u32 %r1, [%rd1];",
    "frobnicate.s32 %r1, %r2;",
    "cp.async.ca.shared.global [%r1], [%rd1], 5;",
    "cp.async.cg.shared.global [%r1], [%rd1], 4;",
    "mbarrier.init.b32 [%r1], 1;",
    "activemask.b64 %rd1;",
    "redux.sync.mul.u32 %r1, %r2, -1;",
    "ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1, %r2, %r3}, [%r4];",
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r4];",
};

TEST(SoftUnknown, IsAnErrorThatNamesIt) {
  for (const std::string text : kUnknown) {
    SoftMachine m;
    const Outcome loaded = m.LoadBody("", text);
    EXPECT_NE(loaded.status, CuStatus::kSuccess) << text;
    if (loaded.status == CuStatus::kSuccess) continue;
    EXPECT_NE(loaded.text.find("PTX line 13"), std::string::npos) << text << "\n" << loaded.text;
  }
}

}  // namespace
}  // namespace vgpud::soft
