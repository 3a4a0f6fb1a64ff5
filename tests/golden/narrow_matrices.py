# SPDX-License-Identifier: Apache-2.0
"""Matrices of elements of eight bits and less in floating point, and exact sums of their products."""
from fractions import Fraction

from form import form
from matrices import Real
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
