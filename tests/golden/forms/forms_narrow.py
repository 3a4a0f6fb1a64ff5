# SPDX-License-Identifier: Apache-2.0
"""cvt of values of eight bits and less (PTX ISA "cvt"): all codes, all borders between two results, random values."""
import random

from form import form, randoms
from ieee import BF16, F16, F32
from narrow import E2M1, FORMATS, borders, from_ieee, scale_from_ieee, scale_value, to_ieee

NEEDS = {"e4m3": 89, "e5m2": 89}
NARROW = "120f"
# Where bf16 became a partner, and f16 one of less than eight bits.
LATER = "9.2"


def rows_of(narrow, f):
    """Pairs in which each value of interest is once the upper and once the lower one."""
    values = borders(narrow, f) + [v for v, in randoms(narrow.name + f.name, 200, [f.bits])]
    source = random.Random(narrow.name)
    other = values[:]
    source.shuffle(other)
    return list(zip(values, other))


def distance(narrow):
    return 4 if narrow is E2M1 else 8


def code_of(name, narrow, to_narrow, operands):
    """The instruction; a pair of e2m1 is in a register of eight bits."""
    if narrow is not E2M1:
        return "%s %%d, %s;" % (name, operands)
    if to_narrow:
        return ["{ .reg .b8 %%pair; %s %%pair, %s; mov.b16 %%d, {%%pair, 0}; }" % (name, operands)]
    return ["{ .reg .b8 %%pair, %%rest; mov.b16 {%%pair, %%rest}, %%a; %s %%d, %%pair; }" % name]


for narrow in FORMATS:
    pair, shift = narrow.name + "x2", distance(narrow)
    needs = NEEDS.get(narrow.name, NARROW)
    for relu in ("", ".relu"):
        name = "cvt.rn%s.satfinite.%s." % (relu, pair)
        form(name + "f32", "b32 b32", "b16", rows_of(narrow, F32), needs=needs,
             model=lambda a, b, n=narrow, s=shift, r=relu: from_ieee(n, F32, a, r) << s | from_ieee(n, F32, b, r),
             code=code_of(name + "f32", narrow, True, "%a, %b"))
        for f, both in ((F16, "f16x2"), (BF16, "bf16x2")):
            old = f is F16 and narrow.name in NEEDS
            form(name + both, "b32", "b16", [(a << 16 | b,) for a, b in rows_of(narrow, f)],
                 needs=needs if old else NARROW, version=None if old else LATER,
                 model=lambda a, n=narrow, s=shift, r=relu, g=f: (
                     from_ieee(n, g, a >> 16, r) << s | from_ieee(n, g, a & 0xffff, r)),
                 code=code_of(name + both, narrow, True, "%a"))
            codes = range(1 << narrow.bits)
            rows = [(code << shift | (code * 37 + 5) % len(codes),) for code in codes]
            for satfinite in ("", ".satfinite") if f is BF16 else ("",):
                back = "cvt.rn%s%s.%s.%s" % (relu, satfinite, both, pair)
                form(back, "b16", "b32", rows, needs=needs if f is F16 else NARROW, version=None if f is F16 else LATER,
                     model=lambda a, n=narrow, s=shift, r=relu, g=f: (
                         to_ieee(n, g, a >> s & ((1 << n.bits) - 1), r) << 16 | to_ieee(n, g, a & ((1 << n.bits) - 1), r)),
                     code=code_of(back, narrow, False, "%a"))

# --- scales ---


def scale_rows(f):
    values = set()
    for code in range(255):
        v = f.round(scale_value(code))
        values |= {max(v - 1, 0), v, v + 1, v + (1 << (f.fraction_bits - 1))}
    values |= {0, 1, 2, f.largest, f.infinity, f.infinity + 1, f.largest - 1}
    values = sorted(values | {v | f.sign_bit for v in values}) + [v for v, in randoms("scale", 100, [f.bits])]
    return list(zip(values, values[11:] + values[:11]))


for mode in ("rz", "rp"):
    for satfinite in ("", ".satfinite"):
        up, sat = mode == "rp", bool(satfinite)
        form("cvt.%s%s.ue8m0x2.f32" % (mode, satfinite), "b32 b32", "b16", scale_rows(F32), needs=NARROW,
             model=lambda a, b, u=up, s=sat: scale_from_ieee(F32, a, u, s) << 8 | scale_from_ieee(F32, b, u, s))
        form("cvt.%s%s.ue8m0x2.bf16x2" % (mode, satfinite), "b32", "b16", [(a << 16 | b,) for a, b in scale_rows(BF16)],
             needs=NARROW, model=lambda a, u=up, s=sat: (
                 scale_from_ieee(BF16, a >> 16, u, s) << 8 | scale_from_ieee(BF16, a & 0xffff, u, s)))


def scale_in_bf16(code):
    value = scale_value(code)
    return BF16.nan if value is None else BF16.round(value)


form("cvt.rn.bf16x2.ue8m0x2", "b16", "b32", [(code << 8 | (code * 37 + 5) % 256,) for code in range(256)], needs=NARROW,
     model=lambda a: scale_in_bf16(a >> 8) << 16 | scale_in_bf16(a & 0xff))
