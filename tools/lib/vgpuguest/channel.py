# SPDX-License-Identifier: Apache-2.0
"""The host side of the guest's command agent (tools/guest/agent.c describes the frames)."""
import contextlib
import hashlib
import os
import socket
import struct
import time

from .paths import ToolError

_MAX_DATA = 60000
_NO_FILE = (1 << 64) - 1


class ChannelLost(ToolError):
    """The guest, or its QEMU, is gone."""


class Channel:
    """One command port of one guest. Runs one command at a time; not shared between threads."""

    def __init__(self, path, timeout):
        """Connects and waits until the agent answers; TimeoutError after `timeout` seconds."""
        self._buffer = b""
        deadline = time.monotonic() + timeout
        self._socket = _connect(path, deadline)
        try:
            nonce = os.urandom(16)
            self._send(b"H", nonce)
            self.has_device = self._find_hello(nonce, deadline)
        except BaseException:
            self.close()
            raise

    def close(self):
        self._socket.close()

    def abort(self):
        """Ends what another thread waits for on this channel."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def size_of(self, path):
        """Size of a file in the guest, None when there is none."""
        self._send(b"Q", path.encode())
        size, = struct.unpack("<Q", self._expect(b"S"))
        return None if size == _NO_FILE else size

    def put(self, source, path, mode):
        """Copies a file into the guest."""
        self._send(b"P", struct.pack("<I", mode) + path.encode() + b"\0")
        with open(source, "rb") as file:
            while data := file.read(_MAX_DATA):
                self._send(b"D", data)
        self._send(b"E", b"")
        self._expect(b"S")

    def run(self, argv, environment, on_output, uid=0, timeout=None):
        """Runs a command; on_output(stream, bytes) gets its output as it comes, stream 1 or 2. Returns its exit code,
        128 + n for signal n. After `timeout` seconds: TimeoutError, and the command is ended when this channel closes."""
        words = [*argv, *(f"{key}={value}" for key, value in environment.items())]
        data = struct.pack("<II", uid, len(argv)) + b"".join(os.fsencode(word) + b"\0" for word in words)
        if len(data) > _MAX_DATA:
            raise ToolError("the command line is too long for the guest's command channel")
        self._send(b"R", data)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            kind, data = self._frame(deadline)
            if kind in (b"O", b"E"):
                on_output(1 if kind == b"O" else 2, data)
            elif kind == b"X":
                return struct.unpack("<I", data)[0]
            else:
                raise ToolError(f"the guest could not run {argv[0]}: {data.decode(errors='replace')}")

    def _send(self, kind, data):
        try:
            self._socket.settimeout(None)
            self._socket.sendall(kind + b"\0\0\0" + struct.pack("<I", len(data)) + data)
        except OSError as error:
            raise ChannelLost(f"the guest is gone ({error})") from None

    def _expect(self, kind):
        got, data = self._frame(time.monotonic() + 60)
        if got != kind:
            raise ToolError(f"the guest answered: {data.decode(errors='replace')}")
        return data

    def _frame(self, deadline):
        header = self._take(8, deadline)
        return header[:1], self._take(struct.unpack("<I", header[4:])[0], deadline)

    def _take(self, count, deadline):
        while len(self._buffer) < count:
            self._receive(deadline)
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data

    def _receive(self, deadline):
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        try:
            data = self._socket.recv(1 << 18)
        except socket.timeout:
            raise TimeoutError from None
        except OSError as error:
            raise ChannelLost(f"the guest is gone ({error})") from None
        if not data:
            raise ChannelLost("the guest ended")
        self._buffer += data

    def _find_hello(self, nonce, deadline):
        """Skips what an earlier user of the port may have left."""
        mark = b"H\0\0\0" + struct.pack("<I", 17) + nonce
        while len(self._buffer) < len(mark) + 1 or mark not in self._buffer[:-1]:
            self._receive(deadline)
        at = self._buffer.index(mark) + len(mark)
        flag, self._buffer = self._buffer[at], self._buffer[at + 1:]
        return flag != 0


def _connect(path, deadline):
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
            return connection
        except OSError:
            connection.close()
            if time.monotonic() > deadline:
                raise ChannelLost(f"no guest answers at {path}") from None
            time.sleep(0.01)


def digest(*paths):
    """A short name for the contents of files."""
    total = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            total.update(hashlib.sha256(file.read()).digest())
    return total.hexdigest()[:12]
