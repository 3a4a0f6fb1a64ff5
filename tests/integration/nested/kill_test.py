#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The last rung, nested (programs_test.py): a kernel that never ends and can't be stopped costs its own process, which
gets an error. What others compute meanwhile, another program of the same VF and one of its neighbour, is what they
compute alone, and both VFs go on.

usage: kill_test.py [RUNG...]     on which nothing else stops it: gate, blocks; both without one
"""
import sys

import harness
from vgpuguest import paths
from vgpuguest.nested import HARDWARE, nested_daemon
from vgpuguest.program import DirectProgram

PREEMPT_TIMEOUT_US = 2_000_000
# Long enough to be there when the kernel is killed.
BLOCKS, ROUNDS, LAUNCHES = 8, 700, 100


def computes(vf, launches=LAUNCHES):
    return DirectProgram(vf, [str(paths.need(paths.LAUNCHER, "vgpu-launch")), "cuts", "tiles", str(BLOCKS), str(ROUNDS),
                              str(launches)])


def said(program):
    harness.check_passes(program)
    return program.lines[-1][1]


def check_rung(rung):
    options = {"vram": "512MiB"}
    arguments = ["--preempt-timeout-us", str(PREEMPT_TIMEOUT_US), "--cuda-rung", rung]
    with nested_daemon([("a", options), ("b", options)], arguments) as (outer, inner):
        alone = said(computes(inner.show(HARDWARE)))
        endless = DirectProgram(outer.show("a"), harness.command("endless"))
        endless.wait_for_line("endless: started", 60)
        others = {name: computes(outer.show(name)) for name in ("a", "b")}
        harness.check(endless.wait(60) != 0, f"{rung}: its process gets an error\n{endless.text()}")
        for name, program in others.items():
            harness.check(said(program) == alone, f"{rung}: what {name} computes beside it is what it computes alone")
        with open(outer.log, encoding="utf-8") as log:
            killed = [line for line in log if ": killed" in line]
        harness.check(len(killed) == 1 and "vf=a:" in killed[0], f"{rung}: one executor was killed, of a\n{''.join(killed)}")
        harness.wait_until(lambda: all(outer.show(name)["executors"] == 0 for name in "ab"), "nothing is left of them")
        for name in "ab":
            said(computes(outer.show(name), 1))


def test():
    for rung in sys.argv[1:] or ("gate", "blocks"):
        check_rung(rung)


harness.main(test, needs_guest=False)
