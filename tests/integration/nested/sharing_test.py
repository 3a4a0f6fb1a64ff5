#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two VFs on the CUDA backend, nested (programs_test.py), on each rung: they share as their weights say. Beside a kernel
that never ends the neighbour keeps its share where that can leave in the middle (safepoints); where it can't: kill_test.py.

usage: sharing_test.py [--seconds N] [RUNG...]     N of each measured time, default 3; gate, blocks, safepoints, or all
"""
import sys

import harness
from vgpuguest.nested import nested_daemon
from vgpuguest.program import DirectProgram

PREEMPT_TIMEOUT_US = 500_000
# Kernels are short against slices, so that what is measured is the rule and not the last kernel.
BASE_SLICE_US = 10_000
LEAST_WORK = 0.95
SECONDS = sys.argv[sys.argv.index("--seconds") + 1] if "--seconds" in sys.argv else "3"
RUNGS = [rung for rung in ("gate", "blocks", "safepoints") if rung in sys.argv] or ["gate", "blocks", "safepoints"]


def grown(before, now, key):
    return {name: now[name][key] - before[name][key] for name in ("a", "b")}


METER = ("meter", ["--seconds", "60"], "METER")
ENDLESS = ("endless", [], "endless: started")


def measure(outer, weights, expected, programs=(METER, METER)):
    """Two programs with work all the time. False: the host was too busy for them to have it, so nothing is shown."""
    for name, weight in zip(("a", "b"), weights):
        outer.set(name, weight=weight)
    meters = [DirectProgram(outer.show(name), [*harness.command(program), *arguments])
              for name, (program, arguments, _) in zip(("a", "b"), programs)]
    for meter, (_, _, begins) in zip(meters, programs):
        meter.wait_for_line(begins, 60)  # it computes
    begun, before = outer.stats()
    DirectProgram(outer.show("a"), ["/bin/sleep", SECONDS]).wait(60)
    ended, now = outer.stats()
    lives = all(meter.code is None for meter in meters)
    for meter in meters:
        meter.stop()
    harness.check(lives, "both still computed")
    harness.wait_until(lambda: all(outer.show(name)["executors"] == 0 for name in ("a", "b")), "the meters are gone")
    received, had_work = grown(before, now, "received_ns"), grown(before, now, "runnable_ns")
    share = received["a"] / sum(received.values())
    print(f"weights {weights}: {received['a'] / 1e6:.0f} and {received['b'] / 1e6:.0f} ms, share of a {share:.4f}")
    if min(had_work.values()) < LEAST_WORK * (ended - begun):
        print(f"not judged: they had work for {had_work} of {ended - begun} ns")
        return False
    harness.check(abs(share - expected) <= 0.02, f"a has {expected} +- 0.02 of the metered time: {share:.4f}")
    return True


def check_rung(rung):
    """False: the host was too busy for some of the shares."""
    print(f"rung {rung}:")
    options = {"vram": "512MiB"}
    arguments = ["--preempt-timeout-us", str(PREEMPT_TIMEOUT_US), "--base-slice-us", str(BASE_SLICE_US), "--cuda-rung", rung]
    with nested_daemon([("a", options), ("b", options)], arguments) as (outer, _):
        judged = [measure(outer, weights, expected) for weights, expected in (((100, 100), 0.5), ((100, 300), 0.25))]
        if rung == "safepoints":
            print("beside a kernel that never ends:")
            judged += [measure(outer, weights, expected, (ENDLESS, METER))
                       for weights, expected in (((100, 100), 0.5), ((300, 100), 0.75))]
        return all(judged)


def test():
    if not all([check_rung(rung) for rung in RUNGS]):
        harness.skip("the host was too busy: shares prove nothing here")


harness.main(test, needs_guest=False)
