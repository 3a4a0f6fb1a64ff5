# SPDX-License-Identifier: Apache-2.0
"""cvt.rs (PTX ISA "cvt"): rounded toward zero, or away from it with a chance that the value itself gives."""
import random
from fractions import Fraction

from form import form, randoms
from ieee import BF16, F16, F32
from narrow import E2M1, FORMATS, borders

NEEDS = "100a"


def finite_of(f):
    """All magnitudes, by code, of a format with subnormal values."""
    return [f.value(code) for code in range(f.largest + 1)]


class Target:
    """magnitudes: finite ones by code. beyond: the code of what is larger; bits: random ones for a value."""

    def __init__(self, magnitudes, beyond, nan, sign_bit, bits):
        self.magnitudes, self.beyond, self.nan, self.sign_bit, self.bits = magnitudes, beyond, nan, sign_bit, bits

    def code(self, v, drawn, relu):
        if F32.is_nan(v):
            return self.nan
        negative = F32.is_negative(v)
        if relu and negative:
            return 0
        sign = self.sign_bit if negative else 0
        size = None if F32.is_infinite(v) else abs(F32.value(v))
        if size is None or size >= self.magnitudes[-1] + self.last_step():
            return sign | self.beyond
        below = self.index_below(size)
        step = self.magnitudes[below + 1] - self.magnitudes[below] if below + 1 < len(self.magnitudes) else self.last_step()
        part = (size - self.magnitudes[below]) / step * (1 << self.bits)
        away = part.numerator // part.denominator + drawn % (1 << self.bits) >= 1 << self.bits
        code = below + (1 if away else 0)
        return sign | (code if code < len(self.magnitudes) else self.beyond)

    def last_step(self):
        return self.magnitudes[-1] - self.magnitudes[-2]

    def index_below(self, size):
        low, high = 0, len(self.magnitudes) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.magnitudes[middle] <= size else (low, middle - 1)
        return low


def values_near(magnitudes, seed):
    """f32 at, beside and between neighbours, and anything."""
    source = random.Random(seed)
    codes = range(len(magnitudes) - 1) if len(magnitudes) < 200 else sorted(
        {0, 1, 2, len(magnitudes) - 2} | {source.randrange(len(magnitudes) - 1) for _ in range(60)})
    values = {0, 1, F32.largest, F32.infinity, F32.infinity + 1}
    for code in codes:
        low, high = magnitudes[code], magnitudes[code + 1]
        for part in (0, Fraction(1, 256), Fraction(source.randrange(1, 4096), 4096), Fraction(1, 2), Fraction(255, 256)):
            v = F32.round(low + (high - low) * part)
            values |= {v, max(v - 1, 0), v + 1}
    over = F32.round(magnitudes[-1] + (magnitudes[-1] - magnitudes[-2]) * Fraction(3, 4))
    values |= {over, over + 1, F32.round(magnitudes[-1] * Fraction(2))}
    values = sorted(values | {v | F32.sign_bit for v in values}) + [v for v, in randoms(seed, 60, [32])]
    source.shuffle(values)
    return values


def draws(source):
    """Random bits; all ones, none and halves among them."""
    return source.choice((0, 0xffffffff, 0x80808080, 0x7f7f7f7f, 0x10001000) + tuple(source.getrandbits(32) for _ in range(8)))


for f, name, bits in ((F16, "f16x2", 13), (BF16, "bf16x2", 16)):
    for relu in ("", ".relu"):
        for satfinite in ("", ".satfinite"):
            magnitudes = finite_of(f)
            target = Target(magnitudes, f.largest if satfinite else f.infinity, f.nan, f.sign_bit, bits)
            values = values_near(magnitudes, name)
            source = random.Random(name + relu + satfinite)
            rows = [(a, b, draws(source)) for a, b in zip(values, values[7:] + values[:7])]
            form("cvt.rs%s%s.%s.f32" % (relu, satfinite, name), "b32 b32 b32", "b32", rows, needs=NEEDS,
                 model=lambda a, b, r, t=target, z=relu: t.code(a, r >> 16, z) << 16 | t.code(b, r, z))

for narrow in FORMATS:
    shift = 4 if narrow is E2M1 else 8
    target = Target(narrow.finite, narrow.largest, narrow.nan, narrow.sign_bit, 8)
    values = values_near(narrow.finite, narrow.name) + borders(narrow, F32)
    for relu in ("", ".relu"):
        source = random.Random(narrow.name + relu)
        rows = [(a, b, c, u, draws(source)) for a, b, c, u in
                zip(values, values[3:] + values[:3], values[5:] + values[:5], values[11:] + values[:11])]
        name = "cvt.rs%s.satfinite.%sx4.f32" % (relu, narrow.name)
        form(name, "b32 b32 b32 b32 b32", "b16" if narrow is E2M1 else "b32", rows, needs=NEEDS,
             code="%s %%d, {%%a, %%b, %%c, %%u}, %%v;" % name,
             model=lambda a, b, c, u, r, t=target, s=shift, z=relu: (
                 t.code(a, r >> 24, z) << 3 * s | t.code(b, r >> 16 & 255, z) << 2 * s |
                 t.code(c, r >> 8 & 255, z) << s | t.code(u, r & 255, z)))
