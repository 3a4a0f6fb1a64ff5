#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What vgpud-vf does when a guest causes too many events (vfio/channel/event_guard.h)."""
import errno
import os
import signal
import socket
import struct
import subprocess
import time
import unittest

import vfio_bed as bed

_EVENTS = 21
_EVENT_NAMES = ("doorbells", "commands", "opens", "resets", "bad_messages", "messages", "faults",
                "interrupts", "module_kib")
_EVENT_KINDS = len(_EVENT_NAMES)


class GuardTest(bed.VfTest):
    """A guest that does too much of something is slowed down; nothing that it sent is lost."""
    BUDGETS = ("resets=20", "doorbells=1000", "bad_messages=10", "interrupts=5", "commands=20")

    def events(self):
        """The next report to vgpud: ({kind: how many}, {kind: how often slowed down}, ns slowed down)."""
        numbers = struct.unpack_from(f"<{2 * _EVENT_KINDS + 1}Q", self.vf.expect(_EVENTS), 8)
        counts, throttled = numbers[:_EVENT_KINDS], numbers[_EVENT_KINDS:-1]
        return dict(zip(_EVENT_NAMES, counts)), dict(zip(_EVENT_NAMES, throttled)), numbers[-1]

    def events_until(self, kind, count):
        while True:
            counts, throttled, spent = self.events()
            if counts[kind] >= count:
                return counts, throttled, spent

    def test_resets_beyond_the_budget_wait(self):
        client = bed.Client(self.vf)
        start = time.monotonic()
        for _ in range(40):
            client.call(bed.RESET)
        self.assertGreater(time.monotonic() - start, 0.9)  # 20 at once, 20 more at 20 per second
        counts, throttled, spent = self.events_until("resets", 40)
        self.assertGreater(throttled["resets"], 0)
        self.assertGreater(spent, 0)
        self.assertEqual(throttled["doorbells"], 0)
        bed.wait_for("log line", lambda: "too many resets (at most 20 per second)" in self.vf.text())

    def test_posted_doorbells_are_all_served(self):
        client = bed.Client(self.vf)
        for _ in range(2000):
            client.send(bed.WRITE, struct.pack("<QII", 0x1000, bed.BAR0, 4) + b"\1\0\0\0", flags=bed.NO_REPLY)
        self.assertEqual(client.word(0), bed.MAGIC)
        counts, throttled, _ = self.events_until("doorbells", 2000)
        self.assertEqual(counts["doorbells"], 2000)
        self.assertGreater(throttled["doorbells"], 0)

    def test_bad_messages(self):
        client = bed.Client(self.vf)
        for _ in range(20):
            self.assertErrno(errno.ENOSYS, client.call, 99)
        counts, throttled, _ = self.events_until("bad_messages", 20)
        self.assertGreater(throttled["bad_messages"], 0)

    def test_processes_that_fail_are_counted(self):
        guest = bed.Guest(self.vf)
        guest.create()
        self.vf.attach_executor(guest)
        guest.ram[guest.AREA + 0x98:guest.AREA + 0x9c] = struct.pack("<I", 700)
        guest.command(2, 0)
        guest.wait_state(0, bed.FREE)
        guest.create()
        self.vf.attach_executor(guest)
        os.kill(self.vf.executors[1].pid, signal.SIGKILL)
        guest.wait_state(0, bed.LOST)
        guest.command(2, 0)
        guest.wait_state(0, bed.FREE)
        guest.ram[guest.AREA + 0x98:guest.AREA + 0x9c] = bytes(4)
        guest.create()
        self.vf.attach_executor(guest)
        guest.command(2, 0)
        guest.wait_state(0, bed.FREE)
        counts, throttled, _ = self.events_until("opens", 3)
        self.assertEqual((2, 3), (counts["faults"], counts["opens"]))
        self.assertEqual(0, throttled["faults"])
        self.assertGreater(counts["messages"], 10)

    def test_a_throttled_client_may_go(self):
        client = bed.Client(self.vf)
        for _ in range(200):
            client.send(bed.RESET)
        client.close()
        self.assertEqual(bed.Client(self.vf).word(0), bed.MAGIC)

    def test_connections_to_the_channel_socket(self):
        start = time.monotonic()
        for _ in range(40):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
                channel.settimeout(bed.WAIT)
                channel.connect(self.vf.channel)
                channel.send(b"?")
                self.assertEqual(channel.recv(64), b"")
        self.assertGreater(time.monotonic() - start, 0.9)


class TwoSidesTest(bed.VfTest):
    """The VM and the clients of the channel socket have budgets of their own."""
    BUDGETS = ("commands=1", "resets=1", "opens=1")
    WAIT_OF_ONE_TOO_MANY = 1.0

    def connect(self):
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        channel.settimeout(bed.WAIT)
        channel.connect(self.vf.channel)
        return channel

    def assertServedAtOnce(self, ask):
        start = time.monotonic()
        ask()
        self.assertLess(time.monotonic() - start, self.WAIT_OF_ONE_TOO_MANY / 2)

    def test_a_flood_on_the_channel_socket_does_not_slow_the_vm_down(self):
        client = bed.Client(self.vf)
        flood = [self.connect() for _ in range(20)]
        for _ in range(200):
            self.assertServedAtOnce(lambda: client.word(0))
        self.assertServedAtOnce(lambda: client.call(bed.RESET))
        for channel in flood:
            channel.close()

    def test_a_flood_of_the_vm_does_not_slow_channel_clients_down(self):
        client = bed.Client(self.vf)
        for _ in range(5):
            client.send(bed.RESET)

        def open_():
            channel.send(struct.pack("<IIQIIII", 1, 0, 2, 0, 0, 0, 0))
            self.assertTrue(channel.recv(4096))
        # It connects within the budget, and the answer to what is one too many is not late: only the next one is.
        channel = self.connect()
        self.assertServedAtOnce(open_)
        channel.close()
        client.close()


class EventBudgetArgumentTest(unittest.TestCase):
    def test_refused_with_what_is_possible(self):
        run = subprocess.run([bed.PROGRAM, "--name", "t", "--vfio-socket", "a", "--channel-socket", "b", "--event-budget", "x=1"],
                             capture_output=True, text=True, timeout=bed.WAIT, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn('"x" is no kind of event, there are doorbells, commands,', run.stderr)


if __name__ == "__main__":
    unittest.main()
