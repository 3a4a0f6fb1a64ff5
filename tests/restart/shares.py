#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two programs that always compute, with weights 100 and 300, while vgpud is killed at random moments and started again at once: over
the minute around each kill each VF has its share of the GPU, within two points, and neither program notices.

A turn that is cut short by a kill is not gone on with: kills that come twice a second are felt, and are not what this is about.

usage: shares.py [KILLS] [--seed N] [--every SECONDS]    60, one in three seconds on average
"""
import argparse
import random
import signal
import sys
import time

import bed

sys.path.insert(0, str(bed.REPO / "tests" / "vm"))

import harness  # noqa: E402
from vgpuguest import shares  # noqa: E402
from vgpuguest.program import DirectProgram  # noqa: E402

WEIGHTS = {"s-light": 100, "s-heavy": 300}
WINDOW_S = 60
LIMIT = 0.02


def windows(kills, seen):
    """(first, last) of the looks around each kill; at the ends of the campaign they are shorter."""
    for at in kills:
        first = max((look for look in seen if look[0] <= max(at - WINDOW_S / 2, seen[0][0])), key=lambda look: look[0])
        last = min((look for look in seen if look[0] >= min(at + WINDOW_S / 2, seen[-1][0])), key=lambda look: look[0])
        yield first[1], last[1]


def campaign(vgpud, count, every, chance):
    """(when vgpud was killed, [(when, counters)])"""
    kills, seen = [], []
    for _ in range(count):
        time.sleep(chance.uniform(0, 2 * every))  # at any moment; which one decides nothing
        seen.append((time.monotonic(), vgpud.stats()[1]))
        kills.append(time.monotonic())
        vgpud.kill(signal.SIGKILL)
        vgpud.start()
    time.sleep(1)
    seen.append((time.monotonic(), vgpud.stats()[1]))
    return kills, seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int, nargs="?", default=60)
    parser.add_argument("--seed", type=int, default=20261125)
    parser.add_argument("--every", type=float, default=3)
    options = parser.parse_args()
    with bed.supervised() as vgpud:
        for vf, weight in WEIGHTS.items():
            vgpud.create_kept(vf, vram="64MiB", weight=weight)
        programs = [DirectProgram(vgpud.show(vf), [*harness.command("meter")[:-1], "100000"]) for vf in WEIGHTS]
        for program in programs:
            program.wait_for_line("METER", 60)
        kills, seen = campaign(vgpud, options.kills, options.every, random.Random(options.seed))
        for vf, program in zip(WEIGHTS, programs):
            harness.check(program.code is None, f"the program on {vf} goes on: {program.text()[-500:]}")
            harness.check(shares.meter_is_clean(program.lines), f"and what {vf} computes is right")
            program.stop()
        entitled = shares.entitled(WEIGHTS)
        worst = max(abs(shares.metered(first, last)[vf] - entitled[vf]) for first, last in windows(kills, seen) for vf in WEIGHTS)
        overall = shares.metered(seen[0][1], seen[-1][1])
        print(f"{len(kills)} kills in {seen[-1][0] - seen[0][0]:.0f} s; shares {overall}; over the minute around a kill at worst "
              f"{100 * worst:.2f} points off")
        harness.check(worst <= LIMIT, f"within {100 * LIMIT:.0f} points")
        print("PASS")


if __name__ == "__main__":
    main()
