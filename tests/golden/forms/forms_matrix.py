# SPDX-License-Identifier: Apache-2.0
"""mma, ldmatrix, movmatrix, wmma (PTX ISA "Warp Level Matrix Instructions").

The elements are small whole numbers, so that every order of summation gives the same exact sum.
"""
import random

from form import form
from matrices import LANES, TYPES, place_a, place_b, place_c, to_lanes

PRIVATE = 128  # bytes of %m and %s
WORDS = range(PRIVATE // 8)


def mma(shape, d, a, b, c, counts, needs, operation=None, satfinite=False):
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    m, n, k = int(m), int(n), int(k)
    source = random.Random(shape + d + a + b + c)
    ta, tb, tc, td = TYPES[a], TYPES[b], TYPES[c], TYPES[d]
    warps, results = [], []
    for _ in range(2):
        ma = {(i, j): ta.pick(source) for i in range(m) for j in range(k)}
        mb = {(i, j): tb.pick(source) for i in range(k) for j in range(n)}
        near = 0x7fffffff if satfinite else 0
        mc = {(i, j): source.randrange(-8, 9) if not near else source.choice((near, -near - 1, near - 5000, 7))
              for i in range(m) for j in range(n)}
        mul = {None: lambda x, y: x * y, "xor": lambda x, y: x ^ y, "and": lambda x, y: x & y}[operation]
        md = {(i, j): mc[i, j] + sum(mul(ma[i, t], mb[t, j]) for t in range(k)) for i in range(m) for j in range(n)}
        if satfinite:
            md = {at: max(-(1 << 31), min((1 << 31) - 1, v)) for at, v in md.items()}
        parts = [to_lanes(place_a, m, ta, counts[1], ma), to_lanes(place_b, m, tb, counts[2], mb),
                 to_lanes(place_c, m, tc, counts[3], mc)]
        warps.append([parts[0][lane] + parts[1][lane] + parts[2][lane] for lane in range(LANES)])
        results.append(to_lanes(place_c, m, td, counts[0], md))
    names = ["".join(("{", ", ".join("%%%s%d" % (f, r) for r in range(count)), "}"))
             for f, count in zip(("md", "ma", "mb", "mc"), counts)]
    columns = ["%%%s%d:b%d" % (f, r, TYPES[t].register) for f, count, t in zip(
        ("md", "ma", "mb", "mc"), counts, (d, a, b, c)) for r in range(count)]
    name = "mma.sync.aligned.%s.row.col%s.%s.%s.%s.%s%s" % (
        shape, ".satfinite" if satfinite else "", d, a, b, c, "." + operation + ".popc" if operation else "")
    remaining = iter(results)
    form(name, " ".join(columns[counts[0]:]), " ".join(columns[:counts[0]]), warps, lambda _: next(remaining),
         code="%s %s;" % (name, ", ".join(names)), needs=needs, whole_warps=True)


for shape, ra, rb, needs in (("m16n8k8", 2, 1, 75), ("m16n8k16", 4, 2, 80)):
    for d, c in (("f16", "f16"), ("f32", "f32"), ("f16", "f32"), ("f32", "f16")):
        mma(shape, d, "f16", "f16", c, (2 if d == "f16" else 4, ra, rb, 2 if c == "f16" else 4), needs)
    mma(shape, "f32", "bf16", "bf16", "f32", (4, ra, rb, 4), 80)
mma("m16n8k4", "f32", "tf32", "tf32", "f32", (4, 2, 1, 4), 80)
mma("m16n8k8", "f32", "tf32", "tf32", "f32", (4, 4, 2, 4), 80)
mma("m8n8k4", "f64", "f64", "f64", "f64", (2, 1, 1, 2), 80)
for shape, counts in (("m16n8k4", (4, 2, 1, 4)), ("m16n8k8", (4, 4, 2, 4)), ("m16n8k16", (4, 8, 4, 4))):
    mma(shape, "f64", "f64", "f64", "f64", counts, 90)
for kinds, shapes in ((("s8", "u8"), (("m8n8k16", (2, 1, 1, 2), 75), ("m16n8k16", (4, 2, 1, 4), 80),
                                      ("m16n8k32", (4, 4, 2, 4), 80))),
                      (("s4", "u4"), (("m8n8k32", (2, 1, 1, 2), 75), ("m16n8k32", (4, 2, 1, 4), 80),
                                      ("m16n8k64", (4, 4, 2, 4), 80)))):
    for shape, counts, needs in shapes:
        for a in kinds:
            for b in kinds:
                mma(shape, "s32", a, b, "s32", counts, needs)
                mma(shape, "s32", a, b, "s32", counts, needs, satfinite=True)
for shape, counts, needs in (("m8n8k128", (2, 1, 1, 2), 75), ("m16n8k128", (4, 2, 1, 4), 80),
                             ("m16n8k256", (4, 4, 2, 4), 80)):
    mma(shape, "s32", "b1", "b1", "s32", counts, needs, operation="xor")
    mma(shape, "s32", "b1", "b1", "s32", counts, 80, operation="and")

# --- ldmatrix: lane l stores 16 bytes (8 elements, a row) and gives the address of another lane's ---
source = random.Random("ldmatrix")
rows = [(source.getrandbits(64), source.getrandbits(64), lane ^ 5) for lane in range(LANES)]


def elements(row):
    return [(row[0] | row[1] << 64) >> 16 * n & 0xffff for n in range(8)]


for count in (1, 2, 4):
    for trans in ("", ".trans"):
        for space in (".shared", ""):
            def load(given, c=count, t=trans):
                lanes = []
                for lane in range(LANES):
                    values = []
                    for n in range(c):
                        matrix = [elements(given[given[8 * n + r][2]]) for r in range(8)]
                        outer, inner = lane // 4, lane % 4 * 2
                        low, high = ((matrix[inner][outer], matrix[inner + 1][outer]) if t else
                                     (matrix[outer][inner], matrix[outer][inner + 1]))
                        values.append(high << 16 | low)
                    lanes.append(tuple(values))
                return lanes

            outs = ["%%q%d" % n for n in range(count)]
            name = "ldmatrix.sync.aligned.m8n8.x%d%s%s.b16" % (count, trans, space)
            code = ["st.shared.v2.b64 [%s], {%a, %b};", "bar.warp.sync 0xffffffff;", "mov.u32 %row, %laneid;",
                    "sub.u32 %row, %c, %row;", "mad.lo.s32 %%row, %%row, %d, %%s;" % PRIVATE]
            if not space:
                code += ["cvt.u64.u32 %in, %row;", "cvta.shared.u64 %in, %in;"]
            code.append("%s {%s}, [%s];" % (name, ", ".join(outs), "%row" if space else "%in"))
            form(name, "b64 b64 b32", " ".join(o + ":b32" for o in outs), [rows], load, code=code, whole_warps=True)


def transpose(given):
    at = lambda row, column: given[row * 4 + column // 2][0] >> 16 * (column % 2) & 0xffff
    return [at(lane % 4 * 2, lane // 4) | at(lane % 4 * 2 + 1, lane // 4) << 16 for lane in range(LANES)]


form("movmatrix.sync.aligned.m8n8.trans.b16", "b32", "b32", [[(source.getrandbits(32),) for _ in range(LANES)]],
     transpose, whole_warps=True)


# --- wmma: A, B and C come from memory and D goes there, so that nobody sees the fragments ---
def wmma(m, n, k, d, a, c, needs, ra, rb, rc, rd, a_order="row", b_order="col", satfinite="", operation=None,
         space="global"):
    """The warp's private memory, 128 bytes a lane, holds A, then B, then C, and afterwards D from the start."""
    ta, tc, td = TYPES[a], TYPES[c], TYPES[d]
    shape = "m%dn%dk%d" % (m, n, k)
    rng = random.Random(shape + d + a + c + a_order + b_order)
    ma = {(i, j): ta.pick(rng) for i in range(m) for j in range(k)}
    mb = {(i, j): ta.pick(rng) for i in range(k) for j in range(n)}
    mc = {(i, j): rng.randrange(-8, 9) for i in range(m) for j in range(n)}
    mul = {None: lambda x, y: x * y, "xor": lambda x, y: x ^ y, "and": lambda x, y: x & y}[operation]
    md = {(i, j): mc[i, j] + sum(mul(ma[i, t], mb[t, j]) for t in range(k)) for i in range(m) for j in range(n)}

    def lay(matrix, rows_, columns, order, kind):
        outer, inner = (rows_, columns) if order == "row" else (columns, rows_)
        data = bytearray()
        for o in range(outer):
            run = sum(kind.encode(matrix[(o, i) if order == "row" else (i, o)]) << kind.bits * i for i in range(inner))
            data += run.to_bytes(inner * kind.bits // 8, "little")
        return data

    blob_a, blob_b = lay(ma, m, k, a_order, ta), lay(mb, k, n, b_order, ta)
    blob_c, blob_d = lay(mc, m, n, "row", tc), lay(md, m, n, "row", td)
    at_b, at_c = len(blob_a), len(blob_a) + len(blob_b)
    memory = blob_a + blob_b + blob_c
    if len(memory) > PRIVATE * LANES or len(blob_d) > PRIVATE * LANES:
        raise ValueError("too much for a warp")

    def lanes_of(data):
        data = bytes(data) + bytes(PRIVATE * LANES - len(data))
        return [tuple(int.from_bytes(data[PRIVATE * lane + 8 * w:][:8], "little") for w in WORDS) for lane in range(LANES)]

    wide = 64 if a == "f64" else 32
    fragments = "".join(".reg .b%d %s; " % (wide, ", ".join("%%f%s%d" % (f, r) for r in range(count)))
                        for f, count in (("a", ra), ("b", rb), ("c", rc), ("d", rd)))
    group = {f: "{" + ", ".join("%%f%s%d" % (f, r) for r in range(count)) + "}"
             for f, count in (("a", ra), ("b", rb), ("c", rc), ("d", rd))}
    types = {"f16": "%s.%s" % (d, c), "f64": "f64.f64.f64.f64"}.get(a, "%s.%s.%s.%s" % (d, a, a, c))
    stride = {"row": {"a": k, "b": n}, "col": {"a": m, "b": k}}
    own, base = ("%m", "%in") if space == "global" else ("%s", "%row")
    code = ["st.%s.v2.b64 [%s+%d], {%%w%d, %%w%d};" % (space, own, 8 * w, w, w + 1) for w in WORDS[::2]]
    code += ["bar.warp.sync -1;", fragments, "mov.u32 %row, %laneid;", "mul.wide.u32 %%in, %%row, %d;" % PRIVATE,
             "sub.u64 %in, %m, %in;", "mul.lo.u32 %%row, %%row, %d;" % PRIVATE, "sub.u32 %row, %s, %row;",
             "wmma.load.a.sync.aligned.%s.%s.%s.%s %s, [%s], %d;" % (a_order, shape, space, a, group["a"], base,
                                                                          stride[a_order]["a"]),
             "wmma.load.b.sync.aligned.%s.%s.%s.%s %s, [%s+%d], %d;" % (b_order, shape, space, a, group["b"], base, at_b,
                                                                             stride[b_order]["b"]),
             "wmma.load.c.sync.aligned.row.%s.%s.%s %s, [%s+%d], %d;" % (shape, space, c, group["c"], base, at_c, n),
             "wmma.mma%s.sync.aligned.%s.%s.%s.%s%s %s, %s, %s, %s;" % (
                 "." + operation + ".popc" if operation else "", a_order, b_order, shape, types, satfinite, group["d"], group["a"], group["b"], group["c"]),
             "wmma.store.d.sync.aligned.row.%s.%s.%s [%s], %s, %d;" % (shape, space, d, base, group["d"], n),
             "bar.warp.sync -1;"]
    code += ["ld.%s.v2.b64 {%%x%d, %%x%d}, [%s+%d];" % (space, w, w + 1, own, 8 * w) for w in WORDS[::2]]
    expected = lanes_of(blob_d + memory[len(blob_d):])
    form("wmma.mma%s.sync.aligned.%s.%s.%s.%s%s" % ("." + operation + ".popc" if operation else "", a_order, b_order, shape, types, satfinite + (".in.shared" if space == "shared" else "")),
         " ".join("%%w%d:b64" % w for w in WORDS), " ".join("%%x%d:b64" % w for w in WORDS), [lanes_of(memory)],
         lambda _: expected, code=code, needs=needs, whole_warps=True)


for m, n, k in ((16, 16, 16), (32, 8, 16), (8, 32, 16)):
    size = {16: (2, 2), 32: (4, 1), 8: (1, 4)}[m]
    for d in ("f16", "f32"):
        for c in ("f16", "f32"):
            wmma(m, n, k, d, "f16", c, 75, 8, 8, 4 if c == "f16" else 8, 4 if d == "f16" else 8)
    for a_order in ("row", "col"):
        for b_order in ("row", "col"):
            wmma(m, n, k, "f32", "f16", "f16", 75, 8, 8, 4, 8, a_order, b_order)
    for a in ("s8", "u8"):
        wmma(m, n, k, "s32", a, "s32", 75, size[0], size[1], 8, 8)
        wmma(m, n, k, "s32", a, "s32", 75, size[0], size[1], 8, 8, satfinite=".satfinite")
    wmma(m, n, k, "f32", "bf16", "f32", 80, 2 * size[0], 2 * size[1], 8, 8)
wmma(16, 16, 8, "f32", "tf32", "f32", 80, 4, 4, 8, 8)
wmma(8, 8, 4, "f64", "f64", "f64", 80, 1, 1, 2, 2)
for a in ("s4", "u4"):
    for satfinite in ("", ".satfinite"):
        wmma(8, 8, 32, "s32", a, "s32", 75, 1, 1, 2, 2, satfinite=satfinite)
wmma(8, 8, 128, "s32", "b1", "s32", 75, 1, 1, 2, 2, operation="xor")
for a in ("s4", "u4"):
    wmma(8, 8, 32, "s32", a, "s32", 75, 1, 1, 2, 2, space="shared")
wmma(8, 8, 128, "s32", "b1", "s32", 75, 1, 1, 2, 2, operation="xor", space="shared")
wmma(8, 8, 128, "s32", "b1", "s32", 80, 1, 1, 2, 2, operation="and")
wmma(16, 16, 16, "f32", "f16", "f32", 75, 8, 8, 8, 8, space="shared")
for a in ("s8", "u8"):
    wmma(16, 16, 16, "s32", a, "s32", 75, 2, 2, 8, 8, space="shared")


def quad_pairs(layouts, d, c):
    """mma.m8n8k4 of f16: four products, one of each eight lanes."""
    source = random.Random("quad pairs" + layouts + d + c)
    row_a, row_b = (l == "row" for l in layouts.split("."))

    def halves(values):
        codes = [TYPES["f16"].encode(v) for v in values]
        return tuple(codes[n] | codes[n + 1] << 16 for n in range(0, len(codes), 2))

    def places_of_sum(lane, kind):
        t, upper = lane % 4, 4 if lane >= 16 else 0
        if kind == "f16":
            return [(t + upper, e) for e in range(8)]
        return [((t & 1) + (e & 2) + upper, (e & 4) + (t & 2) + (e & 1)) for e in range(8)]

    def sums(matrix, lane, kind):
        values = [matrix[at] for at in places_of_sum(lane, kind)]
        return halves(values) if kind == "f16" else tuple(TYPES["f32"].encode(v) for v in values)

    pairs = []
    for _ in range(4):
        a = {(i, j): source.randrange(-8, 9) for i in range(8) for j in range(4)}
        b = {(i, j): source.randrange(-8, 9) for i in range(4) for j in range(8)}
        s = {(i, j): source.randrange(-8, 9) for i in range(8) for j in range(8)}
        pairs.append((a, b, s, {(i, j): s[i, j] + sum(a[i, t] * b[t, j] for t in range(4)) for i, j in s}))
    given, expected = [], []
    for lane in range(LANES):
        a, b, s, result = pairs[lane % 16 // 4]
        t, upper = lane % 4, 4 if lane >= 16 else 0
        of_a = [a[t + upper, e] if row_a else a[e + upper, t] for e in range(4)]
        of_b = [b[t, e + upper] if row_b else b[e, t + upper] for e in range(4)]
        given.append(halves(of_a) + halves(of_b) + sums(s, lane, c))
        expected.append(sums(result, lane, d))
    counts = (len(expected[0]), 2, 2, len(given[0]) - 4)
    names = ["{%s}" % ", ".join("%%%s%d" % (f, r) for r in range(count)) for f, count in zip(("md", "ma", "mb", "mc"), counts)]
    columns = ["%%%s%d:b32" % (f, r) for f, count in zip(("md", "ma", "mb", "mc"), counts) for r in range(count)]
    name = "mma.sync.aligned.m8n8k4.%s.%s.f16.f16.%s" % (layouts, d, c)
    form(name, " ".join(columns[counts[0]:]), " ".join(columns[:counts[0]]), [given], lambda _: expected,
         code="%s %s;" % (name, ", ".join(names)), whole_warps=True)


for layouts in ("row.row", "row.col", "col.row", "col.col"):
    for d, c in (("f16", "f16"), ("f32", "f16"), ("f32", "f32")):
        quad_pairs(layouts, d, c)
