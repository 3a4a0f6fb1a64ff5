#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels on the CUDA backend, nested (programs_test.py), beside a neighbour that wants the GPU all the time: they leave it
when their slice ends, by blocks or by safepoints, go on in the next, and compute what they compute alone. Neither the gate
nor the kill ends a slice of theirs. With safepoints that is so for one that never ends, too.

usage: turns_test.py [RUNG/PROGRAM...]     like blocks/collatz: only these; many cuts of many kernels: cuts.py
"""
import re
import sys
import time

import harness
from vgpuguest.nested import nested_daemon
from vgpuguest.program import DirectProgram

MOST_ROUNDS = 30
# Short slices against kernels that take some dozen of them.
BASE_SLICE_US = 2_000
# Kernels by the rung that vgpud is told to use at most. Each program compares with what the processor computes.
PROGRAMS = {"blocks": {"collatz": [], "matmul": ["256", "256", "256"]},
            "safepoints": {"collatz": [], "longblocks": ["100000"]}}
LEAST_ROOM = 2 << 20
# Turns of one that never ends.
ENDLESS_TURNS = 100
LEFT = re.compile(r"left the GPU with kernels on it: (\d+) ended by safepoints, (\d+) by blocks, "
                  r"(\d+) waited for by the gate")


def lines_of(outer, vf):
    with open(outer.log, encoding="utf-8") as log:
        return [line for line in log if f"[{vf}]" in line or f"vf={vf} " in line]


def ends(outer, vf):
    """{rung: launches that it ended}: of all programs of the VF that have ended."""
    counts = [tuple(map(int, found.groups())) for found in map(LEFT.search, lines_of(outer, vf)) if found]
    return dict(zip(("safepoints", "blocks", "gate"), map(sum, zip(*counts, (0, 0, 0)))))


def said(outer, name, arguments):
    """What the program prints, a digest of its results among it."""
    program = DirectProgram(outer.show("a"), [*harness.command(name), *arguments])
    harness.check_passes(program)
    return re.sub(r" gpu_ms=\S+", "", program.text())


def run(outer, rung, name, arguments, alone):
    """{rung: launches that it ended}: of the program's runs."""
    before, rounds, begun = ends(outer, "a"), 0, time.monotonic()
    # One whose kernels all end in their slices, or between two blocks, shows nothing.
    while ends(outer, "a")[rung] == before[rung] and rounds < MOST_ROUNDS:
        rounds += 1
        harness.check(said(outer, name, arguments) == alone, f"{name} computes what it computes alone")
        harness.wait_until(lambda: outer.show("a")["executors"] == 0, f"{name} is gone")
    taken = [line for line in lines_of(outer, "a") if re.search(f"kernel {name}.* is taken away by {rung}", line)]
    harness.check(len(taken) > 0, f"the log says that {name} is taken away by {rung}")
    ended = {how: count - before[how] for how, count in ends(outer, "a").items()}
    print(f"figures: {rung}: {name} {' '.join(arguments)}: {rounds} runs, launches ended by {ended}, "
          f"{time.monotonic() - begun:.0f} s", flush=True)
    return ended


def check_endless(outer):
    """It is off the GPU at the end of each slice, and its program lives on."""
    endless = DirectProgram(outer.show("a"), harness.command("endless"))
    endless.wait_for_line("endless: started", 60)
    begun = outer.stats()[1]["a"]["executor_preempts"]
    harness.wait_until(lambda: outer.stats()[1]["a"]["executor_preempts"] >= begun + ENDLESS_TURNS or endless.code is not None,
                       f"an endless kernel had {ENDLESS_TURNS} turns more", 60)
    harness.check(endless.code is None, f"and its program still runs\n{endless.text()}")
    harness.run_direct(outer.show("b"), harness.command("vectoradd"))
    harness.check(not any("killed" in line for line in lines_of(outer, "a")), "nothing of a was killed")
    used = outer.show("a")["vram_used_bytes"]
    harness.check(used > LEAST_ROOM, f"what it saves is VRAM of its VF, as its own few bytes are: {used}")
    endless.stop()


def check_little_memory(outer):
    """Without VRAM for what blocks save the kernel runs all the same, and is taken away as well as it can be."""
    outer.create("little", vram="2MiB")
    program = DirectProgram(outer.show("little"), [*harness.command("longblocks"), "2000"])
    harness.check_passes(program)
    harness.check(any("kernel longblocks is taken away by blocks: the VF has no VRAM" in line
                      for line in lines_of(outer, "little")), "the log says that the VF has no VRAM for it")


def check_rung(rung, programs):
    options = {"vram": "512MiB"}
    arguments = ["--base-slice-us", str(BASE_SLICE_US), "--cuda-rung", rung]
    with nested_daemon([("a", options), ("b", options)], arguments) as (outer, _):
        alone = {name: said(outer, name, arguments) for name, arguments in programs.items()}
        meter = DirectProgram(outer.show("b"), [*harness.command("meter"), "--seconds", "100000"])
        meter.wait_for_line("METER", 60)  # it computes
        for name, arguments in programs.items():
            ended = run(outer, rung, name, arguments, alone[name])
            harness.check(ended[rung] > 0, f"{name} was taken away by {rung}")
            harness.check(ended["gate"] == 0, f"{name} was never waited for by the gate")
        if rung == "safepoints":
            check_endless(outer)
            check_little_memory(outer)
        meter.stop()


def test():
    there, only = harness.available(), [word for word in sys.argv if "/" in word and word != sys.argv[0]]
    for rung, programs in PROGRAMS.items():
        chosen = {name: arguments for name, arguments in programs.items()
                  if (name in there or f"vgpu-launch {name}" in there) and (not only or f"{rung}/{name}" in only)}
        if chosen:
            check_rung(rung, chosen)


harness.main(test, needs_guest=False)
