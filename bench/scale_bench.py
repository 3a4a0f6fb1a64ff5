#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many VFs one GPU takes, and what each costs. On the real chain without virtual machines: VFs whose kernels never end, and one
that sleeps and wakes up; in the simulator: the same scheduler on virtual time, with more.

usage: scale_bench.py [--vfs N ...] [--simulated N ...] [--seconds S] [--slice-us S] [-- FLAGS OF VGPUD]    environment: VGPUD_BUILD_DIR

Chain: seconds until all VFs and programs are up; Jain's index and the worst share error of the neighbours (received over the sum); us
that a switch takes; us of processor time that vgpud uses per turn, all of its threads; MiB of memory (proportional set size) of vgpud and
of the processes of a VF; us from a launch after sleep to the turn, and what the policy promises (bound).
Simulator: us of processor time per turn, MiB, the worst lag in parts of its bound, the worst wait in parts of a round.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tools/lib"))
from vgpuguest import daemon, process  # noqa: E402
from vgpuguest.paths import BUILD, ToolError, cuda_command, need  # noqa: E402
from vgpuguest.program import DirectProgram  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def stat_fields(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def processor_us(pid):
    fields = stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) * 1e6 / TICKS


def memory_mib(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return int(re.search(r"^Pss: +(\d+) kB", file.read(), re.M)[1]) / 1024
    except (OSError, TypeError):
        return 0.0


def descendants(root):
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents.setdefault(int(stat_fields(name)[1]), []).append(int(name))
        except OSError:
            pass
    found, left = [], [root]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


def chain_row(count, options, flags):
    begun = time.monotonic()
    vfs = [(f"vf{i}", {}) for i in range(count)]
    with daemon.private_daemon(vfs, ["--event-budget", "opens=0", "--base-slice-us", str(options.slice_us), *flags]) as vgpud:
        sleeper, *others = [vgpud.show(name) for name, _ in vfs]
        programs = [DirectProgram(vf, cuda_command("endless")) for vf in others]
        try:
            for program in programs:
                program.wait_for_line("endless: started", 60 + count)
            up = time.monotonic() - begun
            pid = vgpud.process.pid
            before_cpu = processor_us(pid)
            begin = vgpud.ctl("stats")
            time.sleep(options.seconds)
            end = vgpud.ctl("stats")
            cpu = processor_us(pid) - before_cpu
            had, turns = [], 0
            for old, new in zip(begin["vfs"], end["vfs"]):
                if new["name"] != sleeper["name"]:
                    had.append(new["received_ns"] - old["received_ns"])
                    turns += new["slices"] - old["slices"]
            own = memory_mib(pid)
            of_vfs = sum(map(memory_mib, descendants(pid))) / count
            wakes = DirectProgram(sleeper, [str(BUILD / "bench/wake_probe"), "50", "30000"])
            try:
                if wakes.wait(600) != 0:
                    raise ToolError(f"wake_probe failed\n{wakes.text()}")
                waited = [float(word) for word in wakes.lines[-1][1].split()]
            finally:
                wakes.stop()
            bound = vgpud.stats()[1][sleeper["name"]]["wake_bound_ns"] / 1000
        finally:
            for program in programs:
                program.stop()
    worst = max(abs(part / sum(had) - 1 / len(had)) for part in had)
    print(f"{count:>5} {up:>6.1f} {jain(had):>8.5f} {worst * len(had):>11.3f} {end['switch_p50_us']:>8.0f} {end['switch_p99_us']:>8.0f} "
          f"{cpu / turns:>8.1f} {own:>6.0f} {of_vfs:>7.1f} {waited[0]:>9.0f} {waited[1]:>9.0f} {bound:>9.0f}", flush=True)


def simulated_row(count, slice_us):
    """A hundred rounds, at least ten seconds."""
    round_us = count * (slice_us + 70)
    seconds = max(10, round_us * 100 / 1e6)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(f'duration = "{seconds:.0f}s"\n[gpu]\nbase_slice = "{slice_us}us"\n[[vf]]\nname = "vf"\ncount = {count}\n')
        file.flush()
        child = subprocess.Popen([need(BUILD / "tools/vgpu-sim", "vgpu-sim"), file.name, "-o", "json"], stdout=subprocess.PIPE)
        text = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise ToolError("vgpu-sim failed")
    outcome = json.loads(text)["policies"][0]
    cpu = (used.ru_utime + used.ru_stime) * 1e6
    print(f"{count:>5} {outcome['turns']:>8} {cpu / outcome['turns']:>8.2f} {used.ru_maxrss / 1024:>6.0f} {outcome['lag_of_bound']:>6.2f} "
          f"{outcome['worst_wait_ns'] / 1000 / round_us:>10.2f} {outcome['jain'] or 1:>8.5f}", flush=True)


def main(arguments):
    parser = argparse.ArgumentParser(prog="scale_bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vfs", type=int, nargs="*", default=[2, 8, 32, 64, 128, 256])
    parser.add_argument("--simulated", type=int, nargs="*", default=[2, 8, 32, 128, 512, 1024, 4096])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--slice-us", type=int, default=2000)
    own, _, flags = " ".join(arguments).partition(" -- ")
    options = parser.parse_args(own.split())
    if options.vfs:
        print(f"{'VFs':>5} {'up s':>6} {'Jain':>8} {'worst error':>11} {'sw p50':>8} {'sw p99':>8} {'cpu/turn':>8} {'vgpud':>6} {'per VF':>7} "
              f"{'wake p50':>9} {'wake p99':>9} {'bound':>9}")
    for count in options.vfs:
        chain_row(count, options, flags.split())
    if options.simulated:
        print(f"\n{'VFs':>5} {'turns':>8} {'cpu/turn':>8} {'MiB':>6} {'lag':>6} {'wait/round':>10} {'Jain':>8}")
    for count in options.simulated:
        simulated_row(count, options.slice_us)
    return 0


process.run_tool("scale_bench", main)
