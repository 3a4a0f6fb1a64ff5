#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a share is worth to a program that launches a kernel and waits for it, again and again: kernels done beside neighbours, as a part
of the weight's share of what it does alone. On direct VFs; each round measures "alone" and "beside" in turn.

Neighbours: endless (a kernel that never ends), bursty (20 kernels of 500 us at a time, then 10 ms of the host's work), dozing (the same,
but it sleeps for 10 ms), honest (a kernel of 500 us, waited for, again and again). A bursty neighbour takes a processor of the host from
the program too, which no share of a GPU gives back: dozing shows what is the scheduler's.

A host that is itself a virtual machine has its processors taken away at times ("steal" of /proc/stat), which nobody's share of a GPU gives
back. A round in which that was more than --most-stolen percent of their time is shown in brackets, does not count, and another is
run for it, three times as many rounds in all at most.

usage: felt_bench.py [--rounds N] [--most-stolen PERCENT] [--seconds S] [--neighbours N ...] [--beside KIND ...] [--kernels-us K ...] [--think-us T ...]
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
import typing

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


class Round(typing.NamedTuple):
    alone: float  # the mean of right before and right after
    felt: float  # part of the share's worth
    theirs: float  # part of the GPU that the neighbours had
    stolen: float  # percent of the processors' time, the most of its three measurements


def processors():
    """(Time that this machine's processors were taken away, all their time) in ticks; proc(5), /proc/stat."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[7], sum(ticks)


def with_stolen(measure):
    """(What `measure` returns, percent of the processors' time that was taken away meanwhile)."""
    stolen, ticks = processors()
    result = measure()
    stolen_after, ticks_after = processors()
    return result, 100 * (stolen_after - stolen) / max(1, ticks_after - ticks)


def row(vgpud, run, neighbours, neighbour, words, rounds, most_stolen):
    """Rounds until so many of them lost no more than `most_stolen` percent, three times as many in all at most."""
    shown = []
    after = with_stolen(lambda: figure(run, *words))
    while sum(one.stolen <= most_stolen for one in shown) < rounds and len(shown) < 3 * rounds:
        before = after
        (count, theirs), stolen = with_stolen(lambda: beside(vgpud, run, neighbours, neighbour, words))
        after = with_stolen(lambda: figure(run, *words))
        alone = (before[0] + after[0]) / 2
        shown.append(Round(alone, count / (alone / (len(neighbours) + 1)), theirs, max(before[1], stolen, after[1])))
    return shown


def median(figures):
    figures = list(figures)
    return f"{statistics.median(figures):.2f}" if figures else "-"


def print_row(names, shown, seconds, most_stolen):
    quiet = [one for one in shown if one.stolen <= most_stolen]
    rounds = (f"{one.felt:.2f} ({one.theirs:.2f}) {one.stolen:.0f}%" for one in shown)
    print(names + f" {statistics.median(one.alone for one in shown) / seconds:>8.0f} {median(one.felt for one in quiet):>7}  "
          + " ".join(text if one.stolen <= most_stolen else f"[{text}]" for one, text in zip(shown, rounds)), flush=True)


def main(arguments):
    parser = argparse.ArgumentParser(prog="felt_bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--most-stolen", type=float, default=2.0)
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
        print(f"{loops:.1f} loops of a kernel in a microsecond; rounds: part of the share's worth (neighbours' part of the GPU) stolen")
        print(f"{'beside':>8} {'kernel us':>9} {'think us':>8} {'neighbours':>10} {'alone/s':>8} {'median':>7}  rounds")
        for kind, kernel, think, count in itertools.product(options.beside, options.kernels_us, options.think_us, options.neighbours):
            words = (max(1, round(loops * kernel)), think, options.seconds)
            shown = row(vgpud, run, others[:count], command(loops, *NEIGHBOURS[kind]), words, options.rounds, options.most_stolen)
            print_row(f"{kind:>8} {kernel:>9} {think:>8} {count:>10}", shown, options.seconds, options.most_stolen)
    return 0


process.run_tool("felt_bench", main)
