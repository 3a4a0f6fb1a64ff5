#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The vfio-user messages of vgpud-vf over its real socket: what is right, what is wrong, and garbage."""
import errno
import json
import os
import random
import select
import socket
import struct
import time
import unittest

from vfio_bed import (BAR0, CLIENT, CONFIG, Client, DMA_MAP, DMA_UNMAP, GET_INFO, IRQ_INFO, MAGIC, MSI, NO_REPLY,
                      READ, REGION_INFO, REPLY, RESET, SET_IRQS, VERSION, VfTest, WAIT, WRITE, taken_by_host, wait_for)


# Requests that are right: command, body, the most bytes that its body may have, and the most descriptors.
REQUESTS = [
    (VERSION, struct.pack("<HH", 0, 0) + b'{"capabilities":{"max_msg_fds":4}}\0', None, 0),
    (DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, 0, 0x10000), 32, 1),
    (DMA_UNMAP, struct.pack("<IIQQ", 24, 0, 0, 0x10000), 24, 0),
    (GET_INFO, struct.pack("<IIII", 16, 0, 0, 0), 64, 0),
    (REGION_INFO, struct.pack("<IIIIQQ", 32, 0, 0, 0, 0, 0), 4096, 0),
    (IRQ_INFO, struct.pack("<IIII", 16, 0, 1, 0), 64, 0),
    (SET_IRQS, struct.pack("<IIIII", 20, 0x24, 1, 0, 1), 4096, 16),
    (READ, struct.pack("<QII", 0, BAR0, 4), 16, 0),
    (WRITE, struct.pack("<QII", 0x108, BAR0, 4) + b"\1\0\0\0", None, 0),
    (RESET, b"", 0, 0),
]


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

    def test_hostile_version_text_is_refused_and_the_next_one_read(self):
        texts = [b"[" * 60000 + b"\0", b"[" * 4000 + b"\0", b'"' * 1001 + b"\0", b'{"max_msg_fds":' + b"9" * 5000 + b"\0",
                 b'{"max_msg_fds":NaN,"max_msg_fds":-1}\0', bytes(range(1, 256)) + b"\0", b'{"\\\0', b"{\0", b"hello\0",
                 b'{"capabilities":{"max_msg_fds":16}\0', b'{"capabilities":[]}\0', b'{"capabilities":{"max_msg_fds":"16"}}\0',
                 b'{"capabilities":{"max_msg_fds":-1}}\0', b'{"capabilities":{"max_data_xfer_size":0}}\0',
                 b'{"capabilities":{"twin_socket":1}}\0', b'{"capabilities":{"max_msg_fds":1,"max_msg_fds":2}}\0',
                 b'{"a":' * 9 + b"1" + b"}" * 9 + b"\0"]
        client = Client(self.vf, version=False)
        for text in texts:
            self.assertErrno(errno.EINVAL, client.version, text)
        client.version(b'{"capabilities":{"what is this?":[{"max_msg_fds":-1}]}}\0')
        self.assertEqual(MAGIC, client.word(0))
        client.close()
        for text in (b"", b"{}\0", b"\0"):
            client = Client(self.vf, version=False)
            client.version(text)
            self.assertEqual(MAGIC, client.word(0))
            client.close()
        client = Client(self.vf, version=False)
        client.socket.sendall(Client.message(1, VERSION, b"\0" * (1 << 20))[:4096])
        self.assertRaises((EOFError, ConnectionError), client.bytes, 1)
        self.assertEqual(MAGIC, Client(self.vf).word(0))

    def test_descriptors_with_version_are_closed_and_refused_and_the_stream_goes_on(self):
        client = Client(self.vf, version=False)
        text = struct.pack("<HH", 0, 0) + b"{}\0"
        self.assertErrno(errno.EINVAL, client.call, RESET)
        before = self.vf.fds()
        for count in (1, 3, 16, 40, 253):
            read_end, write_end = os.pipe()
            self.assertErrno(errno.EINVAL, client.call, VERSION, text, [write_end] * count)
            os.close(write_end)
            self.assertEqual(b"", os.read(read_end, 1), "nobody holds the other end")
            os.close(read_end)
        client.call(VERSION, text)
        self.assertEqual(MAGIC, client.word(0))
        self.vf.wait_for_fds(before)

    def test_every_command_before_version_is_refused(self):
        client = Client(self.vf, version=False)
        for command in (*range(20), 99, 0xffff):
            if command != VERSION:
                self.assertErrno(errno.EINVAL, client.call, command)
                self.assertErrno(errno.EINVAL, client.call, command, bytes(64))
        client.version()
        self.assertEqual(MAGIC, client.word(0))

    def test_argsz_smaller_than_the_struct_is_refused(self):
        client = Client(self.vf)
        structs = {DMA_MAP: (32, struct.pack("<IQQQ", 3, 0, 0, 0x1000)), DMA_UNMAP: (24, struct.pack("<IQQ", 0, 0, 0x1000)),
                   GET_INFO: (16, bytes(12)), REGION_INFO: (32, bytes(28)), IRQ_INFO: (16, bytes(12)),
                   SET_IRQS: (20, struct.pack("<IIII", 0x21, MSI, 0, 0))}
        for command, (size, rest) in structs.items():
            for argsz in (0, 1, size - 1):
                self.assertErrno(errno.EINVAL, client.call, command, struct.pack("<I", argsz) + rest)
            client.call(command, struct.pack("<I", size) + rest)

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

    def test_a_thousand_resets_in_a_row_are_answered_at_the_pace_of_the_budget(self):
        client = Client(self.vf)
        start = time.monotonic()
        longest = 0
        pids = (os.getpid(), self.vf.process.pid)
        for _ in range(1000):
            asked, taken = time.monotonic(), taken_by_host(*pids)
            client.call(RESET)
            longest = max(longest, time.monotonic() - asked - (taken_by_host(*pids) - taken))
        self.assertLess(longest, 0.05)
        self.assertGreater(time.monotonic() - start, 950 / 50 - 0.1)
        self.assertEqual(MAGIC, client.word(0))

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
        self.assertErrno(errno.EINVAL, client.unmap, 0, 0x20000)  # two mappings at once
        self.assertErrno(errno.EINVAL, client.unmap, 0, 1 << 20)
        self.assertErrno(errno.EINVAL, client.unmap, 0x1000, 0xf000)
        self.assertErrno(errno.EINVAL, client.unmap, 0, 0)
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
        event = os.eventfd(0)
        for fd in (read_end, write_end, folder, client.socket.fileno(), event):
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
        for fd in (read_end, write_end, short, folder, read_only, event):
            os.close(fd)
        self.assertEqual(MAGIC, client.word(0))
        self.vf.wait_for_fds(before)

    def test_every_command_has_its_sizes_and_its_number_of_descriptors(self):
        client = self.client
        fd = os.memfd_create("one too many")
        os.ftruncate(fd, 0x10000)
        for command, body, most, fds in REQUESTS:
            with self.subTest(command=command):
                self.assertErrno(errno.EINVAL, client.call, command, body, [fd] * (fds + 1))
                fixed = {VERSION: 4, WRITE: 16}.get(command, len(body))
                if fixed:
                    self.assertErrno(errno.EINVAL, client.call, command, body[:fixed - 1])
                if most is not None:
                    self.assertErrno(errno.EINVAL, client.call, command, body + bytes(most - len(body) + 1))
                if command not in (VERSION, DMA_MAP, SET_IRQS):
                    client.call(command, body + bytes((most or len(body)) - len(body)))
                elif command == DMA_MAP:
                    client.call(command, body, [fd])  # DMA_UNMAP is next
        os.close(fd)

    def test_storm_keeps_no_descriptors(self):
        client = self.client
        client.map(0, 1 << 20, self.fd)
        before = self.vf.fds()
        for _ in range(300):
            client.unmap(0, 1 << 20)
            client.map(0, 1 << 20, self.fd)
        self.vf.wait_for_fds(before)
        for i in range(1, 65535):
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
        client.set_irqs(0x24, MSI, 0, 1, [event])
        for flags, start, data, fds in ((0x21, 1, b"", []), (0x21, 0, b"\1", []), (0x24, 0, b"", []), (0x24, 0, b"", [event]),
                                        (0x22, 0, b"", []), (0x21, 0, b"", [event])):
            self.assertErrno(errno.EINVAL, client.set_irqs, flags, MSI, start, 0, fds, data)
        client.set_irqs(0x21, MSI, 0, 1)
        self.assertEqual(1, os.eventfd_read(event), "nothing of that has disabled it")
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
        bodies = {command: body for command, body, *_ in REQUESTS}
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
