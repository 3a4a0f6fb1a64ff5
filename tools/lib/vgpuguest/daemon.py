# SPDX-License-Identifier: Apache-2.0
"""vgpud: a private one, or the one that the user named."""
import contextlib
import json
import os
import select
import signal
import subprocess

from . import control, process
from .paths import VGPUCTL, VGPUD, ToolError, need


def _error_of(said):
    """The text of an error, also of one that is JSON (-o json)."""
    try:
        return json.loads(said.splitlines()[-1])["error"]
    except (ValueError, IndexError, KeyError, TypeError):
        return said


class Daemon:
    """A running vgpud, through vgpuctl."""

    def __init__(self, runtime_dir, log=None):
        self.runtime_dir = str(runtime_dir)
        self.log = log
        self.process = None  # of a private one

    def ctl_text(self, *arguments):
        """What a vgpuctl command prints."""
        command = [str(need(VGPUCTL, "vgpuctl")), "--runtime-dir", self.runtime_dir, "--timeout", "10", *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        if done.returncode != 0:
            raise ToolError(f"vgpuctl {' '.join(arguments)}: {_error_of((done.stderr or done.stdout).strip())}")
        return done.stdout

    def ctl(self, *arguments):
        """The JSON answer of a vgpuctl command."""
        answer = self.ctl_text(*arguments, "-o", "json")
        return json.loads(answer) if answer.strip() else {}

    def request(self, method, path, body=None):
        """The JSON answer to a request of docs/api.md: as ctl, without a process that needs a processor."""
        status, text = control.ask(os.path.join(self.runtime_dir, "control.sock"), method, path, body)
        if status >= 400:
            raise ToolError(f"{method} {path}: {text.strip()}")
        return json.loads(text)

    def pause(self, names, paused=True):
        """All of them between the same two turns; `paused` False: resumes them."""
        self.request("PATCH", "/v1/settings", {"vfs": {name: {"paused": paused} for name in names}})

    def create(self, name, **options):
        """Nothing here outlives its daemon."""
        words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        return self.ctl("create", name, "--transient", *words)

    def set(self, name, **options):
        words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        return self.ctl("set", name, *words)

    def destroy(self, name):
        """Also while it is in use."""
        self.ctl("destroy", name, "--force")

    def show(self, name):
        return self.ctl("show", name)

    def names(self):
        return [vf["name"] for vf in self.ctl("list")["vfs"]]

    def stats(self):
        """(time in ns, {VF name: counters})."""
        answer = self.request("GET", "/v1/stats")
        return answer["now_ns"], {vf["name"]: vf for vf in answer["vfs"]}


@contextlib.contextmanager
def private_daemon(vfs=(), arguments=(), through=()):
    """A vgpud of our own with one soft GPU in a new runtime directory; `vfs` are (name, options) to create, `arguments`
    further ones of vgpud, `through` a command that runs it."""
    need(VGPUD, "vgpud")
    with process.scratch_dir("vgpu-") as runtime_dir:
        log = os.path.join(runtime_dir, "vgpud.log")
        daemon = Daemon(runtime_dir, log)
        ready, ready_in_child = os.pipe()
        try:
            daemon.process = process.spawn(
                [*through, VGPUD, "--runtime-dir", runtime_dir, "--ready-fd", str(ready_in_child), *arguments], log,
                death_signal=signal.SIGTERM, env=_environment(), pass_fds=[ready_in_child])
        finally:
            os.close(ready_in_child)
        try:
            _wait_ready(ready, log)
            for name, options in vfs:
                daemon.create(name, **options)
            yield daemon
        except (AssertionError, ToolError) as failed:
            failed.add_note(f"vgpud's log:\n{process.tail(log)}")
            raise
        finally:
            process.stop(daemon.process)


def _wait_ready(fd, log):
    with os.fdopen(fd, "rb") as pipe:
        readable, _, _ = select.select([pipe], [], [], 60)
        if not readable or not pipe.read(1):
            raise ToolError(f"vgpud did not start\n{process.tail(log)}")


def _environment():
    environment = dict(os.environ)
    environment.pop("VGPUD_RUNTIME_DIR", None)
    return environment


@contextlib.contextmanager
def daemon_for(runtime_dir, vf, arguments=(), **options):
    """(daemon, VF as shown): the named daemon's, else a private daemon (with `arguments`) that has one VF, created with
    `options`. `vf` None: the only one there is."""
    runtime_dir = runtime_dir or os.environ.get("VGPUD_RUNTIME_DIR")
    if not runtime_dir:
        name = vf or "vf0"
        with private_daemon([(name, options)], arguments) as daemon:
            yield daemon, daemon.show(name)
        return
    daemon = Daemon(os.path.abspath(runtime_dir))
    if vf is None:
        names = daemon.names()
        if not names:
            raise ToolError(f"the daemon in {runtime_dir} has no VF: make one with vgpuctl create NAME")
        if len(names) > 1:
            raise ToolError(f"the daemon in {runtime_dir} has the VFs {', '.join(names)}: choose one with --vf")
        vf = names[0]
    yield daemon, daemon.show(vf)
