// SPDX-License-Identifier: Apache-2.0
// Bulk copies and reductions of several pieces each, by several lanes, to global memory and to all blocks of a cluster.
#pragma once

namespace vgpud::soft {

inline constexpr const char* kBulkShared = ".shared .align 128 .b8 tile[40960]; .shared .align 8 .b8 done[8];";
// %rd1: 122880 bytes of output; %r39: the thread's number in its block, of which there are two in a cluster.
inline constexpr const char* kBulkBody = R"(
    mov.u32 %r1, tile; mov.u32 %r2, done; mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, %r39; mov.u16 %rs1, 3;
    mov.u16 %rs2, 0x3c96; setp.eq.u32 %p1, %r39, 0; setp.lt.u32 %p2, %r39, 3; setp.eq.u32 %p3, %r3, 0;
    @%p1 mbarrier.init.shared.b64 [%r2], 1; @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r2], 36864;
  FILL:
    shl.b32 %r5, %r4, 2; add.u32 %r5, %r1, %r5; mad.lo.u32 %r6, %r4, 2654435761, %r3; st.shared.u32 [%r5], %r6;
    add.u32 %r4, %r4, 32; setp.lt.u32 %p4, %r4, 10240; @%p4 bra FILL;
    barrier.cluster.arrive; barrier.cluster.wait;
    add.u64 %rd2, %rd1, 81920; mul.wide.u32 %rd3, %r39, 512; add.u64 %rd3, %rd2, %rd3;
    @%p2 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd3], [%r1], 36864;
    mul.wide.u32 %rd4, %r3, 40960; add.u64 %rd4, %rd1, %rd4;
    @%p1 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd4], [%r1], 40960, %rs2;
    barrier.cluster.arrive; barrier.cluster.wait; and.pred %p5, %p1, %p3;
    @%p5 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
      [%r1], [%rd2], 36864, [%r2], %rs1;
  WAIT: mbarrier.try_wait.parity.shared.b64 %p6, [%r2], 0; @!%p6 bra WAIT;
    add.u32 %r7, %r1, 1024;
    @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], [%r1], 36864, [%r2];
    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd4], [%r1], 40960;
    barrier.cluster.arrive; barrier.cluster.wait;)";

}  // namespace vgpud::soft
