#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own libcuda where a guest's executor has it, on a machine without a GPU: each version that tests/first_contact/fetch has
fetched starts and says that there is no device. A driver that misses something of its process says another error, and no program
of any guest would run on a GPU. And the numbers that gpu/channels and the jail have of the kernel modules are those of their headers.

usage: first_contact_test.py
"""
import os
import re
import subprocess
import sys

import fetched
import harness
from vgpuguest import paths, process

EXEC = paths.BUILD / "gpu" / "vgpud-exec"
NO_DEVICE = "CUDA_ERROR_NO_DEVICE (100)"
NAMESPACES = ["unshare", "--pid", "--fork", "--mount"]
OWN_USER = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount"]
# As an executor is started by hand: what is in front of it, its confinement, and what is tried by that.
BY_HAND = (
    ([], "nothing", "without namespaces, by Landlock where there is any"),
    (NAMESPACES, "namespaces", "in namespaces with a /proc of its own"),
    (OWN_USER, "user-namespace", "the same behind a user namespace"),
    (NAMESPACES, "nothing", "in namespaces where no /proc can be mounted, which is as in a container"),
)


def said_by(version):
    return NO_DEVICE if fetched.major(version) >= fetched.OLDEST else "is too old"


def check_daemon(version, library, directory):
    ended = subprocess.run([paths.VGPUD, "--runtime-dir", os.path.join(directory, "run"), "--gpu", "cuda", "--cuda-library", library],
                           stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=120)
    harness.check(ended.returncode == 1 and said_by(version) in ended.stderr, f"{version}: vgpud says so: {ended.stderr}")


def check_by_hand(version, library):
    for front, confinement, what in BY_HAND:
        if front and os.geteuid() != 0:
            continue
        ended = subprocess.run([*front, EXEC, "--backend", "cuda", "--vf", "trial", "--confinement", confinement, "--cuda-library", library,
                                "--describe-gpu"], stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=60, check=False)
        harness.check(said_by(version) in ended.stderr, f"{version}, {what}: {ended.stderr}")
        harness.check("can't be loaded" not in ended.stderr, f"{version}, {what}: its compilers are loaded: {ended.stderr}")


# In mounts of its own somebody listens where the driver looks for MPS, and never answers.
LISTENER = """
import os, socket, subprocess, sys
subprocess.run(["mount", "-t", "tmpfs", "none", "/tmp"], check=True)
os.mkdir("/tmp/nvidia-mps")
mps = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
mps.bind("/tmp/nvidia-mps/control")
mps.listen()
sys.stderr.write(subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=30).stderr)
"""


def check_mps(version):
    if os.geteuid() != 0:
        return
    library = fetched.FETCHED / version / "lib" / "libcuda.so.1"
    ended = subprocess.run(["unshare", "--mount", sys.executable, "-c", LISTENER, EXEC, "--backend", "cuda", "--vf", "trial", "--cuda-library",
                            library, "--describe-gpu"], stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=60, check=False)
    harness.check(said_by(version) in ended.stderr, f"{version}: whoever listens in /tmp can't hold it: {ended.stderr[-300:]}")


# A file of comparisons, and a number of the headers with another one that is wrong in its place.
COMPARED = (("compare.cc", "NV_ERR_INVALID_CHANNEL", "NV_ERR_INVALID_CLASS"),
            ("compare_kernel_side.cc", "NV_ESC_REGISTER_FD", "NV_ESC_CARD_INFO"))


def check_numbers(version):
    """Each file compiles, and does not with a number that is wrong."""
    headers = fetched.FETCHED / version / "include" / "modules" / "nvidia-open-kernel"
    command = ["c++", "-std=c++20", "-fsyntax-only", "-w", f"-DDRIVER_MAJOR={fetched.major(version)}", f"-I{paths.REPO}", "-isystem",
               headers / "common" / "inc", "-isystem", headers / "nvidia-uvm", "-x", "c++", "-"]

    def compiled(source):
        return subprocess.run(command, input=source, text=True, capture_output=True, timeout=120, check=False)

    for name, number, other in COMPARED:
        text = (paths.REPO / "tests" / "first_contact" / name).read_text(encoding="utf-8")
        right = compiled(text)
        harness.check(right.returncode == 0, f"{version}, {name}: the numbers are those of the headers: {right.stderr}")
        wrong = compiled(re.sub(rf"\b{number}\b", other, text))
        harness.check("static assertion" in wrong.stderr, f"{version}, {name}: a wrong number is noticed")


def test():
    versions = fetched.versions()
    with process.scratch_dir("vgpu-") as directory:
        os.chmod(directory, 0o755)
        for version in versions:
            library = fetched.driver_of(version, directory)
            check_daemon(version, library, directory)
            check_by_hand(version, library)
            check_mps(version)
            check_numbers(version)
            print(f"{version}: {said_by(version)}, in every confinement", file=sys.stderr)


harness.main(test, needs_guest=False)
