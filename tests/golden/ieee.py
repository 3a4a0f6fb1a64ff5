# SPDX-License-Identifier: Apache-2.0
"""IEEE 754 binary formats by exact rational arithmetic: the independent model behind the golden tests.

A value of a format is its bits (an int). Results are rounded once from the exact value.
"""
from fractions import Fraction
from math import isqrt


class Format:
    """A binary format of `exponent_bits` and `fraction_bits`, held in a container of `bits`."""

    def __init__(self, name, exponent_bits, fraction_bits, nan):
        self.name = name
        self.exponent_bits = exponent_bits
        self.fraction_bits = fraction_bits
        self.bits = 1 + exponent_bits + fraction_bits
        self.bias = (1 << (exponent_bits - 1)) - 1
        self.lowest_exponent = 1 - self.bias
        self.sign_bit = 1 << (self.bits - 1)
        self.infinity = ((1 << exponent_bits) - 1) << fraction_bits
        self.largest = self.infinity - 1
        self.nan = nan  # what an operation gives that has no number as its result; None: any NaN

    def is_nan(self, v):
        return v & ~self.sign_bit > self.infinity

    def is_infinite(self, v):
        return v & ~self.sign_bit == self.infinity

    def is_zero(self, v):
        return v & ~self.sign_bit == 0

    def is_subnormal(self, v):
        return 0 < v & ~self.sign_bit < 1 << self.fraction_bits

    def is_negative(self, v):
        return bool(v & self.sign_bit)

    def value(self, v):
        """The exact value of a finite number."""
        exponent = (v >> self.fraction_bits) & ((1 << self.exponent_bits) - 1)
        fraction = v & ((1 << self.fraction_bits) - 1)
        if exponent == 0:
            exponent = 1
        else:
            fraction |= 1 << self.fraction_bits
        scale = exponent - self.bias - self.fraction_bits
        magnitude = Fraction(fraction << scale) if scale >= 0 else Fraction(fraction, 1 << -scale)
        return -magnitude if self.is_negative(v) else magnitude

    def round(self, value, mode="rn", zero_sign=0):
        """`value` rounded to this format: rn, rz, rm, rp, or rna (ties away). zero_sign: of an exact zero."""
        if value == 0:
            return self.sign_bit if zero_sign else 0
        negative = value < 0
        magnitude = -value if negative else value
        sign = self.sign_bit if negative else 0
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if power_of_two(exponent) > magnitude:
            exponent -= 1
        exponent = max(exponent, self.lowest_exponent)
        scaled = magnitude / power_of_two(exponent - self.fraction_bits)
        units, rest = divmod(scaled.numerator, scaled.denominator)
        twice = 2 * rest
        up = {"rn": twice > scaled.denominator or (twice == scaled.denominator and units & 1),
              "rna": twice >= scaled.denominator,
              "rz": False,
              "rm": negative and rest != 0,
              "rp": not negative and rest != 0}[mode]
        units += 1 if up else 0
        # A carry out of the fraction runs into the exponent as it should.
        result = units + ((exponent - self.lowest_exponent) << self.fraction_bits)
        if result >= self.infinity:
            away = mode in ("rn", "rna") or (mode == "rm") == negative and mode != "rz"
            result = self.infinity if away else self.largest
        return sign | result

    def flush(self, v):
        """A zero of the same sign instead of a subnormal number."""
        return v & self.sign_bit if self.is_subnormal(v) else v


def power_of_two(n):
    return Fraction(1 << n) if n >= 0 else Fraction(1, 1 << -n)


F16 = Format("f16", 5, 10, 0x7fff)
BF16 = Format("bf16", 8, 7, 0x7fff)
F32 = Format("f32", 8, 23, 0x7fffffff)
F64 = Format("f64", 11, 52, None)


def add(f, a, b, mode="rn"):
    if f.is_nan(a) or f.is_nan(b):
        return f.nan
    if f.is_infinite(a):
        return f.nan if f.is_infinite(b) and a != b else a
    if f.is_infinite(b):
        return b
    if f.is_zero(a) and f.is_zero(b) and a == b:
        return a
    return f.round(f.value(a) + f.value(b), mode, mode == "rm")


def sub(f, a, b, mode="rn"):
    return f.nan if f.is_nan(b) else add(f, a, b ^ f.sign_bit, mode)


def mul(f, a, b, mode="rn"):
    sign = (a ^ b) & f.sign_bit
    if f.is_nan(a) or f.is_nan(b):
        return f.nan
    if f.is_infinite(a) or f.is_infinite(b):
        return f.nan if f.is_zero(a) or f.is_zero(b) else sign | f.infinity
    return f.round(f.value(a) * f.value(b), mode, sign)


def fma(f, a, b, c, mode="rn"):
    sign = (a ^ b) & f.sign_bit
    if f.is_nan(a) or f.is_nan(b) or f.is_nan(c):
        return f.nan
    if f.is_infinite(a) or f.is_infinite(b):
        if f.is_zero(a) or f.is_zero(b) or (f.is_infinite(c) and sign != c & f.sign_bit):
            return f.nan
        return sign | f.infinity
    if f.is_infinite(c):
        return c
    product = f.value(a) * f.value(b)
    both_zero = product == 0 and f.is_zero(c)
    same = both_zero and sign == c & f.sign_bit
    return f.round(product + f.value(c), mode, sign if same else mode == "rm")


def div(f, a, b, mode="rn"):
    sign = (a ^ b) & f.sign_bit
    if f.is_nan(a) or f.is_nan(b):
        return f.nan
    if f.is_infinite(a):
        return f.nan if f.is_infinite(b) else sign | f.infinity
    if f.is_infinite(b):
        return sign
    if f.is_zero(b):
        return f.nan if f.is_zero(a) else sign | f.infinity
    return f.round(f.value(a) / f.value(b), mode, sign)


def root(value):
    """The square root of a positive rational, exact or to far more digits than any format keeps."""
    shift = 2 * max(0, 400 - value.numerator.bit_length() + value.denominator.bit_length())
    scaled = (value.numerator << shift) // value.denominator
    rest = (value.numerator << shift) % value.denominator
    whole = isqrt(scaled)
    inexact = rest != 0 or whole * whole != scaled
    return Fraction(2 * whole + inexact, 2) / power_of_two(shift // 2)


def sqrt(f, a, mode="rn"):
    if f.is_nan(a):
        return f.nan
    if f.is_zero(a):
        return a
    if f.is_negative(a):
        return f.nan
    return a if f.is_infinite(a) else f.round(root(f.value(a)), mode)


def convert(to, f, a, mode="rn"):
    sign = to.sign_bit if f.is_negative(a) else 0
    if f.is_nan(a):
        return to.nan
    if f.is_infinite(a):
        return sign | to.infinity
    return to.round(f.value(a), mode, sign)


def integral(value, mode):
    """A rational as an integer: rni, rzi, rmi, rpi."""
    low = value.numerator // value.denominator
    if mode == "rmi" or low == value:
        return low
    if mode == "rpi":
        return low + 1
    if mode == "rzi":
        return low if value > 0 else low + 1
    twice = 2 * (value - low)
    return low + (1 if twice > 1 or (twice == 1 and low & 1) else 0)


def order(f, a, b):
    """'<', '=', '>' or '?' (a NaN is there)."""
    if f.is_nan(a) or f.is_nan(b):
        return "?"
    keys = [(1 if not f.is_negative(v) else -1) * (v & ~f.sign_bit) for v in (a, b)]
    return "=" if keys[0] == keys[1] else "<" if keys[0] < keys[1] else ">"


def saturate(f, v):
    """[0, 1]; a NaN becomes +0."""
    one = f.round(Fraction(1))
    if v is None or f.is_nan(v) or f.is_negative(v):
        return 0
    return min(v, one)
