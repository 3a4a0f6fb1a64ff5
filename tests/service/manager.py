# SPDX-License-Identifier: Apache-2.0
"""What systemd does for a service, without systemd: a socket for its messages, passed sockets, threads that can be stopped."""
import contextlib
import ctypes
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tools" / "lib"))

from vgpuguest import daemon, paths, process  # noqa: E402

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000


class Service(daemon.Daemon):
    """vgpud as this manager's service."""

    def __init__(self, runtime_dir, watchdog=None, listening=None, arguments=()):
        super().__init__(runtime_dir, os.path.join(runtime_dir, "log"))
        self.path = os.path.join(runtime_dir, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.watchdog, self.listening, self.arguments = watchdog, listening, arguments
        self.told = []

    def start(self):
        environment = {key: value for key, value in os.environ.items() if key != "VGPUD_RUNTIME_DIR"}
        environment["NOTIFY_SOCKET"] = self.path
        command = [str(paths.need(paths.VGPUD, "vgpud")), "--runtime-dir", self.runtime_dir, *self.arguments]
        begin = "export WATCHDOG_PID=$$; "
        if self.watchdog:
            environment["WATCHDOG_USEC"] = str(int(self.watchdog * 1e6))
        if self.listening is not None:
            environment["LISTEN_FDS"] = "1"
            begin += "export LISTEN_PID=$$; "
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", begin + 'exec "$@"', "sh", *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment, close_fds=False, preexec_fn=self._pass_on)
        self.wait_for("READY=1")

    def _pass_on(self):
        if self.listening is not None:
            os.dup2(self.listening.fileno(), 3)

    def read(self, seconds):
        """The next message, which it adds to `told`; None: none came."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return None
        self.told.append(self.socket.recv(4096).decode())
        return self.told[-1]

    def wait_for(self, begin, seconds=30):
        """The next message that begins so."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self.process.poll() is None or select.select([self.socket], [], [], 0)[0]:
            message = self.read(max(0, min(left, 0.2)))
            if message is not None and message.startswith(begin):
                return message
        raise AssertionError(f"no {begin} within {seconds} s; told: {self.told[-20:]}\n{process.tail(self.log)}")

    def stop(self, signum=signal.SIGTERM):
        self.process.send_signal(signum)
        return self.process.wait(30)

    def thread(self, begin):
        """The number of its thread whose name begins so."""
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            if (task / "comm").read_text().startswith(begin):
                return int(task.name)
        raise AssertionError(f"no thread {begin}")


@contextlib.contextmanager
def service(**options):
    with process.scratch_dir("vgpu-") as runtime_dir:
        made = Service(runtime_dir, **options)
        try:
            yield made
        finally:
            if made.process is not None and made.process.poll() is None:
                made.process.kill()
                made.process.wait()


@contextlib.contextmanager
def stopped(thread):
    """One thread does not run, all others of its process do."""
    libc = ctypes.CDLL(None, use_errno=True)

    def ptrace(request):
        if libc.ptrace(ctypes.c_long(request), ctypes.c_long(thread), None, None) != 0:
            raise OSError(ctypes.get_errno(), f"ptrace {request:#x}")
    ptrace(PTRACE_SEIZE)
    ptrace(PTRACE_INTERRUPT)
    os.waitpid(thread, WALL)
    try:
        yield
    finally:
        ptrace(PTRACE_DETACH)
