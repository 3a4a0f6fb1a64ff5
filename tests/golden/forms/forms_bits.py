# SPDX-License-Identifier: Apache-2.0
"""Logic, shifts, bit fields, selection, integer comparison, moves (PTX ISA "Logic and Shift", "prmt", "selp", "mov")."""
from form import form, ints, pairs, randoms, signed, triples

for width in (16, 32, 64):
    kind = "b%d" % width
    full = (1 << width) - 1
    two = pairs(ints(width), width, 16, width)
    one = [(v,) for v in ints(width)] + randoms(width, 12, [width])
    form("and.b%d" % width, "%s %s" % (kind, kind), kind, two, lambda a, b: a & b)
    form("or.b%d" % width, "%s %s" % (kind, kind), kind, two, lambda a, b: a | b)
    form("xor.b%d" % width, "%s %s" % (kind, kind), kind, two, lambda a, b: a ^ b)
    form("not.b%d" % width, kind, kind, one, lambda a: ~a)
    amounts = [0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 0x7fffffff, 0x80000000, 0xffffffff]
    shifts = [(a[0], n) for a in one[::3] for n in amounts]
    columns = "%s b32" % kind
    form("shl.b%d" % width, columns, kind, shifts, lambda a, n, w=width: a << n if n < w else 0)
    for t in "bu":
        form("shr.%s%d" % (t, width), columns, kind, shifts, lambda a, n: a >> min(n, 64))
    form("shr.s%d" % width, columns, kind, shifts, lambda a, n, w=width: signed(a, w) >> min(n, 64))
    for t in "bus":
        form("selp.%s%d" % (t, width), "%s %s pred" % (kind, kind), kind,
             [row + (n % 3 == 0,) for n, row in enumerate(two[::5])], lambda a, b, p: a if p else b)
    # Comparisons: d = a cmp b, and with a predicate.
    signs = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
             "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
    for t in "bus":
        for name, sign in signs.items():
            if (t == "b" and name not in ("eq", "ne")) or (t == "s" and name in ("lo", "ls", "hi", "hs")):
                continue
            compare = eval("lambda a, b: a %s b" % sign)  # pylint: disable=eval-used
            if t == "s":
                compare = lambda a, b, w=width, f=compare: f(signed(a, w), signed(b, w))
            typed = "%s%d" % (t, width)
            form("setp.%s.%s" % (name, typed), "%s %s" % (kind, kind), "pred", two, compare)
            rows = [row + (n % 2,) for n, row in enumerate(two[::3])]
            for how, combine in (("and", lambda x, p: x and p), ("or", lambda x, p: x or p),
                                 ("xor", lambda x, p: x != p)):
                if name not in ("eq", "lt"):
                    continue
                form("setp.%s.%s.%s" % (name, how, typed), "%s %s pred" % (kind, kind), "pred pred", rows,
                     lambda a, b, p, f=compare, c=combine: (c(f(a, b), bool(p)), c(not f(a, b), bool(p))),
                     code="setp.%s.%s.%s %%d|%%e, %%a, %%b, %%c;" % (name, how, typed))
            form("set.%s.u32.%s" % (name, typed), "%s %s" % (kind, kind), "b32", two,
                 lambda a, b, f=compare: -1 if f(a, b) else 0)
            form("set.%s.s32.%s" % (name, typed), "%s %s" % (kind, kind), "b32", two,
                 lambda a, b, f=compare: -1 if f(a, b) else 0)
            form("set.%s.f32.%s" % (name, typed), "%s %s" % (kind, kind), "b32", two,
                 lambda a, b, f=compare: 0x3f800000 if f(a, b) else 0)
            form("set.%s.and.u32.%s" % (name, typed), "%s %s pred" % (kind, kind), "b32", rows,
                 lambda a, b, p, f=compare: -1 if f(a, b) and not p else 0,
                 code="set.%s.and.u32.%s %%d, %%a, %%b, !%%c;" % (name, typed))
    for t in ("b", "u", "s", "f") if width > 16 else ("b", "u", "s"):
        form("mov.%s%d" % (t, width), kind, kind, one, lambda a: a)
form("selp.f32", "b32 b32 pred", "b32", [(1, 2, 0), (0x7f800001, 2, 1)], lambda a, b, p: a if p else b)
form("selp.f64", "b64 b64 pred", "b64", [(1, 2, 0), (0x7ff0000000000001, 2, 1)], lambda a, b, p: a if p else b)

truth = [(a, b) for a in (0, 1) for b in (0, 1)]
form("and.pred", "pred pred", "pred", truth, lambda a, b: a & b)
form("or.pred", "pred pred", "pred", truth, lambda a, b: a | b)
form("xor.pred", "pred pred", "pred", truth, lambda a, b: a ^ b)
form("not.pred", "pred", "pred", [(0,), (1,)], lambda a: not a)
form("mov.pred", "pred", "pred", [(0,), (1,)], lambda a: a)

# --- packing and unpacking ---
words = ints(32)
longs = ints(64)
form("mov.b32.pack16", "b16 b16", "b32", pairs(ints(16), 5), lambda a, b: b << 16 | a, code="mov.b32 %d, {%a, %b};")
form("mov.b32.unpack16", "b32", "b16 b16", [(v,) for v in words], lambda a: (a, a >> 16),
     code="mov.b32 {%d, %e}, %a;")
form("mov.b64.pack32", "b32 b32", "b64", pairs(words, 5), lambda a, b: b << 32 | a, code="mov.b64 %d, {%a, %b};")
form("mov.b64.unpack32", "b64", "b32 b32", [(v,) for v in longs], lambda a: (a, a >> 32),
     code="mov.b64 {%d, %e}, %a;")
form("mov.b64.pack16", "b16 b16 b16 b16", "b64", randoms(3, 20, [16] * 4),
     lambda a, b, c, u: u << 48 | c << 32 | b << 16 | a, code="mov.b64 %d, {%a, %b, %c, %u};")
form("mov.b64.unpack16", "b64", "b16 b16 b16 b16", [(v,) for v in longs],
     lambda a: (a, a >> 16, a >> 32, a >> 48), code="mov.b64 {%d, %e, %f, %g}, %a;")

# --- counting and finding ---
for width in (32, 64):
    kind = "b%d" % width
    one = [(v,) for v in ints(width)] + [(1 << n,) for n in range(0, width, 5)] + randoms(width, 20, [width])
    form("popc.b%d" % width, kind, "b32", one, lambda a: bin(a).count("1"))
    form("clz.b%d" % width, kind, "b32", one, lambda a, w=width: w - a.bit_length())
    form("brev.b%d" % width, kind, kind, one, lambda a, w=width: int(bin(a | 1 << w)[:2:-1], 2))
    for t in "us":
        def find(a, w=width, is_signed=t == "s"):
            top = (~a & ((1 << w) - 1) if is_signed and a >> (w - 1) else a).bit_length() - 1
            return top

        form("bfind.%s%d" % (t, width), kind, "b32", one, find)
        form("bfind.shiftamt.%s%d" % (t, width), kind, "b32", one,
             lambda a, w=width, f=find: -1 if f(a) < 0 else w - 1 - f(a))
        places = [0, 1, 4, 17, width - 1, width, width + 1, 255, 256, 0x1ff]
        rows = [(a[0], p, n) for a in one[3::9] for p in places for n in places]

        def extract(a, b, c, w=width, is_signed=t == "s"):
            pos, length, top = b & 255, c & 255, w - 1
            sign = a >> min(pos + length - 1, top) & 1 if is_signed and length else 0
            return sum((a >> (pos + i) & 1 if i < length and pos + i <= top else sign) << i for i in range(w))

        form("bfe.%s%d" % (t, width), kind + " b32 b32", kind, rows, extract)

    def insert(a, b, c, n, w=width):
        pos, length = c & 255, n & 255
        for i in range(w):
            if i < length and pos + i < w:
                b = b & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
        return b

    form("bfi.b%d" % width, "%s %s b32 b32" % (kind, kind), kind,
         [(a[0], a[0] * 0x9e3779b97f4a7c15 >> 3, p, n) for a in one[3::9] for p in places for n in places], insert)


def mask_of(clamp):
    def run(a, b):
        pos, length = a & 31, b & 31
        if clamp and a >= 32:
            return 0
        if clamp and b >= 32:
            length = 32
        return (((1 << length) - 1) << pos) & 0xffffffff
    return run


places = [0, 1, 4, 15, 16, 31, 32, 33, 64, 255, 0x80000001, 0xffffffff]
form("bmsk.clamp.b32", "b32 b32", "b32", pairs(places, 0), mask_of(True))
form("bmsk.wrap.b32", "b32 b32", "b32", pairs(places, 0), mask_of(False))


def extend(clamp, is_signed):
    def run(a, b):
        if clamp and b >= 32:
            return a
        length = b & 31
        low = a & ((1 << length) - 1)
        return signed(low, length) if is_signed and length else low
    return run


for mode in ("clamp", "wrap"):
    for t in "us":
        form("szext.%s.%s32" % (mode, t), "b32 b32", "b32",
             [(a, n) for a in words + [0x12345678, 0xa5a5a5a5] for n in places], extend(mode == "clamp", t == "s"))


def nth_set(mask, base, offset):
    n = signed(offset, 32)
    if n == 0:
        return base if mask >> base & 1 else -1
    at, left = base, abs(n) - 1
    while 0 <= at < 32:
        if mask >> at & 1:
            if left == 0:
                return at
            left -= 1
        at += 1 if n > 0 else -1
    return -1


form("fns.b32", "b32 b32 b32", "b32", [(m, b, n) for m in (0, 1, 0x80000000, 0xaa, 0xf0f0f0f0, 0xffffffff)
                                       for b in (0, 1, 7, 31) for n in (0, 1, 2, 8, 32, 33, -1, -2, -5, -32, -33)],
     nth_set)

# --- bytes, and shifts of two words ---
SELECTORS = {"f4e": (0x3210, 0x4321, 0x5432, 0x6543), "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
             "rc8": (0x0000, 0x1111, 0x2222, 0x3333), "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
             "ecr": (0x0000, 0x1110, 0x2210, 0x3210), "rc16": (0x1010, 0x3232, 0x1010, 0x3232)}


def permute(a, b, selector):
    source = b << 32 | a
    result = 0
    for k in range(4):
        nibble = selector >> 4 * k & 15
        byte = source >> 8 * (nibble & 7) & 255
        if nibble & 8:
            byte = 255 if byte & 128 else 0
        result |= byte << 8 * k
    return result


bytes_rows = [(0x83c21780, 0x04f5967f), (0x7f80ff00, 0x01020380)]
form("prmt.b32", "b32 b32 b32", "b32",
     [r + (s,) for r in bytes_rows for s in (0x3210, 0x7654, 0xfedc, 0xba98, 0x0123, 0x8080, 0xffff0123)]
     + randoms(6, 60, [32] * 3), permute)
for mode, table in SELECTORS.items():
    form("prmt.b32." + mode, "b32 b32 b32", "b32", [r + (n,) for r in bytes_rows for n in (0, 1, 2, 3, 4, 7, -1)],
         lambda a, b, n, t=table: permute(a, b, t[n & 3]))
for direction in "lr":
    for mode in ("clamp", "wrap"):
        def funnel(a, b, c, d=direction, m=mode):
            n = min(c, 32) if m == "clamp" else c & 31
            wide = b << 32 | a
            return wide << n >> 32 if d == "l" else wide >> n

        form("shf.%s.%s.b32" % (direction, mode), "b32 b32 b32", "b32",
             [r + (n,) for r in bytes_rows + [(0, 0xffffffff), (0xffffffff, 0)] for n in places], funnel)
for table in (0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xfe, 0x96, 0xe8, 0xca, 0x1e, 0xff):
    form("lop3.b32.%02x" % table, "b32 b32 b32", "b32", [(0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa)] + randoms(7, 6, [32] * 3),
         lambda a, b, c, t=table: sum((t >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i
                                      for i in range(32)),
         code="lop3.b32 %%d, %%a, %%b, %%c, 0x%02x;" % table)

# --- slct: a where c >= 0, else b ---
for t in ("b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"):
    kind = "b" + t[1:]
    values = (0x1234567890abcdef, 0xfedcba0987654321)
    form("slct.%s.s32" % t, "%s %s b32" % (kind, kind), kind,
         [values + (c,) for c in (0, 1, -1, 0x7fffffff, 0x80000000)], lambda a, b, c: b if c >> 31 else a)
    for ftz in ("", ".ftz"):
        form("slct%s.%s.f32" % (ftz, t), "%s %s b32" % (kind, kind), kind,
             [values + (c,) for c in (0, 0x80000000, 0x3f800000, 0xbf800000, 0x80000001, 0x7f800000, 0xff800000,
                                      0x7fc00000, 0xffc00000)],
             lambda a, b, c, z=ftz: b if c & 0x7fffffff > 0x7f800000
             or (c > 0x80000000 and not (z and c <= 0x807fffff)) else a)
