# SPDX-License-Identifier: Apache-2.0
"""The list of golden tests: a form is an instruction as text, typed columns, and rows of values.

Columns are called %a %b %c %u %v ... in, %d %e %f ... out. README.md says what the file format is.
"""
import random

BITS = {"b16": 16, "b32": 32, "b64": 64, "pred": 1}
IN_NAMES = "abcuvwxyznop"
OUT_NAMES = "defghijklqrt"
FORMS = []
NAN = "nan"


class Form:
    def __init__(self, name, code, ins, outs, rows, needs, version, module, image, block):
        self.name, self.code, self.ins, self.outs = name, code, ins, outs
        self.rows, self.needs, self.version, self.module, self.image = rows, needs, version, module, image
        self.block = block

    def text(self):
        lines = ["form " + self.name]
        if self.needs != 75:
            lines.append("needs %s" % self.needs)
        if self.block != 32:
            lines.append("block %d" % self.block)
        if self.version:
            lines.append("version " + self.version)
        lines += ["module " + line for line in self.module]
        lines += self.image.text() if self.image else []
        lines += ["in " + " ".join(self.ins), "out " + " ".join(self.outs)]
        lines += ["code " + line for line in self.code]
        for given, expected in self.rows:
            lines.append("= %s -> %s" % (" ".join("%x" % v for v in given),
                                         " ".join(v if isinstance(v, str) else "%x" % v for v in expected)))
        return "\n".join(lines) + "\n"


def check(name, kinds, row):
    row = row if isinstance(row, tuple) else (row,)
    if len(row) != len(kinds):
        raise ValueError("%s: %d columns in a row of %d" % (name, len(row), len(kinds)))
    return [mask_to(k, v) for k, v in zip(kinds, row)]


def mask_to(kind, value):
    if isinstance(value, float):
        return value.hex()
    if value is None:
        return NAN
    return int(value) & ((1 << BITS[kind]) - 1)


def form(name, ins, out, rows, model, code=None, needs=75, version=None, module=(), whole_warps=False,
         image=None, block=32):
    """Adds a test of the instruction `name`.

    ins, out: kinds of the columns, "b32 b32" (%a, %b) or "%x:b64 %y:b32". rows: tuples of inputs. model: inputs ->
    output or tuple of them; None = any NaN. code: lines, else "name %d, %a, %b;". An output kind may have a tolerance:
    "b32~f32,rel=-23,abs=-126" (powers of two), its expected values are then floats.

    image: the texture or surface (images.Image) that the code names as %t; where the model writes to it, what it holds
    after the kernel is part of the test.
    needs: the lowest compute capability that has the form; "120f": only its family, here 12.x, does; "90a": only it does.
    version: of the PTX ISA, where the form is newer than its compute capability.
    whole_warps: rows is a list of warps of 32 rows each, and the model gets all rows of a warp and gives all outputs.
    block: threads of a block; with whole_warps, what is said of warps is true of blocks.
    """
    ins = named(ins, IN_NAMES)
    outs = named(out, OUT_NAMES)
    if code is None:
        operands = [c.split(":")[0] for c in outs + ins]
        code = ["%s %s;" % (name, ", ".join(operands))]
    elif isinstance(code, str):
        code = [code]
    kinds_in = [c.split(":")[1] for c in ins]
    kinds_out = [c.split(":")[1].split("~")[0] for c in outs]
    table = []
    for warp in rows if whole_warps else [[row] for row in rows]:
        given = [check(name, kinds_in, row) for row in warp]
        got = model(given) if whole_warps else [model(*given[0])]
        for row, values in zip(given, got, strict=True):
            values = values if isinstance(values, tuple) else (values,)
            table.append((row, [mask_to(k, v) for k, v in zip(kinds_out, values, strict=True)]))
    FORMS.append(Form(name, list(code), ins, outs, table, needs, version, list(module), image, block))


def named(columns, names):
    result = []
    for column in columns.split():
        if not column.startswith("%"):
            column = "%" + names[len(result)] + ":" + column
        result.append(column)
    return result


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def pairs(values, seed, more=16, bits=None):
    """Every pair of `values`, and random ones."""
    chosen = [(a, b) for a in values for b in values]
    return chosen + randoms(seed, more, [bits, bits]) if bits else chosen


def triples(values, seed, count, bits=None):
    """`count` triples of `values`, the same at each run, and a quarter as many random ones."""
    source = random.Random(seed)
    chosen = [tuple(source.choice(values) for _ in range(3)) for _ in range(count)]
    return chosen + (randoms(seed, count // 4, [bits] * 3) if bits else [])


def randoms(seed, count, bits):
    source = random.Random(seed)
    return [tuple(source.getrandbits(b) for b in bits) for _ in range(count)]


def ints(bits):
    """Integers at which something happens."""
    top = 1 << (bits - 1)
    full = (1 << bits) - 1
    return sorted({0, 1, 2, 3, 7, bits - 1, bits, 0x55 * (full // 255), top - 1, top, top + 1, full - 1, full})
