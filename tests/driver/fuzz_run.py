#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The driver's fuzzer in a guest, with everything an administrator and a host may do meanwhile. Stops at the first report of the
kernel (KASAN, lockdep, DMA-API, a hung task, WARN, BUG, a leak) and shows it.

Exit status: 0 nothing was found, 1 there is a finding, 77 no guest can run here. Each run prints its seed; --seed repeats it.
"""
import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "vm"), str(HERE.parents[1] / "tools" / "lib")]
import bad_hosts  # noqa: E402
import bed as beds  # noqa: E402
import harness  # noqa: E402
import life_cycle  # noqa: E402
import reports  # noqa: E402
from vgpuguest import paths, process  # noqa: E402

# A call that is made to fail may say so; an oops or a warning may not.
_ALLOWED = r"FAULT_INJECTION: forcing a failure|page allocation failure|fuzz: .*fault-injection"
_LIFE_SECONDS = 60  # one run of the fuzzer's program; the guest lives longer
_INJECTION = """
cd /sys/kernel/debug 2>/dev/null || { mount -t debugfs debugfs /sys/kernel/debug && cd /sys/kernel/debug; }
for kind in failslab fail_page_alloc; do
  [ -d $kind ] || continue
  echo N > $kind/ignore-gfp-wait
  echo 0 > $kind/verbose
done
[ -d fail_page_alloc ] && echo 0 > fail_page_alloc/min-order
[ -e kmemleak ] && echo clear > kmemleak
true
"""


class Finding(Exception):
    pass


class Administrator:
    """What root does to the device meanwhile, one thing at a time."""

    def __init__(self, bed, seed):
        self._bed, self._random = bed, random.Random(seed)
        self._address = bed.pci_address()
        # Newer kernels disconnect the fuzzer's command port in their sleep, and so end it.
        self._weights = [6, 3, 3, 4, 0 if bed.suite == "trixie-backports" else 1, 2]
        self.deeds = {"rest": 0, "unbind": 0, "reset": 0, "sysfs": 0, "suspend": 0, "remove": 0}

    def act(self):
        deed = self._random.choices([*self.deeds], weights=self._weights)[0]
        self.deeds[deed] += 1
        getattr(self, f"_{deed}")()

    def _rest(self):
        time.sleep(2)

    def _unbind(self):
        self._bed.shell(f"cd /sys/bus/pci/drivers/vgpu && echo {self._address} > unbind && sleep 0.2 && echo {self._address} > bind",
                        timeout=60)
        self._bed.open_device()

    def _reset(self):
        self._bed.shell(f"echo 1 > /sys/bus/pci/devices/{self._address}/reset", timeout=60)

    def _sysfs(self):
        self._bed.shell("find /sys/class/vgpu/vgpu0/ /sys/module/vgpu/parameters/ -type f -exec cat {} + > /dev/null 2>&1",
                        timeout=60, check=False)

    def _suspend(self):
        self._bed.suspend()

    def _remove(self):
        self._bed.shell(f"cd /sys/bus/pci; echo 1 > devices/{self._address}/remove; sleep 0.2; echo 1 > rescan", timeout=60)
        self._bed.shell("for i in $(seq 100); do [ -e /dev/vgpu0 ] && exit 0; sleep 0.1; done; exit 1", timeout=30)
        self._bed.open_device()


def look(bed):
    """Raises what the console reports."""
    found = bed.console.reports(_ALLOWED, context=60)
    if found:
        raise Finding("\n\n".join(found[:3]))
    if bed.guest.qemu.poll() is not None:
        raise Finding(f"QEMU ended with {bed.guest.qemu.returncode}\n{_qemu_says(bed)}\nthe guest:\n{process.tail(bed.guest.console, 40)}")


def _qemu_says(bed):
    return process.tail(os.path.join(bed.guest.directory, "qemu.log"), 20)


def fuzz(bed, options, number):
    """One run of the program, with the administrator beside it."""
    seconds = min(_LIFE_SECONDS, options.seconds)
    seed = options.seed + number
    program = bed.program("fuzz", "--seconds", str(seconds), "--seed", str(seed), uid=0)
    administrator = Administrator(bed, seed) if options.administrator else None
    deadline = time.monotonic() + (seconds + 120) * bed.patience
    while program.code is None:
        if administrator:
            administrator.act()
        else:
            time.sleep(1)
        look(bed)
        if time.monotonic() > deadline:
            raise Finding(f"the fuzzer does not end\n{program.text()}\n{_tasks(bed)}")
        if program._error is not None:  # pylint: disable=protected-access
            raise Finding(f"the guest no longer answers: {program._error}\n{process.tail(bed.guest.console, 40)}")
    look(bed)
    print("".join(f"    {line}\n" for _, line in program.lines), end="")
    if administrator:
        print(f"    # the administrator: {administrator.deeds}", flush=True)
    if any(line.startswith("not ok") and "ends when it is killed" in line for _, line in program.lines):
        raise Finding(f"a killed process lives on\n{_tasks(bed)}")


def _tasks(bed):
    return bed.shell("for t in /proc/[0-9]*/task/*; do case $(cut -d' ' -f3 $t/stat) in D) cat $t/comm $t/stack;; esac; done",
                     check=False)


def leaks(bed):
    """Raises what kmemleak knows, twice: its first look has false alarms."""
    if bed.shell("ls /sys/kernel/debug/kmemleak 2>/dev/null", check=False).strip():
        bed.shell("echo scan > /sys/kernel/debug/kmemleak; sleep 5; echo scan > /sys/kernel/debug/kmemleak", timeout=120)
        found = bed.shell("cat /sys/kernel/debug/kmemleak", timeout=60)
        if "vgpu" in found:
            raise Finding(f"leaks:\n{found[:6000]}")


def ends_well(bed):
    """The data path works, nothing is held, and the module can go."""
    bed.open_device()
    bed.tap("basic")
    bed.shell("f=/sys/class/vgpu/vgpu0/channels; [ -e $f ] || exit 0; "
              "for i in $(seq 300); do [ $(cat $f) = 0 ] && exit 0; sleep 0.1; done; echo channels: $(cat $f); exit 1", timeout=60)
    leaks(bed)


def dying_host(bed, options):
    """The host dies under load, then root removes the device, and puts another one in its place. QEMU may not survive it (docs/restart.md)."""
    address = bed.pci_address()
    program = bed.program("fuzz", "--seconds", "15", "--seed", str(options.seed), uid=0)
    time.sleep(5)
    os.kill(harness.children_of(bed.vgpud.process.pid, "vgpud-vf")[0], signal.SIGKILL)
    program.wait(180 * bed.patience)
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{address}/remove", timeout=120)
    bad_hosts.replace_vf(bed)
    life_cycle.unload(bed)
    look(bed)
    leaks(bed)


def _has_aborted_by_itself(bed):
    """QEMU's vfio-user client sets an error twice when its server dies with requests unread. It is no news of the guest's driver."""
    try:
        code = bed.guest.qemu.wait(10)
    except subprocess.TimeoutExpired:
        return False
    return code == -signal.SIGABRT and "error_setv: Assertion" in _qemu_says(bed) and not reports.Console(bed.guest.console).reports(_ALLOWED)


def main(arguments):
    parser = argparse.ArgumentParser(prog="fuzz_run.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", help="guest kernel (debug where tools/test-kernel made it, else bookworm)")
    parser.add_argument("--module", metavar="FILE", help="another vgpu.ko than the kernel's own")
    parser.add_argument("--programs", metavar="DIR", default=paths.BUILD / "tests" / "driver", help="the built test programs")
    parser.add_argument("--seconds", type=int, default=120, help="how long (%(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="the first seed; each minute takes the next")
    parser.add_argument("--no-administrator", dest="administrator", action="store_false", help="no unbind, reset, suspend")
    options = parser.parse_args(arguments)
    kernel = options.kernel or ("debug" if (paths.kernel_dir("debug") / "vmlinuz").exists() else paths.KERNEL_SUITES[0])
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 30)
    if not os.path.exists(paths.QEMU):
        print("SKIPPED: no QEMU >= 10.1 here; tools/setup fetches it")
        return 77
    print(f"fuzz_run.py --kernel {kernel} --seconds {options.seconds} --seed {options.seed}", flush=True)
    setup = beds.Setup(memory_mib=1024) if kernel in beds.SLOW else beds.Setup(kernel_arguments="slub_debug=FZP")
    began = time.monotonic()
    with beds.bed(kernel, setup, options.programs, options.module) as bed:
        try:
            bed.shell(_INJECTION)
            number = 0
            while time.monotonic() - began < options.seconds:
                fuzz(bed, options, number)
                number += 1
            ends_well(bed)
            try:
                dying_host(bed, options)
            except (Finding, AssertionError, TimeoutError, paths.ToolError):
                if not _has_aborted_by_itself(bed):
                    raise
                print(f"# QEMU aborted by itself when its host died:\n{_qemu_says(bed)}")
        except (Finding, AssertionError, TimeoutError, paths.ToolError) as finding:
            print(f"FINDING after {time.monotonic() - began:.0f} s, seed {options.seed}:\n{finding or type(finding).__name__}")
            print("\n\n".join(bed.console.reports(_ALLOWED, context=60)))
            print("the console ends with\n" + process.tail(bed.guest.console, 60))
            return 1
    print(f"nothing found in {time.monotonic() - began:.0f} s")
    return 0


process.run_tool("fuzz_run.py", main)
