# SPDX-License-Identifier: Apache-2.0
"""CUDA programs of this host on a VF without a virtual machine."""
import os
import re
import signal
import subprocess
import sys

from . import process
from .payload import find_program
from .paths import SHIM, library_path, need


def environment(vf):
    """What makes a program use the VF: our libcuda and libnvidia-ml, and the VF's channel socket."""
    need(SHIM, "the library libcuda.so.1")
    return dict(os.environ, VGPU_CHANNEL=vf["channel_socket"], LD_LIBRARY_PATH=library_path())


def python():
    """The command of a Python that can load our libraries. Those of a build with a sanitizer need its runtime before anything else, and to
    the leak checker all of Python is lost memory."""
    runtime = re.search(rb"\0(lib[at]san\.so\.\d+)\0", SHIM.read_bytes())
    if runtime is None:
        return [sys.executable]
    asan = os.environ.get("ASAN_OPTIONS", "")
    return ["/usr/bin/env", f"LD_PRELOAD={runtime[1].decode()}", f"ASAN_OPTIONS={asan}:detect_leaks=0", sys.executable]


def start(vf, argv, **options):
    """Starts the program with this process's output (or what `options` of Popen say); it dies with this process."""
    parent = os.getpid()
    return subprocess.Popen([find_program(argv[0]), *argv[1:]], env=environment(vf),
                            preexec_fn=lambda: process.die_with_parent(parent, signal.SIGKILL), **options)


def stop(child):
    if child.poll() is None:
        child.kill()
        child.wait()
