# SPDX-License-Identifier: Apache-2.0
"""Video instructions (PTX ISA "Scalar Video Instructions", "SIMD Video Instructions")."""
from form import form, ints, randoms, signed, triples

ROWS = triples(ints(32) + [0x80ff7f01, 0x0180ff7f, 0xfffe0102], 40, 120, 32)
SELECTORS = {"": (0, 32), ".b0": (0, 8), ".b1": (8, 8), ".b2": (16, 8), ".b3": (24, 8), ".h0": (0, 16), ".h1": (16, 16)}


def cut(v, shift, bits, is_signed):
    v = v >> shift & ((1 << bits) - 1)
    return signed(v, bits) if is_signed else v


def clamp(v, bits, is_signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    return max(low, min(high, v))


def average(a, b):
    """Rounded away from zero."""
    twice = a + b
    return (twice + 1) // 2 if twice >= 0 else -((1 - twice) // 2)


OPERATIONS = {"vadd": lambda a, b: a + b, "vsub": lambda a, b: a - b, "vabsdiff": lambda a, b: abs(a - b),
              "vmin": min, "vmax": max, "vavrg": average}
COMPARE = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
           "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}


def scalar(name, types, operation, d="", a="", b="", sat=False, second=""):
    """types: d, a, b; `second` or a selector of d brings c in."""
    sd, sa, sb = (t == "s32" for t in types)

    def model(x, y, c=0):
        r = operation(cut(x, *SELECTORS[a], sa), cut(y, *SELECTORS[b], sb))
        shift, bits = SELECTORS[d]
        r = clamp(r, bits, sd) if sat else r
        if d:
            field = ((1 << bits) - 1) << shift
            return c & ~field | r << shift & field
        number = lambda v: cut(v, 0, 32, sd)
        return {"": lambda: r, ".add": lambda: r + c, ".min": lambda: min(number(r), number(c)),
                ".max": lambda: max(number(r), number(c))}[second]()
    three = d or second
    operands = ["%d" + d, "%a" + a, "%b" + b] + (["%c"] if three else [])
    form(name + "".join(operands[n][2:] and "_" + operands[n][3:] for n in range(3)), "b32 b32" + (" b32" if three else ""),
         "b32", [r if three else r[:2] for r in ROWS], model, code="%s %s;" % (name, ", ".join(operands)))


for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
    for types in (("u32", "u32", "u32"), ("s32", "s32", "s32"), ("s32", "u32", "s32"), ("u32", "s32", "u32")):
        typed = "%s.%s" % (name, ".".join(types))
        operation = OPERATIONS[name]
        scalar(typed, types, operation)
        scalar(typed + ".sat", types, operation, sat=True)
        scalar(typed, types, operation, a=".b1", b=".h1")
        scalar(typed + ".sat", types, operation, d=".b2", a=".h0", b=".b3", sat=True)
        scalar(typed, types, operation, d=".h1", a=".b0", b=".b2")
        for second in (".add", ".min", ".max"):
            scalar(typed + second, types, operation, a=".b0", b=".b1", second=second)
for part in list(SELECTORS)[1:]:
    other = {".b0": ".h1", ".b1": ".b3", ".b2": ".h0", ".b3": ".b0", ".h0": ".b2", ".h1": ".b1"}[part]
    for types in (("s32", "u32", "s32"), ("u32", "s32", "u32")):
        scalar("vsub." + ".".join(types), types, OPERATIONS["vsub"], a=part, b=other)
        scalar("vabsdiff.%s.sat" % ".".join(types), types, OPERATIONS["vabsdiff"], d=part, b=part, sat=True)
for mode in ("clamp", "wrap"):
    amount = (lambda n: min(n, 32)) if mode == "clamp" else (lambda n: n & 31)
    for t in ("u32", "s32"):
        scalar("vshl.%s.%s.u32.%s" % (t, t, mode), (t, t, "u32"), lambda a, b, f=amount: a << f(b), b=".b0")
        scalar("vshl.%s.%s.u32.sat.%s" % (t, t, mode), (t, t, "u32"), lambda a, b, f=amount: a << f(b), sat=True)
        scalar("vshr.%s.%s.u32.%s" % (t, t, mode), (t, t, "u32"), lambda a, b, f=amount: a >> f(b), b=".b1")
for compare, holds in COMPARE.items():
    for t in ("u32", "s32"):
        types = ("u32", t, t)
        scalar("vset.%s.%s.%s" % (t, t, compare), types, lambda a, b, h=holds: int(h(a, b)))
        scalar("vset.%s.%s.%s.add" % (t, t, compare), types, lambda a, b, h=holds: int(h(a, b)), a=".b1", b=".b1",
               second=".add")
for types in (("u32", "u32", "u32"), ("s32", "s32", "s32"), ("s32", "u32", "s32")):
    for sat in ("", ".sat"):
        for scale, shift in (("", 0), (".shr7", 7), (".shr15", 15)):
            for po in ("", ".po"):
                def mad(a, b, c, ty=types, s=sat, n=shift, p=po):
                    any_signed = "s32" in ty[1:]
                    r = cut(a, 0, 16, ty[1] == "s32") * cut(b, 8, 8, ty[2] == "s32")
                    r = (r + cut(c, 0, 32, any_signed) + (1 if p else 0)) >> n
                    return clamp(r, 32, any_signed) if s else r
                form("vmad.%s%s%s%s" % (".".join(types), po, sat, scale), "b32 b32 b32", "b32", ROWS, mad,
                     code="vmad.%s%s%s%s %%d, %%a.h0, %%b.b1, %%c;" % (".".join(types), po, sat, scale))


def simd(name, parts, types, operation, sat=False, add=False, mask="", select_a="", select_b=""):
    bits = 32 // parts
    sd, sa, sb = (t == "s32" for t in types)
    written = [int(c) for c in mask[2:]] if mask else list(range(parts))
    chosen_a = [int(c) for c in reversed(select_a[2:])] if select_a else list(range(parts))
    chosen_b = [int(c) for c in reversed(select_b[2:])] if select_b else list(range(parts, 2 * parts))

    def model(a, b, c):
        both = b << 32 | a
        for n in written:
            r = operation(cut(both, chosen_a[n] * bits, bits, sa), cut(both, chosen_b[n] * bits, bits, sb))
            r = clamp(r, bits, sd) if sat else r
            field = ((1 << bits) - 1) << n * bits
            c = c + r if add else c & ~field | r << n * bits & field
        return c
    form(name + "".join("_" + s[1:] for s in (mask, select_a, select_b) if s), "b32 b32 b32", "b32", ROWS, model,
         code="%s %%d%s, %%a%s, %%b%s, %%c;" % (name, mask, select_a, select_b))


for parts, letter in ((2, "h"), (4, "b")):
    some = (".h1", ".h03", ".h21") if parts == 2 else (".b20", ".b0527", ".b7614")
    for name, operation in OPERATIONS.items():
        for types in (("u32", "u32", "u32"), ("s32", "s32", "s32"), ("s32", "u32", "s32")):
            typed = "%s%d.%s" % (name, parts, ".".join(types))
            simd(typed, parts, types, operation)
            simd(typed + ".sat", parts, types, operation, sat=True)
            simd(typed + ".add", parts, types, operation, add=True)
            simd(typed, parts, types, operation, False, False, *some)
    for compare, holds in COMPARE.items():
        for t in ("u32", "s32"):
            typed = "vset%d.%s.%s.%s" % (parts, t, t, compare)
            simd(typed, parts, ("u32", t, t), lambda a, b, h=holds: int(h(a, b)))
            simd(typed + ".add", parts, ("u32", t, t), lambda a, b, h=holds: int(h(a, b)), add=True)
