# SPDX-License-Identifier: Apache-2.0
"""ldmatrix of elements of eight bits and less, and stmatrix (PTX ISA "Warp Level Matrix Instructions").

Each lane has 16 bytes of shared memory, a row, and gives the address of another lane's.
"""
import random

from form import form
from matrices import LANES

PRIVATE = 128  # bytes of %s
source = random.Random("transfer")
FAMILY = "120f"


def elements(row, bits):
    """16 elements, the first in the lowest bits."""
    whole = row[0] | row[1] << 64
    return [whole >> bits * n & ((1 << bits) - 1) for n in range(16)]


def packed(values, bits):
    return sum(v << bits * n for n, v in enumerate(values))


# --- ldmatrix ---
LOADS = [(source.getrandbits(64), source.getrandbits(64), lane ^ 21) for lane in range(LANES)]
ADDRESS = ["mov.u32 %row, %laneid;", "sub.u32 %row, %c, %row;", "mad.lo.s32 %%row, %%row, %d, %%s;" % PRIVATE]


def load(shape, count, registers, trans, kind, bits, register_of):
    name = "ldmatrix.sync.aligned.%s.x%d%s.shared.%s" % (shape, count, trans, kind)

    def model(given):
        row = lambda lane: elements(given[given[lane][2]], bits)
        return [tuple(register_of(row, lane, r) for r in range(registers)) for lane in range(LANES)]

    outs = ["%%q%d" % n for n in range(registers)]
    form(name, "b64 b64 b32", " ".join(o + ":b32" for o in outs), [LOADS], model, needs=FAMILY, whole_warps=True,
         code=["st.shared.v2.b64 [%s], {%a, %b};", "bar.warp.sync 0xffffffff;"] + ADDRESS
         + ["%s {%s}, [%%row];" % (name, ", ".join(outs))])


def rows_of_eight(row, lane, r):
    return packed(row(8 * r + lane // 4)[lane % 4 * 4:][:4], 8)


def transposed(row, lane, r):
    """Element (line, column) of the matrix of 16 columns lies at bit 128 * line + 8 * column of a table; which lane has
    the address of which line, and where a register's bytes come from, are both permutations of its bits."""
    values = []
    for byte in range(4):
        bit = 256 * (lane % 4) + 8 * (lane // 4) + 128 * (byte % 2) + 64 * (byte // 2) + 1024 * r
        line, column = bit // 128, bit % 128 // 8
        address = line % 2 + 2 * (line // 8 % 2) + 4 * (line // 2 % 4) + 16 * (line // 16)
        values.append(row(address)[column])
    return packed(values, 8)


FORMATS = (("b8x16.b4x16_p64", 4), ("b8x16.b6x16_p32", 6))
for count in (1, 2, 4):
    for kind, bits in FORMATS:
        load("m8n16", count, count, "", kind, bits, rows_of_eight)
for count in (1, 2):
    for kind, bits in FORMATS + (("b8", 8),):
        load("m16n16", count, 2 * count, ".trans", kind, bits, transposed)


# --- stmatrix: afterwards each lane has its 16 bytes ---
def store(shape, count, trans, kind, needs, space, element_of):
    name = "stmatrix.sync.aligned.%s.x%d%s%s.%s" % (shape, count, trans, space, kind)
    bits = 16 if kind == "b16" else 8

    def model(given):
        rows = {lane: (0x5555555555555555, 0x5555555555555555) for lane in range(LANES)}
        for n in range(count):
            register = lambda lane, m=n: given[lane][1 + m]
            for r in range(8):
                whole = packed([element_of(register, r, column) for column in range(128 // bits)], bits)
                rows[given[8 * n + r][0]] = (whole & (1 << 64) - 1, whole >> 64)
        return [rows[lane] for lane in range(LANES)]

    ins = ["%%q%d" % n for n in range(count)]
    given = [tuple([lane ^ 21] + [source.getrandbits(32) for _ in range(count)]) for lane in range(LANES)]
    code = ["mov.b64 %d, 0x5555555555555555;", "st.shared.v2.b64 [%s], {%d, %d};", "bar.warp.sync 0xffffffff;"] + ADDRESS
    if not space:
        code += ["cvt.u64.u32 %in, %row;", "cvta.shared.u64 %in, %in;"]
    code += ["%s [%s], {%s};" % (name, "%row" if space else "%in", ", ".join(ins)), "bar.warp.sync 0xffffffff;",
             "ld.shared.v2.b64 {%d, %e}, [%s];"]
    form(name, "%c:b32 " + " ".join(i + ":b32" for i in ins), "b64 b64", [given], model, code=code, needs=needs,
         whole_warps=True)


def plain(register, row, column):
    return register(4 * row + column // 2) >> 16 * (column % 2) & 0xffff


def turned(register, row, column):
    return plain(register, column, row)


def turned_bytes(register, row, column):
    return register(row // 2 + 4 * (column % 8)) >> 8 * (row % 2 + 2 * (column // 8)) & 0xff


for count in (1, 2, 4):
    for space in (".shared", ""):
        store("m8n8", count, "", "b16", 90, space, plain)
        store("m8n8", count, ".trans", "b16", 90, space, turned)
    store("m16n8", count, ".trans", "b8", FAMILY, ".shared", turned_bytes)
