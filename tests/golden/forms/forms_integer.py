# SPDX-License-Identifier: Apache-2.0
"""Integer arithmetic (PTX ISA "Integer Arithmetic Instructions", "Extended-Precision", "Comparison", "Logic")."""
from form import form, ints, pairs, randoms, signed, triples

WIDTHS = (16, 32, 64)


def both(bits, operation):
    """`operation` on signed numbers of `bits`."""
    return lambda *values: operation(*(signed(v, bits) for v in values))


def divide(a, b):
    """Truncated division; by zero: all ones."""
    if b == 0:
        return -1
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def remainder(a, b):
    return a if b == 0 else a - b * divide(a, b)


def by_sign(name, bits, arity, operation, rows):
    """The .uN and the .sN form of one operation."""
    kind = "b%d" % bits
    columns = " ".join([kind] * arity)
    form("%s.u%d" % (name, bits), columns, kind, rows, operation)
    form("%s.s%d" % (name, bits), columns, kind, rows, both(bits, operation))


for width in WIDTHS:
    edges = ints(width)
    two = pairs(edges, width, 24, width)
    three = triples(edges, width, 120, width)
    by_sign("add", width, 2, lambda a, b: a + b, two)
    by_sign("sub", width, 2, lambda a, b: a - b, two)
    by_sign("mul.lo", width, 2, lambda a, b: a * b, two)
    by_sign("mul.hi", width, 2, lambda a, b, w=width: (a * b) >> w, two)
    by_sign("mad.lo", width, 3, lambda a, b, c: a * b + c, three)
    by_sign("mad.hi", width, 3, lambda a, b, c, w=width: ((a * b) >> w) + c, three)
    by_sign("div", width, 2, divide, two)
    by_sign("rem", width, 2, remainder, two)
    by_sign("min", width, 2, min, two)
    by_sign("max", width, 2, max, two)
    by_sign("sad", width, 3, lambda a, b, c: c + abs(a - b), three)
    kind = "b%d" % width
    one = [(v,) for v in edges] + randoms(width, 16, [width])
    form("neg.s%d" % width, kind, kind, one, lambda a: -a)
    form("abs.s%d" % width, kind, kind, one, both(width, abs))
    form("cnot.b%d" % width, kind, kind, one, lambda a: a == 0)
    if width < 64:
        wide = "b%d" % (2 * width)
        columns = "%s %s" % (kind, kind)
        form("mul.wide.u%d" % width, columns, wide, two, lambda a, b: a * b)
        form("mul.wide.s%d" % width, columns, wide, two, both(width, lambda a, b: a * b))
        rows = [(a, b, c * 0x9e3779b97f4a7c15) for a, b, c in three]
        form("mad.wide.u%d" % width, columns + " " + wide, wide, rows, lambda a, b, c: a * b + c)
        form("mad.wide.s%d" % width, columns + " " + wide, wide, rows,
             lambda a, b, c, w=width: signed(a, w) * signed(b, w) + c)


def clamp32(v):
    return max(-(1 << 31), min((1 << 31) - 1, v))


words = ints(32)
word_pairs = pairs(words, 1, 24, 32)
word_triples = triples(words, 2, 120, 32)
form("add.sat.s32", "b32 b32", "b32", word_pairs, both(32, lambda a, b: clamp32(a + b)))
form("sub.sat.s32", "b32 b32", "b32", word_pairs, both(32, lambda a, b: clamp32(a - b)))
form("mad.hi.sat.s32", "b32 b32 b32", "b32", word_triples, both(32, lambda a, b, c: clamp32(((a * b) >> 32) + c)))


def low24(is_signed):
    return lambda v: signed(v & 0xffffff, 24) if is_signed else v & 0xffffff


for sign in "us":
    cut = low24(sign == "s")
    rows2 = word_pairs + randoms(24, 24, [24, 24])
    rows3 = word_triples + randoms(25, 24, [24, 24, 32])
    form("mul24.lo.%s32" % sign, "b32 b32", "b32", rows2, lambda a, b, f=cut: f(a) * f(b))
    form("mul24.hi.%s32" % sign, "b32 b32", "b32", rows2, lambda a, b, f=cut: (f(a) * f(b)) >> 16)
    form("mad24.lo.%s32" % sign, "b32 b32 b32", "b32", rows3, lambda a, b, c, f=cut: f(a) * f(b) + c)
    form("mad24.hi.%s32" % sign, "b32 b32 b32", "b32", rows3, lambda a, b, c, f=cut: ((f(a) * f(b)) >> 16) + c)
form("mad24.hi.sat.s32", "b32 b32 b32", "b32", word_triples,
     lambda a, b, c: clamp32(((low24(True)(a) * low24(True)(b)) >> 16) + signed(c, 32)))

# --- carries: a first instruction sets the carry, the one under test takes it, a last one shows what it left ---
for width in (32, 64):
    kind = "b%d" % width
    full = (1 << width) - 1
    edges = ints(width)
    rows = [(a, b, c) for a, b, c in triples(edges, width + 7, 160, width)]
    rows += [(full, full, full), (0, 0, 0), (full, 0, 1), (0, full, full)]
    for sign in "us":
        t = "%s%d" % (sign, width)

        def shown(name, operands):
            """d = result, e = carry out; the carry in is that of c + (all ones), so c != 0."""
            carry_in = ["add.cc.%s %%e, %%c, -1;" % t]
            return carry_in + ["%s.%s %%d, %s;" % (name, t, operands), "addc.%s %%e, 0, 0;" % t]

        def add_carry(a, b, c, m=full):
            s = a + b + (c != 0)
            return s & m, s > m

        def sub_borrow(a, b, c, m=full):
            s = a - b - (c != 0)
            return s & m, s < 0

        both_out = "%s %s" % (kind, kind)
        three_in = " ".join([kind] * 3)
        form("add.cc." + t, three_in, both_out, rows, lambda a, b, c, m=full: ((a + b) & m, a + b > m),
             code=shown("add.cc", "%a, %b"))
        form("addc.cc." + t, three_in, both_out, rows, add_carry, code=shown("addc.cc", "%a, %b"))
        form("addc." + t, three_in, both_out, rows, lambda a, b, c, f=add_carry: (f(a, b, c)[0], c != 0),
             code=shown("addc", "%a, %b"))
        borrow_in = ["sub.cc.%s %%e, 0, %%c;" % t]
        borrow_out = ["subc.%s %%e, 0, 0;" % t, "neg.s%d %%e, %%e;" % width]
        form("sub.cc." + t, three_in, both_out, rows, lambda a, b, c, m=full: ((a - b) & m, a < b),
             code=borrow_in + ["sub.cc.%s %%d, %%a, %%b;" % t] + borrow_out)
        form("subc.cc." + t, three_in, both_out, rows, sub_borrow,
             code=borrow_in + ["subc.cc.%s %%d, %%a, %%b;" % t] + borrow_out)
        form("subc." + t, three_in, both_out, rows, lambda a, b, c, f=sub_borrow: (f(a, b, c)[0], c != 0),
             code=borrow_in + ["subc.%s %%d, %%a, %%b;" % t] + borrow_out)
        for part in ("lo", "hi"):
            def product(a, b, w=width, s=sign, p=part):
                x, y = (signed(a, w), signed(b, w)) if s == "s" else (a, b)
                return ((x * y) >> (w if p == "hi" else 0)) & ((1 << w) - 1)

            def mad_cc(a, b, c, m=full, f=product):
                s = f(a, b) + c
                return s & m, s > m

            def madc_cc(a, b, c, m=full, f=product):
                s = f(a, b) + c + (c != 0)
                return s & m, s > m
            form("mad.%s.cc.%s" % (part, t), three_in, both_out, rows, mad_cc,
                 code=shown("mad.%s.cc" % part, "%a, %b, %c"))
            form("madc.%s.cc.%s" % (part, t), three_in, both_out, rows, madc_cc,
                 code=shown("madc.%s.cc" % part, "%a, %b, %c"))
            form("madc.%s.%s" % (part, t), three_in, both_out, rows,
                 lambda a, b, c, f=madc_cc: (f(a, b, c)[0], c != 0), code=shown("madc.%s" % part, "%a, %b, %c"))


# --- sums of products of bytes ---
def parts(v, bits, is_signed):
    return [signed(v >> k & ((1 << bits) - 1), bits) if is_signed else v >> k & ((1 << bits) - 1)
            for k in range(0, 32, bits)]


for sa in "us":
    for sb in "us":
        types = "%s32.%s32" % (sa, sb)
        rows = word_triples + randoms(4, 40, [32] * 3)
        form("dp4a." + types, "b32 b32 b32", "b32", rows, lambda a, b, c, x=sa, y=sb: c + sum(
            p * q for p, q in zip(parts(a, 8, x == "s"), parts(b, 8, y == "s"))))
        for half in ("lo", "hi"):
            form("dp2a.%s.%s" % (half, types), "b32 b32 b32", "b32", rows, lambda a, b, c, x=sa, y=sb, h=half: c + sum(
                p * q for p, q in zip(parts(a, 16, x == "s"), parts(b, 8, y == "s")[2 if h == "hi" else 0:][:2])))
