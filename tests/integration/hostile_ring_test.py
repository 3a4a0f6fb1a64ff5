#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that writes nonsense into its channel's ring gets an error that says what was wrong; nobody else notices."""
import errno
import os
import random
import struct

import harness
import hostile_bed
import hostile_clients as c
from vgpuguest import paths

INVALID_VALUE, OUT_OF_MEMORY, INVALID_IMAGE, INVALID_PTX, INVALID_HANDLE = 1, 2, 200, 218, 400
NO_BINARY, NOT_FOUND, OUT_OF_RESOURCES, NOT_SUPPORTED, UNKNOWN = 209, 500, 701, 801, 999
ALL = (1 << 64) - 1
PTX = paths.REPO / "tests" / "cuda" / "ptx"

# Entries that break the protocol poison the channel: (what, entry, status, part of the message).
VIOLATIONS = [
    ("a tail far ahead", lambda r: r.put_word(0x40, r.tail + 5000), UNKNOWN, "sq_tail"),
    ("a tail that goes back", lambda r: r.put_word(0x40, r.tail - 1), UNKNOWN, "sq_tail"),
    ("a seqno out of order", lambda r: r.push(c.NOP, seqno=r.seqno + 7), UNKNOWN, "seqno"),
    ("an unknown operation", lambda r: r.push(0xdead), INVALID_VALUE, "unknown op 57005"),
    ("unknown flags", lambda r: r.push(c.NOP, flags=0xfffffffe), INVALID_VALUE, "flags"),
    ("arguments it does not take", lambda r: r.push(c.NOP, [1]), INVALID_VALUE, "args[0]"),
    ("a payload it does not take", lambda r: r.push(c.NOP, payload=b"x"), INVALID_VALUE, "payload_len"),
    ("no payload where one must be", lambda r: r.push(c.LAUNCH, [1]), INVALID_VALUE, "payload_len"),
    ("a wild payload position", lambda r: r.push(c.COPY_IN, [0], position=ALL - 15, span=16), UNKNOWN, "payload_pos"),
    ("a payload beyond the area", lambda r: r.push(c.COPY_IN, [0], position=1 << 40, span=16), UNKNOWN, "payload_pos"),
    ("a payload that wraps", lambda r: r.push(c.COPY_IN, [0], position=0x200000 - 8, span=16), UNKNOWN, "payload_pos"),
    ("a huge payload", lambda r: r.push(c.COPY_IN, [0], position=0, span=0xffffffff), UNKNOWN, "payload_len"),
]


def check_answer(ring, what, status, text, op, args=(), **options):
    got, _ = ring.call(op, args, **options)
    harness.check(got == status and text in ring.text, f"{what}: {got} ({ring.text})")


def launch(grid=(1, 1, 1), block=(1, 1, 1), shared=0, params=b"", param_bytes=None, flags=0):
    return struct.pack("<10I", *grid, *block, shared, len(params) if param_bytes is None else param_bytes, flags,
                       0) + params


def violations(bed):
    for what, abuse, status, text in VIOLATIONS:
        with c.ChannelClient(bed.bad) as ring:
            harness.check(ring.call(c.NOP)[0] == 0, f"a fresh channel works before {what}")
            abuse(ring)
            ring.kick()
            harness.check(ring.wait_sticky() == status and text in ring.text, f"{what}: {ring.sticky} ({ring.text})")


def wild_arguments(ring):
    """Well-formed entries that name what is not there: an error, and the channel lives on."""
    status, values = ring.call(c.MEM_ALLOC, [1 << 20])
    assert status == 0
    memory = values[0]
    for what, want, text, op, args, options in [
            ("a stream that is not there", INVALID_HANDLE, "no stream 12345", c.STREAM_SYNC, [], {"stream": 12345}),
            ("a function that is not there", INVALID_HANDLE, "no function", c.LAUNCH, [ALL], {"payload": launch()}),
            ("more memory than there is", OUT_OF_MEMORY, "MEM_ALLOC", c.MEM_ALLOC, [1 << 40], {}),
            ("all the memory there can be", OUT_OF_MEMORY, "MEM_ALLOC", c.MEM_ALLOC, [ALL], {}),
            ("memory that is not there", INVALID_VALUE, "", c.MEM_FREE, [memory + 8], {}),
            ("a copy to nowhere", INVALID_VALUE, "not inside", c.COPY_IN, [ALL - 7], {"payload": b"12345678"}),
            ("a copy over the end", INVALID_VALUE, "not inside", c.COPY_IN, [memory + (1 << 20) - 4],
             {"payload": b"12345678"}),
            ("a copy from nowhere", INVALID_VALUE, "not inside", c.COPY_OUT, [0], {"span": 4096}),
            ("an endless copy", INVALID_VALUE, "not inside", c.COPY_DEV, [memory, memory, ALL], {}),
            ("an endless fill", INVALID_VALUE, "FILL", c.FILL, [memory, 0, 4, ALL], {}),
            ("a fill that wraps", INVALID_VALUE, "", c.FILL, [memory, 0, 4, 1 << 48], {}),
            ("a fill of odd elements", INVALID_VALUE, "FILL", c.FILL, [memory, 0, 3, 4], {}),
            ("a buffer that is not there", INVALID_VALUE, "no buffer", c.BUF_IN, [memory, 77, 0, 8], {}),
            ("a buffer number beyond all", INVALID_VALUE, "no buffer", c.BUF_OUT, [memory, ALL, 0, 8], {}),
            ("an event slot that is not there", INVALID_VALUE, "slot", c.EVENT_RECORD, [1 << 40, 1], {}),
            ("a wait for what was never recorded", INVALID_VALUE, "not been recorded", c.EVENT_WAIT, [3, 9], {}),
            ("a reserved stream", INVALID_VALUE, "STREAM_CREATE", c.STREAM_CREATE, [0, 0, 0], {}),
            ("a stream beyond all", INVALID_VALUE, "STREAM_CREATE", c.STREAM_CREATE, [1 << 40, 0, 0], {}),
            ("the end of the default stream", INVALID_HANDLE, "STREAM_DESTROY", c.STREAM_DESTROY, [0], {}),
            ("an image larger than can be", INVALID_VALUE, "MODULE_BEGIN", c.MODULE_BEGIN, [5, ALL], {}),
            ("an empty image", INVALID_VALUE, "MODULE_BEGIN", c.MODULE_BEGIN, [5, 0], {}),
            ("data of no image", INVALID_HANDLE, "MODULE_DATA", c.MODULE_DATA, [6, 0], {"payload": b"x"}),
            ("a module that is not there", INVALID_HANDLE, "", c.MODULE_LOAD, [6], {}),
            ("the end of no module", INVALID_HANDLE, "MODULE_UNLOAD", c.MODULE_UNLOAD, [6], {}),
            ("an endless name", INVALID_VALUE, "MODULE_FUNCTION", c.MODULE_FUNCTION, [1, ALL], {"payload": b"x"}),
    ]:
        check_answer(ring, what, want, text, op, args, **options)
    harness.check(ring.call(c.MODULE_BEGIN, [5, 100])[0] == 0, "an upload begins")
    check_answer(ring, "data far behind the image", INVALID_VALUE, "image of 100", c.MODULE_DATA, [5, ALL], payload=b"x")
    check_answer(ring, "data over the end of the image", INVALID_VALUE, "image of 100", c.MODULE_DATA, [5, 99],
                 payload=b"xx")


def wild_launches(ring):
    image = (PTX / "vectoradd.ptx").read_bytes() + b"\0"
    status, text = ring.load(image)
    assert status == 0, text
    add = ring.function("vectoradd" if b"vectoradd(" in image else "VectorAdd")
    parameters = struct.pack("<3QIi", 0, 0, 0, 0, 0)[:28]
    huge = 0xffffffff
    for what, shape in [
            ("an empty grid", launch((0, 1, 1), params=parameters)),
            ("an empty block", launch(block=(1, 0, 1), params=parameters)),
            ("a block of 2^96 threads", launch(block=(huge,) * 3, params=parameters)),
            ("a block that wraps to one thread", launch(block=(1 << 16, 1 << 16, 1), params=parameters)),
            ("a grid of 2^96 blocks", launch((huge,) * 3, params=parameters)),
            ("all the shared memory there can be", launch(shared=huge, params=parameters)),
            ("no parameters", launch()),
            ("oversize parameters", launch(params=bytes(40000))),
            ("parameters that are not there", launch(params=parameters, param_bytes=huge)),
            ("unknown flags", launch(params=parameters, flags=huge)),
            ("half a launch", launch()[:20]),
    ]:
        status, _ = ring.call(c.LAUNCH, [add], payload=shape)
        harness.check(status in (INVALID_VALUE, OUT_OF_RESOURCES), f"a launch with {what}: {status} ({ring.text})")
    status, _ = ring.call(c.FUNCTION_SET, [add, 8, ALL])
    harness.check(status == INVALID_VALUE, f"shared memory without end: {status} ({ring.text})")
    check_answer(ring, "a kernel that is not there", NOT_FOUND, "no kernel", c.MODULE_FUNCTION, [1, 4], payload=b"nope",
                 span=4096)


def texture(shape=2, flags=0, width=16, height=16, depth=1, layers=1, format_=0x20, channels=1, levels=1,
            address=(0, 0, 0), mbz=0, level=()):
    """The payload of TEXTURE_CREATE; `level`: one (address, pitch, slice) per level."""
    return (struct.pack("<9I3I3I5I", shape, flags, width, height, depth, layers, format_, channels, levels, *address,
                        0, 0, 0, mbz, 0, 0, 0, 0) + b"".join(struct.pack("<3Q", *one) for one in level))


def wild_textures(ring):
    status, values = ring.call(c.MEM_ALLOC, [16 * 16 * 4])
    assert status == 0
    at, huge = values[0], 0xffffffff
    good = [(at, 64, 0)]
    status, values = ring.call(c.TEXTURE_CREATE, payload=texture(level=good))
    harness.check(status == 0 and values[0] != 0, "a plain texture over an allocation has a handle")
    handle = values[0]
    for what, want, payload in [
            ("half a texture", INVALID_VALUE, texture(level=good)[:50]),
            ("a level less than announced", INVALID_VALUE, texture(levels=2, level=good)),
            ("levels without end", INVALID_VALUE, texture(levels=huge, level=good)),
            ("no level", INVALID_VALUE, texture(levels=0)),
            ("unknown flags", INVALID_VALUE, texture(flags=huge, level=good)),
            ("a surface with a filter", INVALID_VALUE, texture(flags=5, level=good)),
            ("padding that is not zero", INVALID_VALUE, texture(mbz=1, level=good)),
            ("a shape that is none", INVALID_VALUE, texture(shape=huge, level=good)),
            ("no texels", INVALID_VALUE, texture(width=0, level=good)),
            ("all the texels there can be", INVALID_VALUE, texture(width=huge, height=huge, level=good)),
            ("a row more than there is", INVALID_VALUE, texture(height=17, level=good)),
            ("layers that wrap", INVALID_VALUE, texture(flags=2, layers=2048, level=[(at, 64, 1 << 63)])),
            ("a pitch that wraps", INVALID_VALUE, texture(level=[(at, (1 << 64) - 64, 0)])),
            ("memory of nobody", INVALID_VALUE, texture(level=[(0x1000, 64, 0)])),
            ("memory at the end of all", INVALID_VALUE, texture(level=[(ALL, 64, 0)])),
            ("an address mode that is none", INVALID_VALUE, texture(address=(0, huge, 0), level=good)),
            ("a filter over integers", INVALID_VALUE, texture(flags=4, format_=3, level=good)),
            ("a format that is none", NOT_SUPPORTED, texture(format_=huge, level=good)),
            ("three channels", INVALID_VALUE, texture(channels=3, level=good)),
    ]:
        status, _ = ring.call(c.TEXTURE_CREATE, payload=payload)
        harness.check(status == want, f"a texture with {what}: {status} ({ring.text})")
    for wild in (0, handle + 1, handle ^ (1 << 20), ALL):
        check_answer(ring, f"the end of the texture {wild:#x}", INVALID_HANDLE, "no texture", c.TEXTURE_DESTROY, [wild])
    harness.check(ring.call(c.TEXTURE_DESTROY, [handle])[0] == 0, "the texture can be destroyed")
    check_answer(ring, "its second end", INVALID_HANDLE, "no texture", c.TEXTURE_DESTROY, [handle])


def damaged_images(ring):
    text = (PTX / "vectoradd.ptx").read_text()
    head, tail = text.split("ret;", 1)
    random_bytes = random.Random(1).randbytes
    fatbin = struct.pack("<IHHQ", 0xba55ed50, 1, 16, 1 << 60) + random_bytes(500)
    for number, (what, image, statuses, part) in enumerate([
            ("random bytes", random_bytes(4096), (INVALID_IMAGE, INVALID_PTX), ""),
            ("one byte", b"\0", (INVALID_IMAGE, INVALID_PTX), ""),
            ("a fatbin of absurd length", fatbin, (INVALID_IMAGE,), ""),
            ("a fatbin cut off", fatbin[:18], (INVALID_IMAGE,), ""),
            ("machine code", b"\x7fELF" + random_bytes(300), (NO_BINARY,), "PTX is needed"),
            ("an unknown instruction", (head + "frobnicate.u32 %r1, %r2;\n\tret;" + tail).encode(), (INVALID_PTX,),
             "frobnicate"),
            ("PTX cut off", text[:len(text) // 2].encode(), (INVALID_PTX,), ""),
            ("PTX with an absurd shared variable", text.replace(
                "\n{", "\n{\n.shared .align 4 .b8 x[18446744073709551615];", 1).encode(), (INVALID_PTX,), ""),
            ("ten thousand brackets", (".version 9.0\n.target sm_75\n.address_size 64\n.global .b32 x = "
                                       + "(" * 10000).encode(), (INVALID_PTX,), ""),
    ], start=10):
        status, why = ring.load(image, number)
        harness.check(status in statuses and part in why, f"{what}: {status} ({why})")


def random_entries(bed, count=4000):
    """Random submissions, half of them well-formed but for their values. Whatever they do, the executor lives."""
    rng = random.Random(20)
    values = [0, 1, 2, 3, 4, 16, 17, 0x1000, 0xffffffff, 1 << 32, 1 << 47, ALL, ALL - 1, 1 << 63]
    ring = c.ChannelClient(bed.bad)
    for i in range(count):
        if i % 64 == 0:
            ring.answer(ring.push(c.CONTEXT_RESET, seqno=ring.seqno + 1))
        if i % 8 == 7:
            ring.push_raw(rng.randbytes(64))
            ring.seqno = struct.unpack_from("<Q", ring.area, c.SQ_AT + ((ring.tail - 1) % c.ENTRIES) * 64 + 8)[0]
        else:
            ring.push(rng.randrange(33), [rng.choice(values) for _ in range(rng.randrange(5))],
                      stream=rng.choice([0, 2, 16, 17, 0xffffffff]), flags=rng.choice([0, 1]),
                      payload=rng.randbytes(rng.choice([0, 0, 1, 40, 100])))
        ring.collect()
        if ring.tail - ring.word(0x80) > 512:
            ring.answer(ring.push(c.CONTEXT_RESET, seqno=ring.seqno + 1))
    ring.answer(ring.push(c.CONTEXT_RESET, seqno=ring.seqno + 1))
    harness.check(ring.call(c.NOP)[0] == 0, f"after {count} random entries and a reset the channel works")
    ring.close()


def garbage_around_the_ring(bed):
    """The words beside the ring: what the guest may write there hurts only itself."""
    with c.ChannelClient(bed.bad) as ring:
        assert ring.call(c.NOP)[0] == 0
        for offset in (0x00, 0x04, 0x08, 0x0c, 0x10, 0x80, 0x84, 0x8c, 0x90, 0x94, 0x98):
            ring.put_word(offset, 0xdeadbeef)
        second = c.CQ_AT + 64
        want = ring.push(c.CONTEXT_RESET)
        harness.wait_until(lambda: struct.unpack_from("<QI", ring.area, second) == (want, 0),
                           "the executor does not believe the words it keeps in the guest's memory")
    with c.ChannelClient(bed.bad) as ring:
        ring.put_word(0x44, 0x80000000)  # cq_head
        for _ in range(1000):
            ring.push(c.NOP)
        ring.put_word(0x44, ring.word(0x84))
        ring.head = ring.word(0x84)
        harness.check(ring.call(c.NOP)[0] == 0, "a wild completion index only holds up the completions")
    with c.ChannelClient(bed.bad) as ring:
        try:
            os.ftruncate(ring.fds[0], 4096)
            harness.check(False, "the channel area can be truncated")
        except OSError as error:
            harness.check(error.errno == errno.EPERM, "the channel area cannot be truncated")


def test():
    with hostile_bed.bed() as bed:
        with hostile_bed.unaffected(bed):
            violations(bed)
            with c.ChannelClient(bed.bad) as ring:
                wild_arguments(ring)
                damaged_images(ring)
                wild_launches(ring)
                wild_textures(ring)
            random_entries(bed)
            garbage_around_the_ring(bed)
        harness.check(not bed.executor_deaths(), f"no executor crashed: {bed.executor_deaths()}")


harness.main(test, needs_guest=False)
