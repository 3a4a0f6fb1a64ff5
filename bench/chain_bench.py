#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long the scheduler waits for an executor to leave the GPU, on the real chain without virtual machines: two VFs
that are never idle, an endless kernel beside the meter. The baseline is what the host does to a loop that only looks
at the clock: a drain cannot be shorter than the time for which the host gives the executor no core.

usage: chain_bench.py [--preemptions N] [--real-time]    environment: VGPUD_BUILD_DIR
"""
import argparse
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tools/lib"))
from vgpuguest import daemon, process, shares  # noqa: E402
from vgpuguest.paths import cuda_command  # noqa: E402
from vgpuguest.program import DirectProgram  # noqa: E402

GAP_NS = 50_000


def clock_gaps(seconds):
    """Gaps of more than GAP_NS in a loop that reads the clock."""
    gaps, last = [], time.monotonic_ns()
    end = last + int(seconds * 1e9)
    while last < end:
        now = time.monotonic_ns()
        if now - last > GAP_NS:
            gaps.append(now - last)
        last = now
    return gaps


def executors(vgpud_pid):
    """Processes vgpud-exec of this daemon."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                name, rest = stat.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if name == "vgpud-exec" and int(rest.split()[1]) == vgpud_pid:
            found.append(int(pid))
    return found


def run_delay_ns(pids):
    """How long their threads were ready to run and had no core."""
    total = 0
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[1])
    return total


def main(arguments):
    parser = argparse.ArgumentParser(prog="chain_bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preemptions", type=int, default=10_000)
    parser.add_argument("--real-time", action="store_true",
                        help="run the executors under SCHED_RR 1 (root), so that no other load of the host delays them")
    options = parser.parse_args(arguments)
    gaps = clock_gaps(2)
    print(f"baseline: {len(gaps) / 2:.0f} gaps/s over {GAP_NS // 1000} us in a bare loop, longest "
          f"{max(gaps, default=0) / 1e3:.0f} us")
    with daemon.private_daemon([("endless", {}), ("meter", {})]) as vgpud:
        shown = {name: vgpud.show(name) for name in ("endless", "meter")}
        programs = {"endless": DirectProgram(shown["endless"], cuda_command("endless")),
                    "meter": DirectProgram(shown["meter"], [*cuda_command("meter"), "--seconds", "3600"])}
        try:
            programs["endless"].wait_for_line("endless: started", 20)
            programs["meter"].wait_for_line("METER", 30, count=2)
            pids = executors(vgpud.process.pid)
            for pid in pids if options.real_time else []:
                for thread in os.listdir(f"/proc/{pid}/task"):
                    os.sched_setscheduler(int(thread), os.SCHED_RR, os.sched_param(1))
            delay, (begin, before) = run_delay_ns(pids), vgpud.stats()
            while True:
                time.sleep(0.5)
                end, after = vgpud.stats()
                if all(after[name]["forced_preemptions"] - before[name]["forced_preemptions"]
                       >= options.preemptions / 2 for name in after):
                    break
            delay = run_delay_ns(pids) - delay
        finally:
            for program in programs.values():
                program.stop()
    print("VF       preemptions  drain p50   p99   p99.9     max")
    for name in after:
        old, new = before[name]["drain_ns_buckets"], after[name]["drain_ns_buckets"]
        figures = "".join(f"{shares.percentile(old, new, p) / 1e3:8.1f}" for p in (50, 99, 99.9, 100))
        count = after[name]["forced_preemptions"] - before[name]["forced_preemptions"]
        print(f"{name:<8} {count:>11} {figures} us")
    print(f"executors waited for a core for {100 * delay / (end - begin):.1f}% of the time")
    return 0


process.run_tool("chain_bench", main)
