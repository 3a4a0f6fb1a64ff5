# SPDX-License-Identifier: Apache-2.0
"""Which accelerator QEMU may use. KVM only after it has really run a guest: some machines have a /dev/kvm that opens and
then hangs."""
import contextlib
import os
import signal
import subprocess
import time

from . import process
from .paths import CACHE, KERNEL_SUITES, QEMU, kernel_dir

TCG = ["-accel", "tcg,thread=multi", "-cpu", "max"]
KVM = ["-accel", "kvm", "-cpu", "host"]
_PROBE_SECONDS = 8.0
_UP = b"GUEST-UP"


def accel_arguments():
    """Probes once per boot of this machine and QEMU, then remembers."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return TCG
    verdict = CACHE / "kvm-verdict"
    key = _verdict_key()
    with contextlib.suppress(OSError, ValueError):
        known_key, answer = verdict.read_text().split()
        if known_key == key:
            return KVM if answer == "works" else TCG
    works = _kvm_runs_a_guest()
    with contextlib.suppress(OSError):
        verdict.write_text(f"{key} {'works' if works else 'fails'}\n")
    return KVM if works else TCG


def _verdict_key():
    with open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read().strip()}:{os.stat(QEMU).st_mtime_ns}"


def _kvm_runs_a_guest():
    directory = kernel_dir(KERNEL_SUITES[0])
    command = [QEMU, "-machine", "q35", *KVM, "-m", "256", "-nodefaults", "-display", "none", "-no-reboot",
               "-kernel", directory / "vmlinuz", "-initrd", directory / "initrd.img",
               "-append", "console=ttyS0 quiet panic=-1", "-serial", "stdio"]
    child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, start_new_session=True)
    os.set_blocking(child.stdout.fileno(), False)
    seen = b""
    deadline = time.monotonic() + _PROBE_SECONDS
    try:
        while time.monotonic() < deadline and child.poll() is None and _UP not in seen:
            seen += child.stdout.read() or b""
            time.sleep(0.05)
        return _UP in seen
    finally:
        child.send_signal(signal.SIGKILL)
        process.stop(child)  # gives up on a child that the kernel cannot end
        child.stdout.close()
