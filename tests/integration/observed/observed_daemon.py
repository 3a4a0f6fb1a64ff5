# SPDX-License-Identifier: Apache-2.0
"""A vgpud whose executors burn time, for the tests of what it counts and exports. Environment: VGPUD, VGPUCTL, VGPUD_VF and
SPIN_EXECUTOR name the programs."""
import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

VGPUD, VGPUCTL = os.environ["VGPUD"], os.environ["VGPUCTL"]
COUNTERS = ("entitled_ns", "received_ns", "borrowed_ns", "unclaimed_ns", "runnable_ns", "waited_ns", "slices", "forced_preemptions",
            "overrun_ns_total", "worst_overrun_ns", "kernels", "warp_instructions")
INTERVAL_MS = 200


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def eventually(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not (result := condition()):
        check(time.monotonic() < end, f"not within {seconds} s: {what}")
        time.sleep(0.02)
    return result


class Bed:
    """A private vgpud whose state outlives it."""

    def __init__(self, root):
        self.root, self.runtime, self.state = root, f"{root}/run", f"{root}/state"
        self.log = f"{root}/log"
        self.process, self.channels = None, []
        os.mkdir(f"{root}/libexec")
        os.symlink(os.environ["VGPUD_VF"], f"{root}/libexec/vgpud-vf")
        os.symlink(os.environ["SPIN_EXECUTOR"], f"{root}/libexec/vgpud-exec")

    def start(self, *arguments):
        ready, ready_in_child = os.pipe()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [VGPUD, "--runtime-dir", self.runtime, "--state-dir", self.state, "--ready-fd", str(ready_in_child),
                 "--exit-with-parent", "--history-interval-ms", str(INTERVAL_MS), *arguments],
                pass_fds=[ready_in_child], stderr=log, env=dict(os.environ, VGPUD_LIBEXEC=f"{self.root}/libexec"))
        os.close(ready_in_child)
        with os.fdopen(ready, "rb") as pipe:
            check(pipe.read(1), f"vgpud starts\n{self.text_of_log()}")

    def text_of_log(self):
        with open(self.log) as file:
            return file.read()

    def run(self, *arguments):
        return subprocess.run([VGPUCTL, "--runtime-dir", self.runtime, *arguments], capture_output=True, text=True)

    def ctl(self, *arguments):
        done = self.run(*arguments)
        check(done.returncode == 0, f"vgpuctl {arguments}: {done.stderr}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.ctl(*arguments, "-o", "json"))

    def create(self, *names):
        for name in names:
            self.ctl("create", name, "--vram", "64MiB", "--transient")

    def busy(self, *names):
        """Gives each VF an executor that always has work."""
        for name in names:
            channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            channel.connect(f"{self.runtime}/vf/{name}.channel.sock")
            channel.send(struct.pack("<IIQIIII", 1, 0, 1, os.getpid(), 0, 0, 0))
            check(channel.recvmsg(512, 4096)[0], "the channel opens")
            self.channels.append(channel)
        eventually(lambda: all(self.vf(name)["slices"] > 0 for name in names), f"{names} run")

    def stats(self):
        return self.json("stats")

    def vf(self, name):
        return self.json("stats", name)["vfs"][0]

    def runs(self, name, more):
        """Waits until the VF has had `more` turns."""
        turns = self.vf(name)["slices"]
        eventually(lambda: self.vf(name)["slices"] >= turns + more, f"{name} has {more} more turns")

    def end(self, how=signal.SIGTERM):
        if self.process is None:
            return
        for channel in self.channels:
            channel.close()
        self.channels = []
        process, self.process = self.process, None
        process.send_signal(how)
        code = process.wait(20)
        check(code == (0 if how == signal.SIGTERM else -how), f"vgpud ends as told: {code}")


@contextlib.contextmanager
def bed(*arguments, start=True):
    root = tempfile.mkdtemp(prefix="vgpu-obs-", dir="/tmp")
    it = Bed(root)
    try:
        if start:
            it.start(*arguments)
        yield it
    except BaseException:
        print(f"log of vgpud:\n{it.text_of_log() if os.path.exists(it.log) else ''}", flush=True)
        raise
    finally:
        it.end()
        shutil.rmtree(root, ignore_errors=True)


def run_tests(module):
    """All functions of a module that are named test_*."""
    for name, test in sorted(module.items()):
        if name.startswith("test_"):
            print(f"--- {name}", flush=True)
            test()
