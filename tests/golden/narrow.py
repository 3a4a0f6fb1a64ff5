# SPDX-License-Identifier: Apache-2.0
"""Values of eight bits and less (PTX ISA "Alternate Floating-Point Data Formats"), as lists: what each code stands for."""
import bisect
from fractions import Fraction

from ieee import power_of_two

INFINITE = "infinite"


class Narrow:
    """A format with a sign. `specials`: magnitudes that are no number, INFINITE or None (NaN)."""

    def __init__(self, name, exponent_bits, fraction_bits, specials=()):
        self.name, self.bits = name, 1 + exponent_bits + fraction_bits
        self.sign_bit = 1 << (self.bits - 1)
        bias = (1 << (exponent_bits - 1)) - 1
        self.magnitudes = []  # by code; ascending
        for code in range(self.sign_bit):
            exponent, fraction = divmod(code, 1 << fraction_bits)
            whole = fraction + (1 << fraction_bits if exponent else 0)
            self.magnitudes.append(whole * power_of_two(max(exponent, 1) - bias - fraction_bits))
        self.specials = dict(specials)
        self.largest = self.sign_bit - 1 - len(self.specials)
        self.finite = self.magnitudes[:self.largest + 1]
        # What a NaN becomes: formats that have none make it their largest.
        self.nan = max(self.specials) if self.specials else self.largest

    def value(self, code):
        """A fraction, (sign, INFINITE), or None: a NaN."""
        size = code & (self.sign_bit - 1)
        negative = bool(code & self.sign_bit)
        if size in self.specials:
            return None if self.specials[size] is None else (negative, INFINITE)
        return -self.magnitudes[size] if negative else self.magnitudes[size]

    def round(self, size, negative):
        """To the nearest, ties to the even code; at most the largest."""
        at = bisect.bisect_left(self.finite, size)
        if at > self.largest:
            code = self.largest
        elif at == 0:
            code = 0
        else:
            below, above = size - self.finite[at - 1], self.finite[at] - size
            code = at if above < below or (above == below and at % 2 == 0) else at - 1
        return code | (self.sign_bit if negative else 0)


E4M3 = Narrow("e4m3", 4, 3, {0x7f: None})
E5M2 = Narrow("e5m2", 5, 2, {0x7c: INFINITE, 0x7d: None, 0x7e: None, 0x7f: None})
E3M2 = Narrow("e3m2", 3, 2)
E2M3 = Narrow("e2m3", 2, 3)
E2M1 = Narrow("e2m1", 2, 1)
FORMATS = (E4M3, E5M2, E2M3, E3M2, E2M1)


def from_ieee(narrow, f, v, relu=False):
    """The code of a value of the format `f` (ieee.Format); .satfinite."""
    if f.is_nan(v):
        return narrow.nan
    negative = f.is_negative(v)
    if relu and negative:
        return 0
    size = abs(f.value(v)) if not f.is_infinite(v) else narrow.finite[-1] * 4
    return narrow.round(size, negative)


def to_ieee(narrow, f, code, relu=False):
    """The value of a code in the format `f`, which holds it exactly."""
    value = narrow.value(code)
    if value is None:
        return f.nan
    negative = bool(code & narrow.sign_bit)
    if relu and negative:
        return 0
    sign = f.sign_bit if negative else 0
    return sign | f.infinity if isinstance(value, tuple) else f.round(value, "rn", sign)


def scale_value(code):
    """ue8m0: a power of two; None: a NaN."""
    return None if code == 0xff else power_of_two(code - 127)


SCALES = [scale_value(code) for code in range(0xff)]


def ue4m3_value(code):
    """e4m3 without a sign; None: a NaN."""
    return E4M3.value(code & 0x7f)


def scale_from_ieee(f, v, up, satfinite):
    """The scale of the size of a value, rounded down or up."""
    if f.is_nan(v):
        return 0xff
    size = None if f.is_infinite(v) else abs(f.value(v))
    if size is None:
        code = 0xff
    elif up:
        code = bisect.bisect_left(SCALES, size)
    else:
        code = max(bisect.bisect_right(SCALES, size) - 1, 0)
    return 0xfe if satfinite and code == 0xff else code


def borders(narrow, f):
    """Values of `f` at which the result changes: codes, the middles between two of them, their neighbours; the ends."""
    values = set()
    for code in range(narrow.largest):
        low, high = narrow.finite[code], narrow.finite[code + 1]
        for exact in (low, (low + high) / 2):
            v = f.round(exact)
            values |= {v, max(v - 1, 0), v + 1}
    top = f.round(narrow.finite[-1])
    step = narrow.finite[-1] - narrow.finite[-2]
    over = f.round(narrow.finite[-1] + Fraction(step) / 2)
    values |= {top - 1, top, top + 1, over - 1, over, over + 1, f.largest, f.infinity, f.infinity + 1, 1, 2}
    return sorted(values | {v | f.sign_bit for v in values})
