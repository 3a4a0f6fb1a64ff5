#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every bench of bench/ that runs the real chain, as short as it goes: it ends, and prints a row for what was asked. What it measures in
so short a time is nothing."""
import subprocess
import sys
import pathlib

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
# (bench and arguments, how its last row begins)
ROWS = [
    (["calls_bench.py", "--rounds", "1", "--count", "20"], "copy from the GPU 16 MiB "),
    (["felt_bench.py", "--rounds", "1", "--seconds", "0.1", "--neighbours", "1", "--kernels-us", "100", "--beside", "dozing"], "  dozing       100        0          1 "),
    (["wake_bench.py", "--rounds", "1", "--times", "10", "--neighbours", "1", "--sleep-us", "2000"], "    2000          1          1 "),
    (["scale_bench.py", "--seconds", "0.3", "--vfs", "2", "--simulated", "2"], "    2 "),
    (["replay_bench.py", "--seconds", "0.5", "--only", "two-endless", "thinks-long"], "worst: "),
    (["peers.py", "--seconds", "0.3", "--only", "vgpud", "nvidia"], "  nvidia "),
]


def main():
    for argv, last in ROWS:
        done = subprocess.run([sys.executable, BENCH / argv[0], *argv[1:]], capture_output=True, text=True, check=False, timeout=120)
        # replay_bench ends with 1 where the simulator is too far off; half a second says nothing of that.
        fine = done.returncode == 0 or (argv[0] == "replay_bench.py" and done.returncode == 1)
        rows = done.stdout.splitlines()
        if not fine or not rows or not rows[-1].startswith(last):
            print(f"{' '.join(argv)}: ended with {done.returncode}, its last row does not begin with {last!r}\n{done.stdout}{done.stderr}")
            return 1
        print(f"ok: {' '.join(argv)}\n    {rows[-1]}", flush=True)
    return 0


sys.exit(main())
