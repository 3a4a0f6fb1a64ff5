#!/usr/bin/env python3
"""vgpud-vf over its real sockets, spoken to in bytes by a small client, with this test in the place of vgpud.

usage: vfio_server_test.py PATH-TO-VGPUD-VF [unittest arguments]
"""
import errno
import json
import mmap
import os
import random
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
        self.sched_event = os.eventfd(0, os.EFD_NONBLOCK)
        socket.send_fds(self.link, [struct.pack("<IIQII16s64s", CONFIGURE, 0, vram, 2000, 100, bytes(range(16)), b"t")],
                        [self.sched_event])
        message, fds, _, _ = socket.recv_fds(self.link, 65536, 16)
        assert struct.unpack_from("<I", message)[0] == HELLO and len(fds) == 1, message
        self.slice_page = fds[0]
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
        for fd in (self.sched_event, self.slice_page):
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
        self.write(BAR0, 0x100, struct.pack("<Q", self.BASE + self.PAGE))

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


class ProtocolTest(VfTest):
    def test_version(self):
        client = Client(self.vf, version=False)
        self.assertErrno(errno.EINVAL, client.call, RESET)
        self.assertErrno(errno.EPROTONOSUPPORT, client.call, VERSION, struct.pack("<HH", 1, 0))
        for text in (b"{}", b"\0\0", b'{"a":"\0"}\0'):
            self.assertErrno(errno.EINVAL, client.call, VERSION, struct.pack("<HH", 0, 0) + text)
        body = client.version()
        self.assertEqual((0, 0), struct.unpack_from("<HH", body))
        self.assertEqual(b"\0", body[-1:])
        capabilities = json.loads(body[4:-1])["capabilities"]
        self.assertEqual(16, capabilities["max_msg_fds"])
        self.assertNotIn("migration", capabilities)
        self.assertErrno(errno.EINVAL, client.version)
        self.assertEqual(MAGIC, client.word(0))

    def test_hostile_version_text(self):
        texts = [b"", b"[" * 60000 + b"\0", b'"' * 1001 + b"\0", b'{"max_msg_fds":' + b"9" * 5000 + b"\0",
                 b'{"max_msg_fds":NaN,"max_msg_fds":-1}\0', bytes(range(1, 256)) + b"\0", b'{"\\\0']
        for text in texts:
            client = Client(self.vf, version=False)
            client.version(text)
            self.assertEqual(MAGIC, client.word(0))
            client.close()
        client = Client(self.vf, version=False)
        client.socket.sendall(Client.message(1, VERSION, b"\0" * (1 << 20))[:4096])
        self.assertRaises((EOFError, ConnectionError), client.bytes, 1)
        self.assertEqual(MAGIC, Client(self.vf).word(0))

    def test_device_description(self):
        client = Client(self.vf)
        self.assertEqual((16, 3, 9, 5), struct.unpack("<IIII", client.call(GET_INFO, struct.pack("<IIII", 16, 0, 0, 0))))
        sizes = {BAR0: 0x10000, CONFIG: 4096}
        for index in range(9):
            reply = struct.unpack("<IIIIQQ", client.call(REGION_INFO, struct.pack("<IIIIQQ", 32, 0, index, 0, 0, 0)))
            self.assertEqual((32, 3 if index in sizes else 0, index, 0, sizes.get(index, 0), 0), reply)
        for index, count in enumerate((1, 1, 0, 1, 1)):
            reply = struct.unpack("<IIII", client.call(IRQ_INFO, struct.pack("<IIII", 16, 0, index, 0)))
            self.assertEqual((index, count), reply[2:])
        self.assertErrno(errno.EINVAL, client.call, GET_INFO, struct.pack("<IIII", 15, 0, 0, 0))
        self.assertErrno(errno.EINVAL, client.call, REGION_INFO, struct.pack("<IIIIQQ", 31, 0, 0, 0, 0, 0))
        self.assertErrno(errno.EINVAL, client.call, REGION_INFO, struct.pack("<IIIIQQ", 32, 0, 9, 0, 0, 0))
        self.assertErrno(errno.EINVAL, client.call, IRQ_INFO, struct.pack("<IIII", 16, 0, 5, 0))
        self.assertErrno(errno.EINVAL, client.call, IRQ_INFO, struct.pack("<III", 16, 0, 0))

    def test_unknown_commands_and_flags(self):
        client = Client(self.vf)
        for command in (0, 6, 11, 12, 14, 15, 16, 0xffff):
            self.assertErrno(errno.ENOSYS, client.call, command)
        self.assertErrno(errno.EINVAL, client.call, RESET, flags=2)
        client.send(RESET, flags=REPLY)
        self.assertErrno(errno.EINVAL, client.call, RESET, b"x")
        self.assertEqual(MAGIC, client.word(0))

    def test_config_space_and_bar(self):
        client = Client(self.vf)
        config = client.read(CONFIG, 0, 4096)
        self.assertEqual(b"\xf4\x1a\xf0\x10", config[:4])
        self.assertEqual(b"\x00\x02\x03", config[9:12])
        client.write(CONFIG, 0x10, b"\xff\xff\xff\xff")
        self.assertEqual(b"\0\0\xff\xff", client.read(CONFIG, 0x10, 4))
        for region, offset, count in ((CONFIG, 4095, 2), (CONFIG, 4096, 1), (BAR0, 0x10000, 4), (1, 0, 4), (9, 0, 4),
                                      (BAR0, 1 << 63, 4), (BAR0, 0, 0), (BAR0, 0, 65537), (CONFIG, 0, 0xffffffff)):
            self.assertErrno(errno.EINVAL, client.read, region, offset, count)
        self.assertEqual(65536, len(client.read(BAR0, 0, 65536)))
        self.assertErrno(errno.EINVAL, client.write, CONFIG, 4095, b"ab")
        self.assertErrno(errno.EINVAL, client.call, WRITE, struct.pack("<QII", 0, CONFIG, 4) + b"abc")
        self.assertEqual(struct.pack("<Q", 1 << 30), client.read(BAR0, 0x18, 8))

    def test_posted_writes_are_never_answered(self):
        client = Client(self.vf)
        for _ in range(500):
            client.write(BAR0, 0x1000, b"\1\0\0\0", NO_REPLY)
            client.write(BAR0, 1 << 40, b"\1\0\0\0", NO_REPLY)  # an error, and still no answer
            client.send(99, flags=NO_REPLY)
        client.send(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, 0, 0), NO_REPLY)
        client.send(DMA_UNMAP, struct.pack("<IIQQ", 24, 2, 0, 0), NO_REPLY)
        self.assertEqual(MAGIC, client.word(0))

    def test_byte_by_byte_and_pipelined(self):
        client = Client(self.vf)
        read = struct.pack("<QII", 0, BAR0, 4)
        for byte in Client.message(5, READ, read):
            client.socket.sendall(bytes([byte]))
        self.assertEqual(MAGIC, struct.unpack("<I", client.reply(5, READ)[16:])[0])
        client.socket.sendall(b"".join(Client.message(i, READ, read) for i in range(2000)))
        for i in range(2000):
            self.assertEqual(MAGIC, struct.unpack("<I", client.reply(i, READ)[16:])[0])

    def test_a_client_that_does_not_read_gets_everything_later(self):
        client = Client(self.vf)
        big = Client.message(1, READ, struct.pack("<QII", 0, BAR0, 65536))
        client.socket.sendall(big * 100)
        for _ in range(100):
            self.assertEqual(65552, len(client.reply(1, READ)))
        self.assertEqual(MAGIC, client.word(0))

    def test_second_client_is_refused_and_the_next_one_served(self):
        first = Client(self.vf)
        second = Client(self.vf, version=False)
        self.assertRaises((EOFError, ConnectionError), second.version)
        self.assertEqual(MAGIC, first.word(0))
        self.assertIn("refused", self.vf.text())
        for _ in range(50):
            first.close()
            wait_for("client gone", lambda: struct.unpack_from("<II", self.vf.expect(CLIENT))[1] == 0)
            first = Client(self.vf)
            self.assertEqual(MAGIC, first.word(0))

    def test_header_that_cannot_be_ends_only_that_connection(self):
        for size in (0, 15, 1 << 20, 0xffffffff):
            client = Client(self.vf)
            client.socket.sendall(struct.pack("<HHIII", 1, READ, size, 0, 0))
            self.assertRaises((EOFError, ConnectionError), client.bytes, 1)
            client.close()
        self.assertEqual(MAGIC, Client(self.vf).word(0))
        self.assertIn("connection closed", self.vf.text())

    def test_reset(self):
        client = Client(self.vf)
        client.write(CONFIG, 4, b"\6\0")
        client.put(0x100, 0x5000)
        self.assertEqual(0x5000, client.word(0x100))
        client.call(RESET)
        self.assertEqual(b"\0\0", client.read(CONFIG, 4, 2))
        self.assertEqual(0, client.word(0x100))
        client.put(0x100, 0x5000)
        client.write(CONFIG, 0x68, b"\0\x80")
        self.assertEqual(0, client.word(0x100))
        self.assertEqual(b"\x10\x28", client.read(CONFIG, 0x68, 2))


class DmaTest(VfTest):
    def setUp(self):
        super().setUp()
        self.client = Client(self.vf)
        self.fd = os.memfd_create("ram")
        os.ftruncate(self.fd, 1 << 20)
        self.addCleanup(os.close, self.fd)

    def test_map_and_unmap(self):
        client = self.client
        client.map(0, 0x10000, self.fd)
        client.map(0x10000, 0x10000, self.fd, offset=0x20000, flags=1)
        client.map(0xfffc0000, 0x40000)
        self.assertErrno(errno.EEXIST, client.map, 0xf000, 0x1000, self.fd)
        self.assertErrno(errno.EINVAL, client.map, 1 << 32, 0)
        self.assertErrno(errno.EINVAL, client.map, (1 << 64) - 4096, 8192)
        self.assertErrno(errno.EINVAL, client.map, 1 << 32, 0x1000, self.fd, flags=4)
        self.assertErrno(errno.EINVAL, client.unmap, 0, 0x1000)
        self.assertErrno(errno.ENOENT, client.unmap, 1 << 40, 0x1000)
        self.assertErrno(errno.EINVAL, client.unmap, 0, 0x10000, flags=4)
        self.assertEqual((24, 0, 0, 0x10000), struct.unpack("<IIQQ", client.unmap(0, 0x10000)))
        self.assertErrno(errno.EINVAL, client.unmap, 1, 1, flags=2)
        client.unmap(0, 0, flags=2)
        client.map(0, 1 << 20, self.fd)

    def test_bad_descriptors(self):
        client = self.client
        before = self.vf.fds()
        read_end, write_end = os.pipe()
        short = os.memfd_create("short")
        os.ftruncate(short, 4096)
        folder = os.open("/", os.O_RDONLY)
        for fd in (read_end, write_end, folder, client.socket.fileno(), self.vf.sched_event):
            self.assertErrno(errno.EINVAL, client.map, 0, 0x1000, fd)
        self.assertErrno(errno.EINVAL, client.map, 0, 0x2000, short)
        self.assertErrno(errno.EINVAL, client.map, 0, 0x1000, short, offset=1 << 40)
        read_only = os.open("/proc/self/fd/%d" % short, os.O_RDONLY)
        self.assertErrno(errno.EACCES, client.map, 0, 0x1000, read_only)
        body = struct.pack("<IIQQQ", 32, 3, 0, 0, 4096)
        self.assertErrno(errno.EINVAL, client.call, DMA_MAP, body, [short, short])
        self.assertErrno(errno.EINVAL, client.call, DMA_MAP, body, [short] * 200)
        self.assertErrno(errno.EINVAL, client.call, GET_INFO, struct.pack("<IIII", 16, 0, 0, 0), [short])
        self.assertErrno(errno.EINVAL, client.set_irqs, 0x24, MSI, 0, 1, [read_end])
        self.assertErrno(errno.EINVAL, client.set_irqs, 0x24, MSI, 0, 1, [write_end])
        for fd in (read_end, write_end, short, folder, read_only):
            os.close(fd)
        self.assertEqual(MAGIC, client.word(0))
        self.assertEqual(before, self.vf.fds())

    def test_storm_keeps_no_descriptors(self):
        client = self.client
        client.map(0, 1 << 20, self.fd)
        before = self.vf.fds()
        for _ in range(300):
            client.unmap(0, 1 << 20)
            client.map(0, 1 << 20, self.fd)
        self.assertEqual(before, self.vf.fds())
        for i in range(1, 4096):
            client.map(i << 20, 1 << 20)
        self.assertErrno(errno.ENOSPC, client.map, 1 << 40, 4096)
        client.unmap(0, 0, flags=2)

    def test_interrupts(self):
        client = self.client
        event = os.eventfd(0, os.EFD_NONBLOCK)
        for index in (0, 1, 3, 4):
            client.set_irqs(0x24, index, 0, 1, [event])
            client.set_irqs(0x21, index, 0, 1)
            self.assertEqual(1, os.eventfd_read(event))
            client.set_irqs(0x21, index, 0, 0)
            client.set_irqs(0x21, index, 0, 1)
            self.assertRaises(BlockingIOError, os.eventfd_read, event)
        for flags, index, start, count in ((0x24, 2, 0, 1), (0x24, 1, 1, 1), (0x24, 1, 0, 9), (0x24, 5, 0, 1),
                                           (0x27, 1, 0, 1), (0, 1, 0, 1), (0x22, 1, 0, 1)):
            self.assertErrno(errno.EINVAL, client.set_irqs, flags, index, start, count)
        os.close(event)


class GarbageTest(VfTest):
    MESSAGES = 100000
    BUDGETS = ("resets=0", "bad_messages=0", "commands=0", "messages=0")

    @staticmethod
    def send_and_read(client, data):
        """The VF takes nothing from a client that leaves its answers lying."""
        while data:
            readable, writable, _ = select.select([client], [client], [], WAIT)
            if readable and not client.recv(1 << 20):
                raise ConnectionResetError
            if writable:
                data = data[client.send(data):]
            elif not readable:
                raise TimeoutError

    def test_mutated_messages(self):
        rng = random.Random(20240917)
        fd = os.memfd_create("ram")
        os.ftruncate(fd, 1 << 16)
        bodies = {
            VERSION: struct.pack("<HH", 0, 0) + b'{"capabilities":{"max_msg_fds":4}}\0',
            DMA_MAP: struct.pack("<IIQQQ", 32, 3, 0, 0, 0x10000),
            DMA_UNMAP: struct.pack("<IIQQ", 24, 0, 0, 0x10000),
            GET_INFO: struct.pack("<IIII", 16, 0, 0, 0),
            REGION_INFO: struct.pack("<IIIIQQ", 32, 0, 0, 0, 0, 0),
            IRQ_INFO: struct.pack("<IIII", 16, 0, 1, 0),
            SET_IRQS: struct.pack("<IIIII", 20, 0x24, 1, 0, 1),
            READ: struct.pack("<QII", 0, BAR0, 4),
            WRITE: struct.pack("<QII", 0x108, BAR0, 4) + b"\1\0\0\0",
            RESET: b"",
        }
        client = None
        sent = 0
        while sent < self.MESSAGES:
            if client is None:
                client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                client.connect(self.vf.vfio)
                client.settimeout(WAIT)
                try:
                    client.sendall(Client.message(0, VERSION, bodies[VERSION]))
                except (BrokenPipeError, ConnectionResetError):
                    client.close()
                    client = None
                    continue
            batch = bytearray()
            for _ in range(20):
                command = rng.choice(list(bodies))
                message = bytearray(Client.message(sent, command, bodies[command], rng.choice((0, 0, 0x10))))
                for _ in range(rng.choice((0, 1, 1, 2, 5))):
                    # Mostly behind the size field, so that the stream goes on and handlers are reached.
                    at = rng.randrange(len(message)) if rng.random() < 0.02 else \
                        rng.choice([2, 3] + list(range(8, len(message))))
                    message[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)))
                if rng.random() < 0.002:
                    message = bytearray(rng.randbytes(rng.randrange(1, 200)))
                batch += message
                sent += 1
            try:
                if rng.random() < 0.1:
                    socket.send_fds(client, [bytes(batch)], [fd] * rng.randrange(1, 20))
                else:
                    self.send_and_read(client, batch)
                while select.select([client], [], [], 0)[0]:
                    if not client.recv(1 << 20):
                        raise ConnectionResetError
                if rng.random() < 0.005:
                    raise ConnectionResetError
            except (BrokenPipeError, ConnectionResetError):
                client.close()
                client = None
                self.assertTrue(self.vf.alive(), self.vf.text()[-2000:])
        if client is not None:
            client.close()
        os.close(fd)
        self.assertTrue(self.vf.alive(), self.vf.text()[-2000:])

        def next_client_works():
            try:
                return Client(self.vf).word(0) == MAGIC
            except (EOFError, ConnectionError):
                return False  # the last one is not gone yet

        wait_for("the next client", next_client_works)


class ChannelTest(VfTest):
    def test_life_of_a_channel(self):
        guest = Guest(self.vf)
        self.assertEqual(0, guest.create())
        self.assertEqual(OPEN, guest.state(0))
        self.assertEqual(-errno.EBUSY, guest.create())
        self.vf.attach_executor(guest)
        self.assertEqual(0, guest.command(3, 0, 9, [(guest.BASE + 0x800000, 0x4000)]))
        self.assertEqual(0, guest.command(4, 0, 9))
        while guest.acks(0) != 1:
            guest.interrupted("buffer removed")
        self.assertEqual(0, guest.command(2, 0))
        guest.wait_state(0, FREE)
        self.vf.expect(CLOSED)
        self.assertEqual(0, self.vf.executors[0].reap(), "it has exited by itself")
        self.assertEqual(0, guest.create())

    def test_killed_executor_is_a_lost_channel(self):
        guest = Guest(self.vf)
        guest.create()
        self.vf.attach_executor(guest)
        self.assertEqual(0, guest.command(3, 0, 9, [(guest.BASE + 0x800000, 0x4000)]))
        os.kill(self.vf.executors[0].pid, signal.SIGKILL)
        guest.wait_state(0, LOST)
        self.assertEqual((LOST,), struct.unpack_from("<I", guest.ram, guest.AREA + 0x8c))
        self.assertEqual((719,), struct.unpack_from("<I", guest.ram, guest.AREA + 0x98))
        self.assertEqual(0, guest.command(2, 0))
        guest.wait_state(0, FREE)

    def test_deaf_executor_is_killed(self):
        self.vf.deaf = True
        guest = Guest(self.vf)
        guest.create()
        self.vf.attach_executor(guest)
        self.assertEqual(0, guest.command(2, 0))
        self.assertEqual(-errno.EBUSY, guest.create())
        self.assertEqual(MAGIC, guest.word(0), "nothing waits for it")
        guest.wait_state(0, FREE)
        self.assertEqual(signal.SIGKILL, os.WTERMSIG(self.vf.executors[0].reap()))

    def test_executor_that_comes_too_late_is_killed(self):
        guest = Guest(self.vf)
        guest.create()
        need = b""
        while not need or struct.unpack_from("<I", need)[0] != NEED:
            need = self.vf.link.recv(65536)
        self.assertEqual(0, guest.command(2, 0))
        guest.wait_state(0, FREE)
        late = Executor(deaf=True)
        self.vf.executors.append(late)
        socket.send_fds(self.vf.link, [struct.pack("<I", EXECUTOR) + need[4:]], [late.link.fileno(), late.pidfd])
        late.link.close()
        self.assertEqual(signal.SIGKILL, os.WTERMSIG(late.reap()))

    def test_unmap_waits_for_executors_and_kills_deaf_ones(self):
        for deaf in (False, True):
            self.vf.deaf = deaf
            guest = Guest(self.vf)
            extra = os.memfd_create("extra")
            os.ftruncate(extra, 0x10000)
            guest.map(1 << 32, 0x10000, extra)
            self.assertEqual(0, guest.create())
            self.vf.attach_executor(guest)
            self.assertEqual(0, guest.command(3, 0, 1, [(1 << 32, 0x10000)]))
            unmap = guest.send(DMA_UNMAP, struct.pack("<IIQQ", 24, 0, 1 << 32, 0x10000))
            read = guest.send(READ, struct.pack("<QII", 0, BAR0, 4))
            guest.reply(unmap, DMA_UNMAP)
            guest.reply(read, READ)
            self.assertEqual(LOST if deaf else OPEN, guest.state(0))
            guest.unmap(0, 0, flags=2)
            self.assertTrue(os.waitid(os.P_PID, self.vf.executors[-1].pid, os.WEXITED | os.WNOWAIT))
            guest.close()
            os.close(extra)
            wait_for("client gone", lambda: struct.unpack_from("<II", self.vf.expect(CLIENT))[1] == 0)

    def test_client_death_ends_its_executors(self):
        guest = Guest(self.vf)
        for channel in range(3):
            self.assertEqual(0, guest.create(channel))
        self.vf.attach_executor(guest, 3)
        guest.socket.close()
        for _ in range(3):
            self.vf.expect(CLOSED)
        for executor in self.vf.executors:
            self.assertEqual(0, executor.reap())
        guest = Guest(self.vf)
        self.assertEqual(0, guest.create())

    def test_reset_ends_its_executors(self):
        guest = Guest(self.vf)
        for reset in (lambda: guest.call(RESET), lambda: guest.write(CONFIG, 0x68, b"\0\x80"),
                      lambda: self.vf.link.send(struct.pack("<II", VF_RESET, 0))):
            guest.write(BAR0, 0x100, struct.pack("<Q", guest.BASE))
            self.assertEqual(0, guest.create())
            self.vf.attach_executor(guest)
            reset()
            self.vf.expect(CLOSED)
            self.assertEqual(0, self.vf.executors[-1].reap())

    def test_memory_that_is_not_shared(self):
        client = Client(self.vf)
        client.map(0, 1 << 29)
        client.put(0x100, 0x5000)
        client.put(0x108, 1)
        self.assertEqual(0, client.word(0x10c))
        self.assertIn("memory-backend-memfd", self.vf.text())
        self.assertIn("<access mode='shared'/>", self.vf.text())

    def test_truncated_memory_is_survived(self):
        guest = Guest(self.vf)
        guest.create()
        self.vf.attach_executor(guest)
        os.ftruncate(guest.fd, 0)
        guest.put(0x108, 1)
        self.assertEqual(MAGIC, guest.word(0))
        os.kill(self.vf.executors[0].pid, signal.SIGKILL)
        self.vf.expect(CLOSED)
        self.assertEqual(MAGIC, guest.word(0))


class Direct:
    """A client of channel.sock."""

    def __init__(self, vf):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(vf.channel)
        self.socket.settimeout(WAIT)

    def call(self, op, buffer=0, size=0, mbz=0):
        self.socket.send(struct.pack("<IIQIIII", op, buffer, size, os.getpid(), mbz, 0, 0))
        return self.reply()

    def reply(self):
        message, fds, _, _ = socket.recv_fds(self.socket, 65536, 16)
        if not message:
            raise EOFError
        op, status, buffer = struct.unpack_from("<IiI", message)
        return op, status, buffer, message[16:], fds


class ChannelSockTest(VfTest):
    def test_open_alloc_free(self):
        client = Direct(self.vf)
        self.assertEqual(-errno.EINVAL, client.call(2, size=4096)[1], "OPEN comes first")
        self.assertEqual(-errno.EPROTONOSUPPORT, client.call(1, size=2)[1])
        self.assertEqual(-errno.EINVAL, client.call(1, size=1, mbz=1)[1])
        self.assertEqual(-errno.ENOSYS, client.call(9)[1])
        op, status, _, info, fds = client.call(1, size=1)
        self.assertEqual((1, 0, 3), (op, status, len(fds)))
        abi, channel, area_bytes, vram, features, slice_us, weight = struct.unpack_from("<IIQQQII", info)
        self.assertEqual((1, 1 << 30, 3, 2000, 100), (abi, vram, features, slice_us, weight))
        self.assertEqual(area_bytes, os.fstat(fds[0]).st_size)
        self.assertRaises(OSError, os.ftruncate, fds[0], 0)
        area = mmap.mmap(fds[0], area_bytes)
        self.assertEqual((MAGIC, 1, 0x200000), struct.unpack_from("<IIQ", area))
        self.vf.expect(NEED)
        self.assertEqual(-errno.EINVAL, client.call(1, size=1)[1], "once")
        for size in (0, 4095, 1 << 63):
            self.assertEqual(-errno.EINVAL, client.call(2, size=size)[1])
        _, status, buffer, _, memory = client.call(2, size=1 << 20)
        self.assertEqual((0, 1), (status, len(memory)))
        self.assertEqual(1 << 20, os.fstat(memory[0]).st_size)
        self.assertEqual(-errno.ENOENT, client.call(3, buffer=buffer + 1)[1])
        self.assertEqual((3, 0, buffer), client.call(3, buffer=buffer)[:3])
        os.kill(self.vf.executors[0].pid, signal.SIGKILL)
        self.assertTrue(select.select([fds[2]], [], [], WAIT)[0], "call eventfd")
        self.assertEqual((LOST,), struct.unpack_from("<I", area, 0x8c))
        client.socket.close()
        self.vf.expect(CLOSED)

    def test_close_ends_the_channel_and_leaves_nothing(self):
        client = Direct(self.vf)
        client.call(1, size=1)
        self.vf.expect(NEED)
        client.socket.close()
        self.vf.expect(CLOSED)
        Direct(self.vf).socket.close()
        before = self.vf.fds()
        for _ in range(20):
            client = Direct(self.vf)
            for fd in client.call(1, size=1)[4]:
                os.close(fd)
            self.vf.expect(NEED)
            client.socket.close()
            self.vf.expect(CLOSED)
            # Told to exit, or killed when it came after the end of its channel.
            self.assertIn(self.vf.executors[-1].reap(), (0, signal.SIGKILL))
        wait_for("descriptors closed", lambda: self.vf.fds() <= before)

    def test_all_channels_then_busy(self):
        clients = [Direct(self.vf) for _ in range(65)]
        seen = set()
        for client in clients[:64]:
            _, status, _, info, fds = client.call(1, size=1)
            self.assertEqual(0, status)
            seen.add(struct.unpack_from("<II", info)[1])
            for fd in fds:
                os.close(fd)
        self.assertEqual(set(range(64)), seen)
        self.assertEqual(-errno.EBUSY, clients[64].call(1, size=1)[1])

    def test_garbage(self):
        rng = random.Random(7)
        for _ in range(300):
            client = Direct(self.vf)
            client.socket.send(rng.randbytes(rng.randrange(1, 200)))
            client.socket.close()
        self.assertEqual(0, Direct(self.vf).call(1, size=1)[1])

    def test_guest_reset_leaves_direct_channels_alone(self):
        client = Direct(self.vf)
        client.call(1, size=1)
        self.vf.expect(NEED)
        Client(self.vf).call(RESET)
        self.assertEqual(0, client.call(2, size=4096)[1])


class LinkTest(VfTest):
    def test_ends_with_vgpud_when_nobody_uses_it(self):
        self.vf.link.shutdown(socket.SHUT_RDWR)
        self.assertEqual(0, self.vf.process.wait(WAIT))

    def test_outlives_vgpud_while_a_vm_uses_it(self):
        guest = Guest(self.vf)
        self.vf.link.shutdown(socket.SHUT_RDWR)
        wait_for("end of link seen", lambda: "vgpud is gone" in self.vf.text())
        self.assertEqual(MAGIC, guest.word(0))
        self.assertEqual(-errno.ENODEV, guest.create())
        guest.close()
        self.assertEqual(0, self.vf.process.wait(WAIT))

    def test_shutdown_ends_executors_and_process(self):
        guest = Guest(self.vf)
        guest.create()
        self.vf.attach_executor(guest)
        self.vf.link.send(struct.pack("<II", SHUTDOWN, 0))
        self.assertEqual(0, self.vf.process.wait(WAIT))
        self.assertEqual(0, self.vf.executors[0].reap())

    def test_info_is_shown(self):
        guest = Guest(self.vf)
        self.vf.link.send(struct.pack("<IIII", INFO, 500, 300, 2))
        wait_for("new figures", lambda: (guest.word(0x20), guest.word(0x24), guest.word(0x14)) == (500, 300, 2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
