#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What calls of the driver API cost a program (bench/calls_probe.cc), beside the bare thing in the same run: launch and wait beside a
message to another thread and back, with eventfd and with spinning; copies beside memcpy. Microseconds, the median and the 99th
percentile of each; of calls that only post work, the caller's processor time. After some milliseconds without work everybody sleeps: then a launch
rings the doorbell and the answer needs an interrupt, in a guest an exit each. With --guest the exits are shown apart: how many doorbells and
interrupts a call needed, what one doorbell costs (a row of its own), and the product of the two.

usage: calls_bench.py [--guest] [--before CHECKOUT] [--rounds N] [--count N]
--guest: in a guest (tools/run-in-guest) instead of direct. --before: another checkout that is built (in build/), measured in turn.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools/lib"))
from vgpuguest import process  # noqa: E402
from vgpuguest.paths import BUILD, ToolError, need  # noqa: E402

BARE = {"launch + wait": "spinning round trip", "launch + wait, all asleep": "eventfd round trip", **{f"copy {way} the GPU {size}": f"memcpy {size}"
                                                   for way in ("to", "from") for size in ("64 B", "1 MiB", "16 MiB")}}

DOORBELL, ASLEEP = "doorbell by itself", "launch + wait, all asleep"
HEAD_OF_EXITS = f"  {'doorbells':>9}  {'interrupts':>10}  {'in doorbells':>12}"


def measure(checkout, options):
    """{name: (median, 99th percentile, doorbells, interrupts)}, the latter per call."""
    tool = checkout / "tools" / ("run-in-guest" if options.guest else "run-direct")
    environment = {name: value for name, value in os.environ.items() if name != "VGPUD_BUILD_DIR" or checkout == ROOT}
    done = subprocess.run([tool, "--", need(BUILD / "bench/calls_probe", "calls_probe"), str(options.count)], env=environment,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolError(f"{tool}: {done.stdout}{done.stderr}")
    rows = (line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 4)
    measured = {name: tuple(map(float, figures)) for name, *figures in rows}
    if DOORBELL in measured and measured[ASLEEP][2] == 0:
        raise ToolError("no doorbell was counted where each launch needs one: does libcuda.so.1 still call the program's ioctl?")
    return measured


def exits(name, rounds):
    """The columns of HEAD_OF_EXITS; nothing for what needs no exit."""
    doorbells, interrupts = (statistics.median(figures[name][i] for figures in rounds) for i in (2, 3))
    if DOORBELL not in rounds[0] or not doorbells + interrupts:
        return ""
    return f"  {doorbells:9.3f}  {interrupts:10.3f}  {doorbells * statistics.median(figures[DOORBELL][0] for figures in rounds):12.2f}"


def main(arguments):
    parser = argparse.ArgumentParser(prog="calls_bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--guest", action="store_true")
    parser.add_argument("--before", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=2000)
    options = parser.parse_args(arguments)
    rounds = [[measure(checkout.resolve(), options) for checkout in (options.before, ROOT) if checkout] for _ in range(options.rounds)]
    print(f"{'':26} {'before':>20} {'now':>20}  {'ratio':>5}  {'of the bare':>11}" + (HEAD_OF_EXITS if options.guest else ""))
    for name in rounds[0][-1]:
        def figures(which):
            return "{:10.2f} {:9.2f}".format(*(statistics.median(figure[which][name][i] for figure in rounds) for i in (0, 1)))
        ratio = f"{statistics.median(new[name][0] / old[name][0] for old, new in rounds):.2f}" if options.before else "-"
        bare = next((each for each in (BARE.get(name), "eventfd round trip") if each in rounds[0][-1]), None) if name in BARE else None
        of_bare = f"{statistics.median(figure[-1][name][0] / figure[-1][bare][0] for figure in rounds):.2f}" if bare else ""
        print(f"{name:26} {figures(0) if options.before else '-':>20} {figures(-1):>20}  {ratio:>5}  {of_bare:>11}"
              + (exits(name, [figure[-1] for figure in rounds]) if options.guest else ""))
    return 0


process.run_tool("calls_bench", main)
