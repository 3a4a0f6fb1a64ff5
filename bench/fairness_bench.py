#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How fairly and how cheaply the GPU is shared, on the real chain without virtual machines: eight VFs whose meters are
never idle, alone and beside the tricks of one hostile VF; what switching costs at several slices; how late slices end.

usage: fairness_bench.py [--seconds N] [--only fairness,switching,lateness]    environment: VGPUD_BUILD_DIR

Needs an idle host: what else runs is in every figure. "metered" is the daemon's account, "counted" the work that the
programs counted themselves, in units of the meter. A hostile VF does not count its own work.
"""
import argparse
import contextlib
import ctypes
import os
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tools/lib"))
from vgpuguest import daemon, direct, process, shares  # noqa: E402
from vgpuguest.paths import ToolError, cuda_command  # noqa: E402
from vgpuguest.program import DirectProgram  # noqa: E402

VFS = 8
SLICES_US = (500, 1000, 2000, 6000)
WARM_UP_SECONDS = 1.0


def jain(values):
    values = list(values)
    squares = sum(x * x for x in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0.0


# ---- Hostile programs ----

class Respawner:
    """A VF whose processes live for a moment only."""

    def __init__(self, vf):
        self._vf, self._stop, self.count = vf, threading.Event(), 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._stop.is_set():
            child = direct.start(self._vf, cuda_command("vectoradd"), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(0.05)
            direct.stop(child)
            self.count += 1

    def stop(self):
        self._stop.set()
        self._thread.join(10)


def endless(vf):
    program = DirectProgram(vf, cuda_command("endless"))
    program.wait_for_line("endless: started", 30)
    return program


def storm(vf):
    """As many tiny kernels as the ring takes."""
    return DirectProgram(vf, [*cuda_command("meter"), "--seconds", "3600", "--steps", "1"])


HOSTILE = {"endless kernel": endless, "launch storm": storm, "process respawning": Respawner}


# ---- The bed ----

@contextlib.contextmanager
def private_daemon(vfs, arguments=(), through=()):
    """One of our own; what goes wrong comes with the end of its log."""
    with daemon.private_daemon([(name, {"vram": "64MiB"}) for name in vfs], arguments, through) as vgpud:
        try:
            yield vgpud
        except ToolError as error:
            raise ToolError(f"{error}\nvgpud's log:\n{process.tail(vgpud.log)}") from error


@contextlib.contextmanager
def meters_on(vgpud, names):
    programs = {name: DirectProgram(vgpud.show(name), [*cuda_command("meter"), "--seconds", "3600"]) for name in names}
    try:
        for program in programs.values():
            program.wait_for_line("METER", 60, count=2)
        yield programs
    finally:
        for program in programs.values():
            program.stop()


class Span:
    """What happened between two looks at the daemon."""

    def __init__(self, vgpud, programs, seconds):
        time.sleep(WARM_UP_SECONDS)
        self._before, host_before = vgpud.ctl("stats"), time.monotonic()
        self.jain_1s = []  # as vgpud says itself, once per second
        for _ in range(round(seconds)):
            time.sleep(1)
            said = vgpud.ctl("stats")["fairness"]["1s"]["jain"]
            if said is not None:
                self.jain_1s.append(said)
        host_after, self._after = time.monotonic(), vgpud.ctl("stats")
        for program in programs.values():  # so that there is a report after the end
            program.wait_for_line("METER", 60, count=sum(line.startswith("METER") for _, line in program.lines) + 2)
        self.ns = self._after["now_ns"] - self._before["now_ns"]
        self.counted = {name: shares.units_between(shares.meter_points(program.lines), host_before, host_after)
                        for name, program in programs.items()}

    def last(self, key):
        return self._after[key]

    def gpu(self, key):
        return self._after[key] - self._before[key]

    def vf(self, key):
        before = {vf["name"]: vf for vf in self._before["vfs"]}
        return {vf["name"]: vf[key] - before[vf["name"]][key] for vf in self._after["vfs"] if vf["name"] in before}

    def late(self, key, names=None):
        """[p50, p99, max] in ns between the looks, of all named VFs together, or of the GPU: upper edges of buckets."""
        sums = []
        for stats in (self._before, self._after):
            total = {}
            for part in ([stats] if names is None else [vf for vf in stats["vfs"] if vf["name"] in names]):
                for edge, count in part[key].items():
                    total[edge] = total.get(edge, 0) + count
            sums.append(total)
        return [shares.percentile(*sums, percent) for percent in (50, 99, 100)]


def vf_names(count=VFS):
    return [f"vf{i}" for i in range(count)]


# ---- Measurements ----

def fairness(seconds):
    print(f"Fairness of {VFS} VFs of equal weight, slices of 2 ms, {seconds} s each: Jain's index\n"
          f"{'':<32} {'raw':>7} {'wanted':>7} {'honest':>7} {'vgpud':>7} {'counted':>8} {'worst share error':>18} {'switching':>10}")
    names = vf_names()
    for idle in ("yield", "hold"):
        for label, hostile in {"all honest": None, **HOSTILE}.items():
            with private_daemon(names, ["--idle", idle]) as vgpud:
                honest = names if hostile is None else names[1:]
                trouble = hostile(vgpud.show(names[0])) if hostile else None
                try:
                    with meters_on(vgpud, honest) as programs:
                        span = Span(vgpud, programs, seconds)
                finally:
                    if trouble is not None:
                        trouble.stop()
            print_fairness(f"{label}, idle={idle}", span, honest)
    print("Of received / entitled time of all VFs (raw), without what a VF was entitled to and had no more work for\n"
          "(wanted), of the honest VFs alone; vgpud: the lowest that vgpud itself said of a second of that time, of the VFs\n"
          "that always had work; counted: of the work of the honest ones. With idle=hold nobody gives a turn away.\n")


def print_fairness(label, span, honest):
    received, entitled, unclaimed = (span.vf(key) for key in ("received_ns", "entitled_ns", "unclaimed_ns"))
    parts, promised = sum(received.values()), sum(entitled.values())
    error = max(abs(received[name] / parts - entitled[name] / promised) for name in received)
    part = {name: received[name] / entitled[name] for name in received if entitled[name]}
    wanted = [received[name] / (entitled[name] - unclaimed[name]) for name in part if entitled[name] > unclaimed[name]]
    print(f"{label:<32} {jain(part.values()):>7.4f} {jain(wanted):>7.4f} {jain(part[name] for name in honest):>7.4f} "
          f"{min(span.jain_1s, default=0):>7.4f} {jain(span.counted.values()):>8.4f} {100 * error:>16.2f} % "
          f"{100 * span.gpu('switch_ns_total') / span.ns:>8.2f} %", flush=True)


def switching(seconds):
    print(f"Throughput of two VFs together against one VF alone, {seconds} s each\n"
          f"{'slice':>8} {'C':>9} {'C/(Q+C)':>9} {'metered loss':>13} {'counted loss':>13}")
    for slice_us in SLICES_US:
        with private_daemon(vf_names(2), ["--base-slice-us", str(slice_us)]) as vgpud:
            with meters_on(vgpud, ["vf0"]) as programs:
                alone = Span(vgpud, programs, seconds)
            with meters_on(vgpud, vf_names(2)) as programs:
                both = Span(vgpud, programs, seconds)
        turns = sum(both.vf("slices").values())
        cost = both.gpu("switch_ns_total") / turns
        # The meter that is alone is switched as well, from itself to itself: its rate is set to the GPU time it had.
        rate = sum(alone.counted.values()) / sum(alone.vf("received_ns").values())
        lost = 1 - sum(both.counted.values()) / (rate * both.ns)
        print(f"{slice_us / 1000:>5.1f} ms {cost / 1e3:>6.1f} us {100 * cost / (slice_us * 1e3 + cost):>7.2f} % "
              f"{100 * both.gpu('switch_ns_total') / both.ns:>11.2f} % {100 * lost:>11.2f} %", flush=True)
    print("C: from the last acknowledgement of one turn to the next grant, mean of the same run. Counted: work per time\n"
          "against the work per GPU time of the VF alone; executors that start and stop within a slice are in it\n")


class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def timer_jitter(seconds, real_time):
    """Lateness, in ns, of 1 ms sleeps until a given moment."""
    libc, late = ctypes.CDLL(None), []

    def measure():
        libc.prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK
        if real_time:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        wake = time.monotonic_ns() + 1_000_000
        for _ in range(int(seconds * 1000)):
            until = Timespec(wake // 10**9, wake % 10**9)
            libc.clock_nanosleep(1, 1, ctypes.byref(until), None)  # CLOCK_MONOTONIC, TIMER_ABSTIME
            now = time.monotonic_ns()
            late.append(now - wake)
            wake = max(wake + 1_000_000, now)

    thread = threading.Thread(target=measure)
    thread.start()
    thread.join()
    return late


# What an ordinary user has: no right to real time nor to precedence.
WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]
WAYS = {"default": [], "--keep-cpu-awake": ["--keep-cpu-awake"]}


def lateness(seconds):
    print(f"How late slices of 2 ms end, two VFs, {seconds} s each, p50 / p99 / max in us\n"
          f"{'':<40} {'VF off the GPU':>24} {'GPU taken back':>24} {'the wake-ups of it':>24} {'host timer':>24} {'spin':>5}")
    for real_time in (False, True):
        for way, arguments in WAYS.items():
            jitter = timer_jitter(min(seconds, 3), real_time)
            with private_daemon(vf_names(2), arguments, [] if real_time else WITHOUT_RIGHTS) as vgpud:
                with meters_on(vgpud, vf_names(2)) as programs:
                    span = Span(vgpud, programs, seconds)
                stats = vgpud.ctl("stats")
            if stats["scheduler_fifo"] != real_time:
                print(f"{'with real time' if real_time else 'without'}: not possible here")
                break
            jitter = sorted(jitter + timer_jitter(min(seconds, 3), real_time))
            figures = [span.late("overrun_ns_buckets", vf_names(2)), span.late("slice_end_late_ns_buckets"),
                       span.late("wake_late_ns_buckets"),
                       [jitter[min(len(jitter) - 1, len(jitter) * p // 100)] for p in (50, 99, 100)]]
            label = f"{'with' if real_time else 'without'} real time, {way}"
            print(f"{label:<40} " + " ".join(f"{' / '.join(f'{value / 1e3:.1f}' for value in values):>24}"
                                            for values in figures) + f" {span.last('spin_us'):>5.0f}", flush=True)
    print("Off the GPU: all of the lateness. Taken back: up to the moment at which vgpud did so; the rest is the executor's.\n"
          "Wake-ups: of vgpud's scheduler thread, which wakes up by `spin` early. These are upper edges of buckets, at most\n"
          "a quarter too high. Host timer: a bare loop of sleeps with the same rights, before and after\n")


MEASUREMENTS = {"fairness": fairness, "switching": switching, "lateness": lateness}


def main(arguments):
    parser = argparse.ArgumentParser(prog="fairness_bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", default=",".join(MEASUREMENTS), help="a comma-separated choice of measurements")
    options = parser.parse_args(arguments)
    for name in options.only.split(","):
        if name not in MEASUREMENTS:
            parser.error(f"--only {name}: there is {', '.join(MEASUREMENTS)}")
        MEASUREMENTS[name](options.seconds)
    return 0


process.run_tool("fairness_bench", main)
