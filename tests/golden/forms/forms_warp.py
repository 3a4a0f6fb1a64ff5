# SPDX-License-Identifier: Apache-2.0
"""What looks at other lanes, waits or goes elsewhere (PTX ISA "shfl.sync", "vote.sync", "bar", "Control Flow")."""
import random

from form import form, signed
from ieee import F32
from values import edges32, least

LANES = range(32)
ALL = 0xffffffff
source = random.Random("warp")


def warps(*columns):
    """One warp: a list of rows of the given columns, each a function of the lane."""
    return [[tuple(c(lane) if callable(c) else c for c in columns) for lane in LANES]]


# --- shfl: d, and whether the source lane was in range ---
def shuffled(mode):
    def run(rows):
        result = []
        for lane, (_, b, c) in enumerate(rows):
            b &= 31
            clamp, segment = c & 31, c >> 8 & 31
            high = lane & segment | clamp & ~segment & 31
            low = lane & segment
            at = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": low | b & ~segment & 31}[mode]
            inside = at >= high if mode == "up" else at <= high
            result.append((rows[at if inside else lane][0], inside))
        return result
    return run


values = [source.getrandbits(32) for _ in LANES]
for mode in ("up", "down", "bfly", "idx"):
    clamps = (0, 0x1800, 0x1000) if mode == "up" else (0x1f, 0x181f, 0x1003, 0x0f)
    rows = [warps(lambda lane: values[lane], b, c)[0] for b in (0, 1, 3, 16, 31, lambda lane: lane * 7 % 32)
            for c in clamps]
    form("shfl.sync.%s.b32" % mode, "b32 b32 b32", "b32 pred", rows, shuffled(mode), whole_warps=True,
         code="shfl.sync.%s.b32 %%d|%%e, %%a, %%b, %%c, 0xffffffff;" % mode)

# --- votes ---
patterns = [lambda lane: 0, lambda lane: 1, lambda lane: lane % 3 == 0, lambda lane: lane == 31]
rows = [warps(p, lambda lane: values[lane])[0] for p in patterns]


def ballot(rows_):
    return sum(1 << lane for lane, row in enumerate(rows_) if row[0])


VOTES = {"all": lambda v: v == ALL, "any": lambda v: v != 0, "uni": lambda v: v in (0, ALL)}
for name, result in VOTES.items():
    form("vote.sync.%s.pred" % name, "pred b32", "pred", rows, lambda r, f=result: [f(ballot(r))] * 32,
         code="vote.sync.%s.pred %%d, %%a, 0xffffffff;" % name, whole_warps=True)
form("vote.sync.ballot.b32", "pred b32", "b32", rows, lambda r: [ballot(r)] * 32,
     code="vote.sync.ballot.b32 %d, %a, 0xffffffff;", whole_warps=True)
form("vote.ballot.sync.b32", "pred b32", "b32", rows, lambda r: [ballot(r)] * 32,
     code="vote.ballot.sync.b32 %d, !%a, 0xffffffff;\nnot.b32 %d, %d;".split("\n"), whole_warps=True)
# A part of the warp: lanes below 16 by themselves.
form("vote.sync.ballot.b32.part", "pred b32", "b32", rows, lambda r: [ballot(r) & 0xffff] * 16 + [0x5a5a] * 16,
     code=["{ .reg .pred %low; mov.u32 %row, %laneid; setp.lt.u32 %low, %row, 16; mov.b32 %d, 0x5a5a;",
           "@%low vote.sync.ballot.b32 %d, %a, 0xffff; }"], whole_warps=True)
form("activemask.b32", "b32", "b32", warps(0), lambda r: [ALL] * 32, code="activemask.b32 %d;", whole_warps=True)

groups = [warps(lambda lane: 5)[0], warps(lambda lane: lane // 5 * 0x100000001)[0], warps(lambda lane: lane)[0]]
for bits in (32, 64):
    kind = "b%d" % bits

    def same(rows_, b=bits):
        keys = [row[0] for row in rows_]
        return [sum(1 << n for n in LANES if keys[n] == key) for key in keys]
    form("match.any.sync." + kind, kind, "b32", groups, same, code="match.any.sync.%s %%d, %%a, -1;" % kind,
         whole_warps=True)
    form("match.all.sync." + kind, kind, "b32 pred", groups, code="match.all.sync.%s %%d|%%e, %%a, -1;" % kind,
         model=lambda r: [(ALL, 1) if len({tuple(x) for x in r}) == 1 else (0, 0)] * 32, whole_warps=True)


def fold(operation, is_signed):
    def run(rows_):
        numbers = [signed(row[0], 32) if is_signed else row[0] for row in rows_]
        total = numbers[0]
        for v in numbers[1:]:
            total = operation(total, v)
        return [total] * 32
    return run


some = [warps(lambda lane: values[lane])[0], warps(lambda lane: lane)[0], warps(0xffffffff)[0]]
REDUX = {"add": lambda x, y: x + y, "min": min, "max": max, "and": lambda x, y: x & y, "or": lambda x, y: x | y,
         "xor": lambda x, y: x ^ y}
for name, operation in REDUX.items():
    for t in ("b32",) if name in ("and", "or", "xor") else ("u32", "s32"):
        form("redux.sync.%s.%s" % (name, t), "b32", "b32", some, fold(operation, t[0] == "s"),
             code="redux.sync.%s.%s %%d, %%a, 0xffffffff;" % (name, t), needs=80, whole_warps=True)

FLOAT_WARPS = [[(edges32()[(lane * 7 + start) % 29],) for lane in range(32)] for start in (0, 3)]
FLOAT_WARPS += [[(0x7fc00000 + lane,) for lane in range(32)],
                [(0x80000000 if lane % 3 else 0,) for lane in range(32)],
                [(0x3f800000 + (lane * 11) % 32 | (lane % 2) << 31,) for lane in range(32)]]


def redux_float(greatest, size, nan_wins):
    def run(given):
        values = [v & 0x7fffffff if size else v for v, in given]
        r = values[0]
        for v in values[1:]:
            r = least(F32, r, v, greatest, nan_wins)
        return [F32.nan if F32.is_nan(r) else r] * 32
    return run


for name, greatest in (("min", False), ("max", True)):
    for size in ("", ".abs"):
        for nan in ("", ".NaN"):
            full = "redux.sync.%s%s%s.f32" % (name, size, nan)
            form(full, "b32", "b32", FLOAT_WARPS, redux_float(greatest, size, bool(nan)), needs="100f", whole_warps=True,
                 code=full + " %d, %a, 0xffffffff;")
for direction, count in (("dec", 40), ("inc", 232)):
    full = "setmaxnreg.%s.sync.aligned.u32" % direction
    form(full, "b32", "b32", [[(lane,) for lane in range(32)]], lambda given: [v for v, in given], needs="100f",
         code=["%s %d;" % (full, count), "mov.b32 %d, %a;"], whole_warps=True)

# --- barriers: each lane reads what its neighbour wrote before ---
NEIGHBOUR = ["mov.u32 %row, %laneid;", "xor.b32 %flag, %row, 1;", "sub.u32 %flag, %flag, %row;",
             "mad.lo.s32 %flag, %flag, 128, %s;", "st.shared.b32 [%s], %a;"]
one = warps(lambda lane: values[lane])
BARRIERS = ("bar.sync 0;", "bar.sync 1, 32;", "barrier.sync 0;", "barrier.sync.aligned 2, 32;", "barrier.cta.sync 3;",
            "bar.cta.sync 4, 32;", "bar.warp.sync 0xffffffff;",
            "barrier.arrive 5, 64; barrier.sync 5, 64;", "bar.arrive 6, 64; bar.sync 6, 64;")
for text in BARRIERS:
    name = text.split()[0] + ("" if text.count(";") == 1 else ".then.sync") + (".count" if "," in text else "")
    form(name, "b32", "b32", one, lambda r: [r[lane ^ 1][0] for lane in LANES],
         code=NEIGHBOUR + [text, "ld.shared.b32 %d, [%flag];"], whole_warps=True)
for barrier in ("bar", "barrier"):
    for name, kind, result in (("and.pred", "pred", lambda v: v == ALL), ("or.pred", "pred", lambda v: v != 0),
                               ("popc.u32", "b32", lambda v: bin(v).count("1"))):
        form("%s.red.%s" % (barrier, name), "pred b32", kind, rows, lambda r, f=result: [f(ballot(r))] * 32,
             code="%s.red.%s %%d, 0, %%a;" % (barrier, name), whole_warps=True)
        form("%s.red.%s.count" % (barrier, name), "pred b32", kind, rows,
             lambda r, f=result: [f(ballot(r) ^ ALL)] * 32,
             code="%s.red.%s %%d, 1, 32, !%%a;" % (barrier, name), whole_warps=True)
for fence in ("membar.cta", "membar.gl", "membar.sys", "fence.sc.cta", "fence.sc.gpu", "fence.acq_rel.sys",
              "fence.acq_rel.cta", "fence.sc.sys"):
    form(fence, "b32", "b32", one, lambda r: [row[0] for row in r], code=["st.global.b32 [%m], %a;", fence + ";",
                                                                          "ld.global.b32 %d, [%m];"], whole_warps=True)
form("nanosleep.u32", "b32", "b32", [(5,)], lambda a: a, code=["nanosleep.u32 100;", "mov.b32 %d, %a;"])

# --- special registers ---
form("mov.special.lane", "b32", "b32 b32 b32 b32 b32 b32", warps(0),
     lambda r: [(n, 1 << n, (1 << n) - 1, (2 << n) - 1, ALL & ~((1 << n) - 1), ALL & ~((2 << n) - 1)) for n in LANES],
     code=["mov.u32 %d, %laneid;", "mov.u32 %e, %lanemask_eq;", "mov.u32 %f, %lanemask_lt;", "mov.u32 %g, %lanemask_le;",
           "mov.u32 %h, %lanemask_ge;", "mov.u32 %i, %lanemask_gt;"], whole_warps=True)
form("mov.special.block", "b32", "b32 b32 b32 b32 b32 b32", [warps(0)[0], warps(0)[0]],
     lambda r: [(n, 0, 0, 32, 1, 1) for n in LANES],
     code=["mov.u32 %d, %tid.x;", "mov.u32 %e, %tid.y;", "mov.u32 %f, %tid.z;", "mov.u32 %g, %ntid.x;",
           "mov.u32 %h, %ntid.y;", "mov.u32 %i, %ntid.z;"], whole_warps=True)
form("mov.special.grid", "b32", "b32 b32 b32", [[(n // 32,) for n in range(k, k + 32)] for k in (0, 32)],
     lambda r: [(row[0], 0, 2) for row in r],
     code=["mov.u32 %d, %ctaid.x;", "mov.u32 %e, %ctaid.y;", "mov.u32 %f, %nctaid.x;"], whole_warps=True)
form("mov.special.clock64", "b32", "pred", [(0,)], lambda a: 1,
     code=["{ .reg .b64 %x, %y; mov.u64 %x, %clock64; nanosleep.u32 1000; mov.u64 %y, %clock64;",
           "setp.gt.s64 %d, %y, %x; }"])
form("mov.special.globaltimer", "b32", "pred", [(0,)], lambda a: 1,
     code=["{ .reg .b64 %x, %y; mov.u64 %x, %globaltimer; nanosleep.u32 1000; mov.u64 %y, %globaltimer;",
           "setp.ge.u64 %d, %y, %x; }"])

# --- control flow ---
lanes = warps(lambda lane: lane)
form("bra", "b32", "b32", lanes, lambda r: [n * 2 if n % 3 else n + 100 for n in LANES], whole_warps=True,
     code=["{ .reg .pred %p; rem.u32 %row, %a, 3; setp.eq.u32 %p, %row, 0; @%p bra THREE;", "shl.b32 %d, %a, 1;",
           "bra DONE;", "THREE: add.u32 %d, %a, 100;", "DONE: }"])
form("bra.loop", "b32", "b32", lanes, lambda r: [n * (n + 1) // 2 for n in LANES], whole_warps=True,
     code=["{ .reg .pred %p; mov.u32 %d, 0; mov.u32 %row, %a;", "NEXT: add.u32 %d, %d, %row; sub.u32 %row, %row, 1;",
           "setp.gt.s32 %p, %row, 0; @%p bra NEXT; }"])
form("bra.uni", "b32", "b32", lanes, lambda r: [n + 1 for n in LANES], whole_warps=True,
     code=["bra.uni OVER;", "mov.u32 %a, 0;", "OVER: add.u32 %d, %a, 1;"])
form("brx.idx", "b32", "b32", lanes, lambda r: [(n & 3) * 10 + n for n in LANES], whole_warps=True,
     code=["and.b32 %row, %a, 3;", "TABLE: .branchtargets L0, L1, L2, L3;", "brx.idx %row, TABLE;",
           "L0: mov.u32 %d, 0; bra END;", "L1: mov.u32 %d, 10; bra END;", "L2: mov.u32 %d, 20; bra END;",
           "L3: mov.u32 %d, 30;", "END: add.u32 %d, %d, %a;"])
PARAMS = [".func (.param .b32 r) sum(.param .b32 x, .param .b64 y) { .reg .b32 %x; .reg .b64 %y; ld.param.b32 %x, [x];"
          " ld.param.b64 %y, [y]; .reg .b32 %l; cvt.u32.u64 %l, %y; add.u32 %x, %x, %l; st.param.b32 [r], %x; ret; }"]
CALL = "{ .param .b32 x; .param .b64 y; .param .b32 r; st.param.b32 [x], %%a; st.param.b64 [y], 1000;"
for suffix in ("", ".uni"):
    form("call%s" % suffix, "b32", "b32", lanes, lambda r: [n + 1000 for n in LANES], whole_warps=True, module=PARAMS,
         code=[CALL.replace("%%", "%"), "call%s (r), sum, (x, y);" % suffix, "ld.param.b32 %d, [r]; }"])
form("call.indirect", "b32", "b32", lanes, lambda r: [n + 1000 for n in LANES], whole_warps=True, module=PARAMS,
     code=[CALL.replace("%%", "%"), ".reg .b64 %to; mov.u64 %to, sum;",
           "P: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);", "call (r), %to, (x, y), P;",
           "ld.param.b32 %d, [r]; }"])
form("call.recursive", "b32", "b32", lanes, lambda r: [1 << (n % 8) for n in LANES], whole_warps=True,
     module=[".func (.param .b32 r) power(.param .b32 n) { .reg .pred %p; .reg .b32 %n, %v; ld.param.b32 %n, [n];"
             " setp.eq.u32 %p, %n, 0; mov.u32 %v, 1; @%p bra LEAVE; sub.u32 %n, %n, 1; { .param .b32 x; .param .b32 y;"
             " st.param.b32 [x], %n; call (y), power, (x); ld.param.b32 %v, [y]; } add.u32 %v, %v, %v;"
             " LEAVE: st.param.b32 [r], %v; ret; }"],
     code=["and.b32 %row, %a, 7;", "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %row; call (y), power, (x);",
           "ld.param.b32 %d, [y]; }"])
form("exit", "b32", "b32", lanes, lambda r: [n if n < 20 else 0 for n in LANES], whole_warps=True,
     code=["{ .reg .pred %p; setp.ge.u32 %p, %a, 20; @%p exit; mov.u32 %d, %a; }"])
form("guard", "b32", "b32", lanes, lambda r: [n + 7 if n < 20 else n - 7 for n in LANES], whole_warps=True,
     code=["{ .reg .pred %p; setp.ge.u32 %p, %a, 20; @%p sub.u32 %d, %a, 7; @!%p add.u32 %d, %a, 7; }"])

# --- asynchronous copies and barrier objects ---
for op, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
    for how, wait in (("group", ["cp.async.commit_group;", "cp.async.wait_group 0;"]), ("all", ["cp.async.wait_all;"])):
        form("cp.async.%s.shared.global.%d.%s" % (op, size, how), "b64 b64", "b64 b64",
             [(source.getrandbits(64), source.getrandbits(64)) for _ in range(4)], needs=80,
             model=lambda a, b, s=size: (a & ((1 << 8 * s) - 1), b if s == 16 else 0),
             code=["st.shared.v2.b64 [%s], {0, 0};", "cp.async.%s.shared.global [%%s], [%%in], %d;" % (op, size)]
             + wait + ["ld.shared.v2.b64 {%d, %e}, [%s];"])
form("cp.async.zfill", "b64 b64", "b64 b64", [(source.getrandbits(64), source.getrandbits(64)) for _ in range(4)],
     lambda a, b: (a & 0xffffffff, 0), needs=80,
     code=["st.shared.v2.b64 [%s], {-1, -1};", "cp.async.ca.shared.global [%s], [%in], 16, 4;", "cp.async.wait_all;",
           "ld.shared.v2.b64 {%d, %e}, [%s];"])
form("mbarrier", "b32", "b32 pred", warps(lambda lane: values[lane]), needs=80, whole_warps=True,
     model=lambda r: [(r[lane ^ 1][0], 1) for lane in LANES],
     code=["{ .shared .align 8 .b64 object; .reg .b64 %state; .reg .pred %first;", "mov.u32 %row, %laneid;",
           "setp.eq.u32 %first, %row, 0;", "@%first mbarrier.init.shared.b64 [object], 32;", "bar.sync 0;"] + NEIGHBOUR
     + ["mbarrier.arrive.shared.b64 %state, [object];", "WAIT: mbarrier.test_wait.shared.b64 %e, [object], %state;",
        "@!%e bra WAIT;", "ld.shared.b32 %d, [%flag]; }"])
