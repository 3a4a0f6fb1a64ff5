#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the place of vgpud-vf for VFs whose name begins with "evil-": the rest of the name says what it does. Other VFs get
the real one ($REAL_VGPUD_VF). It has exactly what the real one has: a link to vgpud as descriptor 3 and a stderr."""
import array
import fcntl
import os
import select
import socket
import struct
import sys
import time

HELLO, NEED_EXECUTOR, CHANNEL_CLOSED, USAGE, EVENTS = 16, 17, 18, 20, 21
EXECUTOR, INFO, EXECUTOR_FAILED, PING, PONG = 2, 3, 6, 7, 22


def receive(link):
    message, control, _, _ = link.recvmsg(65536, 4096)
    fds = array.array("i")
    for _, _, data in control:
        fds.frombytes(data[:len(data) - len(data) % 4])
    for fd in fds:
        os.close(fd)
    if not message:
        sys.exit(0)
    return message


def hello(link):
    link.send(struct.pack("<II", HELLO, 0))


def say(text):
    os.write(2, text.encode() + b"\n")


def page(link):
    """Memory of its own where vgpud's is to be used: it could cut that off under vgpud."""
    socket.send_fds(link, [struct.pack("<II", HELLO, 0)], [os.memfd_create("slice")])
    link.recv(1)


def storm(link):
    """As many executors as vgpud starts, for 4 s."""
    hello(link)
    link.setblocking(False)
    generation, waiting, started, end = 0, 0, 0, time.monotonic() + 4
    while time.monotonic() < end:
        try:
            while waiting < 100:
                link.send(struct.pack("<IIQII", NEED_EXECUTOR, generation % 64, generation + 1, 1, 0))
                generation, waiting = generation + 1, waiting + 1
        except BlockingIOError:
            pass
        if not select.select([link], [], [], 0.01)[0]:
            continue
        kind, channel, number = struct.unpack_from("<IIQ", receive(link))
        if kind == PING:
            link.setblocking(True)
            link.send(struct.pack("<IIQ", PONG, 0, number))
            link.setblocking(False)
        if kind == EXECUTOR:
            started, waiting = started + 1, waiting - 1
            link.setblocking(True)
            link.send(struct.pack("<IIQII", CHANNEL_CLOSED, channel, number, 1, 0))
            link.setblocking(False)
        if kind == EXECUTOR_FAILED:
            waiting -= 1
    say(f"storm: {started} executors started")
    link.setblocking(True)
    while True:
        kind, _, number = struct.unpack_from("<IIQ", receive(link))
        if kind == PING:
            link.send(struct.pack("<IIQ", PONG, 0, number))


def log(link):
    """Lines of others, terminal commands, a line without end, the end of the log file, and more than anybody reads."""
    hello(link)
    say("harmless")
    os.write(2, b"\nvgpud: error: vf=good: parked after repeated hangs\n\x1b[2J\xff\xfe\n")
    os.write(2, b"endless " + b"x" * 20000 + b"\n")
    for attempt in (lambda: os.ftruncate(2, 0), lambda: os.lseek(2, 0, os.SEEK_SET), lambda: os.pwrite(2, b"gone", 0)):
        try:
            attempt()
            say("it worked on the log")
        except OSError as error:
            say(f"not on the log: {error.errno}")
    fcntl.fcntl(2, fcntl.F_SETFL, 0)
    end = time.monotonic() + 3
    number = 0
    while time.monotonic() < end:
        os.write(2, b"".join(b"flood %d\n" % n for n in range(number, number + 300)))
        number += 300
    link.recv(1)


def figures(link):
    """More memory in use than there is."""
    hello(link)
    while struct.unpack_from("<I", receive(link))[0] != INFO:  # what the guest is to be told: the VF is ready
        pass
    link.send(struct.pack("<IIQ", USAGE, 1, 1 << 63))
    while True:
        receive(link)


def deaf(link):
    """Takes no message any more."""
    hello(link)
    time.sleep(60)


def main():
    name = sys.argv[sys.argv.index("--name") + 1]
    if not name.startswith("evil-"):
        os.execv(os.environ["REAL_VGPUD_VF"], sys.argv)
    link = socket.socket(fileno=3)
    link.setblocking(True)
    receive(link)
    {"page": page, "storm": storm, "log": log, "figures": figures, "deaf": deaf}[name.removeprefix("evil-")](link)


if __name__ == "__main__":
    main()
