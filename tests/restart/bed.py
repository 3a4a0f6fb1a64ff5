# SPDX-License-Identifier: Apache-2.0
"""A vgpud --keep-vfs that can be killed and is started again, and what it leaves on the host."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tools" / "lib"))

from vgpuguest import daemon, direct, paths, process  # noqa: E402

WORKER = str(pathlib.Path(__file__).with_name("worker.py"))


class SupervisedDaemon(daemon.Daemon):
    def __init__(self, runtime_dir, arguments=(), program=None):
        super().__init__(runtime_dir, os.path.join(runtime_dir, "vgpud.log"))
        self.arguments = arguments
        self.program = program or str(paths.need(paths.VGPUD, "vgpud"))

    def start(self):
        """Returns when it serves."""
        ready, ready_in_child = os.pipe()
        environment = {key: value for key, value in os.environ.items() if key != "VGPUD_RUNTIME_DIR"}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--keep-vfs", "--runtime-dir", self.runtime_dir, "--ready-fd", str(ready_in_child),
                 *self.arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                pass_fds=[ready_in_child], start_new_session=True)
        os.close(ready_in_child)
        daemon._wait_ready(ready, self.log)

    def kill(self, signum=signal.SIGKILL):
        self.process.send_signal(signum)
        return self.process.wait(120)

    def create_kept(self, name, **options):
        return self.ctl("create", name, *(word for key, value in options.items() for word in (f"--{key}", str(value))))

    def text(self):
        return pathlib.Path(self.log).read_text(errors="replace")

    def keepers(self):
        return [pid for pid, words in processes() if words[0] == "vgpud-keep" and self.runtime_dir in words]


def processes():
    """(pid, command line) of each process that is not a zombie."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
                if words != [""]:
                    yield int(entry.name), words


def of_vfs(*names):
    """Processes of VFs of these names."""
    return [pid for pid, words in processes()
            if words[0] in ("vgpud-vf", "vgpud-exec") and any(name in words for name in names)]


def groups(runtime_dir):
    """Control groups of the vgpud that serves it (CgroupIdOf in vgpud/host/cgroup_tree.cc)."""
    number = 0xcbf29ce484222325
    for byte in runtime_dir.encode():
        number = (number ^ byte) * 0x100000001b3 % 2 ** 64
    return [str(path) for path in pathlib.Path("/sys/fs/cgroup").glob(f"**/vgpud-{number:016x}*")]


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Worker:
    """worker.py on a VF."""

    def __init__(self, vf, seconds=None):
        words = [*direct.python(), WORKER] + ([str(seconds)] if seconds else [])
        self.child = direct.start(vf, words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait_until_it_works(self):
        line = self.child.stdout.readline().strip()
        if line != "working":
            raise AssertionError(f"the program says {line!r}")

    def finish(self):
        """(exit status, what it printed last)"""
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()
        self.child.stdin = None
        out = self.child.stdout.read()
        return self.child.wait(60), out.strip().splitlines()[-1] if out.strip() else ""


@contextlib.contextmanager
def supervised(arguments=()):
    with process.scratch_dir("vgpu-") as runtime_dir:
        vgpud = SupervisedDaemon(runtime_dir, arguments)
        vgpud.start()
        try:
            yield vgpud
        finally:
            if vgpud.process.poll() is None:
                vgpud.kill(signal.SIGTERM)
            for pid in vgpud.keepers():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def wait_until(condition, what, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)
