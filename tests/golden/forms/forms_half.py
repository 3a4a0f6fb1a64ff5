# SPDX-License-Identifier: Apache-2.0
"""f16 and bf16, alone and in pairs (PTX ISA "Half Precision Floating Point", "Half Precision Comparison")."""
import ieee
from form import form, pairs, randoms, triples
from ieee import BF16, F16
from values import BF_EDGES, HOLDS, edges16, least, relu, xor_sign



def finish(f, r, ftz, sat, positive):
    r = f.flush(r) if ftz else r
    r = ieee.saturate(f, r) if sat else r
    return relu(f, r) if positive else r


def halves(row, n):
    """Two neighbouring rows as one of pairs."""
    return tuple(b << 16 | a for a, b in zip(row, n))


def single_and_pair(name, f, arity, rows, model, needs):
    """`name`.f16 and `name`.f16x2 (or bf16)."""
    form("%s.%s" % (name, f.name), " ".join(["b16"] * arity), "b16", rows, model, needs=needs)

    def both(*values):
        return model(*(v >> 16 for v in values)) << 16 | model(*(v & 0xffff for v in values))
    form("%s.%sx2" % (name, f.name), " ".join(["b32"] * arity), "b32",
         [halves(r, n) for r, n in zip(rows, rows[5:] + rows[:5])], both, needs=needs)


for f, edges, at_least in ((F16, edges16(), 75), (BF16, BF_EDGES, 80)):
    two = pairs(edges[::2] + edges[1:5], 0) + randoms(20, 60, [16, 16])
    three = triples(edges, 21, 200) + randoms(22, 80, [16] * 3)
    one = [(v,) for v in edges]
    arithmetic = (("add", 2, ieee.add, two), ("sub", 2, ieee.sub, two), ("mul", 2, ieee.mul, two),
                  ("fma.rn", 3, ieee.fma, three))
    for name, arity, operation, rows in arithmetic:
        # bf16 has add, sub and mul of its own from sm_90 on.
        needs = at_least if f is F16 or arity == 3 else 90
        variants = [("", 0, 0, 0)]
        if f is F16:
            variants += [(".ftz", 1, 0, 0), (".sat", 0, 1, 0), (".ftz.sat", 1, 1, 0)]
        if arity == 3:
            variants += [(".relu", 0, 0, 1)] + ([(".ftz.relu", 1, 0, 1)] if f is F16 else [])
        for text, ftz, sat, positive in variants:
            def run(*values, g=f, op=operation, z=ftz, s=sat, p=positive):
                values = [g.flush(v) if z else v for v in values]
                return finish(g, op(g, *values), z, s, p)
            for rounding in ("", ".rn") if arity == 2 and not text else ("",):
                single_and_pair(name + rounding + text, f, arity, rows, run, 80 if positive else needs)
    for name, greatest in (("min", False), ("max", True)):
        for ftz in ("", ".ftz") if f is F16 else ("",):
            for nan in ("", ".NaN"):
                def pick(a, b, g=f, m=greatest, z=ftz, n=nan):
                    return least(g, g.flush(a) if z else a, g.flush(b) if z else b, m, bool(n))

                def pick_sign(a, b, g=f, m=greatest, z=ftz, n=nan):
                    return xor_sign(g, g.flush(a) if z else a, g.flush(b) if z else b, greatest=m, nan_wins=bool(n))
                single_and_pair(name + ftz + nan, f, 2, two, pick, 80)
                single_and_pair(name + ftz + nan + ".xorsign.abs", f, 2, two, pick_sign, 86)
    numbers = [(v,) for v in edges if not f.is_nan(v)]
    for ftz in ("", ".ftz") if f is F16 else ("",):
        change = f.flush if ftz else lambda v: v
        single_and_pair("neg" + ftz, f, 1, numbers, lambda a, c=change: c(a) ^ 0x8000, at_least)
        single_and_pair("abs" + ftz, f, 1, numbers, lambda a, c=change: c(a) & 0x7fff, at_least)

    # --- comparisons ---
    rows = two[:160]
    paired = [halves(r, n) for r, n in zip(rows, rows[5:] + rows[:5])]
    one_value = f.round(ieee.Fraction(1))
    needs = 75 if f is F16 else 90
    for name, holds in HOLDS.items():
        for ftz in ("", ".ftz") if f is F16 else ("",):
            change = f.flush if ftz else lambda v: v
            test = lambda a, b, g=f, c=change, h=holds: ieee.order(g, c(a), c(b)) in h
            if not ftz:
                plain = test
            each = lambda a, b, t=test: (t(a & 0xffff, b & 0xffff), t(a >> 16, b >> 16))
            t = f.name
            form("setp.%s%s.%s" % (name, ftz, t), "b16 b16", "pred", rows, test, needs=needs)
            form("setp.%s%s.%sx2" % (name, ftz, t), "b32 b32", "pred pred", paired, each, needs=needs,
                 code="setp.%s%s.%sx2 %%d|%%e, %%a, %%b;" % (name, ftz, t))
            for d, yes in (("u32", -1), ("s32", -1), ("u16", -1), ("s16", -1), (t, one_value)):
                kind = "b32" if d.endswith("32") else "b16"
                form("set.%s%s.%s.%s" % (name, ftz, d, t), "b16 b16", kind, rows,
                     lambda a, b, c=test, y=yes: y if c(a, b) else 0, needs=needs)
            for d, yes in (("u32", 0xffff), ("s32", 0xffff), (t + "x2", one_value)):
                form("set.%s%s.%s.%sx2" % (name, ftz, d, t), "b32 b32", "b32", paired, needs=needs,
                     model=lambda a, b, e=each, y=yes: sum((y if v else 0) << 16 * n for n, v in enumerate(e(a, b))))
        form("setp.%s.and.%s" % (name, f.name), "b16 b16 pred", "pred", [r + (n % 3 != 0,) for n, r in enumerate(rows)],
             lambda a, b, p, t=plain: bool(p and t(a, b)), needs=needs)
