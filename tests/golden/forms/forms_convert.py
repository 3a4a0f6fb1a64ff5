# SPDX-License-Identifier: Apache-2.0
"""cvt between integers, f16, bf16, f32 and f64 (PTX ISA "cvt"): every rounding, .ftz, .sat, NaN rules."""
import ieee
from form import form, ints, pairs, randoms, signed
from ieee import BF16, F16, F32, F64, Fraction
from values import edges16, edges32, edges64, relu

INTEGERS = [t + str(n) for n in (8, 16, 32, 64) for t in "us"]
FLOATS = {"f16": F16, "f32": F32, "f64": F64}


def width_of(t):
    return int(t[1:])


def column(t):
    """8-bit values are in 32-bit registers."""
    return "b%d" % (32 if t.endswith("8") else width_of(t))


def read(t, v):
    """The value of an integer operand of type `t`."""
    v &= (1 << width_of(t)) - 1
    return signed(v, width_of(t)) if t[0] == "s" else v


def range_of(t):
    n = width_of(t)
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if t[0] == "s" else (0, (1 << n) - 1)


def clamp(t, v):
    low, high = range_of(t)
    return max(low, min(high, v))


def wrap(t, v):
    """What is left in `t`, extended to the register."""
    return read(t, v)


# --- integers ---
for s in INTEGERS:
    n = 32 if s.endswith("8") else width_of(s)
    values = sorted(set(ints(n) + ints(8) + [v for v in (0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
                                                         0xffffff80, 0xffffff7f, 0xffff8000, 0xffff7fff)
                                             if v < 1 << n]))
    rows = [(v,) for v in values] + randoms(n, 10, [n])
    for d in INTEGERS:
        form("cvt.%s.%s" % (d, s), column(s), column(d), rows, lambda a, x=d, y=s: wrap(x, read(y, a)))
        form("cvt.sat.%s.%s" % (d, s), column(s), column(d), rows, lambda a, x=d, y=s: clamp(x, read(y, a)))
    for d, f in FLOATS.items():
        for mode in ("rn", "rz", "rm", "rp"):
            form("cvt.%s.%s.%s" % (mode, d, s), column(s), "b%d" % f.bits, rows,
                 lambda a, y=s, g=f, m=mode: g.round(Fraction(read(y, a)), m))
        form("cvt.rn.sat.%s.%s" % (d, s), column(s), "b%d" % f.bits, rows,
             lambda a, y=s, g=f: ieee.saturate(g, g.round(Fraction(read(y, a)))))


def float_values(f):
    """Edges, halves, the borders of the integer types and their neighbours."""
    values = {16: edges16, 32: edges32, 64: edges64}[f.bits]()
    for n in (7, 8, 15, 16, 31, 32, 63, 64):
        for about in (-1, Fraction(-1, 2), 0, Fraction(1, 2), 1):
            v = f.round(Fraction((1 << n) + about))
            values += [v, v | f.sign_bit]
    for twice in (1, 3, 5, 253, 255, 257):
        v = f.round(Fraction(twice, 2))
        values += [v, v | f.sign_bit, v - 1, v + 1]
    return sorted(set(values))


# --- to integers: saturating; a NaN is 0, but 1 << (width - 1) from f64 or to 64 bits ---
for s, f in FLOATS.items():
    rows = [(v,) for v in float_values(f)]
    for d in INTEGERS:
        for mode in ("rni", "rzi", "rmi", "rpi"):
            for ftz in ("", ".ftz") if s == "f32" else ("",):
                def to_integer(a, x=d, g=f, m=mode, z=ftz):
                    a = g.flush(a) if z else a
                    if g.is_nan(a):
                        return wrap(x, 1 << (width_of(x) - 1)) if g is F64 or width_of(x) == 64 else 0
                    if g.is_infinite(a):
                        return range_of(x)[0 if g.is_negative(a) else 1]
                    return clamp(x, ieee.integral(g.value(a), m))
                form("cvt.%s%s.%s.%s" % (mode, ftz, d, s), "b%d" % f.bits, column(d), rows, to_integer)


# --- between floating-point types ---
def changed(to, f, mode, ftz, sat):
    def run(a):
        a = f.flush(a) if ftz and f is F32 else a
        r = ieee.convert(to, f, a, mode)
        r = to.flush(r) if ftz and to is F32 else r
        return ieee.saturate(to, r) if sat else r
    return run


for f, edges in ((F32, edges32()), (F64, edges64())):
    extra = []
    for to in (F16, BF16, F32):
        for v in (1, 2, 3, to.largest, 1 << to.fraction_bits, (1 << to.fraction_bits) + 1):
            exact = to.value(v)
            half = to.value(v + 1) - exact if v != to.largest else exact - to.value(v - 1)
            extra += [f.round(exact), f.round(exact + half / 2), f.round(exact + half / 4), f.round(exact - half / 2)]
            extra += [extra[-2] + 1, extra[-3] + 1, extra[-4] - 1]
    WIDE = [(v,) for v in sorted(set(edges + extra + [v | f.sign_bit for v in extra]))]
    for to in (F16, F32) if f is F64 else (F16,):
        for mode in ("rn", "rz", "rm", "rp"):
            for ftz in ("", ".ftz") if F32 in (f, to) else ("",):
                for sat in ("", ".sat"):
                    if sat and mode != "rn":
                        continue
                    form("cvt.%s%s%s.%s.%s" % (mode, ftz, sat, to.name, f.name), "b%d" % f.bits, "b%d" % to.bits, WIDE,
                         changed(to, f, mode, ftz, sat))
    if f is F32:
        for mode in ("rn", "rz"):
            form("cvt.%s.bf16.f32" % mode, "b32", "b16", WIDE, changed(BF16, f, mode, "", ""), needs=80)
            form("cvt.%s.relu.bf16.f32" % mode, "b32", "b16", WIDE, needs=80,
                 model=lambda a, m=mode: relu(BF16, ieee.convert(BF16, F32, a, m)))
            form("cvt.%s.relu.f16.f32" % mode, "b32", "b16", WIDE, needs=80,
                 model=lambda a, m=mode: relu(F16, ieee.convert(F16, F32, a, m)))
            for to in (BF16, F16):
                for maybe in ("", ".relu"):
                    def packed(a, b, g=to, m=mode, r=maybe):
                        parts = [ieee.convert(g, F32, v, m) for v in (a, b)]
                        if r:
                            parts = [relu(g, v) for v in parts]
                        return parts[0] << 16 | parts[1]
                    form("cvt.%s%s.%sx2.f32" % (mode, maybe, to.name), "b32 b32", "b32",
                         [(a[0], b[0]) for a, b in zip(WIDE, WIDE[7:] + WIDE[:7])], packed, needs=80)


for s, to in ((F16, F32), (F16, F64), (F32, F64)):
    rows = [(v,) for v in float_values(s)]
    for ftz in ("", ".ftz") if F32 in (s, to) else ("",):
        for sat in ("", ".sat"):
            form("cvt%s%s.%s.%s" % (ftz, sat, to.name, s.name), "b%d" % s.bits, "b%d" % to.bits, rows,
                 changed(to, s, "rn", ftz, sat))
form("cvt.f32.bf16", "b16", "b32", [(v,) for v in range(0, 65536, 257) if not BF16.is_nan(v)], lambda a: a << 16,
     needs=80)


def to_tf32(a):
    if F32.is_nan(a):
        return 0x7fffffff
    return a if F32.is_infinite(a) else (a + 0x1000) & ~0x1fff


form("cvt.rna.tf32.f32", "b32", "b32", [(v,) for v in edges32()] + randoms(9, 40, [31]), to_tf32, needs=80)

# --- to integral values, and to the same type ---
for s, f in FLOATS.items():
    rows = [(v,) for v in float_values(f)]
    kind = "b%d" % f.bits
    for ftz in ("", ".ftz") if s == "f32" else ("",):
        for sat in ("", ".sat"):
            for mode in ("rni", "rzi", "rmi", "rpi"):
                def to_integral(a, g=f, m=mode, z=ftz, t=sat):
                    a = g.flush(a) if z else a
                    if g.is_nan(a) or g.is_infinite(a):
                        r = g.nan if g.is_nan(a) else a
                    else:
                        r = g.round(Fraction(ieee.integral(g.value(a), m)), "rn", a & g.sign_bit)
                    return ieee.saturate(g, r) if t else r
                form("cvt.%s%s%s.%s.%s" % (mode, ftz, sat, s, s), kind, kind, rows, to_integral)
            if ftz or sat:
                form("cvt%s%s.%s.%s" % (ftz, sat, s, s), kind, kind,
                     [r for r in rows if sat or not f.is_nan(r[0])], changed(f, f, "rn", ftz, sat))
