# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver that is checked: the system's own, or another library, like vgpud's own on a VF of a second vgpud. And the
programs of the bundle on it, and on VFs of the vgpud that is checked."""
import os
import re
import signal
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
# In a bundle `build` lies beside this folder; in the repository the caller says where it is.
BUILD = os.environ.get("VGPUD_BUILD_DIR") or os.path.join(HERE, "..", "build")
SHIM_DIR = os.path.join(BUILD, "guest-driver-shim", "libcuda")
NVML_DIR = os.path.join(BUILD, "guest-driver-shim", "libnvidia-ml")
# CUDA errors after which nothing more can be had from a context; outside of a guest they end the run.
STICKY = {214, 700, 701, 702, 706, 710, 713, 714, 715, 716, 717, 718, 719, 721, 999}


def built(*parts):
    return os.path.join(BUILD, *parts)


class Ended(Exception):
    """The run is over; what was measured so far is written down."""


class NotMeasured(Exception):
    """Why a part, or a row of it, has no figures."""


class Native:
    def __init__(self, library="", channel=""):
        self.library, self.channel = library, channel

    def environment(self):
        """Programs that use the driver itself."""
        environment = dict(os.environ)
        if self.library:
            environment["GPU_CHECK_LIBRARY"] = self.library
            environment["LD_LIBRARY_PATH"] = f"{os.path.dirname(self.library)}:{environment.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        if self.channel:
            environment["VGPU_CHANNEL"] = self.channel
        return environment

    def vgpud_arguments(self):
        arguments = ["--gpu", "cuda"]
        if self.library:
            arguments += ["--cuda-library", self.library]
        if self.channel:
            arguments += ["--cuda-channel", self.channel]
        return arguments


def vf_environment(socket):
    """Programs that use a VF."""
    environment = dict(os.environ, VGPU_CHANNEL=socket)
    environment.pop("GPU_CHECK_LIBRARY", None)
    environment["LD_LIBRARY_PATH"] = f"{SHIM_DIR}:{NVML_DIR}:{environment.get('LD_LIBRARY_PATH', '')}".rstrip(":")
    return environment


class Program:
    """A program that runs; its lines as they come."""
    running = set()
    _lock = threading.Lock()

    def __init__(self, command, environment, directory=None):
        self.name = " ".join(os.path.basename(word) if n == 0 else word for n, word in enumerate(command))
        self.lines, self.code = [], None
        self._changed = threading.Condition()
        self._child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, start_new_session=True, cwd=directory)
        with Program._lock:
            Program.running.add(self)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._child.stdout:
            with self._changed:
                self.lines.append((time.monotonic(), line.decode(errors="replace").rstrip()))
                self._changed.notify_all()
        code = self._child.wait()
        with Program._lock:
            Program.running.discard(self)
        with self._changed:
            self.code = code
            self._changed.notify_all()

    def wait(self, seconds):
        """The exit status; None: it is killed, it has not ended in time."""
        with self._changed:
            self._changed.wait_for(lambda: self.code is not None, seconds)
        if self.code is None:
            self.stop()
            return None
        return self.code

    def await_line(self, start, seconds):
        """Does a line that begins so come?"""
        with self._changed:
            self._changed.wait_for(lambda: self.code is not None or any(line.startswith(start) for _, line in self.lines), seconds)
        return any(line.startswith(start) for _, line in self.lines)

    def stop(self):
        try:
            os.killpg(self._child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        with self._changed:
            self._changed.wait_for(lambda: self.code is not None, 10)

    def text(self, lines=12):
        return "\n".join(line for _, line in self.lines[-lines:])

    @staticmethod
    def stop_all():
        with Program._lock:
            left = list(Program.running)
        for program in left:
            program.stop()


def fields(line):
    """{key: value} of a line like 'LATENCY what=launch p50_us=3.1'; numbers are numbers."""
    found = {}
    for key, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|(\S+))', line):
        found[key] = quoted if not plain else plain
        for number in (int, float):
            try:
                found[key] = number(plain)
                break
            except ValueError:
                continue
    return found


def rows(program, word):
    return [fields(line) for _, line in program.lines if line.startswith(word + " ")]


def run(command, environment, seconds, native=False, directory=None):
    """The program, which has ended well. NotMeasured: it has not; Ended: a CUDA error outside of a guest."""
    program = Program(command, environment, directory)
    code = program.wait(seconds)
    check(program, code, native)
    return program


def check(program, code, native=False):
    for error in rows(program, "ERROR"):
        text = f"{program.name}: {error.get('call')}: {error.get('name')} ({int(error.get('code', 0))})"
        if native and int(error.get("code", 0)) in STICKY:
            raise Ended(f"a CUDA error outside of a guest: {text}")
        raise NotMeasured(text)
    if code == 4:
        raise NotMeasured(f"{program.name}: this GPU has none ({program.text(1)})")
    if code is None:
        raise NotMeasured(f"{program.name}: did not end in time\n{program.text()}")
    if code != 0:
        raise NotMeasured(f"{program.name}: ended with {code}\n{program.text()}")
