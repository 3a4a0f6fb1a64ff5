# SPDX-License-Identifier: Apache-2.0
"""A vgpud-vf with its real sockets for tests that speak to it in bytes, with the test in the place of vgpud.

The first argument of a test is the path of vgpud-vf, the others are those of unittest.
"""
import errno
import mmap
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "vgpud-vf"
WAIT = 20.0  # a limit for hangs, never a measure

VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, REGION_INFO, IRQ_INFO, SET_IRQS = 1, 2, 3, 4, 5, 7, 8
READ, WRITE, RESET = 9, 10, 13
REPLY, NO_REPLY, ERROR = 1, 0x10, 0x20
BAR0, CONFIG = 0, 7
MSI = 1
MAGIC = 0x55504756
CONFIGURE, EXECUTOR, INFO, VF_RESET, SHUTDOWN = 1, 2, 3, 4, 5
HELLO, NEED, CLOSED, CLIENT, USAGE = 16, 17, 18, 19, 20
ATTACH, MAP_AREA, UNMAP_AREA, VRAM_REPLY, UNMAPPED, VRAM_REQUEST = 1, 2, 3, 4, 16, 17
CHANNEL_BYTES = 0x31000 + 0x10000
FREE, OPEN, LOST, CLOSING = 0, 1, 2, 3


def wait_for(what, condition):
    end = time.monotonic() + WAIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("never happened: " + what)
        time.sleep(0.001)


def taken_by_host(*pids):
    """Seconds that the threads of these processes were ready and had no core, and that a hypervisor took from the cores."""
    waited = 0
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                waited += int(file.read().split()[1])
    with open("/proc/stat", encoding="ascii") as file:
        stolen = int(file.readline().split()[8])
    return waited / 1e9 + stolen / os.sysconf("SC_CLK_TCK")


def make_slice_pages():
    """The grant page, read-only as vgpud hands it on, and the slot page (base/slice_page.h)."""
    sizes = {"grant": 4096, "slots": 12288}
    grant, slots = (os.memfd_create(name, os.MFD_ALLOW_SEALING) for name in sizes)
    for fd, size in zip((grant, slots), sizes.values()):
        os.ftruncate(fd, size)
    os.write(grant, struct.pack("<II", 0x43494C53, 7))
    read_only = os.open("/proc/self/fd/%d" % grant, os.O_RDONLY)
    os.close(grant)
    return read_only, slots


class Executor:
    """A child process at the end of an executor link. Deaf: ignores all messages and the end of its link."""

    def __init__(self, deaf=False):
        self.link, mine = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.closerange(3, mine.fileno())
                os.closerange(mine.fileno() + 1, 1024)
                self.run(mine, deaf)
            finally:
                os._exit(0)
        mine.close()
        self.pidfd = os.pidfd_open(self.pid)

    @staticmethod
    def run(link, deaf):
        signal.alarm(60)
        while deaf:
            signal.pause()
        while True:
            message = link.recv(65536)
            if not message:
                return
            kind, area = struct.unpack_from("<II", message)
            if kind == UNMAP_AREA:
                link.send(struct.pack("<IIQIIII", UNMAPPED, area, 0, 0, 0, 0, 0))

    def reap(self):
        os.close(self.pidfd)
        return os.waitpid(self.pid, 0)[1]


class Vf:
    """A vgpud-vf process and this test's end of its link."""

    def __init__(self, vram=1 << 30, budgets=()):
        self.folder = tempfile.mkdtemp(prefix="vfio-test-")
        self.vfio = self.folder + "/vfio.sock"
        self.channel = self.folder + "/channel.sock"
        self.log = open(self.folder + "/log", "w+")
        self.link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fd = theirs.detach()
        spare = os.dup(fd)

        def child():
            os.dup2(spare, 3)
            os.set_inheritable(3, True)

        self.process = subprocess.Popen(
            [PROGRAM, "--name", "t", "--vfio-socket", self.vfio, "--channel-socket", self.channel,
             *(f"--event-budget={budget}" for budget in budgets)],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, close_fds=True, pass_fds=[spare, 3],
            preexec_fn=child, env=dict(os.environ, VGPUD_LOG="debug"))
        os.close(fd)
        os.close(spare)
        self.link.settimeout(WAIT)
        self.grant, self.slots = make_slice_pages()
        socket.send_fds(self.link, [struct.pack("<IIQII16s64sQ64sII", CONFIGURE, 0, vram, 2000, 100, bytes(range(16)), b"t",
                                                    vram, b"a GPU", 75, 0)],
                        [self.grant, self.slots])
        message, fds, _, _ = socket.recv_fds(self.link, 65536, 16)
        assert struct.unpack_from("<I", message)[0] == HELLO and not fds, message
        self.deaf = False
        self.executors = []
        self.slice_us = 2000

    def expect(self, kind):
        """The next message of `kind` to vgpud; starts executors and skips others on the way."""
        while True:
            message = self.link.recv(65536)
            if not message:
                raise AssertionError("vgpud-vf ended:\n" + self.text())
            got = struct.unpack_from("<I", message)[0]
            if got == NEED:
                executor = Executor(self.deaf)
                self.executors.append(executor)
                socket.send_fds(self.link, [struct.pack("<I", EXECUTOR) + message[4:]],
                                [executor.link.fileno(), executor.pidfd])
                executor.link.close()
            if got == kind:
                return message

    def attach_executor(self, client, count=1):
        """Answers `count` requests for executors, and returns when vgpud-vf has handled the answers."""
        for _ in range(count):
            self.expect(NEED)
        self.slice_us += 1
        self.link.send(struct.pack("<IIII", INFO, self.slice_us, 100, 1))
        wait_for("link served", lambda: client.word(0x20) == self.slice_us)

    def text(self):
        with open(self.folder + "/log") as log:
            return log.read()

    def alive(self):
        return self.process.poll() is None

    def fds(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def wait_for_fds(self, most):
        """Until vgpud-vf has no more than `most`. What others sent is closed by threads of their own, after the answer."""
        wait_for("at most %d descriptors" % most, lambda: self.fds() <= most)

    def stop(self):
        if self.alive():
            self.process.kill()
        self.process.wait()
        for executor in self.executors:
            try:
                os.kill(executor.pid, signal.SIGKILL)
                executor.reap()
            except (ProcessLookupError, ChildProcessError, OSError):
                pass
        for fd in (self.grant, self.slots):
            os.close(fd)
        self.link.close()
        self.log.close()
        shutil.rmtree(self.folder)


class ProtocolError(Exception):
    def __init__(self, number):
        super().__init__(errno.errorcode.get(number, number))
        self.errno = number


class Client:
    """A vfio-user client that speaks bytes."""

    def __init__(self, vf, version=True):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(vf.vfio)
        self.socket.settimeout(WAIT)
        self.id = 0
        if version:
            self.version()

    @staticmethod
    def message(number, command, body=b"", flags=0):
        return struct.pack("<HHIII", number & 0xffff, command, 16 + len(body), flags, 0) + body

    def send(self, command, body=b"", flags=0, fds=()):
        self.id += 1
        data = self.message(self.id, command, body, flags)
        if fds:
            socket.send_fds(self.socket, [data], list(fds))
        else:
            self.socket.sendall(data)
        return self.id

    def bytes(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def reply(self, number, command):
        got, cmd, size, flags, error = struct.unpack("<HHIII", self.bytes(16))
        body = self.bytes(size - 16)
        assert (got, cmd) == (number & 0xffff, command), (got, cmd, number, command)
        assert flags & 0xf == REPLY
        if flags & ERROR:
            assert not body
            raise ProtocolError(error)
        assert error == 0, error
        return body

    def call(self, command, body=b"", fds=(), flags=0):
        return self.reply(self.send(command, body, flags, fds), command)

    def version(self, text=b'{"capabilities": {"max_msg_fds": 16}}\0'):
        return self.call(VERSION, struct.pack("<HH", 0, 0) + text)

    def read(self, region, offset, count):
        body = self.call(READ, struct.pack("<QII", offset, region, count))
        assert struct.unpack_from("<QII", body) == (offset, region, count)
        return body[16:]

    def write(self, region, offset, data, flags=0):
        body = struct.pack("<QII", offset, region, len(data)) + data
        return self.send(WRITE, body, flags) if flags & NO_REPLY else self.call(WRITE, body)

    def word(self, offset):
        return struct.unpack("<I", self.read(BAR0, offset, 4))[0]

    def put(self, offset, value, flags=NO_REPLY):
        self.write(BAR0, offset, struct.pack("<I", value), flags)

    def bus_master(self, on=True):
        self.write(CONFIG, 4, b"\6\0" if on else b"\2\0", flags=0)

    def map(self, iova, size, fd=None, offset=0, flags=3):
        return self.call(DMA_MAP, struct.pack("<IIQQQ", 32, flags, offset, iova, size), [] if fd is None else [fd])

    def unmap(self, iova, size, flags=0):
        return self.call(DMA_UNMAP, struct.pack("<IIQQ", 24, flags, iova, size))

    def set_irqs(self, flags, index, start, count, fds=(), data=b""):
        return self.call(SET_IRQS, struct.pack("<IIIII", 20, flags, index, start, count) + data, fds)

    def close(self):
        self.socket.close()


class Guest(Client):
    """A client with RAM and MSI that uses the control page as the guest kernel does."""
    BASE, BYTES = 0x100000, 16 << 20
    PAGE, LIST, AREA = 0, 0x1000, 0x100000  # offsets

    def __init__(self, vf):
        super().__init__(vf)
        self.fd = os.memfd_create("ram")
        os.ftruncate(self.fd, self.BYTES)
        self.ram = mmap.mmap(self.fd, self.BYTES)
        self.map(self.BASE, self.BYTES, self.fd)
        self.msi = os.eventfd(0, os.EFD_NONBLOCK)
        self.set_irqs(0x24, MSI, 0, 1, [self.msi])
        self.set_page(self.BASE + self.PAGE)

    def set_page(self, address):
        self.bus_master()
        self.write(BAR0, 0x100, struct.pack("<Q", address))

    def close(self):
        super().close()
        self.ram.close()
        os.close(self.fd)
        os.close(self.msi)

    def interrupted(self, what):
        ready = select.select([self.msi], [], [], WAIT)[0]
        assert ready, "no interrupt: " + what
        os.eventfd_read(self.msi)

    def command(self, op, channel, buffer=0, segments=()):
        struct.pack_into("<%dQ" % (2 * len(segments)), self.ram, self.LIST, *[x for s in segments for x in s])
        struct.pack_into("<IIIIQQQQQiI", self.ram, self.PAGE, op, channel, buffer, len(segments),
                         self.BASE + self.LIST if segments else 0, 0, 0, 0, 0, 12345, 0)
        before = self.word(0x10c)
        self.put(0x108, 1)
        assert self.word(0x10c) == before + 1
        return struct.unpack_from("<i", self.ram, self.PAGE + 0x38)[0]

    def state(self, channel):
        return struct.unpack_from("<I", self.ram, self.PAGE + 0x40 + 4 * channel)[0]

    def acks(self, channel):
        return struct.unpack_from("<I", self.ram, self.PAGE + 0x140 + 4 * channel)[0]

    def create(self, channel=0):
        struct.pack_into("<IIQI", self.ram, self.AREA, MAGIC, 1, 0x10000, 77)
        return self.command(1, channel, 0, [(self.BASE + self.AREA, CHANNEL_BYTES)])

    def create_when_free(self, channel=0):
        """After a reset a channel stays busy until its last executor is gone."""
        wait_for("a free channel", lambda: self.create(channel) != -errno.EBUSY)
        assert self.state(channel) == OPEN

    def wait_state(self, channel, state):
        while self.state(channel) != state:
            self.interrupted("channel state %d" % state)


class VfTest(unittest.TestCase):
    BUDGETS = ()

    def setUp(self):
        self.vf = Vf(budgets=self.BUDGETS)
        self.addCleanup(self.vf.stop)
        warnings.simplefilter("ignore", ResourceWarning)  # sockets close with their test

    def assertErrno(self, number, call, *args, **kwargs):
        with self.assertRaises(ProtocolError) as caught:
            call(*args, **kwargs)
        self.assertEqual(errno.errorcode[number], errno.errorcode.get(caught.exception.errno))
