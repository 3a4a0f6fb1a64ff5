# SPDX-License-Identifier: Apache-2.0
"""mma of elements of eight bits and less in floating point, with and without scales (PTX ISA "mma").

Every result is exact in the type of D or is one product rounded once, so that every order of summation gives it.
"""
import random

import form as registry
from ieee import F16, F32, Fraction
from matrices import LANES, place_a, place_b, place_c, to_lanes
from narrow_matrices import (BY_NAME, KINDS, ONE, SCALES, STYLES, Bits, Codes, dot, emit, matrices_of, put_scales, rounded,
                             times, total)


def narrow_mma(shape, k, kind, d, a, b, ra, rb, needs):
    source = random.Random("%s %s %s %s %s" % (shape, kind, d, a, b))
    f = {"f16": F16, "f32": F32}[d]
    ta, tb, td = Codes(BY_NAME[a]), Codes(BY_NAME[b]), Bits(f)
    few = (Fraction(1, 2), 2) if d == "f16" else (Fraction(1, 4), 7)
    warps, results = [], []
    for style in STYLES:
        ma, mb = matrices_of(source, 16, k, ta, tb, style, few)
        mc = {(i, j): source.randrange(-8, 9) if style in ("sums", "special") else 0
              for i in range(16) for j in range(8)}
        md = {(i, j): rounded(f, total([mc[i, j] * ONE, dot(ta, tb, [(ma[i, t], mb[t, j]) for t in range(k)])]))
              for i in range(16) for j in range(8)}
        parts = [to_lanes(place_a, 16, ta, ra, ma), to_lanes(place_b, 16, tb, rb, mb),
                 to_lanes(place_c, 16, td, 128 // LANES // (32 // f.bits), {at: f.round(Fraction(v)) for at, v in mc.items()})]
        warps.append([parts[0][lane] + parts[1][lane] + parts[2][lane] for lane in range(LANES)])
        results.append(to_lanes(place_c, 16, td, len(parts[2][0]), md))
    registers = len(results[0][0])
    name = "mma.sync.aligned.%s.row.col%s.%s.%s.%s.%s" % (shape, kind, d, a, b, d)
    emit(name, (registers, ra, rb, registers), warps, results, needs=needs)


for d in ("f32", "f16"):
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            # f16 sums, and 16 columns of A, are of PTX 8.7.
            narrow_mma("m16n8k32", 32, "", d, a, b, 4, 2, 89 if d == "f32" else KINDS)
            narrow_mma("m16n8k16", 16, "", d, a, b, 2, 1, KINDS)
    for a in BY_NAME:
        for b in BY_NAME:
            narrow_mma("m16n8k32", 32, ".kind::f8f6f4", d, a, b, 4, 2, KINDS)

# --- scales ---
def scaled_mma(k, bits, kind, vector, stype, a, b, chosen=((0, 0), (0, 0)), said=True, registers=False):
    source = random.Random("%s %d %s %s %s %s" % (kind, vector, stype, a, b, chosen))
    ta, tb, td = Codes(BY_NAME[a], bits), Codes(BY_NAME[b], bits), Bits(F32)
    few, value, one = SCALES[stype]
    (byte_a, thread_a), (byte_b, thread_b) = chosen
    counts = (4, 4, 2, 4)
    warps, results = [], []
    for style in STYLES + ("scales a", "scales b"):
        every = style.startswith("scales")
        ma, mb = matrices_of(source, 16, k, ta, tb, "sums", (1, 1) if every else (Fraction(1, 4), 7))
        if style in ("every a", "every b", "special"):
            ma, mb = matrices_of(source, 16, k, ta, tb, style, (Fraction(1, 4), 7))
        if every:  # one product in a sum
            block = source.randrange(vector)
            t = block * (k // vector) + source.randrange(k // vector)
            ma = {at: code if at[1] == t else ta.zero for at, code in ma.items()}
        pick = {"a": few, "b": few}
        if every:
            pick[style[-1]] = range(256) if stype == "ue8m0" else range(128)
            pick["b" if style[-1] == "a" else "a"] = [one]
        sa = {(i, v): source.choice(pick["a"]) for i in range(16) for v in range(vector)}
        sb = {(j, v): source.choice(pick["b"]) for j in range(8) for v in range(vector)}
        mc = {(i, j): source.randrange(-8, 9) if style == "sums" else 0 for i in range(16) for j in range(8)}

        def cell(i, j):
            sums = [mc[i, j] * ONE]
            for v in range(vector):
                at = range(v * (k // vector), (v + 1) * (k // vector))
                products = dot(ta, tb, [(ma[i, t], mb[t, j]) for t in at])
                sums.append(times(products, times(value(sa[i, v]), value(sb[j, v]))))
            return rounded(F32, total(sums))

        md = {(i, j): cell(i, j) for i in range(16) for j in range(8)}
        scale_a = put_scales(source, LANES, sa, vector, byte_a, lambda i: 4 * (i % 8) + i // 8 + 2 * thread_a)
        scale_b = put_scales(source, LANES, sb, vector, byte_b, lambda j: 4 * j + thread_b)
        parts = [to_lanes(place_a, 16, ta, 4, ma), to_lanes(place_b, 16, tb, 2, mb),
                 to_lanes(place_c, 16, td, 4, {at: F32.round(Fraction(v)) for at, v in mc.items()})]
        warps.append([parts[0][lane] + parts[1][lane] + parts[2][lane] + (scale_a[lane], scale_b[lane])
                      for lane in range(LANES)])
        results.append(to_lanes(place_c, 16, td, 4, md))
    name = "mma.sync.aligned.m16n8k%d.row.col.kind::%s.block_scale%s.f32.%s.%s.f32.%s" % (
        k, kind, ".scale_vec::%dX" % vector if said else "", a, b, stype)
    suffix = ", %%sa, {%d, %d}, %%sb, {%d, %d}" % (chosen[0] + chosen[1])
    if registers:
        suffix = ", %sa, {%q0, %q1}, %sb, {%q2, %q3}"
    tag = "" if chosen == ((0, 0), (0, 0)) else ".at.%d.%d.%d.%d" % (chosen[0] + chosen[1])
    emit(name, counts, warps, results, suffix, scales=("sa", "sb"), tag=tag + (".registers" if registers else ""))
    if registers:
        last = registry.FORMS[-1]
        selectors = " ".join("mov.u16 %%q%d, %d;" % (n, v) for n, v in enumerate(chosen[0] + chosen[1]))
        last.code = ["{ .reg .b16 %q<4>; " + selectors] + last.code + ["}"]


for a in BY_NAME:
    for b in BY_NAME:
        scaled_mma(32, 8, "mxf8f6f4", 1, "ue8m0", a, b)
scaled_mma(32, 8, "mxf8f6f4", 1, "ue8m0", "e4m3", "e2m1", ((1, 1), (2, 3)))
scaled_mma(32, 8, "mxf8f6f4", 1, "ue8m0", "e5m2", "e2m3", ((3, 0), (1, 2)), said=False)
scaled_mma(32, 8, "mxf8f6f4", 1, "ue8m0", "e5m2", "e3m2", ((2, 1), (3, 1)), registers=True)
scaled_mma(64, 4, "mxf4", 2, "ue8m0", "e2m1", "e2m1")
scaled_mma(64, 4, "mxf4", 2, "ue8m0", "e2m1", "e2m1", ((2, 1), (2, 1)), said=False)
scaled_mma(64, 4, "mxf4nvf4", 2, "ue8m0", "e2m1", "e2m1", ((0, 1), (2, 2)))
scaled_mma(64, 4, "mxf4nvf4", 4, "ue4m3", "e2m1", "e2m1")
scaled_mma(64, 4, "mxf4nvf4", 4, "ue4m3", "e2m1", "e2m1", ((0, 1), (0, 3)))
