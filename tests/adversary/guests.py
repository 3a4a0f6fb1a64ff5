# SPDX-License-Identifier: Apache-2.0
"""Attacks of guests, which have nothing but the ABI, and of users of the host with a socket of a VF or of vgpud."""
import contextlib
import fcntl
import json
import os
import random
import signal
import socket
import struct
import time

import hostile_clients as c
import stuck_write
from bed import NotHere

_HEAD = b".version 7.0\n.target sm_75\n.address_size 64\n"
_SPIN = _HEAD + b".visible .entry k(){\n.reg .b32 %r<2>;\nL: add.u32 %r1,%r1,1;\nbra L;\n}\n\0"


def _launch(grid=(1, 1, 1), block=(1, 1, 1), shared=0, params=b"", flags=0, size=None):
    return struct.pack("<10I", *grid, *block, shared, len(params) if size is None else size, flags, 0) + params


def _until(end, step):
    """Repeats step(n) until then; a channel that is lost or refused is part of it."""
    n = 0
    while time.monotonic() < end:
        try:
            step(n)
        except (OSError, EOFError, AssertionError):
            time.sleep(0.02)
        n += 1
    return n


# ---- over the channel ----

def param_overflow(bed, end):
    """4096 blocks of .param space that wrap to 0 where sizes are 32 bits."""
    blocks = b"\n".join(b"{.param .b8 p%d[32764];%s}" % (
        i, b"".join(b"st.param.u64 [p0+%d],%%rd2;" % o for o in range(0, 32000, 8)) if i == 0 else b"") for i in range(4096))
    image = _HEAD + b".visible .entry k(){\n.reg .b64 %%rd<9>;\nmov.u64 %%rd2,0x4141414141414141;\n%s\nret;\n}\n\0" % blocks
    with c.ChannelClient(bed.vgpud.show("bad")) as ring:
        status, _ = ring.load(image)
        if status == 0:
            ring.call(c.LAUNCH, [ring.function("k")], payload=_launch())
        assert ring.call(c.NOP)[0] == 0 and ring.state != 2


def endless(bed, end):
    with c.ChannelClient(bed.vgpud.show("bad")) as ring:
        assert ring.load(_SPIN)[0] == 0
        ring.push(c.LAUNCH, [ring.function("k")], flags=0, payload=_launch())
        time.sleep(max(0, end - time.monotonic()))


def endless_crowd(bed, end):
    """Eight processes of one VF."""
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            ring = stack.enter_context(c.ChannelClient(bed.vgpud.show("bad")))
            assert ring.load(_SPIN)[0] == 0
            ring.push(c.LAUNCH, [ring.function("k")], flags=0, payload=_launch())
        time.sleep(max(0, end - time.monotonic()))


def module_storm(bed, end):
    """Four processes of a paused VF load modules of 20000 instructions without pause."""
    body = b"".join(b"add.u32 %%r1,%%r1,%d;\n" % i for i in range(20000))
    image = _HEAD + b".visible .entry k(){\n.reg .b32 %r<3>;\n" + body + b"ret;\n}\n\0"
    bed.vgpud.ctl("pause", "bad")
    with contextlib.ExitStack() as stack:
        rings = [stack.enter_context(c.ChannelClient(bed.vgpud.show("bad"))) for _ in range(4)]

        def load(n):
            for ring in rings:
                ring.push(c.MODULE_BEGIN, [n + 1, len(image)], flags=0)
                for at in range(0, len(image), 65536):
                    ring.push(c.MODULE_DATA, [n + 1, at], payload=image[at:at + 65536], flags=0)
                ring.push(c.MODULE_LOAD, [n + 1], flags=0)
            for ring in rings:
                ring.call(c.MODULE_UNLOAD, [n + 1])
        _until(end, load)


_BULK = ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a], [%b], %n;",
         "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%a], [%b], %n;",
         "cp.async.bulk.global.shared::cta.bulk_group [%a], [%b], %n;",
         "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%a], [%b], %n, %m;")


def _bulk_image(instruction, address):
    """A kernel k(memory, bytes) of bulk instructions without end; `address` makes the shared address %b of %a."""
    return _HEAD + (".visible .entry k(.param .u64 p, .param .u32 n){\n.reg .b64 %a,%b; .reg .b32 %n; .reg .b16 %m;\n"
                    ".shared .align 128 .b8 tile[40960];\nld.param.u64 %a,[p]; ld.param.u32 %n,[n]; mov.u16 %m,0x5a5a;\n" +
                    address + "\nL: " + instruction + "\nbra L;\n}\n").encode() + b"\0"


def bulk_copies(bed, end):
    """Whole warps whose every lane copies or adds all of the shared memory, again and again."""
    with contextlib.ExitStack() as stack:
        for instruction in _BULK:
            ring = stack.enter_context(c.ChannelClient(bed.vgpud.show("bad")))
            status, (memory, *_) = ring.call(c.MEM_ALLOC, [1 << 20])
            assert status == 0 and ring.load(_bulk_image(instruction, "mov.u64 %b,tile;"))[0] == 0
            ring.push(c.LAUNCH, [ring.function("k")], flags=0,
                      payload=_launch(block=(32, 1, 1), params=struct.pack("<QI", memory, 40960)))
        time.sleep(max(0, end - time.monotonic()))


def bulk_beyond(bed, end):
    """Bulk instructions whose shared address leads into global memory when the window is added to it."""
    vf = bed.vgpud.show("bad")
    wraps = "sub.s64 %%b,%%a,%d;" % 0x6e0000000000

    def step(n):
        with c.ChannelClient(vf) as ring:
            status, (memory, *_) = ring.call(c.MEM_ALLOC, [32 << 20])
            assert status == 0 and ring.load(_bulk_image(_BULK[n % len(_BULK)], wraps))[0] == 0
            ring.push(c.LAUNCH, [ring.function("k")], flags=0,
                      payload=_launch(block=(32, 1, 1), params=struct.pack("<QI", memory, 1 << 20)))
            if ring.wait_sticky() != 700:
                not_refused.append(f"the kernel ended with {ring.sticky} instead of 700: {ring.text}")
    not_refused = []
    _until(end, step)
    assert not not_refused, not_refused[0]


def open_close(bed, end):
    vf = bed.vgpud.show("bad")
    _until(end, lambda _: c.ChannelClient(vf).close())


def kicks(bed, end):
    with c.ChannelClient(bed.vgpud.show("bad")) as ring:
        _until(end, lambda _: ring.kick())


def doorbells(bed, end):
    message = struct.pack("<HHIII", 0, c.WRITE, 36, c.NO_REPLY, 0) + struct.pack("<QIII", 0x1000, c.BAR0, 4, 1)
    with c.VfioClient(bed.vgpud.show("bad")) as guest:
        guest.open_channel(0)
        guest.socket.settimeout(0.2)
        _until(end, lambda _: guest.socket.sendall(message * 500))


def resets(bed, end):
    with c.VfioClient(bed.vgpud.show("bad")) as guest:
        _until(end, lambda _: guest.call(c.RESET))


def half_messages(bed, end):
    vf = bed.vgpud.show("bad")

    def step(n):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(vf["vfio_user_socket"])
            connection.send(struct.pack("<HHIII", 0, c.VERSION, 4000, 0, 0)[:1 + n % 16])
            time.sleep(0.02)
    _until(end, step)


def vfio_garbage(bed, end):
    vf, dice = bed.vgpud.show("bad"), random.Random(1)

    def step(_):
        with contextlib.closing(c.VfioClient(vf)) as guest:
            for _ in range(50):
                body = dice.randbytes(dice.choice((0, 4, 16, 24, 32, 200)))
                guest.send(dice.randrange(1, 20), body)
    _until(end, step)


def memory_cut(bed, end):
    vf = bed.vgpud.show("bad")

    def step(_):
        with c.VfioClient(vf) as guest:
            guest.open_channel(0)
            os.ftruncate(guest.memory, 4096)
            guest.write(0x1000, struct.pack("<I", 1))
            time.sleep(0.05)
    _until(end, step)


def full_interrupt(bed, end):
    """The eventfd of the interrupt is full and blocks."""
    with c.VfioClient(bed.vgpud.show("bad")) as guest:
        ring = guest.open_channel(0)
        fcntl.fcntl(guest.msi, fcntl.F_SETFL, 0)
        os.write(guest.msi, struct.pack("<Q", (1 << 64) - 2))
        _until(end, lambda _: ring.call(c.NOP))


def ring_garbage(bed, end):
    vf, dice = bed.vgpud.show("bad"), random.Random(2)

    def step(_):
        with c.ChannelClient(vf) as ring:
            for _ in range(200):
                entry = bytearray(dice.randbytes(64))
                struct.pack_into("<I", entry, 0, dice.randrange(0, 40))
                ring.push_raw(bytes(entry))
            ring.put_word(0x40, dice.getrandbits(32))
            ring.kick()
            time.sleep(0.02)
    _until(end, step)


def hostile_launches(bed, end):
    dice = random.Random(3)
    with c.ChannelClient(bed.vgpud.show("bad")) as ring:
        assert ring.load(_HEAD + b".visible .entry k(){\nret;\n}\n\0")[0] == 0
        function = ring.function("k")
        odd = (0, 1, 2, 1024, 65535, 0x7fffffff, 0xffffffff)

        def step(_):
            def three():
                return tuple(dice.choice(odd) for _ in range(3))
            ring.push(c.LAUNCH, [function], flags=0, payload=_launch(
                three(), three(), dice.choice(odd), b"x" * dice.randrange(64), dice.choice((0, 1, 0xffff)),
                dice.choice((None, 0, 4096, 0xffffffff))))
            time.sleep(0.001)
        _until(end, step)


def printf_flood(bed, end):
    image = (_HEAD + b".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
             b".global .align 1 .b8 fmt[64] = {" + b",".join(b"%d" % x for x in b"\nvgpud: error: vf=good: forged\n\x1b[2J\0") +
             b"};\n.visible .entry k(){\n.reg .b64 %rd<4>;\n.reg .b32 %r<3>;\nmov.u64 %rd1,fmt;\n"
             b"cvta.global.u64 %rd2,%rd1;\nmov.u64 %rd3,0;\nL:\n{\n.param .b64 p0;\n.param .b64 p1;\n.param .b32 r;\n"
             b"st.param.b64 [p0],%rd2;\nst.param.b64 [p1],%rd3;\ncall.uni (r),vprintf,(p0,p1);\nld.param.b32 %r1,[r];\n}\n"
             b"bra L;\n}\n\0")
    with c.ChannelClient(bed.vgpud.show("bad")) as ring:
        status, text = ring.load(image)
        assert status == 0, text
        ring.push(c.LAUNCH, [ring.function("k")], flags=0, payload=_launch((64, 1, 1), (32, 1, 1)))
        time.sleep(max(0, end - time.monotonic()))


def assert_forgery(bed, end):
    strings = {b"m": b"x\nvgpud: error: vf=good: parked after forgery\n\x1b[2J\0", b"f": b"a\rb\0", b"n": b"\xff\xfe\0"}
    declared = b"".join(b".global .align 1 .b8 %s[%d] = {%s};\n" % (
        name, len(text), b",".join(b"%d" % x for x in text)) for name, text in strings.items())
    image = (_HEAD + b".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n" +
             declared + b".visible .entry k(){\n.reg .b64 %rd<9>;\nmov.u64 %rd1,m;\ncvta.global.u64 %rd2,%rd1;\nmov.u64 %rd3,f;\n"
             b"cvta.global.u64 %rd4,%rd3;\nmov.u64 %rd5,n;\ncvta.global.u64 %rd6,%rd5;\n{\n.param .b64 a;\n.param .b64 b;\n"
             b".param .b32 c;\n.param .b64 d;\n.param .b64 e;\nst.param.b64 [a],%rd2;\nst.param.b64 [b],%rd4;\n"
             b"st.param.b32 [c],7;\nst.param.b64 [d],%rd6;\nst.param.b64 [e],1;\ncall.uni __assertfail,(a,b,c,d,e);\n}\n"
             b"ret;\n}\n\0")
    vf = bed.vgpud.show("bad")

    def step(_):
        with c.ChannelClient(vf) as ring:
            status, text = ring.load(image)
            assert status == 0, text
            ring.push(c.LAUNCH, [ring.function("k")], flags=0, payload=_launch())
            ring.wait_sticky()
    _until(end, step)


# ---- users of the host ----

def blocking_signals(bed, end):
    """kick and call are made blocking and filled to the brim by who shares them."""
    with c.ChannelClient(bed.vgpud.show("bad")) as ring, c.VfioClient(bed.vgpud.show("bad")) as guest:
        for fd in ring.fds[1:3]:
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(fd)) as signals:
                while True:
                    signals.send(b"\1" * 64, socket.MSG_DONTWAIT)
        ring.put_word(0, 0xdead)
        slowest = 0.0
        while time.monotonic() < end:
            start = time.monotonic()
            guest.register(0)
            slowest = max(slowest, time.monotonic() - start)
        assert slowest < 1, f"a register read took {slowest:.2f} s"


def _use(vf):
    """A program with a channel, a buffer and a VM beside it: how long all that took."""
    start = time.monotonic()
    with c.ChannelClient(vf) as ring, c.VfioClient(vf) as guest:
        assert ring.call(c.NOP)[0] == 0
        status, buffer, _, files = ring.ask(c.BUFFER_ALLOC, size=1 << 20)
        assert status == 0, f"a buffer: {os.strerror(-status)}"
        os.close(files[0])
        assert ring.ask(c.BUFFER_FREE, buffer=buffer)[0] == 0
        guest.register(0)
    return time.monotonic() - start


def busy_files(bed, end):
    """Programs that write to the files of their channels and buffers for ever; others use the same VF meanwhile."""
    vf = bed.vgpud.show("bad")
    with contextlib.ExitStack() as held:
        for _ in range(3):
            client = held.enter_context(c.ChannelClient(vf))
            status, buffer, _, files = client.ask(c.BUFFER_ALLOC, size=1 << 20)
            assert status == 0, f"a buffer: {os.strerror(-status)}"
            for file in (client.fds[0], files[0]):
                try:
                    held.enter_context(stuck_write.StuckWrite(file))
                except PermissionError as error:
                    raise NotHere(f"needs {error.strerror} of faults in the kernel") from error
            os.close(files[0])
            client.socket.send(struct.pack("<IIQIIII", c.BUFFER_FREE, buffer, 0, 0, 0, 0, 0))
        assert _use(vf) < 1
        # vgpud-vf has to say in their files that they are lost.
        for pid, words in bed.processes(("bad",)).items():
            if "--vf" in words:
                os.kill(pid, signal.SIGKILL)
        slowest = 0.0
        while time.monotonic() < end:
            slowest = max(slowest, _use(vf))
            time.sleep(0.02)
    assert slowest < 1, f"another program took {slowest:.2f} s"
    assert _use(vf) < 1


def lingering_socket(bed, end):
    """Sockets that take 15 s to close, as descriptors with a message."""
    vf = bed.vgpud.show("bad")
    kept = []
    with socket.socket() as listener, c.VfioClient(vf) as guest:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        for _ in range(8):
            slow, other = socket.create_connection(listener.getsockname()), listener.accept()[0]
            kept.append(other)
            slow.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    slow.send(b"x" * 65536)
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 15))
            with contextlib.suppress(OSError):
                guest.send(c.RESET, fds=[slow.fileno()])
                guest.take(16)
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
            os.close(slow.detach())
        slowest = 0.0
        with contextlib.suppress(OSError, EOFError):
            while time.monotonic() < end:
                start = time.monotonic()
                guest.register(0)
                slowest = max(slowest, time.monotonic() - start)
        for other in kept:
            other.close()
        assert slowest < 1, f"a register read took {slowest:.2f} s"


def idle_connections(bed, end):
    """Connections to the channel socket until no more are taken; another program still gets its channel later."""
    vf = bed.vgpud.show("bad")
    held = []

    def hold(_):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.setblocking(False)
        connection.connect(vf["channel_socket"])
        held.append(connection)
    _until(end, hold)
    for connection in held:
        connection.close()


def descriptor_flood(bed, end):
    """Messages with as many descriptors as there may be, over the channel socket."""
    vf = bed.vgpud.show("bad")
    files = [os.eventfd(0) for _ in range(200)]

    def step(_):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(vf["channel_socket"])
            socket.send_fds(connection, [bytes(32)], files)
    _until(end, step)
    for fd in files:
        os.close(fd)


def deep_json(bed, end):
    """Deep and long JSON to the control socket, and requests that never end."""
    path = os.path.join(bed.vgpud.runtime_dir, "control.sock")
    deep = b"[" * 200_000 + b"]" * 200_000
    bodies = [deep, b'{"a":' * 100_000, b'{"name":"' + b"x" * 500_000 + b'"}', json.dumps({"vram": 1e308}).encode()]

    def step(n):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(1)
            connection.connect(path)
            body = bodies[n % len(bodies)]
            connection.sendall(b"POST /v1/vfs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            connection.recv(100)
    _until(end, step)


# name, what it tries, what stops it, the function, fields of table.Attack
def _leaves_at_once(_, stats):
    """How long the neighbours wait for it: what it computed after it was told to leave, not what the host took from it."""
    late = stats["late_computed_ns"] / max(1, stats["late_turns"])
    if stats["hangs"] or late > 5e6:
        return f"{stats['hangs']} hangs; in late turns it went on for {late / 1e6:.1f} ms"
    return None


ATTACKS = [
    ("guest.param-overflow", "PTX whose .param space wraps to 0 and writes beyond it", "one layout, sizes in 64 bits",
     param_overflow, {"forbidden": r"executor ended by signal"}),
    ("guest.endless", "a kernel that never ends", "forced slices", endless, {}),
    ("guest.endless-crowd", "eight processes with kernels that never end", "shares are of VFs, not of processes",
     endless_crowd, {}),
    ("guest.bulk-copies", "bulk copies and reductions by whole warps without end", "they work in pieces: the stop word is seen",
     bulk_copies, {"check": _leaves_at_once, "forbidden": r"did not leave the GPU"}),
    ("guest.bulk-beyond", "bulk copies whose shared address wraps into global memory", "an illegal address (700)",
     bulk_beyond, {"check": _leaves_at_once, "forbidden": r"did not leave the GPU"}),
    ("guest.module-storm", "a paused VF loads modules without pause", "ordinary priority, the control group of its VF",
     module_storm, {}),
    ("guest.open-close", "opens and closes channels without pause", "the budget of opens", open_close, {}),
    ("guest.kicks", "rings the executor of a channel without pause", "the budget of doorbells", kicks, {}),
    ("guest.doorbells", "doorbells of BAR0 without pause", "the budget of doorbells", doorbells, {}),
    ("guest.resets", "DEVICE_RESET without pause", "the budget of resets", resets, {}),
    ("guest.half-messages", "vfio-user messages that break off", "the end of its connection", half_messages, {}),
    ("guest.vfio-garbage", "random vfio-user messages", "checked against the size of each command", vfio_garbage, {}),
    ("guest.memory-cut", "cuts its RAM off under the executor", "the executor alone ends", memory_cut, {}),
    ("guest.full-interrupt", "the eventfd of its interrupt is full and blocks", "waited for at most 10 ms", full_interrupt, {}),
    ("guest.ring-garbage", "random submissions and indices", "checked; the channel is lost at most", ring_garbage,
     {"forbidden": r"executor ended by signal"}),
    ("guest.hostile-launches", "launches with figures that wrap", "checked in types that can't wrap", hostile_launches,
     {"forbidden": r"executor ended by signal"}),
    ("guest.printf-flood", "prints without end, lines of vgpud and terminal commands", "a ring of its own memory",
     printf_flood, {"forbidden": r"(?m)^vgpud: error: vf=good: forged|executor ended by signal"}),
    ("guest.assert-forgery", "lines of vgpud in the text of an assertion", "escaped, with its origin before it",
     assert_forgery, {"forbidden": r"(?m)^vgpud: error: vf=good: parked|\x1b", "pattern": r"parked after forgery"}),
    ("client.blocking-signals", "kick and call are made blocking and full", "both sides send without waiting",
     blocking_signals, {}),
    ("client.busy-files", "writes for ever to files that it shares with vgpud-vf", "such files are written to by threads that nobody waits for",
     busy_files, {"seconds": 3}),
    ("client.lingering-socket", "descriptors that take 15 s to close", "refused by the kernel or closed elsewhere",
     lingering_socket, {"seconds": 3}),
    ("client.idle-connections", "holds connections to the channel socket", "limits per VF, user and process",
     idle_connections, {}),
    ("client.descriptor-flood", "200 descriptors with each message", "refused by the kernel or closed elsewhere",
     descriptor_flood, {}),
    ("user.deep-json", "deep and long JSON to the control socket", "limits on size and depth", deep_json, {}),
]
