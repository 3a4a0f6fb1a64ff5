#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A matrix multiply that is taken off the GPU thousands of times computes bit for bit what an uninterrupted one does.

The neighbour runs a kernel that never ends, both slices are 100 us, so the multiply is preempted at wherever it happens to be. The
program compares every element with the CPU; its checksum must also be that of the run without a neighbour.

usage: direct_preemption_test.py [THREADS]   that run a kernel together, default 1; with several there are fewer preemptions
"""
import glob
import re
import sys

import harness
from vgpuguest import daemon
from vgpuguest.program import DirectProgram

THREADS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
PREEMPTIONS = 3000 if THREADS == 1 else 1000
SHAPE = ["512", "256", "256"]


def checksum(vf):
    program = DirectProgram(vf, harness.command("matmul") + SHAPE)
    harness.check_passes(program)
    return re.search(r"checksum=([0-9a-f]+)", program.text()).group(1)


def workers_of(pid):
    """Threads named vgpu-worker in the executors of that daemon."""
    names = []
    for comm in glob.glob("/proc/[0-9]*/task/[0-9]*/comm"):
        try:
            with open(comm.split("/task/")[0] + "/stat") as stat, open(comm) as name:
                if int(stat.read().rsplit(")", 1)[1].split()[1]) == pid:
                    names.append(name.read().strip())
        except OSError:
            continue  # it has ended
    return names.count("vgpu-worker")


def test():
    with daemon.private_daemon([("a", {}), ("b", {})], ["--soft-gpu-threads", str(THREADS)]) as vgpud:
        alone = checksum(vgpud.show("a"))
        endless = DirectProgram(vgpud.show("b"), harness.command("endless"))
        endless.wait_for_line("endless: started", 30)
        for name in ("a", "b"):
            vgpud.set(name, slice="100us")
        _, before = vgpud.stats()
        runs = 0
        preempted = 0
        while preempted < PREEMPTIONS:
            harness.check(checksum(vgpud.show("a")) == alone, f"run {runs} gives the bits of the uninterrupted one")
            runs += 1
            harness.check(runs < 500, f"the multiply is preempted ({preempted} times in {runs - 1} runs)")
            _, now = vgpud.stats()
            preempted = now["a"]["executor_preempts"] - before["a"]["executor_preempts"]
        print(f"{preempted} preemptions in {runs} runs, checksum {alone} every time")
        harness.check(workers_of(vgpud.process.pid) >= (THREADS > 1), "helpers take part where there are to be some")
        endless.stop()


harness.main(test, needs_guest=False)
