# SPDX-License-Identifier: Apache-2.0
"""What checks see of where an application runs: commands in its root, on a VF."""
import dataclasses
import pathlib
import re
import shlex

from .application import Failed

INSIDE = pathlib.Path(__file__).resolve().parent.parent / "inside"
_MISSED = re.compile(r"^vgpud: (?!no virtual GPU)(.*)$", re.MULTILINE)
_TELLING = re.compile(r"error|fail|assert|abort|exception|refus|unsupported|not supported|cannot|vgpud:", re.IGNORECASE)
_ONCE = " (said once; VGPU_TRACE=1 says it each time, 0 never)"
ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1",
                "LD_LIBRARY_PATH": "/opt/vgpu:/opt/vgpu-nvml"}


@dataclasses.dataclass(frozen=True)
class Ran:
    """What a command did. `code` is None when it was ended because its time was over."""
    code: int
    out: str
    err: str
    seconds: float

    def tail(self, lines=4):
        """How it ended, and the last lines that tell of an error; without such the last ones."""
        how = "its time was over" if self.code is None else f"exit status {self.code}"
        said = [line.strip() for line in (self.out + "\n" + self.err).splitlines() if line.strip()]
        telling = [line for line in said if _TELLING.search(line)] or said
        return f"{how}: {' | '.join(line[:200] for line in telling[-lines:])}"


class Place:
    """An application's root: / of its commands. /opt/vgpu has our libcuda.so.1 and libnvidia-ml.so.1 (without a VM beside it), /opt/inside the scripts of this folder,
    /data is writable and where commands begin. Subclasses have _run(argv, timeout, environment, gpu) -> Ran."""

    slowness = 1  # how many times longer than without a virtual machine a command may take

    def __init__(self, root, gpu_seconds):
        self.root = root  # the directory on this host
        self.gpu_seconds = gpu_seconds  # a function: how long the GPU has run until now
        self.patience = 60  # seconds for each of many equal checks
        self.missed = {}  # what libcuda said it cannot do: {line: in how many processes}

    def run(self, argv, timeout, environment=None, gpu=True):
        """Runs a command and waits; it and all it started have ended afterwards. `gpu` False: without a GPU in sight."""
        ran = self._run([str(word) for word in argv], timeout, {**ENVIRONMENT, **(environment or {})}, gpu)
        for line in _MISSED.findall(ran.err):
            line = line.replace(_ONCE, "")
            self.missed[line] = self.missed.get(line, 0) + 1
        return ran

    def must(self, argv, timeout, **options):
        """The same for a command whose failure is the check's."""
        ran = self.run(argv, timeout, **options)
        if ran.code != 0:
            raise Failed(f"{shlex.join(str(word) for word in argv)[:120]}: {ran.tail()}")
        return ran
