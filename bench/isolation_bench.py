#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What isolation costs: the start of a VF and of an executor, a launch and its wait, a switch between two busy VFs, a register
read. Two builds are measured in turn, round by round, and the ratios are of the same round.

usage: isolation_bench.py --before BUILD --after BUILD [--rounds N]     BUILD: build directories; the first is the baseline
"""
import argparse
import os
import pathlib
import statistics
import sys
import time

sys.dont_write_bytecode = True
from two_builds import compare  # noqa: E402

PROBE = pathlib.Path(os.environ.get("VGPUD_BUILD_DIR", "build")) / "bench/isolation_probe"


def start_of_a_vf(daemon):
    start = time.monotonic()
    daemon.ctl("create", "started", "--vram", "64MiB")
    ms = (time.monotonic() - start) * 1e3
    daemon.ctl("destroy", "started")
    return ms


def start_of_an_executor(daemon, vf):
    """A program that opens its channel, does one launch and ends."""
    start = time.monotonic()
    daemon.run(vf, PROBE, "launches", "1")
    return (time.monotonic() - start) * 1e3


def cost_of_a_switch(daemon, vfs):
    launch = daemon.build / "tests/cuda/vgpu-launch"
    names = {vf["name"] for vf in vfs}
    programs = [daemon.start(vf, launch, "endless") for vf in vfs]
    try:
        before = daemon.ctl("stats")
        while any(vf["slices"] < 20 for vf in before["vfs"] if vf["name"] in names):
            before = daemon.ctl("stats")
        time.sleep(1.5)  # the length of the measurement
        after = daemon.ctl("stats")
    finally:
        for program in programs:
            program.kill()
            program.wait()
    slices = sum(vf["slices"] for vf in after["vfs"]) - sum(vf["slices"] for vf in before["vfs"])
    return (after["switch_ns_total"] - before["switch_ns_total"]) / max(1, slices) / 1e3


def measure(daemon):
    a, b = (daemon.ctl("create", name, "--vram", "64MiB") for name in ("a", "b"))
    try:
        return {
            "VF start (ms)": statistics.median(start_of_a_vf(daemon) for _ in range(5)),
            "executor start (ms)": statistics.median(start_of_an_executor(daemon, a) for _ in range(9)),
            "launch + wait (us)": float(daemon.run(a, PROBE, "launches", "3000")),
            "register read (us)": float(daemon.run(a, PROBE, "reads", a["vfio_user_socket"], "10000")),
            "switch (us)": cost_of_a_switch(daemon, (a, b)),
        }
    finally:
        for name in ("a", "b"):
            daemon.destroy(name)


def main(arguments):
    parser = argparse.ArgumentParser(prog="isolation_bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, metavar="BUILD")
    parser.add_argument("--after", required=True, metavar="BUILD")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    compare(options.before, options.after, options.rounds, measure)


if __name__ == "__main__":
    main(sys.argv[1:])
