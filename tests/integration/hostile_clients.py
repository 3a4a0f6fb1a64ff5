# SPDX-License-Identifier: Apache-2.0
"""Clients of a VF that know the protocols and mean no good: the channel ring (uapi/vgpu_abi.h), channel.sock and
vfio-user, spoken to in bytes."""
import array
import mmap
import os
import select
import socket
import struct
import time

WAIT = 20.0  # a limit for hangs, never a measure

OPEN, BUFFER_ALLOC, BUFFER_FREE = 1, 2, 3
MAGIC, ABI_VERSION = 0x55504756, 1
SQ_AT, CQ_AT, PAYLOAD_AT, ENTRIES = 0x1000, 0x11000, 0x31000, 1024
CHANNEL_BYTES = PAYLOAD_AT + 0x200000
WANT = 1

(NOP, MEM_ALLOC, MEM_FREE, MEM_INFO, MODULE_BEGIN, MODULE_DATA, MODULE_LOAD, MODULE_UNLOAD, MODULE_FUNCTION,
 MODULE_GLOBAL, FUNCTION_SET, STREAM_CREATE, STREAM_DESTROY, LAUNCH, COPY_IN, COPY_OUT, COPY_DEV, BUF_IN, BUF_OUT,
 FILL, EVENT_RECORD, EVENT_WAIT, STREAM_SYNC, CONTEXT_SYNC, CONTEXT_RESET, DEVICE_INFO) = range(26)
TEXTURE_CREATE, TEXTURE_DESTROY = 29, 30


class Ring:
    """The guest's side of a channel area. Subclasses wake the executor."""

    def __init__(self, area):
        self.area = area
        self.tail = 0
        self.head = 0
        self.seqno = 0
        self.position = 0
        self.answers = {}

    def kick(self):
        raise NotImplementedError

    def word(self, offset):
        return struct.unpack_from("<I", self.area, offset)[0]

    def put_word(self, offset, value):
        struct.pack_into("<I", self.area, offset, value & 0xffffffff)

    @property
    def sticky(self):
        return self.word(0x98)

    @property
    def state(self):
        return self.word(0x8c)

    @property
    def text(self):
        return bytes(self.area[0xc0:0xc0 + 512]).split(b"\0")[0].decode(errors="replace")

    def push_raw(self, entry):
        """One submission of exactly these 64 bytes."""
        at = SQ_AT + (self.tail % ENTRIES) * 64
        self.area[at:at + 64] = entry
        self.tail += 1
        self.put_word(0x40, self.tail)
        self.kick()

    def push(self, op, args=(), payload=b"", span=None, stream=0, flags=WANT, seqno=None, position=None, length=None):
        """One submission, well-formed but for what the caller overrides; returns its seqno."""
        self.seqno = self.seqno + 1 if seqno is None else seqno
        span = len(payload) if span is None else span
        room = struct.unpack_from("<Q", self.area, 8)[0]
        if span and position is None:
            if self.position % room + span > room:
                self.position += room - self.position % room
            position, self.position = self.position, self.position + span
            at = PAYLOAD_AT + position % room
            self.area[at:at + len(payload)] = payload
        self.push_raw(struct.pack("<IIQQII4Q", op, flags, self.seqno & (1 << 64) - 1, position or 0,
                                  span if length is None else length, stream, *(list(args) + [0] * 4)[:4]))
        return self.seqno

    def collect(self):
        tail = self.word(0x84)
        while self.head != tail:
            seqno, status, _, *values = struct.unpack_from("<QII6Q", self.area, CQ_AT + (self.head % ENTRIES) * 64)
            self.answers[seqno] = (status, values)
            self.head = (self.head + 1) & 0xffffffff
        self.put_word(0x44, self.head)

    def answer(self, seqno):
        """(status, values) of a submission."""
        end = time.monotonic() + WAIT
        while seqno not in self.answers:
            self.collect()
            if self.state == 2:
                raise EOFError(f"the channel is lost: {self.text}")
            if time.monotonic() > end:
                raise AssertionError(f"no answer to {seqno}; sticky {self.sticky}: {self.text}")
            time.sleep(0.0002)
        return self.answers.pop(seqno)

    def call(self, op, args=(), **options):
        return self.answer(self.push(op, args, **options))

    def wait_sticky(self):
        end = time.monotonic() + WAIT
        while not self.sticky and time.monotonic() < end:
            time.sleep(0.0002)
        return self.sticky

    def load(self, image, module=1):
        """Uploads and loads an image: (status, text)."""
        status, _ = self.call(MODULE_BEGIN, [module, len(image)])
        if status:
            return status, self.text
        for at in range(0, len(image), 65536):
            status, _ = self.call(MODULE_DATA, [module, at], payload=image[at:at + 65536])
            if status:
                return status, self.text
        status, _ = self.call(MODULE_LOAD, [module])
        return status, self.text

    def function(self, name, module=1):
        status, values = self.call(MODULE_FUNCTION, [module, len(name)], payload=name.encode(), span=4096)
        assert status == 0, (status, self.text)
        return values[0]


class ChannelClient(Ring):
    """A channel over channel.sock."""

    def __init__(self, vf, open_=True):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(vf["channel_socket"])
        self.socket.settimeout(WAIT)
        self.fds = []
        if not open_:
            return
        status, _, _, fds = self.ask(OPEN, size=ABI_VERSION)
        if status != 0:
            self.socket.close()
            raise OSError(-status, os.strerror(-status))
        self.fds = fds
        self.kick_socket = socket.socket(fileno=os.dup(fds[1]))
        super().__init__(mmap.mmap(fds[0], CHANNEL_BYTES))

    def ask(self, op, buffer=0, size=0, mbz=0):
        """(status, buffer, info bytes, fds)."""
        self.socket.send(struct.pack("<IIQIIII", op, buffer, size, os.getpid(), mbz, 0, 0))
        return self.reply()

    def reply(self):
        message, control, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(16 * 4), socket.MSG_CMSG_CLOEXEC)
        if not message:
            raise EOFError
        fds = array.array("i")
        for _, _, data in control:
            fds.frombytes(data)
        _, status, buffer = struct.unpack_from("<IiI", message)
        return status, buffer, message[16:], list(fds)

    def kick(self):
        try:
            self.kick_socket.send(b"\1", socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass  # it has rung already

    def close(self):
        self.socket.close()
        if self.fds:
            self.area.close()
            self.kick_socket.close()
            for fd in self.fds:
                os.close(fd)
            self.fds = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


VERSION, DMA_MAP, DMA_UNMAP, SET_IRQS, READ, WRITE, RESET = 1, 2, 3, 8, 9, 10, 13
NO_REPLY, BAR0, CONFIG = 0x10, 0, 7


class VfioClient:
    """A vfio-user client with RAM, MSI and a control page: what QEMU and the guest's kernel are together."""
    BASE, BYTES = 0x100000, 64 << 20
    PAGE, LIST, AREA = 0, 0x100000, 0x200000  # offsets in its RAM

    def __init__(self, vf):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(vf["vfio_user_socket"])
        self.socket.settimeout(WAIT)
        self.id = 0
        self.call(VERSION, struct.pack("<HH", 0, 0) + b'{"capabilities":{}}\0')
        self.memory = os.memfd_create("ram")
        os.ftruncate(self.memory, self.BYTES)
        self.ram = mmap.mmap(self.memory, self.BYTES)
        self.map_ram()
        self.msi = os.eventfd(0, os.EFD_NONBLOCK)
        self.call(SET_IRQS, struct.pack("<IIIII", 20, 0x24, 1, 0, 1), [self.msi])
        self.set_page()

    def map_ram(self):
        self.call(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, self.BASE, self.BYTES), [self.memory])

    def unmap_ram(self):
        self.call(DMA_UNMAP, struct.pack("<IIQQ", 24, 0, self.BASE, self.BYTES))

    def set_page(self, address=None):
        # A function may read the page only as bus master (Command bit 2), which a reset takes away.
        self.call(WRITE, struct.pack("<QII", 4, CONFIG, 2) + b"\6\0")
        self.write(0x100, struct.pack("<Q", self.BASE + self.PAGE if address is None else address))

    def send(self, command, body=b"", fds=(), flags=0):
        self.id += 1
        data = struct.pack("<HHIII", self.id & 0xffff, command, 16 + len(body), flags, 0) + body
        socket.send_fds(self.socket, [data], list(fds)) if fds else self.socket.sendall(data)

    def take(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def call(self, command, body=b"", fds=()):
        self.send(command, body, fds)
        number, got, size, flags, error = struct.unpack("<HHIII", self.take(16))
        assert (number, got) == (self.id & 0xffff, command)
        body = self.take(size - 16)
        if flags & 0x20:
            raise OSError(error, os.strerror(error))
        return body

    def write(self, offset, data, flags=NO_REPLY):
        body = struct.pack("<QII", offset, BAR0, len(data)) + data
        self.send(WRITE, body, flags=flags) if flags & NO_REPLY else self.call(WRITE, body)

    def register(self, offset):
        return struct.unpack("<I", self.call(READ, struct.pack("<QII", offset, BAR0, 4))[16:])[0]

    def command_raw(self, command):
        """Runs these 64 bytes as a control command: (status, was it run?)."""
        self.ram[self.PAGE:self.PAGE + 64] = command
        before = self.register(0x10c)
        self.write(0x108, struct.pack("<I", 1))
        ran = self.register(0x10c) != before
        return struct.unpack_from("<i", self.ram, self.PAGE + 0x38)[0], ran

    def command(self, op, channel, buffer=0, segments=(), count=None, list_at=None):
        struct.pack_into("<%dQ" % (2 * len(segments)), self.ram, self.LIST, *[x for s in segments for x in s])
        at = (self.BASE + self.LIST if segments else 0) if list_at is None else list_at
        status, ran = self.command_raw(struct.pack("<IIIIQQQQQiI", op, channel, buffer,
                                                   len(segments) if count is None else count, at, 0, 0, 0, 0, 12345, 0))
        assert ran
        return status

    def channel_state(self, channel):
        return struct.unpack_from("<I", self.ram, self.PAGE + 0x40 + 4 * channel)[0]

    def wait_state(self, channel, state):
        end = time.monotonic() + WAIT
        while self.channel_state(channel) != state:
            assert time.monotonic() < end, f"channel {channel} is {self.channel_state(channel)}, not {state}"
            select.select([self.msi], [], [], 0.05)

    def open_channel(self, channel, at=None):
        """Creates the channel in RAM at offset `at`; its ring."""
        at = self.AREA + channel * 0x300000 if at is None else at
        self.ram[at:at + CHANNEL_BYTES] = bytes(CHANNEL_BYTES)
        struct.pack_into("<IIQI", self.ram, at, MAGIC, ABI_VERSION, CHANNEL_BYTES - PAYLOAD_AT, os.getpid())
        status = self.command(1, channel, 0, [(self.BASE + at, CHANNEL_BYTES)])
        if status != 0:
            raise OSError(-status, os.strerror(-status))
        return GuestRing(self, channel, memoryview(self.ram)[at:at + CHANNEL_BYTES])

    def close(self):
        self.socket.close()
        os.close(self.memory)
        os.close(self.msi)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class GuestRing(Ring):
    def __init__(self, guest, channel, area):
        super().__init__(area)
        self.guest = guest
        self.channel = channel

    def kick(self):
        self.guest.write(0x1000 + 4 * self.channel, struct.pack("<I", 1))
