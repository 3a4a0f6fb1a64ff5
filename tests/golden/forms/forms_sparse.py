# SPDX-License-Identifier: Apache-2.0
"""mma.sp (PTX ISA "Matrix multiply-accumulate operation using mma.sp"): a full matrix is made sparse by its rule and
taken apart into what is stored and metadata; the product is that of the full one.
"""
import random

from form import form
from ieee import BF16, F16, F32
from matrices import LANES, PAIRS, TYPES, Real, metadata_words, place_a, place_b, place_c, to_lanes
from narrow import E4M3, E5M2


class Whole8(Real):
    """Small whole numbers in the eight bits of a narrow format."""

    def __init__(self, narrow):
        self.narrow, self.bits, self.register = narrow, 8, 32

    def pick(self, source):
        return source.randrange(-4, 5)

    def encode(self, v):
        return self.narrow.round(abs(v), v < 0)


KINDS = dict(TYPES, e4m3=Whole8(E4M3), e5m2=Whole8(E5M2))

def sparse(shape, d, a, b, c, counts, selector, needs, variant="sp::ordered_metadata", satfinite=False):
    k = int(shape.split("k")[1])
    ta, tb, tc, td = (KINDS[t] for t in (a, b, c, d))
    source = random.Random("sparse" + shape + d + a + b + str(selector))
    unit = 2 if ta.bits == 4 else 1
    places = 2 if a == "tf32" else 4
    chunks = k // (places * unit)
    warps, results = [], []
    for _ in range(3):
        stored, full, nibbles = {}, {}, {}
        for i in range(16):
            at = 0
            for chunk in range(chunks):
                kept = (source.randrange(2),) if places == 2 else source.choice(PAIRS)
                nibbles[i, chunk] = (0b1110 if kept[0] else 0b0100) if places == 2 else kept[0] | kept[1] << 2
                for place in kept:
                    for part in range(unit):
                        v = ta.pick(source)
                        stored[i, at] = full[i, (chunk * places + place) * unit + part] = v
                        at += 1
        mb = {(i, j): tb.pick(source) for i in range(k) for j in range(8)}
        mc = {(i, j): source.choice((0x7fffffff, -0x80000000, 5)) if satfinite else source.randrange(-8, 9)
              for i in range(16) for j in range(8)}
        md = {(i, j): mc[i, j] + sum(full.get((i, t), 0) * mb[t, j] for t in range(k)) for i in range(16) for j in range(8)}
        if satfinite:
            md = {at: max(-(1 << 31), min((1 << 31) - 1, v)) for at, v in md.items()}
        words = metadata_words(source, nibbles, chunks, selector)
        parts = [to_lanes(place_a, 16, ta, counts[1], stored), to_lanes(place_b, 16, tb, counts[2], mb),
                 to_lanes(place_c, 16, tc, counts[3], mc)]
        warps.append([parts[0][lane] + parts[1][lane] + parts[2][lane] + (words[lane],) for lane in range(LANES)])
        results.append(to_lanes(place_c, 16, td, counts[0], md))
    names = ["".join(("{", ", ".join("%%%s%d" % (f, r) for r in range(count)), "}"))
             for f, count in zip(("md", "ma", "mb", "mc"), counts)]
    ins = ["%%%s%d:b32" % (f, r) for f, count in zip(("ma", "mb", "mc"), counts[1:]) for r in range(count)]
    remaining = iter(results)
    name = "mma.%s.sync.aligned.%s.row.col%s.%s.%s.%s.%s" % (variant, shape, ".satfinite" if satfinite else "", d, a, b, c)
    form("%s.at.%d" % (name, selector), " ".join(ins + ["%meta:b32"]), " ".join("%%md%d:b32" % r for r in range(counts[0])),
         warps, lambda _: next(remaining), code="%s %s, %%meta, %d;" % (name, ", ".join(names), selector), needs=needs,
         version="8.5" if needs != "120f" else None, whole_warps=True)


for shape, ra, selectors in (("m16n8k16", 2, range(4)), ("m16n8k32", 4, range(2))):
    for selector in selectors:
        sparse(shape, "f32", "f16", "f16", "f32", (4, ra, ra, 4), selector, 80)
    sparse(shape, "f16", "f16", "f16", "f16", (2, ra, ra, 2), 1, 80)
    sparse(shape, "f32", "bf16", "bf16", "f32", (4, ra, ra, 4), 0, 80, "sp")
for shape, ra, selectors in (("m16n8k8", 2, range(4)), ("m16n8k16", 4, range(2))):
    for selector in selectors:
        sparse(shape, "f32", "tf32", "tf32", "f32", (4, ra, ra, 4), selector, 80)
for kinds, shapes in ((("s8", "u8"), (("m16n8k32", 2, 1), ("m16n8k64", 4, 0))),
                      (("s4", "u4"), (("m16n8k64", 2, 1), ("m16n8k128", 4, 0)))):
    for shape, ra, last in shapes:
        for a in kinds:
            for b in kinds:
                sparse(shape, "s32", a, b, "s32", (4, ra, ra, 4), last, 80)
                sparse(shape, "s32", a, b, "s32", (4, ra, ra, 4), 0, 80, "sp", satfinite=True)
for a in ("e4m3", "e5m2"):
    for b in ("e4m3", "e5m2"):
        sparse("m16n8k64", "f32", a, b, "f32", (4, 4, 4, 4), 0, 89)
        sparse("m16n8k64", "f16", a, b, "f16", (2, 4, 4, 2), 0, "120f")
