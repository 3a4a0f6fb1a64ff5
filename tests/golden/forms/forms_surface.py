# SPDX-License-Identifier: Apache-2.0
"""suld, sust, sured and suq (PTX ISA "Surface Instructions"). What is stored is read from the surface after the kernel:
within a kernel that is not defined.
"""
import random
from fractions import Fraction

from form import form, signed
from ieee import F16, F32
from images import Image
from values import edges32

GEOMETRIES = {"1d": ((12,), 1), "2d": ((8, 5), 1), "3d": ((4, 3, 3), 1), "a1d": ((12,), 3), "a2d": ((8, 4), 3)}
OUTSIDE = ("trap", "clamp", "zero")


def surface(geometry, format="u32", channels=4):
    size, images = GEOMETRIES[geometry]
    return Image(geometry.lstrip("a"), size, format, channels, images=images, layered=geometry[0] == "a", surface=True)


def names_of(geometry):
    return {"1d": ["%x"], "2d": ["%x", "%y"], "3d": ["%x", "%y", "%z"], "a1d": ["%n", "%x"],
            "a2d": ["%n", "%x", "%y"]}[geometry]


def operand(geometry):
    names = names_of(geometry)
    return "[%t, {" + ", ".join(names + names[-1:] * (len(names) == 3)) + "}]"


def extents(image, unit):
    """Of what the coordinates of an instruction count, in their order; unit: bytes of one x."""
    w, h, d = image.sizes[0]
    x = [w * image.texel_bytes() // unit]
    if image.layered:
        return [image.images] + x + [h] * (image.axes > 1)
    return x + [h, d][:image.axes - 1]


def places(image, size, unit, outside, seed, count):
    """Rows of coordinates; x in units, aligned to an access of `size` bytes, within or also beyond every side."""
    source = random.Random(seed)
    x_at = 1 if image.layered else 0
    rows = []
    for n in range(count):
        row = []
        for axis, extent in enumerate(extents(image, unit)):
            step = size // unit if axis == x_at else 1
            beyond = outside != "trap" and source.randrange(3) == 0
            low, high = (-4, extent // step + 4) if beyond else (0, extent // step)
            row.append(source.randrange(low, high) * step)
        rows.append(tuple(v & 0xffffffff for v in row))
    return rows


def byte_of(image, row, size, unit, outside):
    """Where the access of a row begins in level 0; None: outside."""
    row = [signed(v, 32) for v in row]
    x = row.pop(1 if image.layered else 0)
    return image.byte(x * unit, row, size, outside)


def vector(names):
    return "{" + ", ".join(names) + "}"


def part(count):
    return "" if count == 1 else ".v%d" % count


WIDTHS = [(count, width) for width in (8, 16, 32, 64) for count in (1, 2, 4) if count * width <= 128]


# --- bytes ---
def load(geometry, count, width, outside):
    image = surface(geometry)
    size = count * width // 8
    name = "suld.b.%s%s.b%d.%s" % (geometry, part(count), width, outside)
    outs = ["%" + "defg"[n] for n in range(count)]

    def model(*row):
        at = byte_of(image, row, size, 1, outside)
        data = bytes(size) if at is None else image.data()[at:at + size]
        return tuple(int.from_bytes(data[n * width // 8:(n + 1) * width // 8], "little") for n in range(count))
    form(name, " ".join(n + ":b32" for n in names_of(geometry)), " ".join(["b%d" % max(width, 16)] * count),
         places(image, size, 1, outside, name, 40), model, image=image,
         code="%s %s, %s;" % (name, vector(outs), operand(geometry)))


def once(image, rows, size, unit, outside):
    """The rows that do not meet an earlier one."""
    taken, kept = set(), []
    for row in rows:
        at = byte_of(image, row, size, unit, outside)
        if at is None or taken.isdisjoint(range(at, at + size)):
            kept.append(row)
            taken.update(range(at, at + size) if at is not None else ())
    return kept


def store(geometry, count, width, outside):
    image = surface(geometry)
    size = count * width // 8
    name = "sust.b.%s%s.b%d.%s" % (geometry, part(count), width, outside)
    values = ["%" + "abcu"[n] for n in range(count)]
    source = random.Random(name)
    rows = [row + tuple(source.getrandbits(width) for _ in values)
            for row in once(image, places(image, size, 1, outside, name, 40), size, 1, outside)]

    def model(*row):
        at = byte_of(image, row[:-count], size, 1, outside)
        if at is not None:
            image.write(at, b"".join(v.to_bytes(width // 8, "little") for v in row[-count:]))
        return ()
    form(name, " ".join([n + ":b32" for n in names_of(geometry)] + ["%s:b%d" % (v, max(width, 16)) for v in values]), "",
         rows, model, image=image, code="%s %s, %s;" % (name, operand(geometry), vector(values)))


for geometry in GEOMETRIES:
    for outside in OUTSIDE:
        for count, width in WIDTHS if geometry in ("1d", "2d") else [(1, 32), (2, 64), (4, 8)]:
            load(geometry, count, width, outside)
            store(geometry, count, width, outside)


# --- samples: values that a format cannot hold become the nearest that it can ---
def encoded(image, value):
    if image.format == "f32":
        return value
    if image.format == "f16":
        return F16.round(F32.value(value), zero_sign=value >> 31)
    if image.kind == "u":
        return min(value, (1 << image.bits) - 1)
    top = 1 << image.bits - 1
    return min(max(signed(value, 32), -top), top - 1) & ((1 << image.bits) - 1)


def given_values(image, source):
    if image.kind == "f":
        return source.choice([v for v in edges32() if not F32.is_nan(v) and not F32.is_infinite(v)] +
                             [F32.round(Fraction(source.randrange(-4096, 4096), 64)) for _ in range(20)])
    near = 1 << image.bits - 1
    return source.choice([source.getrandbits(32), source.randrange(2 * near) & 0xffffffff, near & 0xffffffff,
                          (near - 1), -near & 0xffffffff, (-near - 1) & 0xffffffff, 0, 0xffffffff])


def store_sample(geometry, format, channels, outside):
    image = surface(geometry, format, channels)
    size = image.texel_bytes()
    name = "sust.p.%s%s.b32.%s" % (geometry, part(channels), outside)
    values = ["%" + "abcu"[n] for n in range(channels)]
    source = random.Random(name + format)
    rows = [row + tuple(given_values(image, source) for _ in values)
            for row in once(image, places(image, size, size, outside, name, 32), size, size, outside)]

    def model(*row):
        at = byte_of(image, row[:-channels], size, size, outside)
        if at is not None:
            image.write(at, b"".join(encoded(image, v).to_bytes(image.bits // 8, "little") for v in row[-channels:]))
        return ()
    form("%s.%sx%d" % (name, format, channels), " ".join([n + ":b32" for n in names_of(geometry)] +
                                                         [v + ":b32" for v in values]), "", rows, model, image=image,
         code="%s %s, %s;" % (name, operand(geometry), vector(values)))


for geometry in GEOMETRIES:
    for outside in OUTSIDE:
        store_sample(geometry, "u8", 4, outside)
        store_sample(geometry, "f32", 1, outside)
for format in ("u8", "s8", "u16", "s16", "u32", "s32", "f16", "f32"):
    for channels in (1, 2, 4):
        store_sample("2d", format, channels, "clamp" if channels == 2 else "zero")

# --- reductions: threads meet, their order does not matter ---
COMBINE = {"add": lambda a, b: a + b, "min": min, "max": max, "and": lambda a, b: a & b, "or": lambda a, b: a | b}
TYPES = {"add": ("u32", "s32", "u64"), "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
         "and": ("b32",), "or": ("b32",)}


def reduce(style, operation, geometry, type, outside, format):
    image = surface(geometry, format, int(type[1:]) // 32)
    width = int(type[1:])
    size = width // 8
    unit = size if style == "p" else 1
    sign = (format if style == "p" else type)[0] == "s"
    name = "sured.%s.%s.%s.%s.%s" % (style, operation, geometry, type, outside)
    source = random.Random(name)
    # Few places, so that several threads meet; whole warps, as the last row is repeated to fill one.
    few = places(image, size, unit, outside, name, 12)
    rows = [source.choice(few) + (source.getrandbits(width),) for _ in range(64)]
    state = bytearray(image.data())

    def model(*row):
        at = byte_of(image, row[:-1], size, unit, outside)
        if at is not None:
            old = int.from_bytes(state[at:at + size], "little", signed=sign)
            new = COMBINE[operation](old, signed(row[-1], width) if sign else row[-1])
            state[at:at + size] = (new & ((1 << width) - 1)).to_bytes(size, "little")
            image.written.update(enumerate(state))
        return ()
    form("%s.%s" % (name, format), " ".join([n + ":b32" for n in names_of(geometry)] + ["%%a:b%d" % width]), "",
         rows, model, image=image, code="%s %s, %%a;" % (name, operand(geometry)))


for operation, types in TYPES.items():
    for type in types:
        for geometry, outside in (("1d", "trap"), ("2d", "clamp"), ("3d", "zero")):
            reduce("b", operation, geometry, type, outside, "u32")
    for width in (32, 64) if operation in ("min", "max") else (32,):
        for format in ("u32", "s32"):
            for geometry, outside in (("1d", "zero"), ("2d", "trap"), ("3d", "clamp")):
                reduce("p", operation, geometry, "b%d" % width, outside, format)

# --- suq ---
for geometry, format, channels in (("1d", "u8", 4), ("2d", "s16", 2), ("3d", "f32", 1), ("a1d", "f16", 1),
                                   ("a2d", "u32", 4)):
    image = surface(geometry, format, channels)
    answers = [("width", image.sizes[0][0]), ("channel_data_type", image.number), ("channel_order", channels)]
    answers += [("height", image.sizes[0][1])] * (image.axes > 1) + [("depth", image.sizes[0][2])] * (image.axes > 2)
    answers += [("array_size", image.images)] * image.layered
    for query, answer in answers:
        form("suq.%s.b32.%s" % (query, geometry), "b32", "b32", [(0,)], lambda a, r=answer: r,
             code="suq.%s.b32 %%d, [%%t];" % query, image=image)
