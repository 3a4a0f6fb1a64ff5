#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CUDA programs through the CUDA backend, without a GPU: its driver is our own libcuda, on a VF of a second vgpud.

usage: programs_test.py [NAME...]     programs of tests/cuda; all without a name
"""
import sys

import harness
from vgpuguest.nested import HARDWARE, nested_daemon


def test(names):
    programs = {name: argv for name, argv in harness.available().items() if not names or name in names}
    if names and not programs:  # without nvcc the launcher has it
        programs = {name: harness.command(name) for name in names}
    with nested_daemon([("a", {"vram": "2GiB"})]) as (outer, inner):
        a = outer.show("a")
        failed = []
        for name, argv in programs.items():
            try:
                harness.run_direct(a, argv)
            except Exception as why:  # each is told, then the sum
                failed.append(name)
                print(f"FAILED {name}: {why}", flush=True)
        print(f"{len(programs) - len(failed)} of {len(programs)} programs passed")
        harness.check(not failed, f"all pass; failed: {failed}")
        harness.check(outer.stats()[1]["a"]["kernels"] > 0, "kernels are counted outside")
        harness.check(inner.stats()[1][HARDWARE]["kernels"] > 0, "and inside")
        harness.wait_until(lambda: inner.show(HARDWARE)["executors"] == 0, "no channel is left on the GPU")
        harness.wait_until(lambda: inner.show(HARDWARE)["vram_used_bytes"] == 0, "and no memory")


harness.main(lambda: test(sys.argv[1:]), needs_guest=False)
