#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a share is worth to a program that launches a kernel and waits for it, again and again: kernels done beside neighbours, as a part
of the weight's share of what it does alone. On direct VFs; each round measures "alone" and "beside" in turn.

Neighbours: endless (a kernel that never ends), bursty (20 kernels of 500 us at a time, then 10 ms of the host's work), dozing (the same,
but it sleeps for 10 ms), honest (a kernel of 500 us, waited for, again and again). A bursty neighbour takes a processor of the host from
the program too, which no share of a GPU gives back: dozing shows what is the scheduler's.

usage: felt_bench.py [--rounds N] [--seconds S] [--neighbours N ...] [--beside KIND ...] [--kernels-us K ...] [--think-us T ...]
                     [--guest] [-- FLAGS OF VGPUD]
--guest: the program runs in a guest, its neighbours stay direct.    environment: VGPUD_BUILD_DIR
"""
import argparse
import contextlib
import functools
import itertools
import os
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tools/lib"))
from felt_programs import command, figure, loops_per_us  # noqa: E402
from vgpuguest import daemon, guest, process  # noqa: E402
from vgpuguest.program import DirectProgram, GuestProgram  # noqa: E402

NEIGHBOURS = {"endless": (None,), "bursty": (500, 10_000, 20), "dozing": (500, "10000s", 20), "honest": (500,)}


def beside(vgpud, run, neighbours, neighbour, words):
    """The probe's count, and the part of the GPU that the neighbours had meanwhile."""
    argv, begins = neighbour
    names = [other["name"] for other in neighbours]
    programs = [DirectProgram(other, argv) for other in neighbours]
    try:
        for program in programs:
            program.wait_for_line(begins, 20)
        begin, before = vgpud.stats()
        count = figure(run, *words)
        end, after = vgpud.stats()
    finally:
        for program in programs:
            program.stop()
    return count, sum(after[name]["received_ns"] - before[name]["received_ns"] for name in names) / (end - begin)


def row(vgpud, run, neighbours, neighbour, words, rounds):
    """[(alone, part of the share's worth, part of the GPU that the neighbours had)]. Alone: the mean of right before and right after."""
    figures = []
    after = figure(run, *words)
    for _ in range(rounds):
        before = after
        count, theirs = beside(vgpud, run, neighbours, neighbour, words)
        after = figure(run, *words)
        alone = (before + after) / 2
        figures.append((alone, count / (alone / (len(neighbours) + 1)), theirs))
    return figures


def main(arguments):
    parser = argparse.ArgumentParser(prog="felt_bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--neighbours", type=int, nargs="+", default=[1, 3, 7])
    parser.add_argument("--kernels-us", type=int, nargs="+", default=[20, 100, 500, 2000])
    parser.add_argument("--think-us", type=int, nargs="+", default=[0])
    parser.add_argument("--beside", nargs="+", default=["endless"], choices=list(NEIGHBOURS))
    parser.add_argument("--guest", action="store_true")
    own, _, flags = " ".join(arguments).partition(" -- ")
    options = parser.parse_args(own.split())
    vfs = [("felt", {})] + [(f"n{i}", {}) for i in range(max(options.neighbours))]
    with daemon.private_daemon(vfs, ["--event-budget", "opens=0", *flags.split()]) as vgpud, contextlib.ExitStack() as stack:
        vf, *others = [vgpud.show(name) for name, _ in vfs]
        run = functools.partial(DirectProgram, vf)
        if options.guest:
            run = functools.partial(GuestProgram, stack.enter_context(guest.own_guest(vf, vgpud.runtime_dir)))
        loops = loops_per_us(run)
        print(f"{loops:.1f} loops of a kernel in a microsecond; rounds: part of the share's worth (neighbours' part of the GPU)")
        print(f"{'beside':>8} {'kernel us':>9} {'think us':>8} {'neighbours':>10} {'alone/s':>8} {'median':>7}  rounds")
        for kind, kernel, think, count in itertools.product(options.beside, options.kernels_us, options.think_us, options.neighbours):
            words = (max(1, round(loops * kernel)), think, options.seconds)
            figures = row(vgpud, run, others[:count], command(loops, *NEIGHBOURS[kind]), words, options.rounds)
            print(f"{kind:>8} {kernel:>9} {think:>8} {count:>10} {statistics.median(alone for alone, _, _ in figures) / options.seconds:>8.0f} "
                  f"{statistics.median(felt for _, felt, _ in figures):>7.2f}  "
                  + " ".join(f"{felt:.2f} ({theirs:.2f})" for _, felt, theirs in figures), flush=True)
    return 0


process.run_tool("felt_bench", main)
