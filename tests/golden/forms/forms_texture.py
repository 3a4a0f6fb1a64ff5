# SPDX-License-Identifier: Apache-2.0
"""tex, tld4 and txq (PTX ISA "Texture Instructions"): each geometry, address mode, filter, format and kind of level.

Coordinates are positions in texels where nothing depends on how they are rounded: multiples of 1/256 texel where texels
are blended, odd multiples of 1/512 where the nearest is taken, both inside and some way outside.
"""
import random
from fractions import Fraction

from form import form
from ieee import F32, power_of_two
from images import Image, direction

QUAD = "b32 b32 b32 b32"
REGISTERS = "{%d, %e, %f, %g}"
COORDINATES = "xyz"
VALUES = {"u": "u32", "s": "s32", "f": "f32"}
# What is read as 0..1 and then blended is not exact in f32.
NEARLY = " ".join(["b32~f32,rel=-21,abs=-24"] * 4)


def bits(value):
    """An f32 that is exactly `value`, or the nearest."""
    return F32.round(Fraction(value))


def number(word):
    return F32.value(word)


def operands(geometry, names):
    """The coordinate vector of the instruction: four elements where three would do."""
    layer = ["%n"] if geometry in ("a1d", "a2d", "acube") else []
    names = layer + ["%" + n for n in names]
    if len(names) == 3:
        names.append(names[-1])
    return "[%t, {" + ", ".join(names) + "}]"


def spread(image, seed, count=64, step=256, more=0):
    """Rows of positions along the axes, in texels, from one image before the first texel to one behind the last."""
    source = random.Random(seed)
    rows = []
    for _ in range(count):
        row = []
        for extent in image.sizes[0][:image.axes]:
            n = source.randrange(-extent * step, 2 * extent * step)
            row.append(Fraction(n, step) if image.linear else Fraction(2 * n + 1, 2 * step))
        rows.append(tuple(p + more for p in row))
    return rows


def words_of(image, positions):
    """Positions in texels as the registers of the instruction."""
    return tuple(bits(p / extent if image.normalized else p) for p, extent in zip(positions, image.sizes[0]))


def kind_of(image):
    return "f32" if image.as_float else VALUES[image.kind]


def texture(geometry, image, title, positions=None, layers=None, mode="", nearly=False):
    """tex with floating point coordinates."""
    layered = geometry[0] == "a"
    names = COORDINATES[:image.axes]
    name = "tex%s.%s.v4.%s.f32" % (mode, geometry, kind_of(image))
    rows = [words_of(image, p) for p in positions or spread(image, title)]
    if layered:
        rows = [(n % (layers or image.images + 2),) + row for n, row in enumerate(rows)]

    def model(*row):
        layer, at = (row[0], row[1:]) if layered else (0, row)
        numbers = image.fetched([number(c) for c in at], layer)
        return tuple(float(v) for v in numbers) if nearly else image.result(numbers)
    columns = ["%n:b32"] * layered + ["%%%s:b32" % n for n in names]
    form(name + "." + title, " ".join(columns), NEARLY if nearly else QUAD, rows, model, image=image,
         code="%s %s, %s;" % (name, REGISTERS, operands(geometry, names)))


def raw(source):
    """Any bits but those of infinities and NaNs."""
    return source.getrandbits(32) & ~(1 << 23)


# --- shapes, address modes, filters ---
SIZES = {"1d": (13,), "2d": (8, 5), "3d": (4, 5, 3)}
for shape, size in SIZES.items():
    for address in ("wrap", "clamp", "mirror", "border"):
        for normalized in (False, True):
            for linear in (False, True):
                image = Image(shape, size, address=address, normalized=normalized, linear=linear,
                              border=(-7, 0.5, 3, 2), channels=2, values=None if linear else raw)
                title = ".".join([address, "normalized" if normalized else "texels", "linear" if linear else "nearest"])
                # Three weights of 8 bits each do not fit into f32 beside the value.
                texture(shape, image, title, spread(image, title, step=16 if shape == "3d" and linear else 256))
# The border of a texel is half open.
image = Image("2d", (8, 5), values=raw)
texture("2d", image, "whole", [(Fraction(x), Fraction(y)) for x in range(-1, 9) for y in range(-1, 6)])
# Weights are rounded to 1/256.
image = Image("1d", (13,), linear=True)
texture("1d", image, "weights", [(Fraction(n, 256) + Fraction(m, 1024),) for n in range(128, 3200, 51) for m in (-1, 1)])

# --- layers: an index beyond the last is the last ---
for geometry, size in (("a1d", (9,)), ("a2d", (4, 6))):
    for linear in (False, True):
        image = Image(geometry[1:], size, images=3, layered=True, linear=linear, normalized=linear, address="wrap",
                      channels=4)
        texture(geometry, image, "linear" if linear else "nearest")

# --- memory without an array ---
for normalized in (False, True):
    for linear in (False, True):
        image = Image("pitched", (8, 5), linear=linear, normalized=normalized, channels=1)
        texture("2d", image, "pitched.%s.%s" % ("normalized" if normalized else "texels",
                                                "linear" if linear else "nearest"))


# --- formats ---
for format in ("u8", "s8", "u16", "s16", "u32", "s32", "f16", "f32"):
    for channels in (1, 2, 4):
        image = Image("2d", (16, 4), format, channels)
        texture("2d", image, "%s.x%d" % (format, channels), spread(image, format, 32))
        if format[1:] in ("8", "16") and format[0] != "f":
            image = Image("2d", (16, 4), format, channels, read_float=True)
            texture("2d", image, "%s.x%d.scaled" % (format, channels), spread(image, format, 32))
            image = Image("2d", (16, 4), format, channels, read_float=True, linear=True)
            texture("2d", image, "%s.x%d.scaled.linear" % (format, channels), spread(image, format, 32), nearly=True)
    image = Image("1d", (9,), format, 1, border=(0, 0, 0, 0), address="border")
    texture("1d", image, "%s.border" % format, spread(image, format, 32))
image = Image("2d", (8, 4), "f16", 4, linear=True)
texture("2d", image, "f16.x4.linear")
# Every value of a channel.
for format, table in (("u8", range(256)), ("s8", range(256))):
    pending = list(table)
    image = Image("1d", (256,), format, read_float=True, values=lambda source: pending.pop(0))
    texture("1d", image, format + ".all", [(Fraction(2 * x + 1, 2),) for x in range(256)])


# --- cubes: faces by direction, not filtered across their edges ---
def cube_rows(image, seed, layers):
    source = random.Random(seed)
    extent = image.sizes[0][0]
    rows = []
    for n in range(96):
        m = power_of_two(source.randrange(-2, 3))
        step = [Fraction(2 * source.randrange(16 * extent) + 1, 32 * extent) for _ in range(2)]
        at = direction(n % 6, *(m * (2 * p - 1) for p in step), m)
        rows.append(((n * 5 % layers,) if layers else ()) + tuple(bits(c) for c in at))
    return rows


def cube_image(layered, linear, **more):
    return Image("cube", (8, 8), images=18 if layered else 6, layered=layered, linear=linear, normalized=True, **more)


for geometry in ("cube", "acube"):
    layered = geometry == "acube"
    columns = "%n:b32 %x:b32 %y:b32 %z:b32" if layered else "%x:b32 %y:b32 %z:b32"
    for linear in (False, True):
        image = cube_image(layered, linear)
        for mode in ("", ".base"):
            form("tex%s.%s.v4.f32.f32.%s" % (mode, geometry, "linear" if linear else "nearest"), columns, QUAD,
                 cube_rows(image, geometry, 5 if layered else 0),
                 lambda *row, i=image: i.result(i.fetched([number(c) for c in row[-3:]], row[0] if i.layered else 0)),
                 code="tex%s.%s.v4.f32.f32 %s, %s;" % (mode, geometry, REGISTERS, operands(geometry, "xyz")), image=image)

# --- coordinates that are indices ---
for geometry, size in (("1d", (13,)), ("2d", (8, 5)), ("3d", (4, 5, 3)), ("a1d", (9,)), ("a2d", (4, 6))):
    layered = geometry[0] == "a"
    shape = geometry[-2:]
    for format in ("s32", "u8", "f32"):
        for address in ("clamp", "border"):
            image = Image(shape, size, format, 2, images=3 if layered else 1, layered=layered, address=address,
                          border=(5, -1, 2, 0.25) if format == "f32" else (0, 0, 0, 0))
            source = random.Random(geometry)
            rows = [((source.randrange(5),) if layered else ()) +
                    tuple(source.randrange(-3, extent + 3) & 0xffffffff for extent in size) for _ in range(64)]
            for mode in ("", ".base"):
                name = "tex%s.%s.v4.%s.s32" % (mode, geometry, kind_of(image))

                def indexed(*row, i=image):
                    layer, at = (row[0], row[1:]) if i.layered else (0, row)
                    return i.result(i.indexed([c - (c >> 31 << 32) for c in at], layer))
                form("%s.%s.%s" % (name, format, address), " ".join(
                    ["%n:b32"] * layered + ["%%%s:b32" % c for c in COORDINATES[:len(size)]]), QUAD, rows, indexed,
                     code="%s %s, %s;" % (name, REGISTERS, operands(geometry, COORDINATES[:len(size)])), image=image)
for format in ("u8", "s16", "s32", "f32"):
    image = Image("linear", (21,), format, 4)
    form("tex.1d.v4.%s.s32.linear.%s" % (kind_of(image), format), "%x:b32", QUAD,
         [(x & 0xffffffff,) for x in list(range(-2, 24)) + [-1 << 31, (1 << 31) - 1]],
         lambda x, i=image: i.result(i.indexed([x - (x >> 31 << 32)])),
         code="tex.1d.v4.%s.s32 %s, [%%t, {%%x}];" % (kind_of(image), REGISTERS), image=image)

# --- levels ---
LEVELS = {"1d": ((16,), 1), "2d": ((16, 8), 1), "3d": ((8, 8, 4), 1), "a1d": ((16,), 3), "a2d": ((16, 8), 3),
          "cube": ((8, 8), 6), "acube": ((8, 8), 18)}


def level_image(geometry, **more):
    size, images = LEVELS[geometry]
    shape = geometry.lstrip("a") if geometry != "acube" else "cube"
    return Image(shape, size, images=images, layered=geometry[0] == "a", levels=4, normalized=True,
                 address="clamp", highest=more.pop("highest", 10), channels=1, **more)


def level_points(image, geometry, seed, count=64):
    """Places whose texel and weights are exact in every level, as registers."""
    if "cube" in geometry:
        return cube_rows(image, seed, 5 if image.layered else 0)
    source = random.Random(seed)
    rows = []
    for n in range(count):
        at = tuple(bits(Fraction(2 * source.randrange(-16, 48) + 1, 64)) for _ in image.sizes[0][:image.axes])
        rows.append(((n % 5,) if image.layered else ()) + at)
    return rows


def names_of(geometry, image):
    axes = 3 if "cube" in geometry else image.axes
    return ["n"] * image.layered + list(COORDINATES[:axes])


def at_level(image, row, lod):
    layer, at = (row[0], row[1:]) if image.layered else (0, row)
    return image.result(image.fetched([number(c) for c in at], layer, lod))


SAMPLERS = [("nearest", {}), ("between", {"mip_linear": True}), ("linear", {"mip_linear": True, "linear": True}),
            ("limits", {"mip_linear": True, "bias": 0.25, "lowest": 0.5, "highest": 2.25})]
for geometry in LEVELS:
    for title, sampler in SAMPLERS:
        # A blend of so many weights does not fit into f32.
        if title == "linear" and geometry in ("3d", "cube", "acube"):
            sampler = {"mip_linear": False, "linear": True}
        image = level_image(geometry, **sampler)
        names = names_of(geometry, image)
        columns = " ".join("%%%s:b32" % n for n in names)
        points = level_points(image, geometry, title)
        step = 16 if image.mip_linear else 3
        lods = [bits(Fraction(n * 5 % 80 - 16, step)) for n in range(len(points))]
        form("tex.level.%s.v4.f32.f32.%s" % (geometry, title), columns + " %l:b32", QUAD,
             [row + (lod,) for row, lod in zip(points, lods)],
             lambda *row, i=image: at_level(i, row[:-1], number(row[-1])),
             code="tex.level.%s.v4.f32.f32 %s, %s, %%l;" % (
                 geometry, REGISTERS, operands(geometry, [n for n in names if n != "n"])), image=image)
    # Without a level it is the first one.
    image = level_image(geometry)
    for mode in ("", ".base"):
        form("tex%s.%s.v4.f32.f32.levels" % (mode, geometry), columns, QUAD, points,
             lambda *row, i=image: at_level(i, row, Fraction(0)),
             code="tex%s.%s.v4.f32.f32 %s, %s;" % (
                 mode, geometry, REGISTERS, operands(geometry, [n for n in names if n != "n"])), image=image)


# --- gradients: the longer of both, in texels, says the level ---
def lod_of_texels(lengths):
    """log2 of the longest of vectors, which is a power of two."""
    longest = max(sum(c * c for c in length) for length in lengths)
    power = longest.numerator.bit_length() - longest.denominator.bit_length()
    assert power % 2 == 0 and power_of_two(power) == longest
    return Fraction(power, 2)


def gradient_model(image, row, count):
    point, gradients = row[:-2 * count], [number(c) for c in row[-2 * count:]]
    if image.shape != "cube":
        scaled = [[g * extent for g, extent in zip(gradients[n:n + count], image.sizes[0])] for n in (0, count)]
    else:
        # How fast the place on the face changes; the rows change nothing along the major axis.
        at = [number(c) for c in point[-3:]]
        scaled = [[g / max(abs(c) for c in at) * image.sizes[0][0] / 2 for g in gradients[n:n + 3]] for n in (0, 3)]
    return at_level(image, point, lod_of_texels(scaled))


for geometry in LEVELS:
    image = level_image(geometry)
    names = names_of(geometry, image)
    count = len(names) - image.layered
    source = random.Random(geometry)
    rows = []
    for point in level_points(image, geometry, "grad"):
        at = [abs(number(c)) for c in point[-count:]]
        axes = [a for a in range(count) if "cube" not in geometry or at[a] < max(at)]
        gradients = []
        for _ in range(2):
            axis = source.choice(axes)
            texels = power_of_two(source.randrange(-1, 5)) * source.choice((-1, 1))
            step = texels / image.sizes[0][axis] if image.shape != "cube" else texels * max(at) * 2 / image.sizes[0][0]
            gradients += [bits(step) if a == axis else 0 for a in range(count)]
        rows.append(point + tuple(gradients))
    given = [["%" + prefix + str(a) for a in range(count)] for prefix in ("v", "w")]
    vectors = ["{" + ", ".join(g + g[-1:] * (count == 3)) + "}" for g in given]
    form("tex.grad.%s.v4.f32.f32" % geometry, " ".join(["%%%s:b32" % n for n in names] + [g + ":b32" for gs in given
                                                                                         for g in gs]),
         QUAD, rows, lambda *row, i=image, k=count: gradient_model(i, row, k),
         code="tex.grad.%s.v4.f32.f32 %s, %s, %s, %s;" % (
             geometry, REGISTERS, operands(geometry, [n for n in names if n != "n"]), *vectors), image=image)

# --- tld4: one channel of the four texels of a bilinear filter ---
for geometry in ("2d", "a2d", "cube", "acube"):
    layered = geometry[0] == "a"
    cube = "cube" in geometry
    for format in ("u8", "s16", "f32"):
        for component in "rgba":
            if cube:
                image = cube_image(layered, False, format=format, channels=4)
                rows = cube_rows(image, geometry + component, 5 if layered else 0)
            else:
                image = Image("2d", (8, 5), format, 4, images=3 if layered else 1, layered=layered, linear=True,
                              address="clamp", values=raw if format == "f32" else None)
                rows = [((n % 5,) if layered else ()) + words_of(image, p)
                        for n, p in enumerate(spread(image, geometry + component))]
                # A texture of integers has no linear filter, and tld4 asks for none.
                image.linear = False
            names = ["n"] * layered + list("xyz" if cube else "xy")

            def gathered(*row, i=image, c="rgba".index(component)):
                layer, at = (row[0], row[1:]) if i.layered else (0, row)
                return i.result(i.gathered([number(v) for v in at], c, layer))
            name = "tld4.%s.%s.v4.%s.f32" % (component, geometry, kind_of(image))
            form(name, " ".join("%%%s:b32" % n for n in names), QUAD, rows, gathered,
                 code="%s %s, %s;" % (name, REGISTERS, operands(geometry, [n for n in names if n != "n"])), image=image)


# --- txq ---
def queries(image, title):
    answers = [("width", image.sizes[0][0]), ("channel_data_type", image.number), ("channel_order", image.channels),
               ("normalized_coords", int(image.normalized))]
    answers += [("height", image.sizes[0][1])] * (image.axes > 1) + [("depth", image.sizes[0][2])] * (image.axes > 2)
    if image.layered:
        answers.append(("array_size", image.images // (6 if image.shape == "cube" else 1)))
    if len(image.levels) > 1:
        answers.append(("num_mipmap_levels", len(image.levels)))
    for query, answer in answers:
        form("txq.%s.b32.%s" % (query, title), "b32", "b32", [(0,)], lambda a, r=answer: r,
             code="txq.%s.b32 %%d, [%%t];" % query, image=image)


queries(Image("1d", (13,), "u8", 4, normalized=True), "1d")
queries(Image("2d", (8, 5), "s16", 2), "2d")
queries(Image("3d", (4, 5, 3), "f16", 1), "3d")
queries(level_image("acube"), "acube")
queries(level_image("a2d"), "a2d")
for query, axis in (("width", 0), ("height", 1), ("depth", 2)):
    image = level_image("3d")
    form("txq.level.%s.b32" % query, "b32", "b32", [(n,) for n in range(4)],
         lambda n, a=axis, i=image: i.sizes[n][a], code="txq.level.%s.b32 %%d, [%%t], %%a;" % query, image=image)
