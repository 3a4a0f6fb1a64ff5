#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two VFs on the CUDA backend, nested (programs_test.py): they share by the gate, overruns are repaid, and one whose kernel
never ends is killed without harm to its neighbour.

usage: sharing_test.py [--seconds N]     of each measured time, default 3
"""
import sys

import harness
from vgpuguest.nested import nested_daemon
from vgpuguest.program import DirectProgram

PREEMPT_TIMEOUT_US = 500_000
# Kernels are short against slices, so that what is measured is the rule and not the last kernel.
BASE_SLICE_US = 10_000
SECONDS = sys.argv[sys.argv.index("--seconds") + 1] if "--seconds" in sys.argv else "3"


def received(outer, before):
    """Per VF, time on the GPU since `before`, as the scheduler metered it."""
    _, now = outer.stats()
    return {name: now[name]["received_ns"] - before[name]["received_ns"] for name in ("a", "b")}


def share_of_a(outer, weights):
    for name, weight in zip(("a", "b"), weights):
        outer.set(name, weight=weight)
    meters = [DirectProgram(outer.show(name), [*harness.command("meter"), "--seconds", "60"]) for name in ("a", "b")]
    for meter in meters:
        meter.wait_for_line("METER", 60)  # it computes
    _, before = outer.stats()
    measured = DirectProgram(outer.show("a"), ["/bin/sleep", SECONDS])
    measured.wait(60)
    got = received(outer, before)
    for meter in meters:
        meter.stop()
    harness.wait_until(lambda: all(outer.show(name)["executors"] == 0 for name in ("a", "b")), "the meters are gone")
    share = got["a"] / (got["a"] + got["b"])
    print(f"weights {weights}: {got['a'] / 1e6:.0f} and {got['b'] / 1e6:.0f} ms, share of a {share:.4f}")
    return share


def check_kill(outer):
    """The last rung: a kernel that can't be stopped costs its own process, nobody else."""
    endless = DirectProgram(outer.show("a"), harness.command("endless"))
    endless.wait_for_line("endless: started", 60)
    harness.run_direct(outer.show("b"), harness.command("vectoradd"))
    harness.check(endless.wait(60) != 0, f"its process gets an error\n{endless.text()}")
    harness.wait_until(lambda: outer.show("a")["executors"] == 0, "and has no executor any more")
    for name in ("a", "b"):
        harness.run_direct(outer.show(name), harness.command("vectoradd"))


def test():
    options = {"vram": "512MiB"}
    arguments = ["--preempt-timeout-us", str(PREEMPT_TIMEOUT_US), "--base-slice-us", str(BASE_SLICE_US)]
    with nested_daemon([("a", options), ("b", options)], arguments) as (outer, _):
        for weights, expected in (((100, 100), 0.5), ((100, 300), 0.25)):
            share = share_of_a(outer, weights)
            harness.check(abs(share - expected) <= 0.02, f"a has {expected} +- 0.02 of the metered time: {share:.4f}")
        check_kill(outer)


harness.main(test, needs_guest=False)
