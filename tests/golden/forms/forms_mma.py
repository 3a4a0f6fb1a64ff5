# SPDX-License-Identifier: Apache-2.0
"""mma of elements of eight bits and less in floating point, with and without scales (PTX ISA "mma").

Every result is exact in the type of D or is one product rounded once, so that every order of summation gives it.
"""
import random

import form as registry
from form import form
from ieee import F16, F32, Fraction
from matrices import LANES, Real, place_a, place_b, place_c, to_lanes
from narrow import E2M1, FORMATS, INFINITE, scale_value, ue4m3_value

BY_NAME = {f.name: f for f in FORMATS}
KINDS = "120f"


class Codes:
    """Codes of a narrow format in `bits` bits of a register; those of four bits lie in the middle of eight."""
    register = 32

    def __init__(self, narrow, bits=8):
        self.narrow, self.bits = narrow, bits
        self.at = 2 if narrow is E2M1 and bits == 8 else 0
        self.every = range(1 << narrow.bits)
        self.zero = 0
        self.finite = [c for c in self.every if isinstance(narrow.value(c), Fraction)]
        # Whole numbers of 2^-16, INFINITE ones and NaNs; sums of products are whole numbers of 2^-32.
        self.units = [v * (1 << 16) if isinstance(v, Fraction) else v for v in map(narrow.value, self.every)]
        self.units = [v.numerator if isinstance(v, Fraction) else v for v in self.units]
        self.special = [c for c in self.every if not isinstance(narrow.value(c), Fraction)]

    def among(self, low, high):
        """Codes of zero and of magnitudes from low to high."""
        return [c for c in self.finite if low <= abs(self.narrow.value(c)) <= high] + [self.zero]

    def encode(self, code):
        return code << self.at


class Bits(Real):
    """Values of D and C as they are."""

    def encode(self, v):
        return v


def times(x, y):
    if x is None or y is None:
        return None
    if isinstance(x, tuple) or isinstance(y, tuple):
        if x == 0 or y == 0:
            return None
        negative = [v[0] if isinstance(v, tuple) else v < 0 for v in (x, y)]
        return (negative[0] != negative[1], INFINITE)
    return x * y


def total(values):
    """None: a NaN."""
    infinite = {v for v in values if isinstance(v, tuple)}
    if None in values or len(infinite) > 1:
        return None
    return infinite.pop() if infinite else sum(values)


ONE = 1 << 32


def dot(ta, tb, pairs):
    """The exact sum of products of codes."""
    return total([times(ta.units[x], tb.units[y]) for x, y in pairs])


def rounded(f, v):
    """Of whole numbers of 2^-32."""
    if v is None:
        return f.nan
    return (f.sign_bit if v[0] else 0) | f.infinity if isinstance(v, tuple) else f.round(Fraction(v) / ONE)


def matrices_of(source, m, k, a, b, style, few):
    """Codes of A and B. few: pairs of limits of magnitudes whose sums are exact."""
    def full(t, choices, height, width):
        codes = choices(t)
        return {(i, j): source.choice(codes) for i in range(height) for j in range(width)}
    small = lambda t: t.among(*few)
    every = lambda t: t.finite
    if style == "sums":
        return full(a, small, m, k), full(b, small, k, 8)
    if style == "every a":
        one = {j: source.randrange(k) for j in range(8)}
        return full(a, every, m, k), {(i, j): source.choice(b.finite) if one[j] == i else b.zero
                                      for i in range(k) for j in range(8)}
    if style == "every b":
        one = {i: source.randrange(k) for i in range(m)}
        return {(i, j): source.choice(a.finite) if one[i] == j else a.zero
                for i in range(m) for j in range(k)}, full(b, every, k, 8)
    # Infinities and NaNs among the others.
    ma, mb = full(a, small, m, k), full(b, small, k, 8)
    for t, matrix in ((a, ma), (b, mb)):
        for at in source.sample(sorted(matrix), 3 if t.special else 0):
            matrix[at] = source.choice(t.special)
    return ma, mb


STYLES = ("sums", "every a", "every b", "special")


def emit(name, counts, warps, results, suffix="", needs=KINDS, scales=(), tag=""):
    names = ["".join(("{", ", ".join("%%%s%d" % (f, r) for r in range(count)), "}"))
             for f, count in zip(("md", "ma", "mb", "mc"), counts)]
    ins = ["%%%s%d:b32" % (f, r) for f, count in zip(("ma", "mb", "mc"), counts[1:]) for r in range(count)]
    remaining = iter(results)
    form(name + tag, " ".join(ins + ["%" + s + ":b32" for s in scales]),
         " ".join("%%md%d:b32" % r for r in range(counts[0])), warps, lambda _: next(remaining),
         code="%s %s%s;" % (name, ", ".join(names), suffix), needs=needs, whole_warps=True)


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
SCALES = {"ue8m0": ([126, 127, 128], scale_value, 127),
          "ue4m3": ([c for c in range(128) if ue4m3_value(c) in (Fraction(1, 2), Fraction(3, 4), 1, Fraction(3, 2), 2)],
                    ue4m3_value, 0x38)}


def put_scales(source, lanes, codes, vector, byte, lane_of):
    """A register of scales per lane with anything in what is not looked at."""
    words = [source.getrandbits(32) for _ in range(lanes)]
    for (line, block), code in codes.items():
        at = 8 * (byte + block)
        words[lane_of(line)] = words[lane_of(line)] & ~(0xff << at) | code << at
    return words


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
