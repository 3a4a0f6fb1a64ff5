// SPDX-License-Identifier: Apache-2.0
// The kernels of the self-test (self_test.cc says what they must leave behind). For compute capability 7.0 and later.
#pragma once

namespace vgpud::driver {

// many(counts, rounds): each block goes round a loop `rounds` times, and counts itself and its index.
// endless(results, release): each thread computes until the word `release` is not 0, and leaves how often it went round
// and what came out, its neighbour's word of shared memory added.
inline constexpr char kSelfTestPtx[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry many(.param .u64 counts, .param .u32 rounds)
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>;
  .reg .b64 %d<4>;
  ld.param.u32 %r1, [rounds];
round:
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra round;
  mov.u32 %r2, %tid.x;
  setp.ne.u32 %p2, %r2, 0;
  @%p2 bra end;
  ld.param.u64 %d1, [counts];
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r3, %ctaid.x;
  cvt.u64.u32 %d2, %r3;
  red.global.add.u64 [%d1+8], %d2;
  mov.u64 %d3, 1;
  red.global.add.u64 [%d1], %d3;
end:
  ret;
}
.visible .entry endless(.param .u64 results, .param .u64 release)
{
  .reg .pred %p<2>;
  .reg .b32 %r<12>;
  .reg .b64 %d<8>;
  .shared .align 4 .b8 words[256];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mov.u32 %r5, words;
  shl.b32 %r6, %r3, 2;
  add.u32 %r6, %r5, %r6;
  st.shared.u32 [%r6], %r4;
  bar.sync 0;
  ld.param.u64 %d1, [release];
  cvta.to.global.u64 %d1, %d1;
  mov.u64 %d2, 0;
  mov.u32 %r7, %r4;
again:
  mad.lo.u32 %r7, %r7, 1664525, 1013904223;
  add.u64 %d2, %d2, 1;
  ld.volatile.global.u32 %r8, [%d1];
  setp.eq.u32 %p1, %r8, 0;
  @%p1 bra again;
  add.u32 %r9, %r3, 1;
  and.b32 %r9, %r9, 63;
  shl.b32 %r9, %r9, 2;
  add.u32 %r9, %r5, %r9;
  ld.shared.u32 %r10, [%r9];
  add.u32 %r7, %r7, %r10;
  ld.param.u64 %d3, [results];
  cvta.to.global.u64 %d3, %d3;
  mul.wide.u32 %d4, %r4, 16;
  add.u64 %d3, %d3, %d4;
  st.global.u64 [%d3], %d2;
  st.global.u32 [%d3+8], %r7;
  ret;
}
)";

}  // namespace vgpud::driver
