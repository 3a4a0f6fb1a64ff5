# SPDX-License-Identifier: Apache-2.0
"""A made-up kernel side of NVIDIA's driver (kernel_side/): its device files in /dev of mounts of our own, for NVIDIA's libcuda."""
import contextlib
import os
import signal
import subprocess
import sys

import fetched
import harness
from vgpuguest import paths, process

BUILT = paths.BUILD / "tests" / "first_contact"
IN_FRONT = BUILT / "libdevice-files.so"
STEPS = BUILT / "driver-steps"
_OWN_MOUNTS = "VGPUD_TEST_OWN_MOUNTS"
# What programs and vgpud need of /dev; nothing of NVIDIA's that this machine may have.
_KEPT = ("full", "kvm", "null", "ptmx", "pts", "random", "shm", "tty", "urandom", "zero")


def own_mounts():
    """Goes on in mounts that nobody else sees. Skips where that is not allowed."""
    if os.environ.get(_OWN_MOUNTS) == "1":
        return
    if os.geteuid() != 0:
        harness.skip("only root mounts device files of its own")
    if not os.path.exists("/dev/fuse"):
        harness.skip("there is no /dev/fuse here")
    os.environ[_OWN_MOUNTS] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


class MadeUpKernel:
    def __init__(self, version, child, log):
        self.version = version
        self._child = child
        self._log = log

    @property
    def environment(self):
        """Of a program that finds NVIDIA's libcuda and these device files."""
        return {"LD_PRELOAD": str(IN_FRONT), "LD_LIBRARY_PATH": str(fetched.FETCHED / self.version / "lib"),
                "PATH": os.environ["PATH"], "CUDA_CACHE_DISABLE": "1"}

    def order(self, line):
        """The answer of the kernel side to an order of kernel_side/device_side.cc."""
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()
        return self._child.stdout.readline().strip()

    def log(self):
        with open(self._log, encoding="utf-8", errors="replace") as lines:
            return lines.read()


def _mount_devices(folder, names, made):
    """/dev is what is kept of it, and the files that were made."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "dev", folder], check=True)
    for name in _KEPT:
        place = os.path.join(folder, name)
        if os.path.isdir(f"/dev/{name}"):
            os.mkdir(place)
        elif os.path.exists(f"/dev/{name}"):
            open(place, "w", encoding="utf-8").close()
        else:
            continue
        subprocess.run(["mount", "--bind", f"/dev/{name}", place], check=True)
    for name in names:
        place = os.path.join(folder, name)
        open(place, "w", encoding="utf-8").close()
        subprocess.run(["mount", "--bind", os.path.join(made, name), place], check=True)
    subprocess.run(["mount", "--rbind", folder, "/dev"], check=True)


@contextlib.contextmanager
def made_up_kernel(version, chip="t4", cards=1):
    """A kernel side of this driver version with such cards. Call own_mounts() before."""
    with process.scratch_dir("vgpu-") as directory:
        os.chmod(directory, 0o755)
        made, devices, log = (os.path.join(directory, name) for name in ("made", "dev", "log"))
        os.mkdir(made)
        os.mkdir(devices)
        with open(log, "w", encoding="utf-8") as output:
            child = subprocess.Popen([BUILT / "kernel-side", made, version, chip, str(cards)], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=output, text=True)
        kernel = MadeUpKernel(version, child, log)
        try:
            if child.stdout.readline() != "ready\n":
                harness.skip(f"no file system of our own can be mounted: {kernel.log()}")
            _mount_devices(devices, ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", *(f"nvidia{n}" for n in range(cards))), made)
            yield kernel
        finally:
            subprocess.run(["umount", "--lazy", "/dev"], check=False)
            child.stdin.close()
            child.wait(30)
            subprocess.run(["umount", "--recursive", "--lazy", devices, made], check=False)


class Steps:
    """driver-steps with these steps, on a made-up kernel."""

    def __init__(self, kernel, *steps):
        parent = os.getpid()
        self._child = subprocess.Popen([STEPS, "libcuda.so.1", *steps], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, env=kernel.environment,
                                       preexec_fn=lambda: process.die_with_parent(parent, signal.SIGKILL))

    def until_waiting(self):
        """What it said before its next step "wait"."""
        said = ""
        for line in self._child.stdout:
            if line == "waiting\n":
                return said
            said += line
        raise AssertionError(f"it ended before it waited: {said}")

    def go_on(self):
        self._child.stdin.write("\n")
        self._child.stdin.flush()

    def rest(self, timeout=120):
        """What it said until it ended."""
        return self._child.communicate(timeout=timeout)[0]
