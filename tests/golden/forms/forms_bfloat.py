# SPDX-License-Identifier: Apache-2.0
"""cvt of bf16 to and from all other types, .satfinite, and tf32 (PTX ISA "cvt")."""
import ieee
from form import form, ints, randoms, signed
from ieee import BF16, F16, F32, F64, Fraction
from values import BF_EDGES, edges16, edges32, edges64, relu

INTEGERS = [t + str(n) for n in (8, 16, 32, 64) for t in "us"]
MODES = ("rn", "rz", "rm", "rp")


def width_of(t):
    return int(t[1:])


def column(t):
    """ptxas wants registers of 8 bits beside bf16; there are no such columns."""
    return "b%d" % (32 if t.endswith("8") else width_of(t))


def read(t, v):
    v &= (1 << width_of(t)) - 1
    return signed(v, width_of(t)) if t[0] == "s" else v


def range_of(t):
    n = width_of(t)
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if t[0] == "s" else (0, (1 << n) - 1)


# Integers of more than eight bits have ties: odd and even ones, and what is just beside them.
TIES = [(256 + n) << k | rest for k in (1, 8, 23, 48) for n in (0, 1, 2, 255)
        for rest in (0, 1 << (k - 1), (1 << (k - 1)) + 1, (1 << (k - 1)) - 1)]
for t in INTEGERS:
    n = 32 if t.endswith("8") else width_of(t)
    values = [v for v in ints(n) + ints(8) + TIES if v < 1 << n]
    rows = [(v,) for v in sorted(set(values + [-v & (1 << n) - 1 for v in values]))] + randoms(t, 30, [n])
    for mode in MODES:
        name = "cvt.%s.bf16.%s" % (mode, t)
        form(name, column(t), "b16", rows, lambda a, y=t, m=mode: BF16.round(Fraction(read(y, a)), m), needs=90,
             code=["{ .reg .b8 %%n; cvt.u8.u32 %%n, %%a; %s %%d, %%n; }" % name] if width_of(t) == 8 else None)

EVERY = sorted(set(range(0, 65536, 151)) | set(BF_EDGES) | {0x3f00, 0x3f40, 0x3fc0, 0x4020, 0x4060, 0xc020, 0xc060})
for power in (7, 8, 15, 16, 31, 32, 63, 64):
    v = BF16.round(Fraction(1 << power))
    EVERY += [v - 1, v, v + 1, v | 0x8000, v - 1 | 0x8000, v + 1 | 0x8000]
EVERY = [(v,) for v in EVERY]
for t in INTEGERS:
    for mode in ("rni", "rzi", "rmi", "rpi"):
        def to_integer(a, x=t, m=mode):
            if BF16.is_nan(a):
                return read(x, 1 << (width_of(x) - 1)) if width_of(x) == 64 else 0
            low, high = range_of(x)
            if BF16.is_infinite(a):
                return low if BF16.is_negative(a) else high
            return max(low, min(high, ieee.integral(BF16.value(a), m)))
        name = "cvt.%s.%s.bf16" % (mode, t)
        form(name, "b16", column(t), EVERY, to_integer, needs=90,
             code=["{ .reg .b8 %%n; %s %%n, %%a; cvt.%s32.%s %%d, %%n; }" % (name, t[0], t)] if width_of(t) == 8 else None)
for mode in ("rni", "rzi", "rmi", "rpi"):
    def to_integral(a, m=mode):
        if BF16.is_nan(a) or BF16.is_infinite(a):
            return BF16.nan if BF16.is_nan(a) else a
        return BF16.round(Fraction(ieee.integral(BF16.value(a), m)), "rn", a & BF16.sign_bit)
    form("cvt.%s.bf16.bf16" % mode, "b16", "b16", EVERY, to_integral, needs=90)


def borders(f, to):
    """Values of `f` where the result in the format `to` changes."""
    values = []
    for v in (1, 2, 3, (1 << to.fraction_bits) - 1, 1 << to.fraction_bits, (1 << to.fraction_bits) + 1, 0x3f80, 0x3f81,
              to.largest - 1, to.largest):
        exact = to.value(v)
        step = to.value(v + 1) - exact if v != to.largest else exact - to.value(v - 1)
        for about in (exact, exact + step / 2, exact - step / 2, exact + step / 4):
            r = f.round(about)
            values += [max(r - 1, 0), r, r + 1]
    return sorted(set(values + [v | f.sign_bit for v in values]))


for f, edges in ((F16, edges16()), (F64, edges64()), (F32, edges32())):
    rows = [(v,) for v in edges + borders(f, BF16)] + randoms(f.name + "bf", 30, [f.bits])
    for mode in MODES if f is not F32 else ("rm", "rp"):
        form("cvt.%s.bf16.%s" % (mode, f.name), "b%d" % f.bits, "b16", rows,
             lambda a, g=f, m=mode: ieee.convert(BF16, g, a, m), needs=90)
for mode in MODES:
    form("cvt.%s.f16.bf16" % mode, "b16", "b16", EVERY + [(v,) for v in borders(BF16, F16)],
         lambda a, m=mode: ieee.convert(F16, BF16, a, m), needs=90)
NUMBERS = [r for r in EVERY if not BF16.is_nan(r[0])]
form("cvt.f64.bf16", "b16", "b64", EVERY, lambda a: ieee.convert(F64, BF16, a), needs=90)
form("cvt.bf16.bf16", "b16", "b16", NUMBERS, lambda a: a, needs=90)


# --- .satfinite ---
def finite(to, v):
    return v - 1 if to.is_infinite(v) else v


for to in (F16, BF16):
    rows = [(v,) for v in edges32() + borders(F32, to)]
    both = [(a[0], b[0]) for a, b in zip(rows, rows[7:] + rows[:7])]
    for mode in ("rn", "rz"):
        for clip in ("", ".relu"):
            def one(a, g=to, m=mode, c=clip):
                r = finite(g, ieee.convert(g, F32, a, m))
                return relu(g, r) if c else r
            name = "cvt.%s%s.satfinite.%s" % (mode, clip, to.name)
            form(name + ".f32", "b32", "b16", rows, one, needs=80)
            form(name + "x2.f32", "b32 b32", "b32", both, lambda a, b, o=one: o(a) << 16 | o(b), needs=80)

# --- tf32 ---
TF32 = ieee.Format("tf32", 8, 10, 0x7fffffff >> 13)
ROWS = [(v,) for v in edges32() + borders(F32, BF16)] + [(v << 12 | w,) for v in (0x3f800, 0x3f801, 0x3f802, 0xbf803)
                                                         for w in (0, 1, 0xfff)] + [(0x7f7fefff,), (0x7f7ff000,)]


def to_tf32(a, mode, clip, satfinite):
    if F32.is_nan(a):
        return 0x7fffffff
    r = ieee.convert(TF32, F32, a, mode)
    r = finite(TF32, r) if satfinite else r
    return (relu(TF32, r) if clip else r) << 13


for mode, needs in (("rn", 90), ("rz", 90)):
    for clip in ("", ".relu"):
        for satfinite in ("", ".satfinite"):
            form("cvt.%s%s%s.tf32.f32" % (mode, clip, satfinite), "b32", "b32", ROWS, needs=100 if satfinite else needs,
                 model=lambda a, m=mode, c=clip, s=satfinite: to_tf32(a, m, c, s))
form("cvt.rna.satfinite.tf32.f32", "b32", "b32", ROWS, lambda a: to_tf32(a, "rna", "", True), needs=90)
