#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Descriptors that a client sends in order to make vgpud-vf wait: in closing them, or in writing to them."""
import array
import contextlib
import errno
import fcntl
import os
import signal
import socket
import struct
import threading
import time
import unittest

from vfio_bed import (BAR0, Client, DMA_MAP, Guest, MAGIC, MSI, READ, REPLY, RESET, SET_IRQS, VERSION, VfTest, WAIT, wait_for)

QUICK = 5.0  # far below what the sockets linger for, far above what a busy machine needs
LINGER = 60
CLOSERS = 8  # kMostClosers of base/foreign_fd.h


@contextlib.contextmanager
def lingering():
    """A socket whose last close waits until its peer goes, or LINGER seconds."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    slow = socket.socket()
    slow.connect(listener.getsockname())
    peer, _ = listener.accept()
    listener.close()
    slow.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            slow.send(bytes(1 << 20))
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER))
    fd = slow.detach()
    try:
        yield fd
    finally:
        peer.close()


class BlockingTest(VfTest):
    def assertQuick(self, call, *arguments):
        start = time.monotonic()
        result = call(*arguments)
        self.assertLess(time.monotonic() - start, QUICK)
        return result

    @contextlib.contextmanager
    def asleep(self):
        """vgpud-vf sleeps, so that it and not the test closes last what is sent to it. Waking it ends what lingers."""
        os.kill(self.vf.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.vf.process.pid, signal.SIGCONT)

    @staticmethod
    def send(connection, data, fd, count=1):
        """Sends the descriptor `count` times and keeps none. False: the kernel does not let it through."""
        try:
            connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd] * count))])
        except (BrokenPipeError, PermissionError):
            with socket.socket(fileno=fd) as unsent:
                unsent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes(8))
            return False
        os.close(fd)
        return True

    def give(self, connection, data, fd, count=1):
        with self.asleep():
            return self.send(connection, data, fd, count)

    def channel(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(self.vf.channel)
        connection.settimeout(WAIT)
        return connection

    def test_unwanted_descriptors_of_the_vm_that_linger(self):
        client = Client(self.vf, version=False)
        for command, body, count in ((VERSION, struct.pack("<HH", 0, 0) + b"{}\0", 1), (RESET, b"", 1), (RESET, b"", 16),
                                     (RESET, b"", 253)):
            with lingering() as slow:
                self.give(client.socket, client.message(1, command, body), slow, count)
                self.assertQuick(self.assertErrno, errno.EINVAL, client.reply, 1, command)
        client.version()
        for command, body in ((DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, 0, 0x1000)),
                              (SET_IRQS, struct.pack("<IIIII", 20, 0x24, MSI, 0, 1)),
                              (READ, struct.pack("<QII", 0, BAR0, 4))):
            with lingering() as slow:
                self.give(client.socket, client.message(1, command, body), slow)
                self.assertQuick(self.assertErrno, errno.EINVAL, client.reply, 1, command)
                self.assertEqual(MAGIC, self.assertQuick(client.word, 0))

    def test_descriptors_in_the_queue_of_a_connection_that_ends(self):
        with lingering() as slow:
            client = Client(self.vf)
            self.give(client.socket, struct.pack("<HHIII", 1, READ, 3, 0, 0), slow)
            self.assertRaises((EOFError, ConnectionError), client.bytes, 1)
            self.assertEqual(MAGIC, self.assertQuick(lambda: Client(self.vf).word(0)))

    def test_descriptors_of_a_client_that_is_refused(self):
        client = Client(self.vf)
        for _ in range(3):
            with lingering() as slow:
                second = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                second.connect(self.vf.vfio)
                self.give(second, client.message(1, RESET), slow)
                self.assertEqual(MAGIC, self.assertQuick(client.word, 0))
                second.close()

    def test_unwanted_descriptors_on_the_channel_socket(self):
        client = Client(self.vf)
        for data, count in ((bytes(32), 1), (bytes(32), 16), (bytes(32), 253), (b"?", 1)):
            with lingering() as slow:
                connection = self.channel()
                if self.give(connection, data, slow, count):
                    with contextlib.suppress(ConnectionError):
                        self.assertEqual(b"", self.assertQuick(connection.recv, 1))
                self.assertEqual(MAGIC, self.assertQuick(client.word, 0))
                connection.close()

    def test_more_that_linger_than_there_are_threads_to_close_them(self):
        """What cannot be closed now is closed later; the VM is served, and so is the next one."""
        client = Client(self.vf)
        before = self.vf.fds()
        with contextlib.ExitStack() as slows:
            sockets = [slows.enter_context(lingering()) for _ in range(20)]
            with self.asleep():
                for slow in sockets:
                    self.send(client.socket, client.message(1, RESET), slow)
            for _ in sockets:
                self.assertQuick(self.assertErrno, errno.EINVAL, client.reply, 1, RESET)
            client.close()
            client = self.assertQuick(Client, self.vf)
            self.assertEqual(MAGIC, self.assertQuick(client.word, 0))
            self.assertGreater(self.vf.fds(), before + 5, "some wait")
        self.vf.wait_for_fds(before)

    def test_a_client_whose_descriptors_pile_up_is_disconnected(self):
        client = Client(self.vf)
        with contextlib.ExitStack() as slows:
            sockets = [slows.enter_context(lingering()) for _ in range(CLOSERS)]
            with self.asleep():
                for slow in sockets:
                    self.send(client.socket, client.message(1, RESET), slow)
            for _ in sockets:
                self.assertErrno(errno.EINVAL, client.reply, 1, RESET)
            event = os.eventfd(0)
            slows.callback(os.close, event)
            with self.assertRaises((EOFError, ConnectionError)):
                for _ in range(10):
                    socket.send_fds(client.socket, [client.message(1, RESET)], [event] * 200)
                    self.assertErrno(errno.EINVAL, client.reply, 1, RESET)
            client.close()
        self.assertEqual(MAGIC, self.assertQuick(lambda: Client(self.vf).word(0)))


    def test_a_client_that_sends_its_own_end_still_goes_when_it_goes(self):
        whole = Client.message(1, RESET)
        for data in (Client.message(1, RESET, flags=REPLY), whole[:8], whole):
            client = Client(self.vf)
            socket.send_fds(client.socket, [data], [client.socket.fileno()])
            client.close()
            self.assertEqual(MAGIC, self.assertQuick(self.next_client_works))

    def next_client_works(self):
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            with contextlib.suppress(EOFError, ConnectionError):
                client = Client(self.vf)
                magic = client.word(0)
                client.close()
                return magic
        return None


class InterruptTest(VfTest):
    def fill(self, event):
        fcntl.fcntl(event, fcntl.F_SETFL, os.O_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            os.eventfd_write(event, (1 << 64) - 2)
        fcntl.fcntl(event, fcntl.F_SETFL, 0)

    def test_a_full_eventfd_that_blocks_costs_the_client_its_interrupt(self):
        guest = Guest(self.vf)
        self.assertEqual(0, guest.create())
        self.fill(guest.msi)
        start = time.monotonic()
        self.assertEqual(0, guest.command(2, 0))
        wait_for("the interrupt is dropped", lambda: "dropped until the client sets it again" in self.vf.text())
        self.assertEqual(MAGIC, guest.word(0))
        self.assertLess(time.monotonic() - start, QUICK)
        fresh = os.eventfd(0, os.EFD_NONBLOCK)
        guest.set_irqs(0x24, MSI, 0, 1, [fresh])
        guest.set_irqs(0x21, MSI, 0, 1)
        self.assertEqual(1, os.eventfd_read(fresh), "set again, it works again")
        os.close(fresh)

    def test_a_client_that_races_with_the_write(self):
        """Flag and counter change all the time, so that no look before the write could be right."""
        client = Client(self.vf)
        event = os.eventfd(0, os.EFD_NONBLOCK)
        stop = threading.Event()

        def race():
            while not stop.is_set():
                self.fill(event)
        racer = threading.Thread(target=race)
        racer.start()
        try:
            end = time.monotonic() + 3
            while time.monotonic() < end:
                client.set_irqs(0x24, MSI, 0, 1, [event])
                for _ in range(50):
                    start = time.monotonic()
                    client.set_irqs(0x21, MSI, 0, 1)
                    self.assertLess(time.monotonic() - start, 1)
        finally:
            stop.set()
            racer.join()
        os.close(event)
        self.assertEqual(MAGIC, client.word(0))


if __name__ == "__main__":
    unittest.main(verbosity=2)
