#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Garbage, floods and sudden disappearance on every socket of vgpud and its VFs: an error to whoever sent it at most."""
import contextlib
import errno
import json
import os
import random
import socket
import struct
import threading

import harness
import hostile_bed
import hostile_clients as c

CONNECTIONS = 200
REFUSED = (errno.EINVAL, errno.ENOSYS)


def seqpacket(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    connection.settimeout(c.WAIT)
    return connection


def ends(connection):
    """The other side has closed the connection."""
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(65536):
            pass
    connection.close()
    return True


# ---- channel.sock ----

def malformed_channel_requests(bed):
    path = bed.bad["channel_socket"]
    for what, data in [("one byte", b"\1"), ("half a request", bytes(16)), ("a request too long", bytes(64)),
                       ("64 KiB", bytes(60000)), ("more than a message can be", bytes(100000))]:
        connection = seqpacket(path)
        connection.send(data)
        harness.check(ends(connection), f"{what} ends only its own connection")
    connection = seqpacket(path)
    with contextlib.suppress(PermissionError):  # of a kernel that refuses them
        socket.send_fds(connection, [bytes(32)], [0, 1, 2])
        harness.check(ends(connection), "descriptors that nobody asked for end only their own connection")
    for what, number, ask in [
            ("an unknown request", errno.ENOSYS, {"op": 99}),
            ("a buffer before OPEN", errno.EINVAL, {"op": c.BUFFER_ALLOC, "size": 4096}),
            ("another ABI version", errno.EPROTONOSUPPORT, {"op": c.OPEN, "size": 77}),
            ("reserved fields", errno.EINVAL, {"op": c.OPEN, "size": 1, "mbz": 1})]:
        client = c.ChannelClient(bed.bad, open_=False)
        status = client.ask(**ask)[0]
        client.socket.close()
        harness.check(status == -number, f"{what}: {os.strerror(-status)}")
    with c.ChannelClient(bed.bad) as ring:
        for what, ask in [("a second OPEN", {"op": c.OPEN, "size": 1}),
                          ("a buffer of nothing", {"op": c.BUFFER_ALLOC}),
                          ("a buffer of half a page", {"op": c.BUFFER_ALLOC, "size": 2048}),
                          ("a buffer of 2^63 bytes", {"op": c.BUFFER_ALLOC, "size": 1 << 63}),
                          ("a buffer of 1 TiB", {"op": c.BUFFER_ALLOC, "size": 1 << 40}),
                          ("the end of no buffer", {"op": c.BUFFER_FREE, "buffer": 5})]:
            status = ring.ask(**ask)[0]
            harness.check(status in (-errno.EINVAL, -errno.ENOENT), f"{what}: {os.strerror(-status)}")
        harness.check(ring.call(c.NOP)[0] == 0, "after all that the channel works")


def takes_a_buffer(client):
    status, _, _, fds = client.ask(c.BUFFER_ALLOC, size=4096)
    for fd in fds:
        os.close(fd)
    return status == 0


def buffers_without_end(bed):
    """A client that takes pinned buffers until it is refused leaves descriptors for everybody else of its VF."""
    client = c.ChannelClient(bed.bad)
    status, count = 0, 0
    while status == 0 and count < 20000:
        status, _, _, fds = client.ask(c.BUFFER_ALLOC, size=4096)
        for fd in fds:
            os.close(fd)
        count += status == 0
    harness.check(status in (-errno.ENOSPC, -errno.ENOMEM), f"after {count} buffers: {os.strerror(-status)}")
    others = []
    with contextlib.suppress(OSError):
        for _ in range(4):
            others.append(c.ChannelClient(bed.bad))
            for _ in range(4096):
                status, _, _, fds = others[-1].ask(c.BUFFER_ALLOC, size=4096)
                for fd in fds:
                    os.close(fd)
                if status != 0:
                    break
    harness.check(status in (-errno.ENOSPC, -errno.ENOMEM), f"others are refused as well: {os.strerror(-status)}")
    bed.run_in(bed.bad)
    with c.VfioClient(bed.bad) as guest:
        harness.check(guest.open_channel(0).call(c.NOP)[0] == 0, "a VM can still use the VF")
    for other in (client, *others):
        other.close()
    # Whoever comes then has as much room as they had: what they gave back is counted down.
    client = c.ChannelClient(bed.bad)
    taken = 0

    def fit():
        nonlocal taken
        while taken < count and takes_a_buffer(client):
            taken += 1
        return taken == count
    harness.wait_until(fit, f"{count} buffers fit once more when those have been given back", seen=lambda: f"{taken} did")
    client.close()


def connections_without_end(bed):
    path = bed.bad["channel_socket"]
    held = []
    for _ in range(CONNECTIONS):
        with contextlib.suppress(OSError):
            held.append(seqpacket(path))
    bed.run_in(bed.good)
    for connection in held:
        connection.close()
    for _ in range(CONNECTIONS):
        client = c.ChannelClient(bed.bad, open_=False)
        client.socket.send(struct.pack("<IIQIIII", c.OPEN, 0, c.ABI_VERSION, 0, 0, 0, 0))
        client.socket.close()
    harness.check(len(bed.vgpud.stats()[1]) == 2, "vgpud answers in the middle of it")
    opened = []
    refused = 0
    for _ in range(80):
        try:
            opened.append(c.ChannelClient(bed.bad))
        except (EOFError, OSError):
            refused += 1
    harness.check(len(opened) + refused == 80 and refused > 0, f"{len(opened)} channels at once, {refused} refused")
    harness.check(all(ring.call(c.NOP)[0] == 0 for ring in opened[:3] + opened[-3:]), "those that were opened work")
    for ring in opened:
        ring.close()
    harness.wait_until(lambda: bed.vgpud.show("bad")["executors"] <= 1, "their executors are gone")
    bed.run_in(bed.bad)


def a_client_that_never_reads(bed):
    client = c.ChannelClient(bed.bad)
    client.socket.settimeout(1)
    with contextlib.suppress(OSError):
        for _ in range(5000):
            client.socket.send(struct.pack("<IIQIIII", 99, 0, 0, 0, 0, 0, 0))
    bed.run_in(bed.bad)
    client.close()


def open_and_close_all_the_time(bed):
    """While two clients open and drop channels as fast as they can, vgpud and the VF stay reachable."""
    stop = threading.Event()

    def storm():
        while not stop.is_set():
            with contextlib.suppress(OSError):
                client = c.ChannelClient(bed.bad, open_=False)
                client.socket.send(struct.pack("<IIQIIII", c.OPEN, 0, c.ABI_VERSION, 0, 0, 0, 0))
                client.socket.close()
    storms = [threading.Thread(target=storm) for _ in range(2)]
    for thread in storms:
        thread.start()
    try:
        for _ in range(5):
            with hostile_bed.within(20, "vgpud answers in an open storm"):
                bed.vgpud.stats()
    finally:
        stop.set()
        for thread in storms:
            thread.join()
    harness.check(bed.vgpud.show("bad")["state"] == "ready", "the VF outlives an open storm")
    bed.run_in(bed.bad)


# ---- vfio-user ----

def stream(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    connection.settimeout(c.WAIT)
    return connection


def garbage_on_vfio_user(bed):
    path = bed.bad["vfio_user_socket"]
    rng = random.Random(7)
    for what, data in [("random bytes", rng.randbytes(4096)),
                       ("a message shorter than its header", struct.pack("<HHIII", 1, 1, 3, 0, 0)),
                       ("a message of 4 GiB", struct.pack("<HHIII", 1, 1, 0xffffffff, 0, 0))]:
        connection = stream(path)
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        harness.check(ends(connection), f"{what} on the vfio-user socket ends that connection")
    stream(path).close()
    half = stream(path)
    half.sendall(b"\1\0\1\0")
    half.close()
    client = c.VfioClient(bed.bad)
    for command in range(20):
        if command in (c.VERSION, c.RESET):
            continue
        for body in (b"", b"\xff" * 16, rng.randbytes(64), bytes(1000)):
            if command == c.DMA_UNMAP and body == b"":
                continue
            try:
                client.call(command, body)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EEXIST, errno.ENOENT, errno.ENOSPC):
                    raise
    harness.check(client.register(0) == c.MAGIC, "errors come as errno replies, the connection lives on")
    client.close()


def garbage_in_the_control_page(bed):
    rng = random.Random(8)
    with c.VfioClient(bed.bad) as guest:
        top = guest.BASE + guest.BYTES
        for what, want, command in [
                ("an unknown command", errno.ENOSYS, dict(op=99, channel=0)),
                ("a channel that cannot be", errno.EINVAL, dict(op=2, channel=0xffffffff)),
                ("the end of no channel", errno.ENOENT, dict(op=2, channel=5)),
                ("a channel without memory", errno.EINVAL, dict(op=1, channel=0)),
                ("segments without end", errno.EINVAL, dict(op=1, channel=0, count=0xffffffff, list_at=guest.BASE)),
                ("a list that is nowhere", errno.EFAULT, dict(op=1, channel=0, count=1, list_at=(1 << 64) - 16)),
                ("a list over the end of memory", errno.EFAULT, dict(op=1, channel=0, count=65536, list_at=top - 4096)),
                ("memory that is nowhere", errno.EFAULT, dict(op=1, channel=0, segments=[(1 << 60, 1 << 20)])),
                ("memory over the end", errno.EFAULT, dict(op=1, channel=0, segments=[(top - 4096, 1 << 20)])),
                ("memory that wraps", errno.EINVAL, dict(op=1, channel=0, segments=[((1 << 64) - 4096, 8192)])),
                ("segments that add up to 2^64", errno.EFAULT, dict(op=1, channel=0, segments=[(0, 1 << 63)] * 2)),
                ("half a page", errno.EINVAL, dict(op=1, channel=0, segments=[(guest.BASE, 2048)])),
                ("too little memory", errno.EINVAL, dict(op=1, channel=0, segments=[(guest.BASE + 0x200000, 4096)])),
                ("memory without a channel header", errno.EPROTONOSUPPORT,
                 dict(op=1, channel=0, segments=[(guest.BASE + 0x800000, 1 << 20)])),
                ("a buffer of no channel", errno.ENOENT,
                 dict(op=3, channel=5, buffer=1, segments=[(guest.BASE, 4096)]))]:
            status = guest.command(**command)
            harness.check(status == -want, f"{what}: {os.strerror(-status)}")
        for _ in range(300):
            guest.command_raw(rng.randbytes(64))
        for address in (1, guest.BASE + 8, (1 << 64) - 4096, 1 << 60, top):
            guest.set_page(address)
            guest.write(0x108, struct.pack("<I", 1))
            harness.check(guest.register(0x10c) == 0, f"a control page at {address:#x} runs nothing")
        guest.set_page()
        for offset in range(0, 0x2000, 4):
            if not 0x100 <= offset < 0x10c:
                guest.write(offset, rng.randbytes(4))
        ring = guest.open_channel(0)
        harness.check(ring.call(c.NOP)[0] == 0, "after all that a channel can be opened and works")
        for segments in ([(guest.BASE + 0x1000000, 1 << 20)], [(guest.BASE + 0x1000000, 4096)] * 3000):
            harness.check(guest.command(3, 0, 9, segments) == 0 and guest.command(4, 0, 9) == 0, "a buffer comes and goes")
            harness.wait_until(lambda: guest.command(4, 0, 9) == -errno.ENOENT, "and is gone")
        harness.check(ring.call(c.NOP)[0] == 0, "the channel still works")


# ---- control.sock ----

def http(bed, data, half_close=True):
    """The answer to raw bytes on control.sock."""
    connection = stream(os.path.join(bed.vgpud.runtime_dir, "control.sock"))
    answer = b""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(data)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        while more := connection.recv(65536):
            answer += more
    connection.close()
    return answer


def http_status(bed, method, path, body=b"", extra=""):
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
    answer = http(bed, head.encode() + body, half_close=False)
    return int(answer.split()[1]) if answer else None


def garbage_on_control_sock(bed):
    rng = random.Random(9)
    for what, data in [("random bytes", rng.randbytes(3000)), ("nothing", b""), ("no HTTP", b"HELLO\r\n\r\n"),
                       ("a request cut off", b"GET /v1/vfs HT"), ("headers without end", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20000),
                       ("one endless header", b"GET / HTTP/1.1\r\nx: " + b"y" * 100000),
                       ("a negative length", b"POST /v1/vfs HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n"),
                       ("an absurd length", b"POST /v1/vfs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"),
                       ("broken chunks", b"POST /v1/vfs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
                       ("a chunk of 2^63 bytes", b"POST /v1/vfs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\nx")]:
        answer = http(bed, data)
        harness.check(not answer or b" 4" in answer[:20] or b" 5" in answer[:20], f"{what}: {answer[:30]}")
    for what, body in [("no JSON", b"{"), ("deep JSON", b"[" * 60000), ("a list", b"[]"), ("a number", b"1"),
                       ("no UTF-8", b'{"name": "\xff\xfe"}'), ("a NUL", b'{"name": "a\\u0000b"}'),
                       ("no name", b"{}"), ("an empty name", b'{"name": ""}'), ("a path", b'{"name": "../../x"}'),
                       ("a name too long", json.dumps({"name": "n" * 5000}).encode()),
                       ("a name that is a number", b'{"name": 5}'),
                       ("no memory", b'{"name": "x", "vram_bytes": 0}'),
                       ("negative memory", b'{"name": "x", "vram_bytes": -1}'),
                       ("absurd memory", b'{"name": "x", "vram_bytes": 1e300}'),
                       ("a weight of 0", b'{"name": "x", "weight": 0}'),
                       ("a weight of 2^64", b'{"name": "x", "weight": 18446744073709551616}'),
                       ("an absurd slice", b'{"name": "x", "slice_us": 4294967296}'),
                       ("an unknown field", b'{"name": "x", "colour": "red"}'),
                       ("a VF that exists", b'{"name": "bad"}')]:
        status = http_status(bed, "POST", "/v1/vfs", body)
        harness.check(status is not None and 400 <= status < 500, f"creating a VF with {what}: {status}")
    for method, path in [("GET", "/"), ("GET", "/v1/vfs/nope"), ("GET", "/v1/vfs/%00"), ("GET", "/v1/vfs/../../etc"),
                         ("DELETE", "/v1/vfs"), ("DELETE", "/v1/vfs/nope"), ("PATCH", "/v1/vfs/bad"),
                         ("PUT", "/v1/vfs"), ("POST", "/v1/vfs/nope/reset"), ("GET", "/v1/stats?vf=nope"),
                         ("GET", "/" + "x" * 8000)]:
        status = http_status(bed, method, path)
        harness.check(status is not None and 400 <= status < 502, f"{method} {path[:30]}: {status}")
    silent = [stream(os.path.join(bed.vgpud.runtime_dir, "control.sock")) for _ in range(CONNECTIONS)]
    harness.check(sorted(bed.vgpud.names()) == ["bad", "good"], "beside 200 silent clients vgpud answers as ever")
    for connection in silent:
        connection.close()


def signals_that_are_full(bed):
    """A client takes O_NONBLOCK off its descriptors, fills them and then makes the VF use the other ends."""
    with c.VfioClient(bed.bad) as guest, c.ChannelClient(bed.bad) as ring:
        harness.check(ring.call(c.NOP)[0] == 0, "the channel works")
        for name, fd in (("kick", ring.fds[1]), ("call", ring.fds[2])):
            for data in (struct.pack("<Q", 2**64 - 2), b"\1") * 2000:
                os.set_blocking(fd, False)
                with contextlib.suppress(BlockingIOError, BrokenPipeError):
                    os.write(fd, data)
            os.set_blocking(fd, True)
            harness.check(guest.register(0) == c.MAGIC, f"with {name} full the VM is served")
        ring.put_word(0, 0xdead)  # its executor ends, and vgpud-vf has to say so
        ring.kick()
        harness.wait_until(lambda: ring.state != 0, "the client can see that its channel is lost")
        harness.check(guest.register(0) == c.MAGIC, "and the VM is served")


def test():
    with hostile_bed.bed() as bed:
        with hostile_bed.unaffected(bed):
            malformed_channel_requests(bed)
            signals_that_are_full(bed)
            a_client_that_never_reads(bed)
            connections_without_end(bed)
            garbage_on_vfio_user(bed)
            garbage_in_the_control_page(bed)
            garbage_on_control_sock(bed)
            buffers_without_end(bed)
            open_and_close_all_the_time(bed)


harness.main(test, needs_guest=False)
