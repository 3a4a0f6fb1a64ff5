#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two VFs that were promised more memory together than the card has (docs/oversubscription.md), nested: both compute on
all of theirs, alternately, while one sleeps and at the same time. Their results are right, neither reads what the other
has left, and what was moved is counted.

usage: oversubscribe_test.py ROOMY     the program of tests/cuda/parts/roomy.cu
"""
import re
import sys

import harness
from vgpuguest.nested import HARDWARE, nested_daemon
from vgpuguest.program import DirectProgram

CARD_MIB, QUOTA_MIB, USED_MIB = 96, 64, 48
ROUNDS = 6
VFS = [(name, {"vram": f"{QUOTA_MIB}MiB", "host-memory": "512MiB"}) for name in "ab"]
SECONDS = 200
# A busy host gives an executor that moves memory little of its processors: none is killed for that.
PATIENCE = ["--preempt-timeout-us", "10000000", "--outside-turns-percent", "100"]


def start(outer, vf, roomy, seed, pause_ms=0, used=USED_MIB, rounds=ROUNDS):
    return DirectProgram(outer.show(vf), [roomy, str(used), str(rounds), str(seed), str(pause_ms)])


def figures(outer, vf):
    return outer.stats()[1][vf]


def moved(outer):
    return {vf: {key: figures(outer, vf)[key] for key in
                 ("evictions", "evicted_bytes", "evicting_ns", "returned_bytes", "returning_ns")} for vf in "ab"}


def test(roomy):
    options = ["--cuda-oversubscribe", "--base-slice-us", "1000000", *PATIENCE]
    with nested_daemon(VFS, options, PATIENCE, inner_vram=f"{CARD_MIB}MiB") as (outer, inner):
        harness.check(2 * QUOTA_MIB > CARD_MIB, "the VFs were promised more than the card has")

        # One whose program sleeps between its rounds.
        sleeper = start(outer, "a", roomy, 1, pause_ms=500)
        harness.wait_until(lambda: "round 1" in sleeper.text(), "the first program has its memory on the card")
        harness.check_passes(start(outer, "b", roomy, 2, rounds=1), SECONDS)
        harness.check_passes(sleeper, SECONDS)
        first = moved(outer)
        harness.check(first["a"]["evictions"] > 0, "the memory of the one that slept was taken off the card")
        harness.check(first["a"]["evicted_bytes"] >= USED_MIB << 20, "all of it")
        harness.check(first["a"]["returned_bytes"] >= USED_MIB << 20, "and came back")

        # Both at the same time.
        both = [start(outer, vf, roomy, seed) for vf, seed in (("a", 3), ("b", 4))]
        for program in both:
            harness.check_passes(program, SECONDS)
        second = moved(outer)
        for vf in "ab":
            harness.check(second[vf]["evictions"] > first[vf]["evictions"], f"{vf}'s memory was moved while both compute")
            harness.check(second[vf]["evicting_ns"] > 0 and second[vf]["returning_ns"] > 0, "the time is counted")
        print(f"figures: {second}")
        text = outer.ctl_text("stats", "--total")
        for vf in "ab":
            harness.check(re.search(rf"memory of {vf}: \d+ times off the card, \S+ in \S+", text) is not None,
                          f"vgpuctl stats says so of {vf}: {text}")
        log = open(outer.log, encoding="utf-8").read()
        harness.check(len(re.findall(r"took \d+ bytes off the card in \d+ us", log)) ==
                      second["a"]["evictions"] + second["b"]["evictions"], "the log has a line for each")
        harness.wait_until(lambda: figures(outer, "a")["movable_bytes"] == 0, "nothing is left of the programs")
        harness.wait_until(lambda: inner.show(HARDWARE)["vram_used_bytes"] == 0, "nor on the card")


harness.main(lambda: test(sys.argv[1]), needs_guest=False)
