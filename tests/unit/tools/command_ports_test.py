#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The command ports of a guest, some of which do not answer. The guest's agent is played by threads."""
import contextlib
import io
import os
import socket
import sys
import tempfile
import threading
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../tools/lib"))
from vgpuguest import guest  # noqa: E402


class Port:
    """One port. `answers`: whether the agent is alive there."""

    def __init__(self, directory, number, answers):
        self.connections = 0
        self._answers = answers
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(os.path.join(directory, f"cmd{number}"))
        self._socket.listen(8)
        self._open = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                self._open.append(connection)
                hello = connection.recv(24, socket.MSG_WAITALL)
                if self._answers:
                    connection.sendall(b"noise" + b"H\0\0\0" + (17).to_bytes(4, "little") + hello[8:] + b"\1")

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        for held in (self._socket, *self._open):
            held.close()


@contextlib.contextmanager
def ports(*answers):
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        made = [stack.enter_context(contextlib.closing(Port(directory, number, answer))) for number, answer in enumerate(answers)]
        with mock.patch.object(guest, "COMMAND_PORTS", len(answers)), mock.patch.object(guest, "_ANSWER_SECONDS", 0.3):
            yield guest.Guest(directory), made


class CommandPorts(unittest.TestCase):
    def test_the_first_free_port_is_taken(self):
        with ports(True, True) as (machine, made):
            with machine.channel() as first, machine.channel() as second:
                self.assertTrue(first.has_device and second.has_device)
            self.assertEqual([port.connections for port in made], [1, 1])

    def test_a_port_that_does_not_answer_is_left_out(self):
        with ports(False, False, True) as (machine, made), contextlib.redirect_stderr(io.StringIO()):
            with machine.channel():
                pass
            self.assertEqual([port.connections for port in made], [1, 1, 1])

    def test_where_none_answers_it_is_said(self):
        with ports(False, False) as (machine, _):
            with self.assertRaisesRegex(TimeoutError, r"does not answer on its command ports \[0, 1\]"):
                with machine.channel():
                    pass

    def test_an_error_of_who_uses_it_is_his(self):
        with ports(True, True) as (machine, made):
            with self.assertRaisesRegex(TimeoutError, "mine"):
                with machine.channel():
                    raise TimeoutError("mine")
            self.assertEqual([port.connections for port in made], [1, 0])


unittest.main()
