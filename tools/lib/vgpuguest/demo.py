# SPDX-License-Identifier: Apache-2.0
"""The demo: two VFs of one soft GPU, a program in each that counts its own work. Equal weights, then one VF re-weighted
while it runs, then an endless kernel beside a neighbour that must not notice."""
import argparse
import contextlib
import json
import os
import time

from . import daemon, guest, interference, process, shares
from .paths import ToolError, cuda_command
from .program import DirectProgram, GuestProgram

METERED_TOLERANCE = 0.02
COUNTED_TOLERANCE = 0.05
# The soft GPU needs a CPU core. When the host's other work took it for more than this part of a VF's time, or the cores were that much
# faster in one phase than in another, shares that are off say little about vgpud: the demo fails all the same, but with EXIT_HOST_BUSY.
HOST_TOOK_TOLERANCE = 0.05
HOST_SPEED_TOLERANCE = 0.05
EXIT_HOST_BUSY = 75
VFS = ("a", "b")
HEAVY = 300

# Seconds: of the three measured windows, and before a window until things have settled.
VM_TIMES = {"windows": (10.0, 10.0, 8.0), "settle": 1.0}
DIRECT_TIMES = {"windows": (3.0, 3.0, 2.5), "settle": 0.4}

_start = time.monotonic()


def say(text):
    print(f"demo: {time.monotonic() - _start:5.1f} s  {text}", flush=True)


class Demo:
    def __init__(self, vgpud, start_program, times, probe):
        self._daemon = vgpud
        self._probe = probe
        self._start_program = start_program  # (VF name, command) -> Program
        self._times = times
        self._weights = dict.fromkeys(VFS, 100)
        self._full_rate = 0.0  # units per second of both meters together: the whole GPU
        self.phases = []
        self.problems = []  # results and events that must not be
        self.off_shares = []

    def run(self):
        settle, (first, second, third) = self._times["settle"], self._times["windows"]
        seconds = f"{first + second + 3 * settle + 1.0:.1f}"
        meters = {name: self._program(name, "meter", "--seconds", seconds) for name in VFS}
        self._wait_for_meters(meters)
        self._phase("equal weights", first, meters)
        say(f"vgpuctl set b --weight {HEAVY}, while both run")
        self._set_weight("b", HEAVY)
        time.sleep(settle)
        self._phase("b re-weighted live to 300", second, meters)
        self._finish(meters, self.phases[-2:])

        say("equal weights again, a starts a kernel that never ends")
        self._set_weight("b", 100)
        endless = self._program("a", "endless")
        endless.wait_for_line("endless: started", 20)
        meters = {"b": self._program("b", "meter", "--seconds", f"{third + 2 * settle + 1.0:.1f}")}
        self._wait_for_meters(meters)
        self._phase("a runs an endless kernel", third, meters)
        if endless.code is not None:
            self.problems.append(f"the endless kernel ended with {endless.code}:\n{endless.text()}")
        endless.stop()
        self._finish(meters, self.phases[-1:])
        if not self.phases[-1]["vfs"]["a"]["forced_preemptions"]:
            self.problems.append("the endless kernel was never taken off the GPU by force")

    def _program(self, vf, name, *arguments):
        return self._start_program(vf, [*cuda_command(name), *arguments])

    def _set_weight(self, name, weight):
        self._daemon.set(name, weight=weight)
        self._weights[name] = weight

    def _wait_for_meters(self, meters):
        for meter in meters.values():
            meter.wait_for_line("METER", 30, count=2)
        time.sleep(self._times["settle"])

    def _phase(self, title, seconds, meters):
        say(f"phase {len(self.phases) + 1}: {title}, {seconds:.0f} s")
        begin, before = time.monotonic(), self._daemon.stats()
        waited_before = interference.waited_for_a_core(self._daemon.process.pid)
        step = max(1.0, seconds / 4)
        while (left := begin + seconds - time.monotonic()) > 0:
            time.sleep(min(step, left))
            now = shares.metered(before[1], self._daemon.stats()[1])
            say("   metered so far: " + "  ".join(f"{name} {100 * now[name]:.1f}%" for name in VFS))
        after, end = self._daemon.stats(), time.monotonic()
        waited = interference.waited_for_a_core(self._daemon.process.pid)
        self.phases.append({"title": title, "begin": begin, "end": end, "meters": meters, "before": before,
                            "after": after, "weights": dict(self._weights), "vfs": {}})
        for name in VFS:
            old, new = before[1][name], after[1][name]
            self.phases[-1]["vfs"][name] = {
                "weight": self._weights[name],
                "slices": new["slices"] - old["slices"],
                "forced_preemptions": new["forced_preemptions"] - old["forced_preemptions"],
                "worst_overrun_ns": shares.worst(old["overrun_ns_buckets"], new["overrun_ns_buckets"]),
                "drain_p99_ns": shares.percentile(old["drain_ns_buckets"], new["drain_ns_buckets"], 99),
                "received_ns": new["received_ns"] - old["received_ns"],
                "entitled_ns": new["entitled_ns"] - old["entitled_ns"],
                "window_ns": after[0] - before[0],
                "host_took_ns": waited.get(name, 0) - waited_before.get(name, 0),
            }

    def _finish(self, meters, phases):
        """Waits for the meters' own verdict, then works out the phases that they ran through."""
        say("waiting for the programs to check their results")
        for meter in meters.values():
            meter.wait(30)
        for phase in phases:
            self._work_out(phase)

    def _work_out(self, phase):
        seconds = phase["end"] - phase["begin"]
        rates = {name: shares.units_between(shares.meter_points(meter.lines), phase["begin"], phase["end"]) / seconds
                 for name, meter in phase["meters"].items()}
        # Where only one program counts, the whole is what both did in the first phase.
        whole = sum(rates.values()) if len(rates) == len(VFS) else self._full_rate
        self._full_rate = self._full_rate or whole
        phase["host_cost"] = self._probe.cost(phase["begin"], phase["end"])
        phase["host_stolen"] = self._probe.stolen(phase["begin"], phase["end"])
        entitled = shares.entitled(phase["weights"])
        metered = shares.metered(phase["before"][1], phase["after"][1])
        for name, row in phase["vfs"].items():
            meter = phase["meters"].get(name)
            row["entitled"] = entitled[name]
            row["metered"] = metered[name]
            row["counted"] = rates[name] / whole if name in rates and whole else None
            row["correct"] = None if meter is None else meter.code == 0 and shares.meter_is_clean(meter.lines)
            self._judge(phase["title"], name, row)
            if row["correct"] is False:
                self.problems.append(f"{phase['title']}: a result in {name} is wrong (exit {meter.code}):\n{meter.text()}")

    def host_took(self):
        """The largest part of a VF's time on the GPU in which the host gave its executors no core."""
        return max((row["host_took_ns"] / max(1, row["received_ns"]) for phase in self.phases
                    for row in phase["vfs"].values()), default=0.0)

    def host_uneven(self):
        """How much faster the host's cores were in one phase than in another, or how much of them a hypervisor took."""
        costs = [phase["host_cost"] for phase in self.phases if phase["host_cost"]]
        return max([max(costs) / min(costs) - 1 if costs else 0.0, *(phase["host_stolen"] for phase in self.phases)])

    def _judge(self, title, name, row):
        for kind, limit in (("metered", METERED_TOLERANCE), ("counted", COUNTED_TOLERANCE)):
            if row[kind] is None:
                continue
            off = row[kind] - row["entitled"]
            if abs(off) > limit:
                self.off_shares.append(f"{title}: {name} is entitled to {100 * row['entitled']:.1f}%, {kind} "
                                       f"{100 * row[kind]:.1f}% (limit {100 * limit:.0f} points)")


def print_table(phases):
    for number, phase in enumerate(phases, 1):
        print(f"\nphase {number}: {phase['title']}")
        print("VF  weight  entitled  metered  counted  slices  forced  drain p99  worst overrun  results")
        for name, row in phase["vfs"].items():
            counted = "-" if row["counted"] is None else f"{100 * row['counted']:.1f}%"
            correct = {None: "endless", True: "correct", False: "WRONG"}[row["correct"]]
            print(f"{name:<2}  {row['weight']:>6}  {100 * row['entitled']:>7.1f}%  {100 * row['metered']:>6.1f}%  "
                  f"{counted:>7}  {row['slices']:>6}  {row['forced_preemptions']:>6}  "
                  f"{row['drain_p99_ns'] / 1e3:>6.1f} us  {row['worst_overrun_ns'] / 1e6:>10.2f} ms  {correct}")


def write_json(path, mode, demo):
    phases = [{"title": phase["title"], "seconds": phase["end"] - phase["begin"], "host_cost_us": 1e6 * phase["host_cost"],
               "host_stolen": phase["host_stolen"], "vfs": phase["vfs"]}
              for phase in demo.phases]
    report = {"mode": mode, "seconds": time.monotonic() - _start, "pass": not demo.problems and not demo.off_shares,
              "problems": demo.problems + demo.off_shares, "host_took": demo.host_took(), "host_uneven": demo.host_uneven(),
              "metered_tolerance": METERED_TOLERANCE, "counted_tolerance": COUNTED_TOLERANCE, "phases": phases}
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
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--direct", action="store_true", help="without virtual machines, in 15 s")
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
        write_json(options.json, "direct" if options.direct else "vm", demo)
    print()
    return verdict(demo)


def verdict(demo):
    """Prints what is wrong, or PASS; returns the exit status."""
    for problem in demo.problems + demo.off_shares:
        print(f"FAIL: {problem}")
    if demo.problems:
        return 1
    if not demo.off_shares:
        print(f"PASS: every share within {100 * METERED_TOLERANCE:.0f} points as metered, "
              f"{100 * COUNTED_TOLERANCE:.0f} as counted; all results correct ({time.monotonic() - _start:.0f} s)")
        return 0
    if demo.host_took() <= HOST_TOOK_TOLERANCE and demo.host_uneven() <= HOST_SPEED_TOLERANCE:
        return 1
    print(f"The host was busy: for up to {100 * demo.host_took():.0f}% of a VF's time its executor had no CPU core, which the soft GPU "
          f"needs, and the cores were up to {100 * demo.host_uneven():.0f}% faster at one time than at another. End other work on this "
          "machine and run the demo again.")
    return EXIT_HOST_BUSY


if __name__ == "__main__":
    process.run_tool("demo", main)
