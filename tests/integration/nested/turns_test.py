#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels of many blocks on the CUDA backend, nested (programs_test.py), beside a neighbour that wants the GPU all the
time: they leave it by blocks when their slice ends, go on in the next, and compute what they compute alone. Neither the
gate nor the kill ends a slice of theirs.

usage: turns_test.py [--rounds N]     of each program, default 1
"""
import re
import sys

import harness
from vgpuguest.nested import nested_daemon
from vgpuguest.program import DirectProgram

ROUNDS = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 1
MOST_ROUNDS = 30
# Short slices against kernels of some hundred blocks.
BASE_SLICE_US = 2_000
# Each compares with what the processor computes.
PROGRAMS = {"collatz": [], "matmul": ["256", "256", "256"]}
LEFT = re.compile(r"left the GPU with kernels on it: (\d+) ended by blocks, (\d+) waited for by the gate")


def lines_of(outer, vf):
    with open(outer.log, encoding="utf-8") as log:
        return [line for line in log if f"[{vf}]" in line or f"vf={vf} " in line]


def ends(outer, vf):
    """(by blocks, by the gate): of all programs of the VF that have ended."""
    counts = [tuple(map(int, found.groups())) for found in map(LEFT.search, lines_of(outer, vf)) if found]
    return sum(blocks for blocks, _ in counts), sum(gate for _, gate in counts)


def said(outer, name, arguments):
    """What the program prints, a digest of its results among it."""
    program = DirectProgram(outer.show("a"), [*harness.command(name), *arguments])
    harness.check_passes(program)
    return program.text()


def run(outer, name, arguments, alone):
    before, rounds = ends(outer, "a"), 0
    # One whose kernels all fit into their slices shows nothing.
    while rounds < ROUNDS or (ends(outer, "a") == before and rounds < MOST_ROUNDS):
        rounds += 1
        harness.check(said(outer, name, arguments) == alone, f"{name} computes what it computes alone")
        harness.wait_until(lambda: outer.show("a")["executors"] == 0, f"{name} is gone")
    taken = [line for line in lines_of(outer, "a") if " is taken away by " in line]
    harness.check(any(line.rstrip().endswith(f"kernel {name} is taken away by blocks") for line in taken),
                  f"the log says how {name} is taken away: {taken}")


def test():
    options = {"vram": "512MiB"}
    with nested_daemon([("a", options), ("b", options)], ["--base-slice-us", str(BASE_SLICE_US)]) as (outer, _):
        alone = {name: said(outer, name, arguments) for name, arguments in PROGRAMS.items()}
        before = ends(outer, "a")
        meter = DirectProgram(outer.show("b"), [*harness.command("meter"), "--seconds", "300"])
        meter.wait_for_line("METER", 60)  # it computes
        for name, arguments in PROGRAMS.items():
            run(outer, name, arguments, alone[name])
            now = ends(outer, "a")
            blocks, gate = now[0] - before[0], now[1] - before[1]
            before = now
            print(f"{name}: {blocks} launches left blocks for a later turn, {gate} were waited for")
            harness.check(blocks > 0, f"{name} was taken away by blocks")
            harness.check(gate == 0, f"{name} was never waited for by the gate")
        meter.stop()


harness.main(test, needs_guest=False)
