# SPDX-License-Identifier: Apache-2.0
"""A host that lies: stands between QEMU and a VF's vfio-user socket, changes what the guest reads from the VF's registers and what
lies in its control page, and raises interrupts that nobody asked for.

Messages are forwarded as they are, with their descriptors, but for replies to reads of BAR 0. Guest memory is reached through
the descriptors of DMA_MAP.
"""
import array
import collections
import contextlib
import mmap
import os
import socket
import struct
import threading
import time

_HEADER = struct.Struct("<HHIII")  # id, command, size, flags, errno
_ACCESS = struct.Struct("<QII")  # offset, region, count
_DMA_MAP, _DMA_UNMAP, _SET_IRQS, _READ, _WRITE = 2, 3, 8, 9, 10
_BAR0, _CONFIG = 0, 7
_LINE_AND_MESSAGES = (0, 1, 2)  # indices of SET_IRQS; errors and requests to let go of the device come after
REG_UUID, REG_CTRL_ADDR_LO, REG_CTRL_ADDR_HI, REG_CTRL_SEQ, REG_DRIVER_FEATURES_LO = 0x30, 0x100, 0x104, 0x10C, 0x120
STATUS_AT, CHANNEL_STATE_AT, BUFFER_ACK_AT, EVENTS_AT = 0x38, 0x40, 0x140, 0x240  # in the control page
CHANNELS = 64
CONFIG_DEVICE_STATUS, TRANSACTIONS_PENDING = 0x6a, 0x20


class LyingHost:
    """`socket` is where QEMU connects. `registers` {offset: value} and `page` (a function that gets the control page, called
    before the answer to a fence is delivered) say what the lies are, `config` {offset: bits} what is set in each byte of the configuration space
    besides; empty and None: none. `late`: seconds that each mapping of guest memory, and the end of one, takes."""

    def __init__(self, server, directory):
        self.socket = os.path.join(directory, "lying-host")
        self.registers = {}
        self.page = None
        self.config = {}
        self.late = 0.0
        self.writes = []  # (offset, value) of the last writes to BAR 0
        self.reads = collections.Counter()  # of BAR 0, by offset
        self.config_reads = collections.Counter()
        self.maps = self.unmaps = 0  # of guest memory
        self._ranges = {}  # guest address: (size, mmap or None)
        self._interrupts = []
        self._control = 0
        self._pending = {}  # id of a read: its region and offset
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.socket)
        self._listener.listen(1)
        threading.Thread(target=self._serve, args=(server,), daemon=True).start()

    def close(self):
        self._listener.close()

    def lie(self, registers=None, page=None, config=None):
        self.registers, self.page, self.config = dict(registers or {}), page, dict(config or {})

    def truth(self):
        self.lie()

    def interrupt(self):
        """Raises every interrupt that the guest has asked for."""
        for fd in list(self._interrupts):
            with contextlib.suppress(OSError):
                os.write(fd, struct.pack("<Q", 1))

    def control_page(self):
        """The guest's control page, None when there is none now."""
        for start, (size, memory) in list(self._ranges.items()):
            if memory is not None and self._control and start <= self._control < start + size:
                at = self._control - start
                return memoryview(memory)[at:at + 4096]
        return None

    def _serve(self, server):
        with contextlib.suppress(OSError):
            client, _ = self._listener.accept()
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(server)
            for source, target, look in ((client, upstream, self._from_guest), (upstream, client, self._to_guest)):
                threading.Thread(target=self._pump, args=(source, target, look), daemon=True).start()

    def _pump(self, source, target, look):
        with contextlib.suppress(OSError):
            while True:
                fds = []
                header = _receive(source, _HEADER.size, fds)
                if header is None:
                    break
                number, command, size, flags, _ = _HEADER.unpack(header)
                body = _receive(source, size - _HEADER.size, fds) if size > _HEADER.size else b""
                if body is None:
                    break
                body = look(number, command, flags, body, fds)
                sent = socket.send_fds(target, [header + body], fds)
                target.sendall((header + body)[sent:])
                for fd in fds:
                    os.close(fd)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _from_guest(self, number, command, _flags, body, fds):
        if command == _DMA_MAP:
            _, _, offset, start, size = struct.unpack_from("<IIQQQ", body)
            memory = mmap.mmap(fds[0], size, offset=offset) if fds and size >= 4096 else None
            self._ranges[start] = (size, memory)
            time.sleep(self.late)
            self.maps += 1
        elif command == _DMA_UNMAP:
            _, _, start, _ = struct.unpack_from("<IIQQ", body)
            self._ranges.pop(start, None)
            time.sleep(self.late)
            self.unmaps += 1
        elif command == _SET_IRQS and fds and struct.unpack_from("<III", body)[2] in _LINE_AND_MESSAGES:
            self._interrupts = [*self._interrupts, *(os.dup(fd) for fd in fds)][-4:]
        elif command in (_READ, _WRITE):
            offset, region, _ = _ACCESS.unpack_from(body)
            if region in (_BAR0, _CONFIG) and command == _READ:
                self._pending[number] = region, offset
            elif region == _BAR0:
                self._note_write(offset, body[_ACCESS.size:])
        return body

    def _note_write(self, offset, data):
        value = int.from_bytes(data, "little")
        self.writes = [*self.writes[-999:], (offset, value)]
        if offset == REG_CTRL_ADDR_LO:
            self._control = value if len(data) == 8 else self._control >> 32 << 32 | value
        elif offset == REG_CTRL_ADDR_HI:
            self._control = value << 32 | self._control & 0xFFFFFFFF

    def _to_guest(self, number, command, _flags, body, _fds):
        if command != _READ or number not in self._pending:
            return body
        region, offset = self._pending.pop(number)
        if region == _CONFIG:
            self.config_reads[offset] += 1
            return body[:_ACCESS.size] + bytes(byte | self.config.get(offset + at, 0) for at, byte in enumerate(body[_ACCESS.size:]))
        self.reads[offset] += 1
        if offset == REG_CTRL_SEQ and self.page is not None:
            page = self.control_page()
            if page is not None:
                self.page(page)
        data = bytearray(body[_ACCESS.size:])
        for at in range(0, len(data) - 3, 4):
            if offset + at in self.registers:
                data[at:at + 4] = struct.pack("<I", self.registers[offset + at] & 0xFFFFFFFF)
        return body[:_ACCESS.size] + bytes(data)


def _receive(source, count, fds):
    """Exactly `count` bytes, None at the end; appends the descriptors that came along."""
    data = b""
    while len(data) < count:
        part, ancillary, _, _ = source.recvmsg(count - len(data), socket.CMSG_SPACE(64 * 4))
        for level, kind, raw in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                received = array.array("i")
                received.frombytes(raw[:len(raw) - len(raw) % received.itemsize])
                fds.extend(received)
        if not part:
            return None
        data += part
    return data


def status(value):
    """Every command of the guest's kernel ends with this status."""
    def change(page):
        page[STATUS_AT:STATUS_AT + 4] = struct.pack("<i", value)
    return change


def words(at, value, count=CHANNELS):
    """A row of the control page says this."""
    def change(page):
        page[at:at + 4 * count] = struct.pack("<I", value) * count
    return change
