# SPDX-License-Identifier: Apache-2.0
"""wgmma (PTX ISA "Asynchronous Warpgroup Level Matrix Instructions").

Elements are small whole numbers, so that every order of summation gives the same exact sum. Matrices in shared memory
are written piece by piece (16 bytes) to where the canonical layout of the descriptor's mode has them.
"""
import random

from form import form
from matrices import LANES, PAIRS, TYPES, Real, metadata_words, place_a, place_c
from narrow import E4M3, E5M2

NEEDS = "90a"
WARPS, ROWS, PIECE = 4, 16, 16
MODES = {"none": (0, 0), "32": (3, 1), "64": (2, 2), "128": (1, 3)}  # the descriptor's number, bits of the pattern
B_AT = 8192  # where B begins


class Whole8:
    """Small whole numbers in the eight bits of a narrow format."""
    bits = 8

    def __init__(self, narrow):
        self.narrow = narrow

    def pick(self, source):
        return source.randrange(-4, 5)

    def encode(self, v):
        return self.narrow.round(abs(v), v < 0)


KINDS = dict(TYPES, e4m3=Whole8(E4M3), e5m2=Whole8(E5M2))


def swizzled(offset, bits):
    return offset ^ (offset // 128 % (1 << bits)) * 16


class Layout:
    """Of `lines` lines in mode `mode`; by_k: 8 lines in a piece, else elements of one line."""

    def __init__(self, mode, by_k, lines, kind, k, start, apart=1):
        self.number, self.bits = MODES[mode]
        self.by_k, self.lines, self.kind, self.k, self.start = by_k, lines, kind, k, start
        self.per = PIECE * 8 // kind.bits
        self.width = PIECE << self.bits
        block = 8 * self.width  # eight lines, or eight k, of a mode
        if by_k:
            # Without a pattern the leading offset leads from 8 k to the next, else from one group of pieces to the next.
            self.leading, self.stride = (128 * (lines // 8) * apart, 128 * apart) if self.bits == 0 else (k // 8 * block * apart, block)
        elif self.bits == 0:
            self.leading, self.stride = 128 * (lines // 8) * apart, 128 * apart
        else:
            # What does not fit into the width of a mode lies behind all that does.
            self.leading, self.stride = block * apart * (lines // 8), block * apart

    def pieces(self):
        """(offset, [(line, k)...]) of each."""
        if self.by_k:
            for c in range(self.lines // 8):
                for k in range(self.k):
                    if self.bits == 0:
                        at = c * self.stride + k % 8 * 16 + k // 8 * self.leading
                    else:
                        most = 1 << self.bits
                        at = c % most * 16 + c // most * self.leading + k % 8 * self.width + k // 8 * self.stride
                    yield swizzled(self.start + at, self.bits), [(8 * c + e, k) for e in range(8)]
            return
        for line in range(self.lines):
            for piece in range(self.k // self.per):
                if self.bits == 0:
                    at = line % 8 * 16 + line // 8 * self.stride + piece * self.leading
                else:
                    most = 1 << self.bits
                    at = line % 8 * self.width + line // 8 * self.stride + piece % most * 16 + piece // most * self.leading
                yield swizzled(self.start + at, self.bits), [(line, piece * self.per + e) for e in range(self.per)]

    def stored(self, matrix):
        """(offset, four words) of each piece."""
        result = []
        for at, places in self.pieces():
            bits = 0
            for n, (line, k) in enumerate(places):
                bits |= self.kind.encode(matrix[line, k]) << n * self.kind.bits
            result.append((at,) + tuple(bits >> 32 * n & 0xffffffff for n in range(4)))
        return result

    def descriptor(self):
        """All but where shared memory begins."""
        return self.leading // 16 << 16 | self.stride // 16 << 32 | self.number << 62


def leave_out(source, a, k):
    """Of a sparse A: what is stored of each of its 64 rows, as columns in order, and nibbles of metadata by row and chunk."""
    kept, nibbles = {}, {}
    places = 2 if a == "tf32" else 4
    for i in range(64):
        kept[i] = []
        for chunk in range(k // places):
            stay = (source.randrange(2),) if places == 2 else source.choice(PAIRS)
            nibbles[i, chunk] = (0b1110 if stay[0] else 0b0100) if places == 2 else stay[0] | stay[1] << 2
            kept[i] += [chunk * places + place for place in stay]
    return kept, nibbles


def sums_of(kind, matrix, n, warp, lane):
    """A lane's registers of D."""
    per = 32 // kind.bits
    words = []
    for r in range(n // 2 // per):
        v = 0
        for part in range(per):
            e = r * per + part
            row, column = place_c(ROWS, 1, lane, e % 4, 0)
            v |= kind.encode(matrix[warp * ROWS + row, column + e // 4 * 8]) << part * kind.bits
        words.append(v)
    return tuple(words)


def rows_of(kind, matrix, warp, lane):
    """A lane's registers of A."""
    words = []
    for r in range(4):
        v = 0
        for part in range(32 // kind.bits):
            i, j = place_a(ROWS, 32 // kind.bits, lane, r, part)
            v |= kind.encode(matrix[warp * ROWS + i, j]) << part * kind.bits
        words.append(v)
    return tuple(words)


def code_of(instruction, operands, layouts, writes, registers):
    """The kernel: pieces to where the layouts have them, descriptors of these, the product."""
    code = ["{ .reg .b32 %base, %at; .reg .b64 %da, %db; .reg .pred %on;", "mov.u32 %base, block;"]
    for at, words in writes:
        code += ["add.u32 %%at, %%base, %s; st.shared.v4.b32 [%%at], {%s};" % (at, ", ".join(words))]
    for name, layout in layouts:
        code += ["add.u32 %%at, %%base, %d; shr.u32 %%at, %%at, 4; and.b32 %%at, %%at, 0x3fff; cvt.u64.u32 %s, %%at;" %
                 (layout.start, name), "or.b64 %s, %s, 0x%x;" % (name, name, layout.descriptor())]
    code += ["mov.b32 %%d%d, %%c%d;" % (r, r) for r in range(registers)]
    code += ["setp.ne.u32 %on, %counts, 0; fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned;",
             "%s %s;" % (instruction, ", ".join(operands)),
             "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }"]
    return code


def wgmma(d, a, b, k, n, mode_a, mode_b="none", by_k=(False, False), signs=(1, 1), satfinite=False, start=0, apart=1,
          selector=None):
    """mode_a: None: A is in registers. k: of a dense A. selector: of the metadata of a sparse one."""
    sparse = selector is not None
    stored_k, k = k, 2 * k if sparse else k
    source = random.Random("wgmma %s %s %s %d %s %s %s %s" % (d, a, b, n, mode_a, mode_b, by_k, signs))
    ka, kb, kd = KINDS[a], KINDS[b], KINDS[d]
    layout_b = Layout(mode_b, by_k[1], n, kb, k, B_AT + start, apart)
    layout_a = Layout(mode_a, by_k[0], 64, ka, stored_k, start, apart) if mode_a else None
    registers = n * kd.bits // 64
    shares = -(-(n * k * kb.bits // 128) // 128)  # pieces of B that a thread writes
    groups, results = [], []
    for counts in (1, 0):
        ma = {(i, j): ka.pick(source) for i in range(64) for j in range(k)}
        kept = {i: range(k) for i in range(64)}
        if sparse:
            kept, nibbles = leave_out(source, a, k)
            chunks = k // (2 if a == "tf32" else 4)
            metadata = [w for warp in range(WARPS) for w in metadata_words(
                source, {(i % 16, c): v for (i, c), v in nibbles.items() if i // 16 == warp}, chunks, selector)]
        stored = {(i, at): ma[i, j] for i in range(64) for at, j in enumerate(kept[i])}
        mb = {(i, j): kb.pick(source) for i in range(n) for j in range(k)}  # by column
        mc = {(i, j): source.choice((0x7fffffff, -0x80000000, 9)) if satfinite else source.randrange(-8, 9)
              for i in range(64) for j in range(n)}

        def cell(i, j):
            v = counts * mc[i, j] + signs[0] * signs[1] * sum(ma[i, t] * mb[j, t] for t in kept[i])
            return max(-(1 << 31), min((1 << 31) - 1, v)) if satfinite else v

        md = {at: cell(*at) for at in mc}
        pieces_b = layout_b.stored(mb)
        pieces_a = layout_a.stored(stored) if layout_a else None
        given, expected = [], []
        for thread in range(WARPS * LANES):
            warp, lane = divmod(thread, LANES)
            row = pieces_a[thread % len(pieces_a)] if pieces_a else rows_of(ka, stored, warp, lane)
            for share in range(shares):
                row += pieces_b[(thread + 128 * share) % len(pieces_b)]
            row += (metadata[thread],) if sparse else ()
            given.append(row + (counts,) + sums_of(kd, mc, n, warp, lane))
            expected.append(sums_of(kd, md, n, warp, lane))
        groups.append(given)
        results.append(expected)
    writes = [("%pa", ["%%a%d" % r for r in range(4)])] if layout_a else []
    writes += [("%%pb%d" % s, ["%%b%d_%d" % (s, r) for r in range(4)]) for s in range(shares)]
    columns = [] if layout_a else ["%%a%d" % r for r in range(4)]
    for at, words in writes:
        columns += [at] + words
    columns += (["%meta"] if sparse else []) + ["%counts"] + ["%%c%d" % r for r in range(registers)]
    operands = ["{%s}" % ", ".join("%%d%d" % r for r in range(registers)), "%da" if layout_a else "{%a0, %a1, %a2, %a3}",
                "%db"] + (["%meta", str(selector)] if sparse else []) + ["%on"]
    if isinstance(ka, (Real, Whole8)):
        operands += ["%d" % s for s in signs]
    if ka.bits == 16:
        operands += ["%d" % way for way in ((by_k[0],) if layout_a else ()) + (by_k[1],)]
    name = "wgmma.mma_async%s.sync.aligned.m64n%dk%d%s.%s.%s.%s%s" % (
        ".sp" if sparse else "", n, k, ".satfinite" if satfinite else "", d, a, b, ".and.popc" if a == "b1" else "")
    layouts = ([("%da", layout_a)] if layout_a else []) + [("%db", layout_b)]
    remaining = iter(results)
    tag = ".%s.%s%s%s%s" % (mode_a or "registers", mode_b, ".by_k_%d_%d" % by_k if any(by_k) else "",
                            ".signs" if signs != (1, 1) else "",
                            ".from_%d" % start if start else ".at_%d" % selector if sparse else "")
    form(name + tag, " ".join(c + ":b32" for c in columns), " ".join("%%d%d:b32" % r for r in range(registers)), groups,
         lambda _: next(remaining), code=code_of(name, operands, layouts, writes, registers), needs=NEEDS,
         version="8.4" if a != b and d == "s32" else "8.2" if sparse else "8.0", whole_warps=True, block=WARPS * LANES)


for mode in MODES:
    wgmma("f32", "f16", "f16", 16, 8, mode, mode)
    wgmma("f32", "f16", "f16", 16, 24, mode, mode, (True, False))
    wgmma("f32", "bf16", "bf16", 16, 64, mode, mode, (True, True))
    wgmma("f16", "f16", "f16", 16, 32, None, mode, (False, True), signs=(1, -1))
    wgmma("f32", "tf32", "tf32", 8, 16, mode, mode, signs=(-1, 1))
    wgmma("s32", "s8", "u8", 32, 24, mode, mode)
wgmma("f32", "f16", "f16", 16, 16, "128", "64", start=32)
wgmma("f32", "f16", "f16", 16, 40, "none", "32", apart=2)
wgmma("f32", "bf16", "bf16", 16, 128, None, "128", (False, True), signs=(-1, -1))
wgmma("f32", "f16", "f16", 16, 256, "128", "none")
wgmma("f32", "tf32", "tf32", 8, 8, None, "128")
for a in ("e4m3", "e5m2"):
    for b in ("e4m3", "e5m2"):
        wgmma("f32", a, b, 32, 8, "128", "128")
        wgmma("f16", a, b, 32, 16, None, "64", signs=(-1, 1))
for a in ("s8", "u8"):
    for b in ("s8", "u8"):
        wgmma("s32", a, b, 32, 8, "64", "128")
        wgmma("s32", a, b, 32, 16, None, "32", satfinite=True)
wgmma("s32", "b1", "b1", 256, 8, "128", "none")
wgmma("s32", "b1", "b1", 256, 16, None, "32")
for selector in (0, 1):
    for mode in ("none", "32", "64", "128"):
        wgmma("f32", "f16", "f16", 16, 16, "128", mode, selector=selector)
    wgmma("f32", "bf16", "bf16", 16, 8, None, "64", (False, True), signs=(-1, 1), selector=selector)
    wgmma("f32", "tf32", "tf32", 8, 24, "64", "128", selector=selector)
wgmma("f16", "f16", "f16", 16, 32, "32", "32", (True, True), selector=1)
for a in ("e4m3", "e5m2"):
    for b in ("e4m3", "e5m2"):
        wgmma("f32", a, b, 32, 8, None, "128", selector=0)
        wgmma("f16", a, b, 32, 16, "64", "64", signs=(-1, 1), selector=0)
for a in ("s8", "u8"):
    for b in ("s8", "u8"):
        wgmma("s32", a, b, 32, 8, "64", "128", selector=0)
        wgmma("s32", a, b, 32, 16, None, "32", satfinite=True, selector=0)
