# SPDX-License-Identifier: Apache-2.0
"""Fragments of matrices in the registers of a warp (PTX ISA "Warp Level Matrix Instructions")."""
from fractions import Fraction

from ieee import BF16, F16, F32, F64

LANES = 32


class Whole:
    """Integers of `bits` in registers of 32 bits."""

    def __init__(self, bits, is_signed):
        self.bits, self.is_signed = bits, is_signed
        self.register = 32

    def pick(self, source):
        top = 1 << (self.bits - 1)
        return source.randrange(-top, top) if self.is_signed else source.randrange(2 * top)

    def encode(self, v):
        return v & ((1 << self.bits) - 1)


class Real:
    """Floating point; tf32 has the bits of f32."""

    def __init__(self, f, register=32):
        self.f, self.bits, self.register = f, f.bits, register

    def pick(self, source):
        return source.randrange(-8, 9)

    def encode(self, v):
        return self.f.round(Fraction(v))


TYPES = {"f16": Real(F16), "bf16": Real(BF16), "tf32": Real(F32), "f32": Real(F32), "f64": Real(F64, 64),
         "s8": Whole(8, True), "u8": Whole(8, False), "s4": Whole(4, True), "u4": Whole(4, False),
         "b1": Whole(1, False), "s32": Whole(32, True)}


def place_a(m, per, lane, reg, part):
    return lane // 4 + 8 * (reg % (m // 8)), lane % 4 * per + part + reg // (m // 8) * 4 * per


def place_b(m, per, lane, reg, part):
    return lane % 4 * per + part + reg * 4 * per, lane // 4


def place_c(m, per, lane, reg, part):
    e = reg * per + part
    return lane // 4 + 8 * (e // 2), lane % 4 * 2 + e % 2


def to_lanes(place, m, kind, registers, matrix):
    """Registers of each lane that hold `matrix` (a function of row and column)."""
    per = kind.register // kind.bits
    lanes = []
    for lane in range(LANES):
        values = []
        for reg in range(registers):
            v = 0
            for part in range(per):
                v |= kind.encode(matrix[place(m, per, lane, reg, part)]) << kind.bits * part
            values.append(v)
        lanes.append(tuple(values))
    return lanes


# Places of the two that stay of four; of tf32 one of two.
PAIRS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def metadata_words(source, nibbles, chunks, selector):
    """A register per lane; what is not looked at is anything. nibbles: by row and chunk."""
    words = [source.getrandbits(32) for _ in range(LANES)]
    for (row, chunk), nibble in nibbles.items():
        quad, half = row % 8, row // 8
        if chunks == 16:  # every lane has eight chunks of a row
            member, at = (chunk // 8) * 2 + half, chunk % 8
        elif chunks == 8:  # a pair of lanes has four chunks of both rows each
            member, at = selector * 2 + chunk // 4, half * 4 + chunk % 4
        else:
            member, at = selector, half * 4 + chunk
        lane = quad * 4 + member
        words[lane] = words[lane] & ~(15 << 4 * at) | nibble << 4 * at
    return words
