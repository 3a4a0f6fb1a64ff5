# SPDX-License-Identifier: Apache-2.0
"""What this machine has, and its kernel's log."""
import glob
import os
import platform
import re
import shutil
import subprocess
import sys
import threading

# Xid errors that a process gets when it is killed with work on the GPU, which some parts do (docs/gpu-check.md).
OF_KILLED_PROCESSES = {43, 45}
_XID = re.compile(r"Xid \(([^)]*)\): (\d+)")


def said(*command):
    """What a program says; empty where there is no such program."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def facts():
    gpu = said("nvidia-smi", "--query-gpu=name,pci.bus_id,driver_version,memory.total,compute_mode,mig.mode.current,ecc.mode.current",
               "--format=csv,noheader")
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    versions = said(nvcc, "--version").splitlines() if nvcc else []
    return {
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", "") if hasattr(platform, "freedesktop_os_release") else "",
        "kernel": platform.release(),
        "glibc": platform.libc_ver()[1],
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "processor": next((line.split(":")[1].strip() for line in read("/proc/cpuinfo").splitlines() if line.startswith("model name")), ""),
        "user": "root" if os.geteuid() == 0 else "not root",
        "device_files": sorted(glob.glob("/dev/nvidia*")),
        "nvidia_smi": gpu or "not there",
        "kernel_module": read("/proc/driver/nvidia/version").split("\n")[0],
        "nvcc": versions[-2] if len(versions) > 1 else "not there",
        "torch": said(sys.executable, "-c", "import torch; print(torch.__version__)") or "not there",
    }


class KernelLog:
    """Looks for errors of NVIDIA's driver in the kernel's log from now on; `found` is called with the first one that no killed
    process explains. `path`: a file instead of the kernel's own."""

    def __init__(self, found, path=None):
        self.lines, self.why_not = [], ""
        self._found, self._stop = found, threading.Event()
        try:
            self._file = os.open(path or "/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            self._file, self.why_not = None, f"the kernel's log can't be read: {error}"
            return
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self):
        self._stop.set()
        if self._file is not None:
            self._thread.join()
            os.close(self._file)

    def _watch(self):
        while not self._stop.wait(0.2):
            self._look()
        self._look()

    def _look(self):
        while True:
            try:
                data = os.read(self._file, 65536)
            except BlockingIOError:
                return
            except OSError:  # lines were overwritten before they could be read
                continue
            if not data:
                return
            for line in data.decode(errors="replace").splitlines():
                self._take(line)

    def _take(self, line):
        text = line.split(";", 1)[-1]
        if "NVRM" not in text:
            return
        self.lines.append(text)
        xid = _XID.search(text)
        if xid and int(xid[2]) not in OF_KILLED_PROCESSES:
            self._found(f"the kernel's log has an error of the driver: {text}")
