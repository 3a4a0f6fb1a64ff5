# SPDX-License-Identifier: Apache-2.0
"""Rows of the decoder that little code names: registers of other widths, parts of bytes, counters, barrier objects one
thread has to itself, addresses of parameters in registers, hints.
"""
from fractions import Fraction

from form import form, ints, signed
from forms_memory import TYPES, width_of
from ieee import F32

# --- registers wider than the type of an instruction ---
rows = [(F32.round(Fraction(v)),) for v in (0, 1, 7, -1, -7, 1 << 30, -(1 << 31), 255)]
form("cvt.rzi.s32.f32.to.b64", "b32", "b64", rows, lambda a: int(F32.value(a)), code="cvt.rzi.s32.f32 %d, %a;")
form("cvt.rzi.u32.f32.to.b64", "b32", "b64", [r for r in rows if not r[0] >> 31], lambda a: int(F32.value(a)),
     code="cvt.rzi.u32.f32 %d, %a;")
form("cvt.rn.f32.s32.of.b64", "b64", "b32", [(v,) for v in ints(64)],
     lambda a: F32.round(Fraction(signed(a & 0xffffffff, 32))), code="cvt.rn.f32.s32 %d, %a;")

# --- bytes of a register ---
BYTES = [".reg .b8 %q<4>;", "cvt.u8.u16 %q0, %a;", "cvt.u8.u16 %q1, %b;"]
halves = [(0x12, 0x34), (0xff80, 0x1ff), (0, 0xffff), (0x100, 0x80)]
form("mov.b16.of.bytes", "b16 b16", "b16", halves, lambda a, b: a & 255 | (b & 255) << 8,
     code=BYTES + ["mov.b16 %d, {%q0, %q1};"])
form("mov.b16.to.bytes", "b16", "b16 b16", [(v,) for v in ints(16)], lambda a: (a & 255, a >> 8),
     code=[".reg .b8 %q<2>;", "mov.b16 {%q0, %q1}, %a;", "cvt.u16.u8 %d, %q0;", "cvt.u16.u8 %e, %q1;"])
form("mov.b32.of.bytes", "b16 b16 b16 b16", "b32", [a + b for a in halves for b in halves],
     lambda a, b, c, u: a & 255 | (b & 255) << 8 | (c & 255) << 16 | (u & 255) << 24,
     code=BYTES + ["cvt.u8.u16 %q2, %c;", "cvt.u8.u16 %q3, %u;", "mov.b32 %d, {%q0, %q1, %q2, %q3};"])
form("mov.b32.to.bytes", "b32", "b16 b16 b16 b16", [(v,) for v in ints(32)],
     lambda a: tuple(a >> 8 * n & 255 for n in range(4)),
     code=[".reg .b8 %q<4>;", "mov.b32 {%q0, %q1, %q2, %q3}, %a;"] +
          ["cvt.u16.u8 %%%s, %%q%d;" % ("defg"[n], n) for n in range(4)])

# --- counters ---
form("mov.special.clock", "b32", "pred", [(0,)], lambda a: 1,
     code=["{ .reg .b32 %x, %y; mov.u32 %x, %clock; nanosleep.u32 1000; mov.u32 %y, %clock; sub.u32 %y, %y, %x;",
           "setp.gt.s32 %d, %y, 0; }"])
form("mov.special.globaltimer_lo", "b32", "pred", [(0,)], lambda a: 1,
     code=["{ .reg .b32 %x, %y; mov.u32 %x, %globaltimer_lo; nanosleep.u32 1000; mov.u32 %y, %globaltimer_lo;",
           "sub.u32 %y, %y, %x; setp.ge.s32 %d, %y, 0; }"])
for high, whole in (("clock_hi", "clock64"), ("globaltimer_hi", "globaltimer")):
    # The upper half lies between those of what was read before and after.
    form("mov.special." + high, "b32", "pred", [(0,)], lambda a: 1,
         code=["{ .reg .b64 %%x, %%y; .reg .b32 %%h; .reg .pred %%p; mov.u64 %%x, %%%s; mov.u32 %%h, %%%s;" % (whole, high),
               "mov.u64 %%y, %%%s; shr.u64 %%x, %%x, 32; shr.u64 %%y, %%y, 32; cvt.u64.u32 %%base, %%h;" % whole,
               "setp.ge.u64 %p, %base, %x; setp.le.and.u64 %d, %base, %y, %p; }"])

# --- barrier objects: phases of one thread ---
for wait in ("test_wait", "try_wait"):
    # Phase 0 is done after two arrivals, phase 1 after those that are left of them.
    form("mbarrier.%s.parity" % wait, "b32", "pred pred pred pred", [(0,)] * 32, lambda a: (0, 1, 0, 1), needs=90,
         code=["{ .reg .b64 %state; mbarrier.init.shared.b64 [%s], 2; mbarrier.arrive.shared.b64 %state, [%s];",
               "mbarrier.test_wait.parity.shared.b64 %d, [%s], 0; mbarrier.arrive_drop.shared.b64 %state, [%s];",
               "mbarrier.%s.parity.shared.b64 %%e, [%%s], 0;" % wait,
               "mbarrier.test_wait.parity.shared.b64 %f, [%s], 1; mbarrier.arrive.shared.b64 %state, [%s];",
               "mbarrier.%s.parity.shared.b64 %%g, [%%s], 1; mbarrier.inval.shared.b64 [%%s]; }" % wait])
form("mbarrier.try_wait", "b32", "pred", [(0,)] * 32, lambda a: 1, needs=90,
     code=["{ .reg .b64 %state; mbarrier.init.shared.b64 [%s], 1; mbarrier.arrive.shared.b64 %state, [%s];",
           "mbarrier.try_wait.shared.b64 %d, [%s], %state; }"])
# Bytes that are to come, and come: 16 of a bulk copy from the block's own memory, and what the instructions say.
for how in ("arrive", "arrive_drop"):
    form("mbarrier.%s.expect_tx" % how, "b32", "pred pred pred pred", [(0,)] * 32, lambda a: (0, 0, 1, 0), needs=90,
         code=["{ .reg .b64 %%state; mbarrier.init.shared.b64 [%%s], 1; mbarrier.%s.expect_tx.shared.b64 %%state, [%%s], 48;" % how,
               "mbarrier.test_wait.parity.shared.b64 %d, [%s], 0; mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%s], 40;",
               "mbarrier.test_wait.shared.b64 %e, [%s], %state;",
               "mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%s], 8; mbarrier.test_wait.shared.b64 %f, [%s], %state;",
               "mbarrier.test_wait.parity.shared.b64 %g, [%s], 1; }"])
form("mbarrier.expect_tx", "b32", "pred pred", [(0,)] * 32, lambda a: (0, 1), needs=90,
     code=["{ .reg .b64 %state; mbarrier.init.shared.b64 [%s], 1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%s], 4;",
           "mbarrier.arrive.shared.b64 %state, [%s]; mbarrier.test_wait.parity.shared.b64 %d, [%s], 0;",
           "mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%s], 4; mbarrier.test_wait.parity.shared.b64 %e, [%s], 0; }"])
form("barrier.cluster", "b32", "b32", [(v,) for v in ints(32)], lambda a: a, needs=90,
     code=["barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; barrier.cluster.arrive.relaxed;",
           "mov.b32 %d, %a; barrier.cluster.wait;"])
form("mapa", "b64", "b64 b32 b32", [(v,) for v in ints(64)], lambda a: (a, 0, 0), needs=90,
     code=["{ .reg .b32 %o; .reg .b64 %g; mapa.shared::cluster.u32 %o, %s, 0; st.shared.b64 [%s], %a;",
           "ld.shared::cluster.b64 %d, [%o]; cvt.u64.u32 %g, %o; ld.shared::cluster.b64 %d, [%g];",
           "getctarank.shared::cluster.u32 %e, %o; cvt.u64.u32 %g, %s; cvta.shared.u64 %g, %g;",
           "mapa.u64 %g, %g, 0; getctarank.u64 %f, %g; }"])
BULK = ["{ .reg .b32 %o; .reg .b64 %state; add.u32 %o, %s, 64; mbarrier.init.shared.b64 [%o], 1; st.global.v2.b64 [%m], {%a, %b};",
        "mbarrier.arrive.expect_tx.shared.b64 %state, [%o], 16;"]
BULK_END = ["WAIT: mbarrier.try_wait.shared.b64 %f, [%o], %state; @!%f bra WAIT; ld.shared.v2.b64 {%d, %e}, [%s]; }"]
for to, ask, mask in (("cluster", "", ""), ("cluster", ".multicast::cluster", ", 1")):
    form("cp.async.bulk.shared::%s.global%s" % (to, ask), "b64 b64", "b64 b64 pred",
         [(a, a * 7) for a in ints(64)], lambda a, b: (a, b, 1), needs=90,
         code=BULK + ["cp.async.bulk.shared::%s.global.mbarrier::complete_tx::bytes%s [%%s], [%%m], 16, [%%o]%s;" % (to, ask, mask)]
         + BULK_END)
form("cp.async.bulk.global.shared::cta", "b64 b64", "b64 b64", [(a, a * 3) for a in ints(64)], lambda a, b: (a, b), needs=90,
     code=["st.shared.v2.b64 [%s], {%a, %b}; fence.proxy.async.shared::cta;",
           "cp.async.bulk.global.shared::cta.bulk_group [%m], [%s], 16; cp.async.bulk.commit_group;",
           "cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0; ld.global.v2.b64 {%d, %e}, [%m];"])
form("mbarrier.pending_count.b64", "b32", "b32 b32", [(0,)] * 32, lambda a: (3, 2), needs=80,
     code=["{ .reg .b64 %state; mbarrier.init.shared.b64 [%s], 3; mbarrier.arrive.shared.b64 %state, [%s];",
           "mbarrier.pending_count.b64 %d, %state; mbarrier.arrive.shared.b64 %state, [%s];",
           "mbarrier.pending_count.b64 %e, %state; }"])
form("cp.async.mbarrier.arrive.noinc.shared.b64", "b64", "b64 pred", [(v,) for v in ints(64)], lambda a: (a, 1), needs=80,
     code=["{ .reg .b32 %o; add.u32 %o, %s, 64; mbarrier.init.shared.b64 [%o], 1;",
           "cp.async.ca.shared.global [%s], [%in], 8; cp.async.mbarrier.arrive.noinc.shared.b64 [%o];",
           "WAIT: mbarrier.test_wait.parity.shared.b64 %e, [%o], 0; @!%e bra WAIT; ld.shared.b64 %d, [%s]; }"])
form("elect.sync", "b32", "b32 pred", [[(0,) for _ in range(32)]], lambda r: [(0, lane == 0) for lane in range(32)],
     needs=90, whole_warps=True, code="elect.sync %d|%e, 0xffffffff;")

# --- parameters through a register with their address ---
for t in TYPES:
    if t[0] not in "us":
        continue
    for bits in (32, 64):
        if width_of(t) > bits:
            continue
        wide = "cvt.s64.s32 %whole, %part;" if t[0] == "s" else "cvt.u64.u32 %whole, %part;"
        form("ld.param.%s.address.to.b%d" % (t, bits), "b32", "pred", [(0,)], lambda a: 1,
             code=["{ .reg .b%d %%part; .reg .b64 %%where, %%whole; mov.b64 %%where, out;" % bits,
                   "ld.param.%s %%part, [%%where];" % t, wide if bits == 32 else "mov.b64 %whole, %part;",
                   "ld.param.u64 %where, [out]; st.global.b64 [%m], %where;", "ld.global.%s %%where, [%%m];" % t,
                   "setp.eq.b64 %d, %whole, %where; }"])

# --- what is seen of these is that nothing happens ---
form("pmevent", "b32", "b32", [(v,) for v in ints(32)], lambda a: a, code=["pmevent 7;", "mov.b32 %d, %a;"])
for what in ("wait", "launch_dependents"):
    form("griddepcontrol." + what, "b32", "b32", [(v,) for v in ints(32)], lambda a: a, needs=90,
         code=["griddepcontrol.%s;" % what, "mov.b32 %d, %a;"])
form("applypriority.global.L2::evict_normal", "b32", "b32", [(v,) for v in ints(32)], lambda a: a, needs=80,
     code=["st.global.b32 [%m+64], %a;", "applypriority.global.L2::evict_normal [%m], 128;", "ld.global.b32 %d, [%m+64];"])
form("discard.global.L2", "b32", "b32", [(v,) for v in ints(32)], lambda a: a, needs=80,
     code=["discard.global.L2 [%m], 128;", "st.global.b32 [%m+64], %a;", "ld.global.b32 %d, [%m+64];"])

# --- two saturated integers in one register ---
edges = [v + d & 0xffffffff for n in (1, 2, 3, 4, 7, 8, 15, 16, 31) for v in (1 << n, -(1 << n)) for d in (-1, 0, 1)] + [0]
pairs = [(a, edges[(n * 7 + 3) % len(edges)]) for n, a in enumerate(edges)]
for width in (2, 4, 8, 16):
    for sign, least, most in (("u", 0, (1 << width) - 1), ("s", -(1 << width - 1), (1 << width - 1) - 1)):
        def packed(a, b, c=0, w=width, low=least, high=most):
            a, b = (min(max(signed(v, 32), low), high) & (1 << w) - 1 for v in (a, b))
            return (c << 2 * w | a << w | b) & 0xffffffff
        if width == 16:
            form("cvt.pack.sat.%s16.s32" % sign, "b32 b32", "b32", pairs, packed)
        else:
            form("cvt.pack.sat.%s%d.s32.b32" % (sign, width), "b32 b32 b32", "b32",
                 [p + (0x9a5b3c71 * (n + 1) & 0xffffffff,) for n, p in enumerate(pairs)], packed)
