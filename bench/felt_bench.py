#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a share is worth to a program that launches a kernel and waits for it, again and again: kernels done beside neighbours, as a part
of the weight's share of what it does alone. On direct VFs. Program and neighbours run all the time; "alone" is when the neighbours' VFs
are paused. A round is eight stretches of a quarter of --seconds each, alone and beside in turn, so that a host whose processors run
faster and slower disturbs both alike; what happens in the first moments after each change counts for neither.

Neighbours: endless (a kernel that never ends), bursty (20 kernels of 500 us at a time, then 10 ms of the host's work), dozing (the same,
but it sleeps for 10 ms), honest (a kernel of 500 us, waited for, again and again). A bursty neighbour takes a processor of the host from
the program too, which no share of a GPU gives back: dozing shows what is the scheduler's.

A host that is itself a virtual machine has its processors taken away at times ("steal" of /proc/stat), which nobody's share of a GPU gives
back. A round in which that was more than --most-stolen percent of their time is shown in brackets, does not count, and another is
run for it, three times as many rounds in all at most.

--load N keeps N endless loops of ordinary priority running on the host, alone and beside the neighbours.

usage: felt_bench.py [--rounds N] [--most-stolen PERCENT] [--seconds S] [--neighbours N ...] [--beside KIND ...] [--kernels-us K ...] [--think-us T ...]
                     [--load N] [--guest] [-- FLAGS OF VGPUD]
--guest: the program runs in a guest, its neighbours stay direct.    environment: VGPUD_BUILD_DIR
"""
import argparse
import contextlib
import functools
import itertools
import os
import statistics
import subprocess
import sys
import time
import typing

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tools/lib"))
from felt_programs import command, rate, told_until  # noqa: E402
from vgpuguest import daemon, guest, process  # noqa: E402
from vgpuguest.program import DirectProgram, GuestProgram  # noqa: E402

PAIRS = 4
SETTLE_S = 0.06

NEIGHBOURS = {"endless": (None,), "bursty": (500, 10_000, 20), "dozing": (500, "10000s", 20), "honest": (500,)}


class Round(typing.NamedTuple):
    alone: float  # kernels per second
    felt: float  # part of the share's worth
    theirs: float  # part of the GPU that the neighbours had
    stolen: float  # percent of the processors' time


@contextlib.contextmanager
def busy_host(loops):
    """So many endless loops, as other programs of this host."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def processors():
    """(Time that this machine's processors were taken away, all their time) in ticks; proc(5), /proc/stat."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[7], sum(ticks)


class Stretch(typing.NamedTuple):
    begin: int
    end: int
    theirs: int  # the GPU's time that the neighbours had, ns


def stretch(vgpud, names, paused, seconds):
    """A stretch of time with these VFs paused, or not."""
    vgpud.pause(names, paused)
    time.sleep(SETTLE_S)
    begin, before = time.monotonic_ns(), vgpud.stats()[1]
    time.sleep(seconds)
    after, end = vgpud.stats()[1], time.monotonic_ns()
    return Stretch(begin, end, sum(after[name]["received_ns"] - before[name]["received_ns"] for name in names))


def one_round(vgpud, program, names, seconds):
    """PAIRS stretches alone and as many beside the others; which is first changes from pair to pair, so that a host that
    becomes slower and slower disturbs both alike."""
    stretches = {True: [], False: []}
    stolen, ticks = processors()
    for pair in range(PAIRS):
        for paused in (pair % 2 == 0, pair % 2 != 0):
            stretches[paused].append(stretch(vgpud, names, paused, seconds / PAIRS))
    stolen_after, ticks_after = processors()
    counts = told_until(program, max(one.end for one in stretches[True] + stretches[False]))
    alone, beside = (statistics.mean(rate(counts, one.begin, one.end) for one in stretches[paused]) for paused in (True, False))
    theirs = sum(one.theirs for one in stretches[False]) / sum(one.end - one.begin for one in stretches[False])
    return Round(alone, beside / (alone / (len(names) + 1)), theirs, 100 * (stolen_after - stolen) / max(1, ticks_after - ticks))


def row(vgpud, run, neighbours, neighbour, probe, rounds, most_stolen, seconds):
    """Rounds until so many of them lost no more than `most_stolen` percent, three times as many in all at most."""
    names = [other["name"] for other in neighbours]
    shown = []
    with contextlib.ExitStack() as stack:
        def start(start_it, argv, begins):
            program = start_it(argv)
            stack.callback(program.stop)
            program.wait_for_line(begins, 20)
            return program
        stack.callback(vgpud.pause, names, False)
        for other in neighbours:
            start(functools.partial(DirectProgram, other), *neighbour)
        program = start(run, *probe)
        while sum(one.stolen <= most_stolen for one in shown) < rounds and len(shown) < 3 * rounds:
            shown.append(one_round(vgpud, program, names, seconds))
    return shown


def median(figures):
    figures = list(figures)
    return f"{statistics.median(figures):.2f}" if figures else "-"


def print_row(names, shown, most_stolen):
    quiet = [one for one in shown if one.stolen <= most_stolen]
    rounds = (f"{one.felt:.2f} ({one.theirs:.2f}) {one.stolen:.0f}%" for one in shown)
    print(names + f" {statistics.median(one.alone for one in shown):>8.0f} {median(one.felt for one in quiet):>7}  "
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
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--guest", action="store_true")
    own, _, flags = " ".join(arguments).partition(" -- ")
    options = parser.parse_args(own.split())
    vfs = [("felt", {})] + [(f"n{i}", {}) for i in range(max(options.neighbours))]
    with daemon.private_daemon(vfs, ["--event-budget", "opens=0", *flags.split()]) as vgpud, busy_host(options.load), \
            contextlib.ExitStack() as stack:
        vf, *others = [vgpud.show(name) for name, _ in vfs]
        run = functools.partial(DirectProgram, vf)
        if options.guest:
            run = functools.partial(GuestProgram, stack.enter_context(guest.own_guest(vf, vgpud.runtime_dir)))
        print("rounds: part of the share's worth (neighbours' part of the GPU) stolen")
        print(f"{'beside':>8} {'kernel us':>9} {'think us':>8} {'neighbours':>10} {'alone/s':>8} {'median':>7}  rounds")
        for kind, kernel, think, count in itertools.product(options.beside, options.kernels_us, options.think_us, options.neighbours):
            shown = row(vgpud, run, others[:count], command(*NEIGHBOURS[kind]), command(kernel, think), options.rounds,
                        options.most_stolen, options.seconds)
            print_row(f"{kind:>8} {kernel:>9} {think:>8} {count:>10}", shown, options.most_stolen)
    return 0


process.run_tool("felt_bench", main)
