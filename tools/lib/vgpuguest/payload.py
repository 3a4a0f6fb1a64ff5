# SPDX-License-Identifier: Apache-2.0
"""A host-built program and the libraries it needs, brought into a guest."""
import os
import re
import shutil
import subprocess

from .channel import digest
from .paths import NVML, SHIM, ToolError, library_path, need

_GUEST_LIBRARIES = "/lib/x86_64-linux-gnu"
_ROOT = "/opt/vgpu"


def find_program(name):
    """The host path of a program named as in a shell."""
    path = shutil.which(name)
    if path is None:
        raise ToolError(f"no program {name} on this host: build it first, or give its path")
    return os.path.abspath(path)


def libraries(program):
    """{file name: host path} of everything the program is linked against, our libcuda and libnvidia-ml included."""
    found = {"libcuda.so.1": str(need(SHIM, "the guest library libcuda.so.1")),
             "libnvidia-ml.so.1": str(need(NVML, "the guest library libnvidia-ml.so.1"))}
    for binary in (program, *list(found.values())):
        environment = dict(os.environ, LD_LIBRARY_PATH=library_path())
        answer = subprocess.run(["ldd", binary], env=environment, capture_output=True, text=True)
        if answer.returncode != 0:  # static, or a script
            continue
        missing = re.findall(r"^\s*(\S+) => not found", answer.stdout, re.MULTILINE)
        if missing:
            raise ToolError(f"{binary} needs {', '.join(missing)}, which this host does not have")
        for name, path in re.findall(r"^\s*(\S+) => (/\S+)", answer.stdout, re.MULTILINE):
            found.setdefault(name, path)
    return found


class Payload:
    """What a program needs in a guest. `send` copies what is not there yet."""

    def __init__(self, program):
        self._program = find_program(program)
        self._libraries = libraries(self._program)

    def send(self, channel):
        """Returns (path of the program in the guest, environment it needs)."""
        extra = {name: path for name, path in sorted(self._libraries.items())
                 if channel.size_of(f"{_GUEST_LIBRARIES}/{name}") != os.path.getsize(path)}
        library_dir = f"{_ROOT}/lib-{digest(*extra.values())}"
        for name, path in extra.items():
            self._send_file(channel, path, f"{library_dir}/{name}")
        program = f"{_ROOT}/bin-{digest(self._program)}/{os.path.basename(self._program)}"
        self._send_file(channel, self._program, program)
        return program, {"LD_LIBRARY_PATH": library_dir}

    @staticmethod
    def _send_file(channel, source, path):
        if channel.size_of(path) != os.path.getsize(source):
            channel.put(source, path, 0o755)
