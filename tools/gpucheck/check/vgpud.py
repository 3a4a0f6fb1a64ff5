# SPDX-License-Identifier: Apache-2.0
"""The vgpud that is checked, in a directory of its own, and what it counts."""
import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

from . import control, driver  # control: tools/lib/vgpuguest, which tools/gpu-check puts next to this file
from .driver import NotMeasured


class Vgpud:
    def __init__(self, directory, log):
        self.directory, self.log = directory, log

    def ask(self, method, path, body=None):
        status, text = control.ask(os.path.join(self.directory, "control.sock"), method, path, body)
        if status >= 400:
            raise NotMeasured(f"vgpud: {method} {path}: {text.strip()}")
        return json.loads(text) if text.strip() else {}

    def create(self, name, vram_bytes, **more):
        self.ask("POST", "/v1/vfs", {"name": name, "vram_bytes": vram_bytes, "transient": True, **more})
        return self.ask("GET", f"/v1/vfs/{name}")["channel_socket"]

    def destroy(self, name):
        self.ask("DELETE", f"/v1/vfs/{name}")

    def stats(self):
        answer = self.ask("GET", "/v1/stats")
        return answer["now_ns"], {vf["name"]: vf for vf in answer["vfs"]}

    def gpu(self):
        return self.ask("GET", "/v1/gpu")

    def start(self, vf_socket, command):
        return driver.Program(command, driver.vf_environment(vf_socket))

    def log_tail(self, lines=12):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return "".join(file.readlines()[-lines:])
        except OSError:
            return ""


def _child(parent):
    ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


@contextlib.contextmanager
def running(native, arguments=(), seconds=60):
    """A vgpud on the driver. NotMeasured: it did not start, and why."""
    directory = tempfile.mkdtemp(prefix="vgpu-", dir="/tmp")
    log = os.path.join(directory, "vgpud.log")
    ready, ready_in_child = os.pipe()
    environment = dict(os.environ)
    environment.pop("VGPUD_RUNTIME_DIR", None)
    parent = os.getpid()
    with open(log, "ab") as output:
        process = subprocess.Popen(
            [driver.built("vgpud", "vgpud"), "--runtime-dir", directory, "--ready-fd", str(ready_in_child),
             *native.vgpud_arguments(), *arguments],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment, pass_fds=[ready_in_child],
            preexec_fn=lambda: _child(parent))
    os.close(ready_in_child)
    vgpud = Vgpud(directory, log)
    try:
        with os.fdopen(ready, "rb") as pipe:
            readable, _, _ = select.select([pipe], [], [], seconds)
            if not readable or not pipe.read(1):
                raise NotMeasured(f"vgpud did not start: {vgpud.log_tail(3).strip()}")
        yield vgpud
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(directory, ignore_errors=True)


def percentiles(before, after, key):
    """{p50_us, p99_us, max_us, count} of a histogram of nanoseconds between two looks; upper edges of its buckets."""
    counts = sorted((int(edge), count - before[key].get(edge, 0)) for edge, count in after[key].items())
    total = sum(count for _, count in counts)
    found = {"count": total}
    for name, part in (("p50_us", 0.5), ("p99_us", 0.99), ("max_us", 1.0)):
        so_far = 0
        for edge, count in counts:
            so_far += count
            if count and so_far >= part * total:
                found[name] = edge / 1000
                break
    return found


def watch(vgpud, seconds):
    """Counters before and after that time."""
    begun, before = vgpud.stats()
    time.sleep(seconds)
    ended, after = vgpud.stats()
    return ended - begun, before, after


def jain(shares):
    whole = sum(shares)
    return whole * whole / (len(shares) * sum(share * share for share in shares)) if whole else 0.0
