#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CUDA programs through the CUDA backend, without a GPU: its driver is our own libcuda, on a VF of a second vgpud.

usage: programs_test.py [--capability X.Y] [NAME...]     programs of tests/cuda, or their paths; all without a name
"""
import argparse
import os

import harness
from vgpuguest.nested import HARDWARE, nested_daemon
from vgpuguest.program import DirectProgram

# This device lets the host use managed memory in turns only, and its atomic operations are the host's, too.
SAYS = {"shared": "managed memory in turns, atomic operations too"}


def run(vf, name, argv):
    """What became of the program: "passed", "skipped" (it said so itself); AssertionError."""
    program = DirectProgram(vf, argv)
    code = program.wait(harness.PROGRAM_SECONDS)
    harness.check(code == 0, f"{name} ends with 0 (it ended with {code})\n{program.text()}")
    harness.check(SAYS.get(name, "") in program.text(), f"{name} says: {SAYS.get(name)}\n{program.text()}")
    return "skipped" if "SKIPPED" in program.text() else "passed"


def test(names, capability):
    programs = {name: argv for name, argv in harness.available().items() if not names or name in names}
    programs.update({os.path.basename(path): [path] for path in names if "/" in path})
    if names and not programs:  # without nvcc the launcher has it
        programs = {name: harness.command(name) for name in names}
    inner_arguments = ["--soft-gpu-capability", capability] if capability else []
    with nested_daemon([("a", {"vram": "2GiB"})], inner_arguments=inner_arguments) as (outer, inner):
        a = outer.show("a")
        became = {name: run(a, name, argv) for name, argv in programs.items()}
        for what in ("passed", "skipped"):
            print(f"{what}: {', '.join(name for name, how in became.items() if how == what) or 'none'}")
        harness.check(set(became.values()) == {"passed"}, "all programs pass, and none finds the device wanting")
        harness.check(outer.stats()[1]["a"]["kernels"] > 0, "kernels are counted outside")
        harness.check(inner.stats()[1][HARDWARE]["kernels"] > 0, "and inside")
        harness.wait_until(lambda: inner.show(HARDWARE)["executors"] == 0, "no channel is left on the GPU")
        harness.wait_until(lambda: inner.show(HARDWARE)["vram_used_bytes"] == 0, "and no memory")


parser = argparse.ArgumentParser()
parser.add_argument("--capability")
parser.add_argument("names", nargs="*")
told = parser.parse_args()
harness.main(lambda: test(told.names, told.capability), needs_guest=False)
