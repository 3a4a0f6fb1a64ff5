# SPDX-License-Identifier: Apache-2.0
"""Programs that run in the background, in a guest or direct, with their output as it comes."""
import subprocess
import threading
import time

from . import direct
from .channel import ChannelLost
from .paths import ToolError


class Program:
    """A running program; `lines` are (time.monotonic() of arrival, text), standard output and error together."""

    def __init__(self, name):
        self.name = name
        self.lines = []
        self.code = None  # exit status, 128 + n for signal n; None while it runs
        self.stopped = False
        self._partial = b""
        self._error = None
        self._changed = threading.Condition()

    def stop(self):
        """Ends the program and waits until it is gone."""
        self.stopped = True
        self._end()
        self._thread.join(10)

    def wait(self, timeout):
        """The exit status; ToolError after `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._finished(), timeout)
        if self._error is not None:
            raise ToolError(f"{self.name}: {self._error}")
        if self.code is None:
            raise ToolError(f"{self.name} did not end within {timeout:.0f} s\n{self.text()}")
        return self.code

    def wait_for_line(self, start, timeout, count=1):
        """Returns when `count` lines starting with `start` have come; ToolError when the program ends before or never
        prints them."""
        def enough():
            return sum(line.startswith(start) for _, line in self.lines) >= count
        with self._changed:
            self._changed.wait_for(lambda: enough() or self._finished(), timeout)
            if enough():
                return
        how = f"ended with {self.code}" if self.code is not None else self._error or f"prints nothing for {timeout:.0f} s"
        raise ToolError(f"{self.name}: no line {start!r}: it {how}\n{self.text()}")

    def text(self):
        return "".join(f"  | {line}\n" for _, line in self.lines[-20:])

    def _finished(self):
        return self.code is not None or self._error is not None

    def _take_output(self, data):
        now = time.monotonic()
        *whole, self._partial = (self._partial + data).split(b"\n")
        with self._changed:
            self.lines += [(now, line.decode(errors="replace")) for line in whole]
            self._changed.notify_all()

    def _finish(self, code, error=None):
        with self._changed:
            self.code, self._error = code, error
            self._changed.notify_all()

    def _start(self, run):
        self._thread = threading.Thread(target=run, name=self.name, daemon=True)
        self._thread.start()


class GuestProgram(Program):
    def __init__(self, guest, argv, **options):
        super().__init__(" ".join(argv))
        self._channel = None
        self._start(lambda: self._run(guest, argv, options))

    def _run(self, guest, argv, options):
        try:
            code = guest.run(argv, lambda _, data: self._take_output(data), on_channel=self._set_channel, **options)
            self._finish(code)
        except (ToolError, TimeoutError, OSError) as error:
            ended_by_us = self.stopped and isinstance(error, ChannelLost)
            self._finish(137 if ended_by_us else None, None if ended_by_us else error)

    def _set_channel(self, channel):
        self._channel = channel

    def _end(self):
        if self._channel is not None:
            self._channel.abort()


class DirectProgram(Program):
    def __init__(self, vf, argv):
        super().__init__(" ".join(argv))
        self._child = direct.start(vf, argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        self.pid = self._child.pid
        self._start(self._run)

    def _run(self):
        while data := self._child.stdout.read1(65536):
            self._take_output(data)
        code = self._child.wait()
        self._finish(code if code >= 0 else 128 - code)

    def _end(self):
        direct.stop(self._child)
