#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks vgpud on the NVIDIA GPU of this machine and writes a report. docs/gpu-check.md explains the parts and their figures.

Exit status: 0 the report is written; 1 it is, and something is not as it has to be (a result differs on a VF, a program that passes on
the driver itself fails there); 2 wrong usage; 3 there is no GPU that can be used here, and what is needed; 4 an error of the driver
ended the run early, and the report has what was measured until then.
"""
import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(HERE))
from check import driver, machine, parts_native, parts_programs, parts_vfs  # noqa: E402
from check.driver import Ended, NotMeasured, Program, built  # noqa: E402
from check.part import KINDS, Result, Told  # noqa: E402
from check.report import Report  # noqa: E402

# Name, title, what measures it, and how many seconds it may take; in this order, what matters most first.
PARTS = (
    ("native", "The driver itself", parts_native.measure_native, 40),
    ("rungs", "How the GPU is taken away", parts_vfs.measure_rungs, 75),
    ("digests", "The same results on a VF", parts_vfs.measure_digests, 40),
    ("probe", "The driver's own controls (E1 to E16)", parts_native.measure_probe, 90),
    ("fairness", "Fairness beside hostile loads", parts_vfs.measure_fairness, 120),
    ("slices", "What a switch costs", parts_vfs.measure_slices, 60),
    ("copies", "Launches and copies on a VF", parts_vfs.measure_copies, 30),
    ("programs", "CUDA tests", parts_programs.measure_programs, 90),
    ("libraries", "NVIDIA's libraries", parts_programs.measure_libraries, 45),
    ("golden", "Golden instructions", parts_native.measure_golden, 110),
    ("torch", "PyTorch", parts_programs.measure_torch, 120),
)
NEEDS = """It needs:
- an NVIDIA GPU from compute capability 7.5 on, in the compute mode DEFAULT, that nobody else uses;
- NVIDIA's driver 550 or newer, with libcuda.so.1 where the loader finds it (nvidia-smi -L must list the GPU);
- glibc {glibc} or newer, python3 3.8 or newer, and root: vgpud makes users and name spaces for its VFs.
Nothing is installed, and no setting of the device is changed. docs/gpu-check.md says more."""


def parse(arguments):
    names = [name for name, *_ in PARTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="gpu-check-report", help="folder of the report (default: %(default)s)")
    parser.add_argument("--parts", default=",".join(names), help="only these, with commas between (default: all: %(default)s)")
    parser.add_argument("--without", default="", help="all but these")
    parser.add_argument("--minutes", type=float, default=8, help="the run ends then, with what it has (default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1, help="of the measured times; below 1 fewer golden forms and programs, too")
    parser.add_argument("--vfs", default="2,4,8", help="how many VFs the part fairness has (default: %(default)s)")
    parser.add_argument("--kinds", default=",".join(KINDS), help="loads (default: %(default)s)")
    parser.add_argument("--kernel-us", type=float, default=200, help="how long a kernel of an honest load takes alone (default: %(default)s)")
    parser.add_argument("--driver-library", default="", help="another libcuda.so.1 than the system's")
    parser.add_argument("--driver-channel", default="", help="the channel socket of a VF of another vgpud, for a --driver-library of vgpud's own")
    parser.add_argument("--kernel-log", default=None, help="a file to look into instead of /dev/kmsg")
    told = parser.parse_args(arguments)
    for option in (told.parts, told.without):
        for name in filter(None, option.split(",")):
            if name not in names:
                parser.error(f"there is no part {name}; parts: {', '.join(names)}")
    for kind in told.kinds.split(","):
        if kind not in KINDS:
            parser.error(f"there is no load {kind}; loads: {', '.join(KINDS)}")
    return told


def oldest_glibc():
    """Of the programs of this bundle."""
    return machine.read(os.path.join(HERE, "glibc")) or "of the machine where it was built"


def why_no_gpu(native):
    """Empty: there is a GPU. Else what is wrong, in one sentence."""
    wanted = machine.read(os.path.join(HERE, "glibc"))
    has = machine.platform.libc_ver()[1]
    if wanted and tuple(map(int, has.split("."))) < tuple(map(int, wanted.split("."))):
        return f"this machine has glibc {has}"
    if native.channel:
        return ""
    library = ["--cuda-library", native.library] if native.library else []
    try:
        asked = subprocess.run([built("gpu", "vgpud-exec"), "--backend", "cuda", "--vf", "check", "--describe-gpu", *library],
                               capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    except subprocess.TimeoutExpired:
        return "the driver has not answered within two minutes: see the kernel's log"
    except OSError as error:
        return f"vgpud-exec can't be run: {error}"
    return "" if asked.returncode == 0 else (asked.stderr.strip().split("\n")[-1].split("error: ")[-1] or f"vgpud-exec ended with {asked.returncode}")


class Run:
    """The parts one after the other, until they are done, the time is over, or the driver has an error."""

    def __init__(self, told, report, chosen):
        self.told, self.report, self.chosen = told, report, chosen
        self._why_ended = None
        self._lock = threading.Lock()

    def end(self, why):
        """Any thread: nothing more is measured, and what runs ends."""
        with self._lock:
            if self._why_ended is not None:
                return
            self._why_ended = why
        Program.stop_all()

    def run(self):
        for name, title, measure, seconds in PARTS:
            if name not in self.chosen:
                self.report.left_out.append((title, "left out by the command line"))
            elif self._why_ended is not None:
                self.report.left_out.append((title, "the run had ended"))
            elif self.told.left() < 10:
                self.report.left_out.append((title, "no time was left"))
            else:
                self._part(Result(name, title), measure, seconds)
            self.report.ended_early = self._why_ended or ""
            self.report.write()

    def _part(self, result, measure, seconds):
        print(f"gpu-check: {result.title} ({result.name})", flush=True)
        self.report.results.append(result)
        begun = time.monotonic()
        limit = min(seconds * max(1.0, self.told.scale), self.told.left() - 3)
        # The limit of a part: its programs end, and what it then reads from them is not measured.
        timer = threading.Timer(limit, Program.stop_all)
        timer.start()
        try:
            part_told = Told(**{**vars(self.told), "end": begun + limit})
            try:
                measure(part_told, result)
            finally:
                self.told.rounds = part_told.rounds
        except Ended as why:
            result.status, result.why = "ended", str(why)
            self.end(str(why))
        except (NotMeasured, OSError, KeyError, IndexError, ValueError) as why:
            late = f", after its limit of {limit:.0f} s" if time.monotonic() - begun >= limit else ""
            known = str(why) if isinstance(why, NotMeasured) else f"{type(why).__name__} {why}: its programs did not say what they should"
            result.status, result.why = ("partly measured" if any(table.rows for table in result.tables) else "not measured"), known + late
            if result.status == "partly measured":
                result.lacks("the rest", known + late)
        finally:
            timer.cancel()
            Program.stop_all()
        if self._why_ended is not None and result.status == "measured":
            result.status, result.why = "ended", self._why_ended
        result.seconds = time.monotonic() - begun


def main(arguments):
    options = parse(arguments)
    native = driver.Native(options.driver_library, options.driver_channel)
    why = why_no_gpu(native)
    if why:
        print(f"gpu-check: no GPU can be checked here: {why}\n{NEEDS.format(glibc=oldest_glibc())}", file=sys.stderr)
        return 3
    os.makedirs(options.out, exist_ok=True)
    told = Told(native, os.path.abspath(options.out), scale=options.scale, jobs=min(16, os.cpu_count() or 1),
                vfs=tuple(int(count) for count in options.vfs.split(",")), kinds=tuple(options.kinds.split(",")),
                end=time.monotonic() + 60 * options.minutes)
    told.facts["kernel_us"] = options.kernel_us
    if native.channel:
        told.facts["torch_vram"] = 512 << 20
    report = Report(told.out, machine.facts(), f"{options.driver_library or 'the system’s libcuda.so.1'}"
                    + (f" on {options.driver_channel}: nested, no GPU of NVIDIA's" if options.driver_channel else ""))
    chosen = set(options.parts.split(",")) - set(options.without.split(","))
    run = Run(told, report, chosen)
    log = machine.KernelLog(run.end, options.kernel_log)
    report.kernel_log, report.kernel_log_why = log.lines, log.why_not
    with contextlib.ExitStack() as stack:
        stack.callback(Program.stop_all)
        run.run()
    log.stop()
    report.write()
    print(f"gpu-check: the report is {os.path.join(told.out, 'report.md')}")
    if report.ended_early:
        print(f"gpu-check: ended early: {report.ended_early}", file=sys.stderr)
        return 4
    return 1 if any(result.failed for result in report.results) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
