#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does the simulator say what the real chain does? Ten workloads run on direct VFs for some seconds; what vgpud recorded of each VF (how
long its kernels took, how long its program thought in between) and of the GPU (what a switch and a forced end cost) becomes a workload
file, which vgpu-sim plays with the same scheduler. Compared is the part of the wall time that each VF had the GPU; the simulator has no
host, so the time in which the host gave no processor to whoever had the turn is left out, and shown beside. Switches and
thoughts are played with the lengths that they had (from the trace; there the thoughts of a turn are one sum), and work where each thought
ended a turn, all else with its mean.

usage: replay_bench.py [--seconds S] [--only NAME ...] [--keep DIRECTORY]    environment: VGPUD_BUILD_DIR
--keep: the workload files stay there. Exit status: 1 if a VF is more than three points off.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tools/lib"))
from felt_programs import command  # noqa: E402
from vgpuguest import daemon, process  # noqa: E402
from vgpuguest.paths import BUILD, VGPUCTL, ToolError, need  # noqa: E402
from vgpuguest.program import DirectProgram  # noqa: E402

POINTS = 3.0
# To the scheduler a longer one is a hang of the VF; where one was longer, the host kept the scheduler thread itself from running.
LONGEST_SWITCH_NS = 4_900_000


def works(kernel_us, think_us=0, burst=1, weight=100):
    """A program that launches `burst` kernels, waits for them and thinks."""
    return {"kernel": kernel_us, "think": think_us, "burst": burst, "weight": weight}


def endless(weight=100):
    return {"kernel": None, "weight": weight, "burst": 1}


WORKLOADS = {
    "two-endless": [endless(), endless()],
    "quarter": [endless(300), endless()],
    "waits-beside-endless": [works(500), endless()],
    "short-kernels": [works(100), endless()],
    "thinks-a-little": [works(500, 100), endless()],
    "thinks-long": [works(500, 2000), endless()],
    "bursts": [works(500, 10_000, 20), endless()],
    "two-that-wait": [works(200), works(2000)],
    "four-mixed": [works(100), works(500, 500), works(500, 10_000, 20), endless()],
    "eight": [works(500, 100), works(2000), works(500, 5000, 4, 200)] + [endless()] * 5,
}


def play_real(habits, seconds):
    """(growth of the GPU's figures, of each VF's, Turns)."""
    vfs = [(f"vf{i}", {"weight": habit["weight"]}) for i, habit in enumerate(habits)]
    with daemon.private_daemon(vfs, ["--event-budget", "opens=0"]) as vgpud:
        shown = [vgpud.show(name) for name, _ in vfs]
        commands = [command(habit["kernel"], habit.get("think", 0), habit["burst"]) for habit in habits]
        programs = [DirectProgram(vf, argv) for vf, (argv, _) in zip(shown, commands)]
        try:
            for program, (_, begins) in zip(programs, commands):
                program.wait_for_line(begins, 60)
            time.sleep(0.5)
            before = vgpud.ctl("stats")
            time.sleep(seconds)
            after = vgpud.ctl("stats")
            turns = read_turns(vgpud, seconds)
        finally:
            for program in programs:
                program.stop()

    def growth(new, old):
        return {key: value - old[key] for key, value in new.items() if isinstance(value, int) and key in old}
    return growth(after, before), [growth(new, old) for new, old in zip(after["vfs"], before["vfs"])], turns


class Turns:
    """Lengths in nanoseconds out of what vgpuctl trace writes: of the switches, and by VF of its thoughts before a turn and of the turns
    that followed each, in sum."""

    def __init__(self, trace):
        rows = {event["tid"]: event["args"]["name"].split()[-1] for event in trace["traceEvents"]
                if event["ph"] == "M" and event["name"] == "thread_name"}
        self.switches, self.thoughts, self.bursts = [], {}, {}
        for event in trace["traceEvents"]:
            if event["ph"] != "X":
                continue
            took = round(event["dur"] * 1000)
            if "thought_ns" not in event["args"]:
                self.switches.append(min(took, LONGEST_SWITCH_NS))
                continue
            name = rows[event["tid"]]
            if event["args"]["thought_ns"] > 0:
                self.thoughts.setdefault(name, []).append(event["args"]["thought_ns"])
                self.bursts.setdefault(name, []).append(0)
            if name in self.bursts:
                self.bursts[name][-1] += took


def read_turns(vgpud, seconds):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        done = subprocess.run([need(VGPUCTL, "vgpuctl"), "--runtime-dir", vgpud.runtime_dir, "trace", "--last",
                               f"{max(1, round(seconds * 1000))}ms", "-o", file.name], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(f"vgpuctl trace: {done.stderr}")
        return Turns(json.load(file))


def apart(sums, count):
    """What `sums` of `count` thoughts each are made of, if at most one of each was longer than they usually are."""
    usual = sorted(sums)[len(sums) // 2] // count
    thoughts = []
    for each in sums:
        others = min(usual, each // count)
        thoughts += [others] * (count - 1) + [each - others * (count - 1)]
    return thoughts


def length(samples, most=500):
    """A distribution for a workload file: the lengths as they were; where they are many, the means of parts of them, from the shortest to
    the longest."""
    ordered = sorted(samples) or [0]
    parts = min(most, len(ordered))
    ends = [i * len(ordered) // parts for i in range(parts + 1)]
    means = (sum(ordered[begin:end]) // (end - begin) for begin, end in zip(ends, ends[1:]))
    return "{ samples = [" + ", ".join(f'"{ns}ns"' for ns in means) + "] }"


def workload_file(habits, vfs, turns, seconds):
    lines = [f'duration = "{seconds:.3f}s"', "[gpu]", 'idle_grace = "50us"', "anticipate_percent = 90",
             f"switch_cost = {length(turns.switches)}",
             f'preempt_latency = "{sum(vf["overrun_ns_total"] for vf in vfs) // max(1, sum(vf["forced_preemptions"] for vf in vfs))}ns"']
    for i, (habit, vf) in enumerate(zip(habits, vfs)):
        lines += ["[[vf]]", f'name = "vf{i}"', f'weight = {habit["weight"]}']
        if habit["kernel"] is None:
            continue
        bursts = max(1, vf["kernels"] // habit["burst"])
        works, thoughts = [vf["active_gpu_ns"] // bursts], [vf["active_thinking_ns"] // bursts]
        seen, in_turns = turns.thoughts.get(f"vf{i}", []), turns.bursts.get(f"vf{i}", [])
        if seen and len(seen) <= 1.1 * bursts:
            thoughts = apart(seen, max(1, round(bursts / len(seen))))
        if seen and abs(len(seen) - bursts) <= bursts / 10:
            # A turn is longer than the work done in it.
            works = [took * vf["active_gpu_ns"] // sum(in_turns) for took in in_turns]
        lines += ['arrival = "bursty"', f"work = {length(works)}", f"sleep = {length(thoughts)}"]
    return "\n".join(lines) + "\n"


def play_simulated(path):
    done = subprocess.run([need(BUILD / "tools/vgpu-sim", "vgpu-sim"), path, "-o", "json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolError(f"vgpu-sim: {done.stderr}")
    outcome = json.loads(done.stdout)["policies"][0]
    return [vf["received_ns"] / outcome["wall_ns"] for vf in outcome["vfs"]]


def main(arguments):
    parser = argparse.ArgumentParser(prog="replay_bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args(arguments)
    worst = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.keep or pathlib.Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        print(f"{'workload':>22} {'off by':>6} {'host':>5}  part of the wall time that each VF had the GPU, real/simulated")
        for name in options.only:
            habits = WORKLOADS[name]
            gpu, vfs, turns = play_real(habits, options.seconds)
            path = directory / f"{name}.toml"
            path.write_text(workload_file(habits, vfs, turns, options.seconds), encoding="ascii")
            wall, stalled = gpu["now_ns"], gpu["stall_ns_total"]
            real = [vf["received_ns"] / (wall - stalled) for vf in vfs]
            pairs = list(zip(real, play_simulated(path)))
            off = max(abs(a - b) * 100 for a, b in pairs)
            worst = max(worst, off)
            print(f"{name:>22} {off:>6.1f} {stalled * 100 / wall:>4.1f}%  " + " ".join(f"{a:.3f}/{b:.3f}" for a, b in pairs), flush=True)
    print(f"worst: {worst:.1f} points")
    return 0 if worst <= POINTS else 1


process.run_tool("replay_bench", main)
