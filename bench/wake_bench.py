#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long a kernel waits for its first instruction when its program has slept, beside neighbours whose kernels never end: with and
without wake_first, in turn, on direct VFs. Beside it what vgpud says of the same waits (wake_wait) and what the policy promises
(wake_bound), and the part of the GPU that the neighbours had.

usage: wake_bench.py [--rounds N] [--times N] [--sleep-us S ...] [--neighbours N ...] [-- FLAGS OF VGPUD]
environment: VGPUD_BUILD_DIR
"""
import argparse
import itertools
import os
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tools/lib"))
from vgpuguest import daemon, process  # noqa: E402
from vgpuguest.paths import BUILD, ToolError, cuda_command  # noqa: E402
from vgpuguest.program import DirectProgram  # noqa: E402

PROBE = str(BUILD / "bench/wake_probe")


def waits(vf, options, sleep_us):
    """(p50, p99, longest) in microseconds."""
    program = DirectProgram(vf, [PROBE, str(options.times), str(sleep_us)])
    try:
        if program.wait(120) != 0:
            raise ToolError(f"wake_probe failed\n{program.text()}")
    finally:
        program.stop()
    return tuple(map(float, program.lines[-1][1].split()))


def beside(vgpud, vf, neighbours, options, sleep_us):
    """waits(), the part of the GPU that the neighbours had, and how unequal they were: least over most."""
    programs = [DirectProgram(other, cuda_command("endless")) for other in neighbours]
    try:
        for program in programs:
            program.wait_for_line("endless: started", 20)
        begin, before = vgpud.stats()
        measured = waits(vf, options, sleep_us)
        end, after = vgpud.stats()
    finally:
        for program in programs:
            program.stop()
    had = [after[other["name"]]["received_ns"] - before[other["name"]]["received_ns"] for other in neighbours]
    return measured, sum(had) / (end - begin), min(had) / max(had)


def main(arguments):
    parser = argparse.ArgumentParser(prog="wake_bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--neighbours", type=int, nargs="+", default=[1, 3, 7])
    parser.add_argument("--sleep-us", type=int, nargs="+", default=[30_000])
    own, _, flags = " ".join(arguments).partition(" -- ")
    options = parser.parse_args(own.split())
    vfs = [("wakes", {})] + [(f"n{i}", {}) for i in range(max(options.neighbours))]
    with daemon.private_daemon(vfs, arguments=["--event-budget", "opens=0", *flags.split()]) as vgpud:
        vf, *others = [vgpud.show(name) for name, _ in vfs]
        print("us from the launch to the first instruction; medians of the rounds, the longest of all")
        print(f"{'sleep':>8} {'neighbours':>10} {'wake_first':>10} {'bound':>7} {'p50':>7} {'p99':>7} {'longest':>8} "
              f"{'neighbours had':>14} {'least/most':>10}")
        for sleep_us, count in itertools.product(options.sleep_us, options.neighbours):
            rows = {0: [], 1: []}
            for _ in range(options.rounds):
                for first, measured in rows.items():
                    vgpud.set(vf["name"], **{"wake-first": first})
                    for other in others:
                        vgpud.ctl("pause" if other in others[count:] else "resume", other["name"])
                    bound = vgpud.stats()[1][vf["name"]]["wake_bound_ns"] / 1000
                    measured.append((bound, *beside(vgpud, vf, others[:count], options, sleep_us)))
            for first, measured in rows.items():
                middle = [statistics.median(row[1][i] for row in measured) for i in range(2)]
                print(f"{sleep_us:>8} {count:>10} {first:>10} {measured[0][0]:>7.0f} {middle[0]:>7.0f} {middle[1]:>7.0f} "
                      f"{max(row[1][2] for row in measured):>8.0f} {statistics.median(row[2] for row in measured):>14.3f} "
                      f"{min(row[3] for row in measured):>10.3f}", flush=True)
    return 0


process.run_tool("wake_bench", main)
