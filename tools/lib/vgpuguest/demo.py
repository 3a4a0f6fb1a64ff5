# SPDX-License-Identifier: Apache-2.0
"""The demo: two VFs of one soft GPU, a program in each that counts its own work. Equal weights, then one VF re-weighted
while it runs, then an endless kernel beside a neighbour that must not notice.

Exit status: 0 PASS, 1 FAIL, 75 the host was too busy with other things to tell."""
import argparse
import contextlib
import dataclasses
import json
import os
import time

from . import daemon, guest, interference, process, shares, verdict
from .paths import ToolError, cuda_command
from .program import DirectProgram, GuestProgram

VFS = ("a", "b")
HEAVY = 300
STEPS = 4  # looks at a window while it is measured

# Seconds: of the measured windows, of what a program does alone, and before each until things have settled.
VM_TIMES = {"windows": (10.0, 10.0, 8.0), "alone": 2.0, "settle": 1.0}
DIRECT_TIMES = {"windows": (3.0, 3.0, 2.5), "alone": 1.0, "settle": 0.4}
# A program counts on for so long after its window: the end of that lies between two of its reports.
AFTER = 1.0
PATIENCE = 60

_start = time.monotonic()


def say(text):
    print(f"demo: {time.monotonic() - _start:5.1f} s  {text}", flush=True)


class Demo:
    def __init__(self, vgpud, start_program, times, probe):
        self._daemon = vgpud
        self._probe = probe
        self._start_program = start_program  # (VF name, command) -> Program
        self._settle, self._alone = times["settle"], times["alone"]
        self._windows = times["windows"]
        self.phases = []

    def run(self):
        for number, measure in enumerate((self._equal, self._reweighted, self._beside_endless), 1):
            self.phases.append(verdict.measured(lambda attempt: measure(number, attempt), say))

    def _equal(self, number, attempt):
        return self._both(number, "equal weights", self._windows[0], attempt, lambda: None)

    def _reweighted(self, number, attempt):
        def change():
            say(f"vgpuctl set b --weight {HEAVY}, while both run")
            self._daemon.set("b", weight=HEAVY)
        try:
            return self._both(number, f"b re-weighted live to {HEAVY}", self._windows[1], attempt, change)
        finally:
            self._daemon.set("b", weight=100)

    def _both(self, number, title, seconds, attempt, change):
        """A phase in which both count; change() is called while they run."""
        meters = self._meters(VFS, seconds + self._settle)
        change()
        time.sleep(self._settle)
        window = self._window(number, title, seconds, attempt)
        problems = self._finish(meters)
        rates = {name: rate(meter, window) for name, meter in meters.items()}
        whole = sum(rates.values())
        return self._phase(title, window, {name: units / whole if whole else 0.0 for name, units in rates.items()}, problems)

    def _beside_endless(self, number, attempt):
        title = "a runs an endless kernel"
        say("what b does alone, for comparison")
        before, alone_before, problems = self._alone_in_b()
        say("a starts a kernel that never ends")
        endless = self._program("a", "endless")
        try:
            endless.wait_for_line("endless: started", PATIENCE)
            meters = self._meters(("b",), self._windows[2])
            window = self._window(number, title, self._windows[2], attempt)
            if endless.code is not None:
                problems.append(f"the endless kernel ended with {endless.code}:\n{endless.text()}")
        finally:
            endless.stop()
        problems += self._finish(meters)
        say("what b does alone now")
        after, alone_after, more = self._alone_in_b()
        alone = (alone_before + alone_after) / 2
        phase = self._phase(title, window, {"b": rate(meters["b"], window) / alone if alone else 0.0}, problems + more)
        phase.more_is_fine = True
        phase.host.uneven = self._probe.uneven([(each["begin"], each["end"]) for each in (before, window, after)])
        if not phase.vfs["a"]["forced_preemptions"]:
            phase.problems.append("the endless kernel was never taken off the GPU by force")
        return phase

    def _alone_in_b(self):
        meters = self._meters(("b",), self._alone)
        span = {"begin": time.monotonic(), "end": time.monotonic() + self._alone}
        time.sleep(self._alone)
        problems = self._finish(meters)
        return span, rate(meters["b"], span), problems

    def _program(self, vf, name, *arguments):
        return self._start_program(vf, [*cuda_command(name), *arguments])

    def _meters(self, names, seconds):
        """Programs that count for so long from now on, and some more."""
        meters = {name: self._program(name, "meter", "--seconds", f"{seconds + self._settle + AFTER:.1f}") for name in names}
        for meter in meters.values():
            meter.wait_for_line("METER", PATIENCE, count=2)
        time.sleep(self._settle)
        return meters

    @staticmethod
    def _finish(meters):
        """Waits for the programs' own verdict; what is wrong."""
        for meter in meters.values():
            meter.wait(PATIENCE)
        return [f"a result in {name} is wrong (exit {meter.code}):\n{meter.text()}" for name, meter in meters.items()
                if meter.code != 0 or not shares.meter_is_clean(meter.lines)]

    def _window(self, number, title, seconds, attempt):
        """Measures for so long; less when that would prove nothing, unless it is the last attempt."""
        say(f"phase {number}: {title}, {seconds:.0f} s")
        host = interference.Window()
        begin, before = time.monotonic(), self._daemon.stats()
        entitled = shares.entitled({name: vf["weight"] for name, vf in before[1].items()})
        for step in range(1, STEPS + 1):
            time.sleep(max(0.0, begin + step * seconds / STEPS - time.monotonic()))
            after, took = self._daemon.stats(), host.so_far()
            metered = shares.metered(before[1], after[1])
            say("   metered so far: " + "  ".join(f"{name} {100 * metered[name]:.1f}%" for name in VFS)
                + ("  (the host is busy with other things)" if took.busy() else ""))
            off = max(abs(metered[name] - entitled[name]) for name in VFS) > verdict.METERED_TOLERANCE
            if off and took.busy() and attempt < verdict.ATTEMPTS:
                break
        return {"begin": begin, "end": time.monotonic(), "before": before, "after": after, "entitled": entitled, "metered": metered,
                "host": took}

    @staticmethod
    def _phase(title, window, counted, problems):
        (then, before), (now, after) = window["before"], window["after"]
        rows = {}
        for name in VFS:
            old, new = before[name], after[name]
            rows[name] = {
                "weight": new["weight"],
                "entitled": window["entitled"][name],
                "metered": window["metered"][name],
                "counted": counted.get(name),
                "slices": new["slices"] - old["slices"],
                "forced_preemptions": new["forced_preemptions"] - old["forced_preemptions"],
                "worst_overrun_ns": shares.worst(old["overrun_ns_buckets"], new["overrun_ns_buckets"]),
                "drain_p99_ns": shares.percentile(old["drain_ns_buckets"], new["drain_ns_buckets"], 99),
                "received_ns": new["received_ns"] - old["received_ns"],
                "entitled_ns": new["entitled_ns"] - old["entitled_ns"],
                "window_ns": now - then,
            }
        return verdict.Phase(title, window["end"] - window["begin"], rows, window["host"], problems)


def rate(meter, window):
    """Units per second that a program counted in a window; 0 when it said nothing around its begin or end."""
    try:
        units = shares.units_between(shares.meter_points(meter.lines), window["begin"], window["end"])
    except ValueError as error:
        say(f"{meter.name}: {error}")
        return 0.0
    return units / (window["end"] - window["begin"])


def print_table(phases):
    for number, phase in enumerate(phases, 1):
        print(f"\nphase {number}: {phase.title}")
        print("VF  weight  entitled  metered  counted  slices  forced  drain p99  worst overrun  results")
        for name, row in phase.vfs.items():
            counted = "-" if row["counted"] is None else f"{100 * row['counted']:.1f}%"
            results = "endless" if row["counted"] is None else "WRONG" if phase.problems else "correct"
            print(f"{name:<2}  {row['weight']:>6}  {100 * row['entitled']:>7.1f}%  {100 * row['metered']:>6.1f}%  "
                  f"{counted:>7}  {row['slices']:>6}  {row['forced_preemptions']:>6}  "
                  f"{row['drain_p99_ns'] / 1e3:>6.1f} us  {row['worst_overrun_ns'] / 1e6:>10.2f} ms  {results}")
    print()


def write_json(path, mode, phases):
    report = {"mode": mode, "seconds": time.monotonic() - _start, "pass": verdict.exit_status(phases) == 0,
              "metered_tolerance": verdict.METERED_TOLERANCE, "counted_tolerance": verdict.COUNTED_TOLERANCE,
              "phases": [{**dataclasses.asdict(phase), "off_shares": phase.off_shares()} for phase in phases]}
    with open(path, "w") as file:
        json.dump(report, file, indent=2)
        file.write("\n")


@contextlib.contextmanager
def programs_in_guests(vgpud):
    """Boots a guest on each VF, both at once."""
    say("booting two guests")
    with contextlib.ExitStack() as stack:
        guests = {}
        for name in VFS:
            guests[name] = guest.start_guest(vgpud.show(name), vgpud.runtime_dir)
            stack.callback(process.stop, guests[name].qemu)
        for running in guests.values():
            running.wait_until_up()
        say("both guests are up")
        yield lambda name, command: GuestProgram(guests[name], command)


@contextlib.contextmanager
def programs_direct(vgpud):
    vfs = {name: vgpud.show(name) for name in VFS}
    programs = []

    def start(name, command):
        programs.append(DirectProgram(vfs[name], command))
        return programs[-1]
    try:
        yield start
    finally:
        for program in programs:
            program.stop()


def main(arguments):
    parser = argparse.ArgumentParser(prog="demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--direct", action="store_true", help="without virtual machines, in 20 s")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE")
    options = parser.parse_args(arguments)
    if options.json and not os.path.isdir(os.path.dirname(os.path.abspath(options.json))):
        raise ToolError(f"--json {options.json}: no such directory")
    world, times = (programs_direct, DIRECT_TIMES) if options.direct else (programs_in_guests, VM_TIMES)
    say("starting vgpud with one soft GPU and two VFs")
    with daemon.private_daemon([(name, {}) for name in VFS]) as vgpud:
        with world(vgpud) as start_program, interference.SpeedProbe() as probe:
            demo = Demo(vgpud, start_program, times, probe)
            demo.run()
    print_table(demo.phases)
    if options.json:
        write_json(options.json, "direct" if options.direct else "vm", demo.phases)
    print("\n".join(verdict.sentences(demo.phases, time.monotonic() - _start)))
    return verdict.exit_status(demo.phases)


if __name__ == "__main__":
    process.run_tool("demo", main)
