#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the guest driver's calls cost, beside another build of it: two guests in turn, round by round, with the same host; the
ratios are of the same round.

The program (tests/driver/cost.c) speaks the interface of drivers before VGPU_IOC_CHANNEL, too: a module of an older commit will do.

usage: driver_bench.py --before VGPU.KO [--after VGPU.KO] [--kernel SUITE] [--rounds N]
"""
import argparse
import os
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests" / "driver"), str(ROOT / "tests" / "vm"), str(ROOT / "tools" / "lib")]
import bed as beds  # noqa: E402
from vgpuguest import paths, process  # noqa: E402

PROBE = "cost"


def measure(options, module):
    """{figure: value} in a guest of its own."""
    with beds.bed(options.kernel, beds.Setup(), options.programs, module) as bed:
        text = bed.shell(f"{beds.PROGRAMS}/{PROBE}", timeout=300)
    return {name: float(value) for name, value in (line.split("\t") for line in text.splitlines() if "\t" in line)}


def main(arguments):
    parser = argparse.ArgumentParser(prog="driver_bench.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, metavar="VGPU.KO")
    parser.add_argument("--after", metavar="VGPU.KO", help="default: the kernel's own, of tools/setup")
    parser.add_argument("--kernel", default=paths.KERNEL_SUITES[0], help="guest kernel: a directory of .cache/kernel")
    parser.add_argument("--programs", metavar="DIR", default=paths.BUILD / "tests" / "driver", help="the built test programs")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    rounds = [(measure(options, os.path.abspath(options.before)), measure(options, options.after and os.path.abspath(options.after)))
              for _ in range(options.rounds)]
    print(f"{'':38}{'before':>10}{'after':>10}{'ratio':>8}  ratio in each round")
    for name in rounds[0][0]:
        ratios = [after[name] / before[name] for before, after in rounds]
        before, after = (statistics.median(figures[i][name] for figures in rounds) for i in (0, 1))
        print(f"{name:38}{before:10.2f}{after:10.2f}{statistics.median(ratios):8.2f}  "
              + " ".join(f"{ratio:.2f}" for ratio in ratios))
    return 0


process.run_tool("driver_bench.py", main)
