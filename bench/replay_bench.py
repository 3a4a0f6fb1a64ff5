#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does the simulator say what the real chain does? Ten workloads run on direct VFs for some seconds; what vgpud recorded of each VF (how
long its kernels took, how long its program thought in between) and of the GPU (what a switch and a forced end cost) becomes a workload
file, which vgpu-sim plays with the same scheduler. Compared is the part of the wall time that each VF had the GPU.

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
from felt_programs import command, loops_per_us  # noqa: E402
from vgpuguest import daemon, process  # noqa: E402
from vgpuguest.paths import BUILD, ToolError, need  # noqa: E402
from vgpuguest.program import DirectProgram  # noqa: E402

POINTS = 3.0


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
    """(wall ns, the GPU's growth of figures, [each VF's])."""
    vfs = [(f"vf{i}", {"weight": habit["weight"]}) for i, habit in enumerate(habits)]
    with daemon.private_daemon(vfs, ["--event-budget", "opens=0"]) as vgpud:
        shown = [vgpud.show(name) for name, _ in vfs]
        loops = loops_per_us(lambda argv: DirectProgram(shown[0], argv))
        commands = [command(loops, habit["kernel"], habit.get("think", 0), habit["burst"]) for habit in habits]
        programs = [DirectProgram(vf, argv) for vf, (argv, _) in zip(shown, commands)]
        try:
            for program, (_, begins) in zip(programs, commands):
                program.wait_for_line(begins, 60)
            time.sleep(0.5)
            before = vgpud.ctl("stats")
            time.sleep(seconds)
            after = vgpud.ctl("stats")
        finally:
            for program in programs:
                program.stop()

    def growth(new, old):
        return {key: value - old[key] for key, value in new.items() if isinstance(value, int) and key in old}
    return (after["now_ns"] - before["now_ns"], growth(after, before),
            [growth(new, old) for new, old in zip(after["vfs"], before["vfs"])])


def workload_file(habits, gpu, vfs, seconds):
    turns = max(1, sum(vf["slices"] for vf in vfs))
    lines = [f'duration = "{seconds:.3f}s"', "[gpu]", 'idle_grace = "50us"', "anticipate_percent = 90",
             f'switch_cost = "{gpu["switch_ns_total"] // turns}ns"',
             f'preempt_latency = "{sum(vf["overrun_ns_total"] for vf in vfs) // max(1, sum(vf["forced_preemptions"] for vf in vfs))}ns"']
    for i, (habit, vf) in enumerate(zip(habits, vfs)):
        lines += ["[[vf]]", f'name = "vf{i}"', f'weight = {habit["weight"]}']
        if habit["kernel"] is None:
            continue
        bursts = max(1, vf["kernels"] // habit["burst"])
        lines += ['arrival = "bursty"', f'work = "{vf["active_gpu_ns"] // bursts}ns"',
                  f'sleep = "{max(1, vf["active_thinking_ns"] // bursts)}ns"']
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
        print(f"{'workload':>22} {'off by':>6}  part of the wall time that each VF had the GPU, real/simulated")
        for name in options.only:
            habits = WORKLOADS[name]
            wall, gpu, vfs = play_real(habits, options.seconds)
            path = directory / f"{name}.toml"
            path.write_text(workload_file(habits, gpu, vfs, options.seconds), encoding="ascii")
            real = [vf["received_ns"] / wall for vf in vfs]
            pairs = list(zip(real, play_simulated(path)))
            off = max(abs(a - b) * 100 for a, b in pairs)
            worst = max(worst, off)
            print(f"{name:>22} {off:>6.1f}  " + " ".join(f"{a:.3f}/{b:.3f}" for a, b in pairs), flush=True)
    print(f"worst: {worst:.1f} points")
    return 0 if worst <= POINTS else 1


process.run_tool("replay_bench", main)
