#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a share is worth to a program that launches a kernel and waits for it, again and again: kernels done beside neighbours, as a part
of the weight's share of what it does alone. On direct VFs; each round measures "alone" and "beside" in turn.

Neighbours: endless (a kernel that never ends), bursty (20 kernels of 500 us at a time, then 10 ms of its own), honest (a kernel of 500
us, waited for, again and again).

usage: felt_bench.py [--rounds N] [--seconds S] [--neighbours N ...] [--beside KIND ...] [--kernels-us K ...] [--think-us T ...]
                     [-- FLAGS OF VGPUD]
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

PROBE = str(BUILD / "bench/felt_probe")


def probe(vf, *words):
    """What the probe prints."""
    program = DirectProgram(vf, [PROBE, *map(str, words)])
    try:
        if program.wait(60) != 0:
            raise ToolError(f"felt_probe failed\n{program.text()}")
    finally:
        program.stop()
    return float(program.lines[-1][1])


def command_of(kind, loops):
    """(command of a neighbour, the line that it prints when it has begun)."""
    if kind == "endless":
        return cuda_command("endless"), "endless: started"
    think, burst = {"bursty": (10_000, 20), "honest": (0, 1)}[kind]
    return [str(word) for word in (PROBE, round(500 * loops), think, 3600, burst)], "started"


def beside(vgpud, vf, neighbours, neighbour, words):
    """The probe's count, and the part of the GPU that the neighbours had meanwhile."""
    command, begins = neighbour
    names = [other["name"] for other in neighbours]
    programs = [DirectProgram(other, command) for other in neighbours]
    try:
        for program in programs:
            program.wait_for_line(begins, 20)
        begin, before = vgpud.stats()
        count = probe(vf, *words)
        end, after = vgpud.stats()
    finally:
        for program in programs:
            program.stop()
    return count, sum(after[name]["received_ns"] - before[name]["received_ns"] for name in names) / (end - begin)


def row(vgpud, vf, neighbours, neighbour, words, rounds):
    """[(alone, part of the share's worth, part of the GPU that the neighbours had)]."""
    figures = []
    for _ in range(rounds):
        alone = probe(vf, *words)
        count, theirs = beside(vgpud, vf, neighbours, neighbour, words)
        figures.append((alone, count / (alone / (len(neighbours) + 1)), theirs))
    return figures


def main(arguments):
    parser = argparse.ArgumentParser(prog="felt_bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--neighbours", type=int, nargs="+", default=[1, 3, 7])
    parser.add_argument("--kernels-us", type=int, nargs="+", default=[20, 100, 500, 2000])
    parser.add_argument("--think-us", type=int, nargs="+", default=[0])
    parser.add_argument("--beside", nargs="+", default=["endless"], choices=["endless", "bursty", "honest"])
    own, _, flags = " ".join(arguments).partition(" -- ")
    options = parser.parse_args(own.split())
    vfs = [("felt", {})] + [(f"n{i}", {}) for i in range(max(options.neighbours))]
    with daemon.private_daemon(vfs, arguments=["--event-budget", "opens=0", *flags.split()]) as vgpud:
        vf, *others = [vgpud.show(name) for name, _ in vfs]
        loops = probe(vf, "calibrate")
        print(f"{loops:.1f} loops of a kernel in a microsecond; rounds: part of the share's worth (neighbours' part of the GPU)")
        print(f"{'beside':>8} {'kernel us':>9} {'think us':>8} {'neighbours':>10} {'alone/s':>8} {'median':>7}  rounds")
        for kind, kernel, think, count in itertools.product(options.beside, options.kernels_us, options.think_us, options.neighbours):
            words = (max(1, round(loops * kernel)), think, options.seconds)
            figures = row(vgpud, vf, others[:count], command_of(kind, loops), words, options.rounds)
            print(f"{kind:>8} {kernel:>9} {think:>8} {count:>10} {statistics.median(alone for alone, _, _ in figures) / options.seconds:>8.0f} "
                  f"{statistics.median(felt for _, felt, _ in figures):>7.2f}  "
                  + " ".join(f"{felt:.2f} ({theirs:.2f})" for _, felt, theirs in figures), flush=True)
    return 0


process.run_tool("felt_bench", main)
