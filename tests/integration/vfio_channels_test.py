#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Channels, executors and the link to vgpud of vgpud-vf: who comes, dies, does not answer."""
import errno
import mmap
import os
import random
import select
import signal
import socket
import struct
import time
import unittest

from vfio_bed import (BAR0, CLIENT, CLOSED, CONFIG, Client, DMA_UNMAP, EXECUTOR, Executor, FREE, Guest, INFO,
                      LOST, MAGIC, NEED, OPEN, READ, RESET, SHUTDOWN, VF_RESET, VfTest, WAIT, wait_for)


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
        guest.create_when_free()

    def test_reset_ends_its_executors(self):
        guest = Guest(self.vf)
        for reset in (lambda: guest.call(RESET), lambda: guest.write(CONFIG, 0x68, b"\0\x80"),
                      lambda: self.vf.link.send(struct.pack("<II", VF_RESET, 0))):
            guest.set_page(guest.BASE)
            guest.create_when_free()
            self.vf.attach_executor(guest)
            reset()
            self.vf.expect(CLOSED)
            self.assertEqual(0, self.vf.executors[-1].reap())

    def test_memory_that_is_not_shared(self):
        client = Client(self.vf)
        client.map(0, 1 << 29)
        client.bus_master()
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


PER_PROCESS = 40  # kMaxConnectionsPerProcess of vfio/channel/channel_peer.h


def connect_as_another_process(vf):
    """A client on a connection that a child process has made."""
    unconnected = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        try:
            unconnected.connect(vf.channel)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    return Direct(vf, unconnected)


class Direct:
    """A client of channel.sock."""

    def __init__(self, vf, connected=None):
        self.socket = connected or socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if connected is None:
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
        self.assertEqual((1, 1 << 30, 0xbf0003, 2000, 100), (abi, vram, features, slice_us, weight))
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
        self.assertTrue(select.select([fds[2]], [], [], WAIT)[0], "call")
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
        self.vf.wait_for_fds(before)

    def test_a_connection_that_opens_nothing_is_closed(self):
        idle, user = Direct(self.vf), Direct(self.vf)
        self.assertEqual(0, user.call(1, size=1)[1])
        start = time.monotonic()
        self.assertEqual(b"", idle.socket.recv(1))
        self.assertGreater(time.monotonic() - start, 3)
        self.assertEqual(0, user.call(2, size=4096)[1], "a channel may be idle")

    def test_one_process_cannot_take_all_connections(self):
        held = [Direct(self.vf) for _ in range(PER_PROCESS)]
        self.assertEqual(0, held[-1].call(1, size=1)[1])
        with self.assertRaises((EOFError, ConnectionError)):
            Direct(self.vf).call(1, size=1)
        self.assertEqual(0, connect_as_another_process(self.vf).call(1, size=1)[1])
        held.pop().socket.close()
        wait_for("room again", lambda: self.opens())

    def opens(self):
        try:
            return Direct(self.vf).call(1, size=1)[1] == 0
        except (EOFError, ConnectionError):
            return False

    def test_all_channels_then_busy(self):
        clients = [Direct(self.vf) for _ in range(PER_PROCESS)]
        clients += [connect_as_another_process(self.vf) for _ in range(65 - PER_PROCESS)]
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

    # Its guest's programs wait in the kernel: the interrupt is what they hear of it at once.
    def check_that_the_guest_is_told(self, end):
        guest = Guest(self.vf)
        guest.create()
        self.vf.attach_executor(guest)
        self.assertEqual(OPEN, guest.state(0))
        end()
        self.assertEqual(0, self.vf.process.wait(WAIT))
        self.assertEqual(LOST, guest.state(0))
        guest.interrupted("the VF ends")
        self.assertEqual(0, self.vf.executors[0].reap())

    def test_a_client_that_has_just_sent_something_sees_an_orderly_end(self):
        guest = Guest(self.vf)
        os.kill(self.vf.process.pid, signal.SIGSTOP)
        self.vf.link.send(struct.pack("<II", SHUTDOWN, 0))
        guest.socket.send(bytes(64))
        os.kill(self.vf.process.pid, signal.SIGCONT)
        self.assertEqual(0, self.vf.process.wait(WAIT))
        self.assertEqual(b"", guest.socket.recv(1), "the end, no reset of the connection")

    def test_ends_with_vgpud_though_a_vm_uses_it(self):
        self.check_that_the_guest_is_told(lambda: self.vf.link.shutdown(socket.SHUT_RDWR))

    def test_shutdown_ends_executors_and_process(self):
        self.check_that_the_guest_is_told(lambda: self.vf.link.send(struct.pack("<II", SHUTDOWN, 0)))

    def test_info_is_shown(self):
        guest = Guest(self.vf)
        self.vf.link.send(struct.pack("<IIII", INFO, 500, 300, 2))
        wait_for("new figures", lambda: (guest.word(0x20), guest.word(0x24), guest.word(0x14)) == (500, 300, 2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
