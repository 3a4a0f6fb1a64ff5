# SPDX-License-Identifier: Apache-2.0
"""f32 and f64 arithmetic and comparison (PTX ISA "Floating Point Instructions"): every rounding, .ftz and .sat."""
import ieee
from form import form, pairs, randoms, triples
from ieee import F32, F64
from values import HOLDS, edges32, edges64, least, xor_sign

MODES = ("rn", "rz", "rm", "rp")


def near(seed, count, arity, f):
    """Random operands whose exponents are near each other, so that the sums and products are inexact."""
    rows = []
    for row in randoms(seed, count, [f.bits + 4] * arity):
        small = []
        for v in row:
            exponent = f.bias - 8 + (v >> f.bits) if len(rows) % 4 else 1 + (v >> f.bits) * 2
            fraction = v & ((1 << f.fraction_bits) - 1)
            small.append(v & f.sign_bit | exponent << f.fraction_bits | fraction)
        rows.append(tuple(small))
    return rows


def with_modifiers(f, operation, mode, ftz, sat):
    def run(*values):
        if ftz:
            values = [f.flush(v) for v in values]
        r = operation(f, *values, mode)
        if ftz and r is not None:
            r = f.flush(r)
        return ieee.saturate(f, r) if sat else r
    return run


ARITHMETIC = (("add", 2, ieee.add, True), ("sub", 2, ieee.sub, True), ("mul", 2, ieee.mul, True),
              ("fma", 3, ieee.fma, True), ("div", 2, ieee.div, False),
              ("rcp", 1, lambda f, a, mode: ieee.div(f, f.round(ieee.Fraction(1)), a, mode), False),
              ("sqrt", 1, ieee.sqrt, False))
for f, edges in ((F32, edges32()), (F64, edges64())):
    kind = "b%d" % f.bits
    rows_of = {1: [(v,) for v in edges] + near(1, 60, 1, f),
               2: pairs(edges[::2] + edges[1:6], 2)[::2] + near(2, 120, 2, f),
               3: triples(edges, 3, 160) + near(3, 120, 3, f)}
    # A product that is tiny before it is rounded and normal after, and ties.
    if f is F32:
        rows_of[2] += [(0x3f7fffff, 0x00800000), (0x3f7ffffe, 0x00800001), (0x1f800000, 0x1fffffff),
                       (0x4b800000, 0x3f800000), (0x4b800001, 0x3f800000), (0x4b800002, 0xbf800000)]
    for name, arity, operation, has_sat in ARITHMETIC:
        columns = " ".join([kind] * arity)
        for mode in MODES:
            variants = [("", False, False)]
            if f is F32:
                variants += [(".ftz", True, False)]
                if has_sat:
                    variants += [(".sat", False, True), (".ftz.sat", True, True)]
            for text, ftz, sat in variants:
                form("%s.%s%s.%s" % (name, mode, text, f.name), columns, kind, rows_of[arity],
                     with_modifiers(f, operation, mode, ftz, sat))
    for name, arity, operation in (("add", 2, ieee.add), ("sub", 2, ieee.sub), ("mul", 2, ieee.mul)):
        form("%s.%s" % (name, f.name), "%s %s" % (kind, kind), kind, rows_of[2],
             with_modifiers(f, operation, "rn", False, False))
        if f is F32:
            form("%s.ftz.f32" % name, "b32 b32", "b32", rows_of[2], with_modifiers(f, operation, "rn", True, False))
            form("%s.sat.f32" % name, "b32 b32", "b32", rows_of[2], with_modifiers(f, operation, "rn", False, True))
    for mode in MODES:
        form("mad.%s.%s" % (mode, f.name), " ".join([kind] * 3), kind, rows_of[3],
             with_modifiers(f, ieee.fma, mode, False, False))


# --- signs, least and greatest ---
for name, greatest in (("min", False), ("max", True)):
    rows = pairs(edges32(), 0)
    flush = lambda v, z: F32.flush(v) if z else v
    for ftz in ("", ".ftz"):
        form("%s%s.f32" % (name, ftz), "b32 b32", "b32", rows,
             lambda a, b, g=greatest, z=ftz: least(F32, flush(a, z), flush(b, z), g))
        form("%s%s.NaN.f32" % (name, ftz), "b32 b32", "b32", rows,
             lambda a, b, g=greatest, z=ftz: least(F32, flush(a, z), flush(b, z), g, True), needs=80)
        form("%s%s.xorsign.abs.f32" % (name, ftz), "b32 b32", "b32", rows, needs=86, model=lambda a, b, g=greatest, z=ftz:
             xor_sign(F32, flush(a, z), flush(b, z), greatest=g))
        form("%s%s.NaN.xorsign.abs.f32" % (name, ftz), "b32 b32", "b32", rows, needs=86,
             model=lambda a, b, g=greatest, z=ftz: xor_sign(F32, flush(a, z), flush(b, z), greatest=g, nan_wins=True))
    form("%s.f64" % name, "b64 b64", "b64", pairs(edges64(), 0), lambda a, b, g=greatest: least(F64, a, b, g))
for f, edges in ((F32, edges32()), (F64, edges64())):
    kind = "b%d" % f.bits
    numbers = [(v,) for v in edges if not f.is_nan(v)]
    for ftz in ("", ".ftz") if f is F32 else ("",):
        change = f.flush if ftz else lambda v: v
        form("neg%s.%s" % (ftz, f.name), kind, kind, numbers, lambda a, c=change, g=f: c(a) ^ g.sign_bit)
        form("abs%s.%s" % (ftz, f.name), kind, kind, numbers, lambda a, c=change, g=f: c(a) & ~g.sign_bit)
    form("copysign.%s" % f.name, "%s %s" % (kind, kind), kind, pairs([v for v in edges if not f.is_nan(v)], 0),
         lambda a, b, g=f: a & g.sign_bit | b & ~g.sign_bit)
    every = [(v,) for v in edges]
    form("testp.finite." + f.name, kind, "pred", every, lambda a, g=f: not g.is_nan(a) and not g.is_infinite(a))
    form("testp.infinite." + f.name, kind, "pred", every, lambda a, g=f: g.is_infinite(a))
    form("testp.number." + f.name, kind, "pred", every, lambda a, g=f: not g.is_nan(a))
    form("testp.notanumber." + f.name, kind, "pred", every, lambda a, g=f: g.is_nan(a))
    form("testp.normal." + f.name, kind, "pred", every, lambda a, g=f: not (
        g.is_nan(a) or g.is_infinite(a) or g.is_zero(a) or g.is_subnormal(a)))
    form("testp.subnormal." + f.name, kind, "pred", every, lambda a, g=f: g.is_subnormal(a))

# --- comparisons: what holds of '<', '=', '>', '?' ---
for f, edges in ((F32, edges32()), (F64, edges64())):
    kind = "b%d" % f.bits
    rows = pairs(edges[::2] + edges[1:4] + edges[-2:], 0)
    for name, holds in HOLDS.items():
        for ftz in ("", ".ftz") if f is F32 else ("",):
            change = f.flush if ftz else lambda v: v
            test = lambda a, b, g=f, c=change, h=holds: ieee.order(g, c(a), c(b)) in h
            form("setp.%s%s.%s" % (name, ftz, f.name), "%s %s" % (kind, kind), "pred", rows, test)
            form("set.%s%s.u32.%s" % (name, ftz, f.name), "%s %s" % (kind, kind), "b32", rows,
                 lambda a, b, t=test: -1 if t(a, b) else 0)
            form("set.%s%s.s32.%s" % (name, ftz, f.name), "%s %s" % (kind, kind), "b32", rows,
                 lambda a, b, t=test: -1 if t(a, b) else 0)
            form("set.%s%s.f32.%s" % (name, ftz, f.name), "%s %s" % (kind, kind), "b32", rows,
                 lambda a, b, t=test: 0x3f800000 if t(a, b) else 0)
        form("setp.%s.or.%s" % (name, f.name), "%s %s pred" % (kind, kind), "pred pred",
             [r + (n % 2,) for n, r in enumerate(rows)],
             lambda a, b, p, g=f, h=holds: (bool(p or ieee.order(g, a, b) in h), bool(p or ieee.order(g, a, b) not in h)),
             code="setp.%s.or.%s %%d|%%e, %%a, %%b, %%c;" % (name, f.name))
