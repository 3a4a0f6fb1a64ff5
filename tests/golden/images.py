# SPDX-License-Identifier: Apache-2.0
"""What textures and surfaces give, in exact arithmetic (CUDA C++ programming guide, "Texture Fetching", "Surface Memory").

Coordinates along an axis are unfolded: texel i of an image that goes on for ever as its address mode says. Positions
and weights are rational numbers.
"""
import random
from fractions import Fraction

from form import signed
from ieee import F16, F32

# Name: CUarray_format, bits, "u", "s" or "f".
FORMATS = {"u8": (1, 8, "u"), "u16": (2, 16, "u"), "u32": (3, 32, "u"), "s8": (8, 8, "s"), "s16": (9, 16, "s"),
           "s32": (10, 32, "s"), "f16": (16, 16, "f"), "f32": (32, 32, "f")}
FLOATS = {16: F16, 32: F32}
ADDRESS = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
ONE = 0x3f800000


class Image:
    """An array of texels with its levels, and how it is sampled.

    shape: 1d, 2d, 3d, cube, linear (linear memory), pitched (2D in pitched memory). images: of a layered one, or faces.
    values: a function of (random source) for the bits of one channel; by default every bit pattern of integers, small
    whole numbers as floats (what is blended of them is exact in f32).
    """

    def __init__(self, shape, size, format="f32", channels=1, images=1, levels=1, layered=False, surface=False,
                 address="clamp", linear=False, mip_linear=False, normalized=False, read_float=False, srgb=False,
                 bias=0, lowest=0, highest=0, border=(0, 0, 0, 0), values=None, seed=0):
        self.shape, self.format, self.channels, self.images = shape, format, channels, images
        self.layered, self.surface = layered, surface
        self.address, self.linear, self.mip_linear = address, linear, mip_linear
        self.normalized, self.read_float, self.srgb = normalized, read_float, srgb
        self.bias, self.lowest, self.highest, self.border = bias, lowest, highest, border
        self.number, self.bits, self.kind = FORMATS[format]
        size = tuple(size) + (1, 1, 1)
        self.sizes = [tuple(max(1, extent >> level) for extent in size[:3]) for level in range(levels)]
        self.scaled = read_float and self.kind != "f"
        self.as_float = self.scaled or self.kind == "f"
        self.axes = {"1d": 1, "linear": 1, "2d": 2, "pitched": 2, "cube": 2, "3d": 3}[shape]
        source = random.Random("%s %s %s %d" % (shape, format, size, seed))
        values = values or self.plain
        self.levels = [[tuple(values(source) for _ in range(channels)) for _ in range(w * h * d * images)]
                       for w, h, d in self.sizes]
        self.written = {}  # byte of level 0: value, by the stores of the rows so far

    def plain(self, source):
        if self.kind != "f":
            return source.getrandbits(self.bits)
        return FLOATS[self.bits].round(Fraction(source.randrange(-64, 64)))

    # --- what is in memory ---
    def texel_bytes(self):
        return self.bits // 8 * self.channels

    def data(self, level=0):
        size = self.bits // 8
        return b"".join(c.to_bytes(size, "little") for texel in self.levels[level] for c in texel)

    def after(self):
        data = bytearray(self.data())
        for at, byte in self.written.items():
            data[at] = byte
        return bytes(data)

    def text(self):
        """Lines of a golden file."""
        said = {"shape": self.shape, "width": self.sizes[0][0], "height": self.sizes[0][1], "depth": self.sizes[0][2],
                "images": self.images, "levels": len(self.levels), "format": self.number, "channels": self.channels}
        for flag in ("layered", "linear", "mip_linear", "normalized", "read_float", "srgb"):
            if getattr(self, flag):
                said[flag] = 1
        if not self.surface:
            said["address"] = ADDRESS[self.address]
            for name in ("bias", "lowest", "highest"):
                if getattr(self, name):
                    said[name] = float(getattr(self, name)).hex()
            for n, value in enumerate(self.border):
                if value:
                    said["border%d" % n] = float(value).hex()
        lines = ["object %s %s" % ("surface" if self.surface else "texture",
                                   " ".join("%s=%s" % item for item in said.items())),
                 "texels " + b"".join(self.data(n) for n in range(len(self.levels))).hex()]
        if self.written:
            lines.append("after " + self.after().hex())
        return lines

    # --- textures ---
    def seen(self, raw):
        """What a kernel sees of one channel: a number."""
        if self.kind == "f":
            return FLOATS[self.bits].value(raw)
        value = signed(raw, self.bits) if self.kind == "s" else raw
        if not self.scaled:
            return value
        # What is blended are numbers of f32.
        most = (1 << self.bits - (self.kind == "s")) - 1
        return F32.value(F32.round(max(Fraction(value, most), Fraction(-1))))

    def texel(self, at, image, level):
        """The four numbers of a texel; at: an index per axis, None on the border."""
        if None in at[:self.axes]:
            return tuple(Fraction(b) if self.as_float else 0 for b in self.border)
        w, h, _ = self.sizes[level]
        x, y, z = (tuple(at) + (0, 0, 0))[:3]
        if self.axes < 3:
            z = image
        channels = [self.seen(c) for c in self.levels[level][x + w * (y % h + h * z)]]
        return tuple(channels + [0, 0, 0, 1][len(channels):])

    def folded(self, i, extent):
        """The texel that stands for place i of the unfolded axis."""
        mode = self.address
        if self.shape == "cube" or (not self.normalized and mode in ("wrap", "mirror")):
            mode = "clamp"
        if mode == "wrap":
            return i % extent
        if mode == "mirror":
            i %= 2 * extent
            return i if i < extent else 2 * extent - 1 - i
        if mode == "border":
            return i if 0 <= i < extent else None
        return min(max(i, 0), extent - 1)

    def places(self, at, level):
        """Positions in texels along each axis."""
        scaled = self.normalized or self.shape == "cube"
        return [x * extent if scaled else x for x, extent in zip(at[:self.axes], self.sizes[level])]

    def sampled(self, at, image, level):
        corners = [(Fraction(1), ())]
        for x, extent in zip(self.places(at, level), self.sizes[level]):
            if not self.linear:
                near = [(Fraction(1), x.numerator // x.denominator)]
            else:
                steps = rounded((x - Fraction(1, 2)) * 256)
                near = [(Fraction(256 - steps % 256, 256), steps // 256), (Fraction(steps % 256, 256), steps // 256 + 1)]
            corners = [(w * v, i + (self.folded(n, extent),)) for w, i in corners for v, n in near if v != 0]
        if not self.linear:
            return self.texel(corners[0][1], image, level)
        texels = [(w, self.texel(i, image, level)) for w, i in corners]
        return tuple(sum(w * t[c] for w, t in texels) for c in range(4))

    def level_of(self, lod):
        """(level, weight of the one behind it)."""
        lod = min(max(lod + Fraction(self.bias), Fraction(self.lowest)), Fraction(self.highest))
        lod = min(max(lod, Fraction(0)), Fraction(len(self.levels) - 1))
        if not self.mip_linear:
            return rounded(lod), Fraction(0)
        steps = rounded(lod * 256)
        return steps // 256, Fraction(steps % 256, 256)

    def fetched(self, at, layer=0, lod=Fraction(0)):
        """What tex gives for rational coordinates: numbers."""
        at, image = self.image_of(at, layer)
        level, weight = self.level_of(lod) if len(self.levels) > 1 else (0, Fraction(0))
        low = self.sampled(at, image, level)
        if weight == 0:
            return low
        high = self.sampled(at, image, level + 1)
        return tuple((1 - weight) * a + weight * b for a, b in zip(low, high))

    def image_of(self, at, layer):
        cube = self.shape == "cube"
        image = min(layer, self.images // (6 if cube else 1) - 1)
        if not cube:
            return at, image
        face, s, t, m = face_of(*at)
        return [(s / m + 1) / 2, (t / m + 1) / 2], 6 * image + face

    def indexed(self, at, layer=0):
        """What tex gives for integer coordinates."""
        if self.shape == "linear" and not 0 <= at[0] < self.sizes[0][0]:
            return (0, 0, 0, 0)
        return self.texel([self.folded(i, extent) for i, extent in zip(at, self.sizes[0])],
                          min(layer, self.images - 1), 0)

    def gathered(self, at, component, layer=0):
        """Counterclockwise from the lower left, one channel."""
        at, image = self.image_of(at, layer)
        low = [rounded((x - Fraction(1, 2)) * 256) // 256 for x in self.places(at, 0)]
        return tuple(self.texel([self.folded(i + d, e) for i, d, e in zip(low, near, self.sizes[0])], image, 0)[component]
                     for near in ((0, 1), (1, 1), (1, 0), (0, 0)))

    def result(self, numbers):
        """The registers that such numbers stand in."""
        return tuple(F32.round(Fraction(v)) if self.as_float else v & 0xffffffff for v in numbers)

    # --- surfaces ---
    def byte(self, x, place, size, outside):
        """The byte of level 0 at which an access of `size` bytes begins, None: nowhere. place: y, z; or the layer, y."""
        w, h, d = self.sizes[0]
        y, z = (list(place) + [0, 0])[:2]
        if self.layered:
            y, z = (z, y)
        at = []
        for v, last in zip((x, y, z), (w * self.texel_bytes() - size, h - 1, d * self.images - 1)):
            if not 0 <= v <= last:
                if outside == "zero":
                    return None
                assert outside == "clamp", "a trap"
                v = min(max(v, 0), last)
            at.append(v)
        return at[0] + w * self.texel_bytes() * (at[1] + h * at[2])

    def write(self, at, data):
        for n, byte in enumerate(data):
            assert self.written.get(at + n, byte) == byte, "rows write different values to one place"
            self.written[at + n] = byte


def rounded(value):
    """To the nearest integer; nothing golden may lie close to where that changes."""
    twice = 2 * value
    low = (twice.numerator // twice.denominator + 1) // 2
    assert abs(abs(value - low) - Fraction(1, 2)) > Fraction(1, 64), "a tie"
    return low


# Per face: (axis of m, its sign, s, t), each an axis and a sign ("Cubemap Textures").
FACES = [(0, 1, (2, -1), (1, -1)), (0, -1, (2, 1), (1, -1)), (1, 1, (0, 1), (2, 1)), (1, -1, (0, 1), (2, -1)),
         (2, 1, (0, 1), (1, -1)), (2, -1, (0, -1), (1, -1))]


def face_of(x, y, z):
    """(face, s, t, m) of a direction."""
    at = (x, y, z)
    major = max(range(3), key=lambda axis: abs(at[axis]))
    for face, (axis, sign, s, t) in enumerate(FACES):
        if axis == major and at[axis] * sign > 0:
            return face, at[s[0]] * s[1], at[t[0]] * t[1], abs(at[axis])
    raise ValueError("no direction")


def direction(face, s, t, m):
    """The direction that meets a face there."""
    axis, sign, (s_axis, s_sign), (t_axis, t_sign) = FACES[face]
    at = [0, 0, 0]
    at[axis], at[s_axis], at[t_axis] = m * sign, s * s_sign, t * t_sign
    return at
