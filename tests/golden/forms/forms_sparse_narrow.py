# SPDX-License-Identifier: Apache-2.0
"""mma.sp with .kind (PTX ISA "mma.sp"): what forms_mma.py does, with a matrix A of which half is left out by the rule."""
import random

from ieee import F16, F32, Fraction
from matrices import LANES, PAIRS, metadata_words, place_a, place_b, place_c, to_lanes
from narrow_matrices import (BY_NAME, KINDS, ONE, SCALES, STYLES, Bits, Codes, dot, emit, matrices_of, put_scales, rounded,
                             times, total)

CHUNKS = 16


def leave_out(source, k, unit):
    """Nibbles by row and chunk; for each row the columns that stay, in order."""
    nibbles, kept = {}, {}
    for i in range(16):
        kept[i] = []
        for chunk in range(CHUNKS):
            places = source.choice(PAIRS)
            nibbles[i, chunk] = places[0] | places[1] << 2
            kept[i] += [(chunk * 4 + place) * unit + part for place in places for part in range(unit)]
    return nibbles, kept


def registers_of(f):
    return 128 // LANES // (32 // f.bits)


def sparse(k, bits, kind, d, a, b, vector=0, stype=None, chosen=((0, 0), (0, 0)), said=True):
    source = random.Random("sparse %s %s %s %s %d %s" % (kind, d, a, b, vector, chosen))
    f = {"f16": F16, "f32": F32}[d]
    ta, tb, td = Codes(BY_NAME[a], bits), Codes(BY_NAME[b], bits), Bits(f)
    few = (Fraction(1, 2), 2) if d == "f16" else (Fraction(1, 4), 7)
    scales, value, one = SCALES[stype] if vector else ([None], lambda _: 1, None)
    (byte_a, thread_a), (byte_b, thread_b) = chosen
    warps, results = [], []
    for style in STYLES + (("scales a", "scales b") if vector else ()):
        of_scales = style.startswith("scales")
        ma, mb = matrices_of(source, 16, k, ta, tb, "sums" if of_scales else style, (1, 1) if of_scales else few)
        nibbles, kept = leave_out(source, k, 2 if bits == 4 else 1)
        stored = {(i, at): ma[i, column] for i in range(16) for at, column in enumerate(kept[i])}
        if of_scales:  # one product in a sum
            alone = source.randrange(k // 2)
            stored = {at: code if at[1] == alone else ta.zero for at, code in stored.items()}
        pick = {"a": scales, "b": scales}
        if of_scales:
            pick[style[-1]] = range(256) if stype == "ue8m0" else range(128)
            pick["b" if style[-1] == "a" else "a"] = [one]
        blocks = max(vector, 1)
        sa = {(i, v): source.choice(pick["a"]) for i in range(16) for v in range(blocks)}
        sb = {(j, v): source.choice(pick["b"]) for j in range(8) for v in range(blocks)}
        mc = {(i, j): source.randrange(-8, 9) if style == "sums" or (style == "special" and not vector) else 0
              for i in range(16) for j in range(8)}

        def cell(i, j):
            sums = [mc[i, j] * ONE]
            for v in range(blocks):
                products = dot(ta, tb, [(stored[i, at], mb[column, j]) for at, column in enumerate(kept[i])
                                        if column * blocks // k == v])
                sums.append(times(products, times(value(sa[i, v]), value(sb[j, v]))))
            return rounded(f, total(sums))

        md = {(i, j): cell(i, j) for i in range(16) for j in range(8)}
        rc = registers_of(f)
        parts = [to_lanes(place_a, 16, ta, 4, stored), to_lanes(place_b, 16, tb, 4, mb),
                 to_lanes(place_c, 16, td, rc, {at: f.round(Fraction(v)) for at, v in mc.items()})]
        words = metadata_words(source, nibbles, CHUNKS, 0)
        more = [(word,) for word in words]
        if vector:
            scale_a = put_scales(source, LANES, sa, vector, byte_a, lambda i: 4 * (i % 8) + i // 8 + 2 * thread_a)
            scale_b = put_scales(source, LANES, sb, vector, byte_b, lambda j: 4 * j + thread_b)
            more = [(words[lane], scale_a[lane], scale_b[lane]) for lane in range(LANES)]
        warps.append([parts[0][lane] + parts[1][lane] + parts[2][lane] + more[lane] for lane in range(LANES)])
        results.append(to_lanes(place_c, 16, td, rc, md))
    block = ".block_scale" + (".scale_vec::%dX" % vector if said else "") if vector else ""
    name = "mma.sp::ordered_metadata.sync.aligned.m16n8k%d.row.col.kind::%s%s.%s.%s.%s.%s%s" % (
        k, kind, block, d, a, b, d, "." + stype if vector else "")
    suffix = ", %meta, 0" + (", %%sa, {%d, %d}, %%sb, {%d, %d}" % (chosen[0] + chosen[1]) if vector else "")
    emit(name, (registers_of(f), 4, 4, registers_of(f)), warps, results, suffix, "120a" if bits == 4 else KINDS,
         ("meta", "sa", "sb") if vector else ("meta",),
         "" if chosen == ((0, 0), (0, 0)) else ".at.%d.%d.%d.%d" % (chosen[0] + chosen[1]))


for a in BY_NAME:
    for b in BY_NAME:
        for d in ("f32", "f16"):
            sparse(64, 8, "f8f6f4", d, a, b)
        sparse(64, 8, "mxf8f6f4", "f32", a, b, 1, "ue8m0")
sparse(64, 8, "mxf8f6f4", "f32", "e4m3", "e2m1", 1, "ue8m0", ((1, 1), (2, 3)), said=False)
sparse(128, 4, "mxf4", "f32", "e2m1", "e2m1", 2, "ue8m0")
sparse(128, 4, "mxf4", "f32", "e2m1", "e2m1", 2, "ue8m0", ((2, 1), (2, 1)), said=False)
sparse(128, 4, "mxf4nvf4", "f32", "e2m1", "e2m1", 2, "ue8m0", ((0, 1), (2, 2)))
sparse(128, 4, "mxf4nvf4", "f32", "e2m1", "e2m1", 4, "ue4m3")
sparse(128, 4, "mxf4nvf4", "f32", "e2m1", "e2m1", 4, "ue4m3", ((0, 1), (0, 3)))
