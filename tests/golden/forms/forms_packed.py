# SPDX-License-Identifier: Apache-2.0
"""Pairs of f32 and of integers of 16 bits, f32 with operands of 16 bits, three operands of min and max."""
import ieee
from form import form, pairs, randoms, signed, triples
from ieee import BF16, F16, F32
from values import BF_EDGES, edges16, edges32, least

EDGES = edges32()


def split(v, bits=32):
    return v >> bits, v & ((1 << bits) - 1)


# --- two f32 in 64 bits ---
OPERATIONS = {"add": (ieee.add, 2), "sub": (ieee.sub, 2), "mul": (ieee.mul, 2), "fma": (ieee.fma, 3)}
for name, (operation, count) in OPERATIONS.items():
    # Each row has two independent problems.
    some = ([r[:count] for r in triples(EDGES, name, 200)] + randoms(name, 100, [32] * count))
    rows = [tuple(a << 32 | b for a, b in zip(first, second)) for first, second in zip(some, some[5:] + some[:5])]
    for mode in ("rn", "rz", "rm", "rp"):
        for ftz in ("", ".ftz"):
            def both(*values, o=operation, m=mode, z=ftz):
                halves = []
                for part in zip(*map(split, values)):
                    r = o(F32, *([F32.flush(v) for v in part] if z else part), m)
                    halves.append(F32.flush(r) if z else r)
                return halves[0] << 32 | halves[1]
            form("%s.%s%s.f32x2" % (name, mode, ftz), " ".join(["b64"] * count), "b64", rows, both, needs=100)

# --- f32 and operands of 16 bits, which are exact in it ---


def widened(f, v):
    return ieee.convert(F32, f, v)


for f, edges in ((F16, edges16()), (BF16, BF_EDGES)):
    two = [(a, c) for a in edges for c in EDGES[::2]] + randoms(f.name, 40, [16, 32])
    three = [(a, b, c) for (a, c), (b, _) in zip(two, two[17:] + two[:17])]
    for mode in ("rn", "rz", "rm", "rp"):
        for sat in ("", ".sat"):
            def finish(r, s=sat):
                return ieee.saturate(F32, r) if s else r
            for name, operation in (("add", ieee.add), ("sub", ieee.sub)):
                form("%s.%s%s.f32.%s" % (name, mode, sat, f.name), "b16 b32", "b32", two, needs=100,
                     model=lambda a, c, o=operation, g=f, m=mode, e=finish: e(o(F32, widened(g, a), c, m)))
            form("fma.%s%s.f32.%s" % (mode, sat, f.name), "b16 b16 b32", "b32", three, needs=100,
                 model=lambda a, b, c, g=f, m=mode, e=finish: e(ieee.fma(F32, widened(g, a), widened(g, b), c, m)))

# --- three operands ---
ROWS = triples(EDGES, 5, 300) + randoms("three", 40, [32] * 3)
for name, greatest in (("min", False), ("max", True)):
    for ftz in ("", ".ftz"):
        for nan in ("", ".NaN"):
            for size in ("", ".abs"):
                def pick(*values, g=greatest, z=ftz, n=bool(nan), s=size):
                    values = [F32.flush(v) if z else v for v in values]
                    values = [v & ~F32.sign_bit if s else v for v in values]
                    first = least(F32, values[0], values[1], g, n)
                    return least(F32, first, values[2], g, n)
                form("%s%s%s%s.f32" % (name, ftz, nan, size), "b32 b32 b32", "b32", ROWS, pick, needs=100)

# --- integers ---
HALVES = (0, 1, 2, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff, 0x1234)
PAIRS = [(a << 16 | b, c << 16 | d) for (a, c), (b, d) in zip(pairs(HALVES, 0), pairs(HALVES[::-1], 0)[3:] + [(0, 7)] * 3)]
PAIRS += randoms("pairs", 40, [32, 32])


def halves(operation, is_signed, relu=False):
    def run(a, b):
        read = (lambda v: signed(v, 16)) if is_signed else (lambda v: v)
        parts = [operation(read(x), read(y)) for x, y in zip(split(a, 16), split(b, 16))]
        high, low = [max(p, 0) if relu else p for p in parts]
        return (high & 0xffff) << 16 | low & 0xffff
    return run


for t, is_signed in (("u16x2", False), ("s16x2", True)):
    form("add." + t, "b32 b32", "b32", PAIRS, halves(lambda x, y: x + y, is_signed), needs=90)
    form("min." + t, "b32 b32", "b32", PAIRS, halves(min, is_signed), needs=90)
    form("max." + t, "b32 b32", "b32", PAIRS, halves(max, is_signed), needs=90)
form("min.relu.s16x2", "b32 b32", "b32", PAIRS, halves(min, True, True), needs=90)
form("max.relu.s16x2", "b32 b32", "b32", PAIRS, halves(max, True, True), needs=90)
for name, operation in (("min", min), ("max", max)):
    form(name + ".relu.s32", "b32 b32", "b32", pairs((0, 1, 7, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff0), 1, 16, 32),
         lambda a, b, o=operation: max(o(signed(a, 32), signed(b, 32)), 0), needs=90)

# --- 32 bytes at once ---
for t, kind, count in (("b32", "b32", 8), ("f32", "b32", 8), ("b64", "b64", 4), ("f64", "b64", 4)):
    names = ["%%v%d" % n for n in range(count)]
    results = ["%%w%d" % n for n in range(count)]
    form("ld.global.v%d.%s" % (count, t), " ".join(n + ":" + kind for n in names), " ".join(n + ":" + kind for n in results),
         randoms(t, 20, [32 if kind == "b32" else 64] * count), lambda *values: values, needs=100,
         code=["st.global.v%d.%s [%%m+32], {%s};" % (count, t, ", ".join(names)),
               "ld.global.v%d.%s {%s}, [%%m+32];" % (count, t, ", ".join(results))])
