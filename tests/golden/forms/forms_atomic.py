# SPDX-License-Identifier: Apache-2.0
"""atom and red of vectors of floating-point values, and of 128 bits (PTX ISA "atom", "red")."""
import ieee
from form import form, randoms
from ieee import BF16, F16, F32
from values import BF_EDGES, edges16, edges32, least


def sums(f):
    return lambda d, b: ieee.add(f, d, b)


def picks(f, greatest):
    return lambda d, b: least(f, d, b, greatest) if not (f.is_nan(d) and f.is_nan(b)) else f.nan


def halves(operation):
    return lambda d, b: operation(d >> 16, b >> 16) << 16 | operation(d & 0xffff, b & 0xffff)


def vector(op, t, count, bits, operation, values, noftz, space):
    """What is at %m, 16 bytes at most, before, and the operands; after it the same, and what came back."""
    kind = "b%d" % bits
    rows = [tuple(values[(r * (2 * count + 1) + n * 5) % len(values)] for n in range(2 * count)) for r in range(40)]
    rows += randoms(t + op, 10, [bits] * 2 * count)
    names = {p: ["%%%s%d" % (p, n) for n in range(count)] for p in "abde"}
    listed = {p: "{%s}" % ", ".join(n) for p, n in names.items()}
    ins = " ".join("%s:%s" % (n, kind) for p in "ab" for n in names[p])
    store = ["st.global.%s [%%m+%d], %s;" % (kind, n * bits // 8, a) for n, a in enumerate(names["a"])]
    load = ["ld.global.%s %s, [%%m+%d];" % (kind, e, n * bits // 8) for n, e in enumerate(names["e"])]
    after = lambda row: tuple(operation(d, b) for d, b in zip(row[:count], row[count:]))
    name = "%s%s.v%d.%s" % (op, noftz, count, t)
    form("atom%s.%s" % (space, name), ins, " ".join("%s:%s" % (n, kind) for p in "de" for n in names[p]), rows,
         lambda *row: row[:count] + after(row), needs=90,
         code=store + ["atom%s.%s %s, [%%m], %s;" % (space, name, listed["d"], listed["b"])] + load)
    form("red%s.%s" % (space, name), ins, " ".join("%s:%s" % (n, kind) for n in names["e"]), rows,
         lambda *row: after(row), needs=90, code=store + ["red%s.%s [%%m], %s;" % (space, name, listed["b"])] + load)


NUMBERS = [v for v in edges32() if not F32.is_nan(v)] + [0x7fc00000]
for space in (".global", ""):
    for count in (2, 4):
        vector("add", "f32", count, 32, sums(F32), NUMBERS, "", space)
for f, edges in ((F16, edges16()), (BF16, BF_EDGES)):
    both = [a << 16 | b for a, b in zip(edges, edges[3:] + edges[:3])]
    for op, operation in (("add", sums(f)), ("min", picks(f, False)), ("max", picks(f, True))):
        for count in (2, 4, 8):
            vector(op, f.name, count, 16, operation, edges, ".noftz", ".global")
        for count in (2, 4):
            vector(op, f.name + "x2", count, 32, halves(operation), both, ".noftz", ".global")

# --- 128 bits ---
WHOLE = [(1, 2, 3, 4, 5, 6), (1, 2, 1, 2, 7, 8), (1, 2, 1, 3, 7, 8), (0, 2, 1, 2, 7, 8)] + randoms("wide", 20, [64] * 6)
PACK = [".reg .b128 %r0, %r1, %r2, %r3;", "mov.b128 %r0, {%a, %b};", "mov.b128 %r1, {%c, %u};", "mov.b128 %r2, {%v, %w};"]
for space, at in ((".global", "%m"), ("", "%m"), (".shared", "%s")):
    where = space or ".global"
    store = ["st%s.b128 [%s], %%r0;" % (where, at)]
    load = ["mov.b128 {%%d, %%e}, %%r3;", "ld%s.b128 %%r0, [%s];" % (where, at), "mov.b128 {%%f, %%g}, %%r0;"]
    load = [line.replace("%%", "%") for line in load]
    form("atom%s.exch.b128" % space, "b64 b64 b64 b64 b64 b64", "b64 b64 b64 b64", WHOLE, needs=90,
         model=lambda a, b, c, u, v, w: (a, b, c, u),
         code=PACK + store + ["atom%s.exch.b128 %%r3, [%s], %%r1;" % (space, at)] + load)
    form("atom%s.cas.b128" % space, "b64 b64 b64 b64 b64 b64", "b64 b64 b64 b64", WHOLE, needs=90,
         model=lambda a, b, c, u, v, w: (a, b) + ((v, w) if (a, b) == (c, u) else (a, b)),
         code=PACK + store + ["atom%s.cas.b128 %%r3, [%s], %%r1, %%r2;" % (space, at)] + load)
form("mov.b128", "b64 b64", "b64 b64", randoms("mov", 10, [64, 64]), lambda a, b: (b, a), needs=90,
     code=[".reg .b128 %r0, %r1;", "mov.b128 %r0, {%b, %a};", "mov.b128 %r1, %r0;", "mov.b128 {%d, %e}, %r1;"])
