// SPDX-License-Identifier: Apache-2.0
// A body of a kernel whose sums stay in tensor memory from one product to the next; each thread reads its own.
#pragma once

namespace vgpud::soft {

// %rd39: where the thread writes what it has computed; %r39: its number in the block of 128, %r38: that of the block.
inline constexpr const char* kTensorMemoryBody = R"(
    .shared .align 1024 .b8 tile[8192]; .shared .align 8 .b8 bar[8]; .shared .align 4 .b8 slot[4];
    shl.b32 %r1, %r39, 6; mov.u32 %r2, tile; add.u32 %r1, %r1, %r2; mov.u32 %r3, 0;
  FILL:
    mad.lo.u32 %r4, %r39, 11, %r3; add.u32 %r4, %r4, %r38; and.b32 %r4, %r4, 0x01010101; shl.b32 %r5, %r3, 2;
    add.u32 %r5, %r1, %r5; st.shared.u32 [%r5], %r4; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 16; @%p1 bra FILL;
    setp.ge.u32 %p2, %r39, 32; @%p2 bra THERE;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 0, 64;
    mbarrier.init.shared::cta.b64 [bar], 1;
  THERE:
    bar.sync 0; ld.shared.u32 %r6, [slot]; mov.u32 %r7, 0; mov.u32 %r8, 0;
    mov.b64 %rd5, 0x0000400800800000; mov.b64 %rd6, 0x0000400800800100;
  ROUND:
    setp.ne.u32 %p3, %r39, 0; @%p3 bra WAIT; setp.ne.u32 %p4, %r7, 0;
    tcgen05.mma.cta_group::1.kind::i8 [%r6], %rd5, %rd6, 0x80404a0, %p4;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
  WAIT:
    and.b32 %r9, %r7, 1; mbarrier.try_wait.parity.shared::cta.b64 %p5, [bar], %r9; @!%p5 bra WAIT;
    tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r10, %r11}, [%r6+1]; tcgen05.wait::ld.sync.aligned;
    mad.lo.u32 %r8, %r8, 31, %r10; xor.b32 %r8, %r8, %r11; add.u32 %r11, %r11, 1;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6+2], {%r11}; tcgen05.wait::st.sync.aligned; bar.sync 0;
    add.u32 %r7, %r7, 1; setp.lt.u32 %p6, %r7, 6; @%p6 bra ROUND;
    st.global.u32 [%rd39], %r8; setp.ge.u32 %p2, %r39, 32; @%p2 bra END;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32;
  END:)";

}  // namespace vgpud::soft
