#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Random CUDA programs, built by nvcc, give the same on the soft GPU as on the host (tests/random/program.py).

A private vgpud with one soft GPU serves them. The text of a program that fails is kept. Exit status: 0 when all are right.
"""
import argparse
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tools" / "lib"), str(HERE)]
import program  # noqa: E402
from vgpuguest import daemon, direct, process  # noqa: E402

# Exactly what C says on both sides: no multiplication and addition as one.
NVCC_OPTIONS = ["-w", "-std=c++17", "-arch=sm_75", "-fmad=false", "-Xcompiler", "-ffp-contract=off"]
# Optimised, almost not (every function is called, everything is in local memory), in between.
MODES = {"O2": ["-O2"], "debug": ["-G"], "O1": ["-O2", "-Xcicc", "-O1"]}
BUILD_LIMIT_S, RUN_LIMIT_S = 300, 300


def numbers(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def run(nvcc, vf, folder, seed, mode, functions):
    """(whether the program was right, what it said)"""
    source, executable = folder / f"random-{seed}.cu", folder / f"random-{seed}"
    source.write_text(program.program(seed, functions))
    built = subprocess.run([nvcc, *NVCC_OPTIONS, *MODES[mode], str(source), "-o", str(executable)],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_LIMIT_S)
    if built.returncode != 0:
        return False, f"nvcc: {built.stderr.strip()}"
    ended = subprocess.run([str(executable)], env=direct.environment(vf), stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=RUN_LIMIT_S)
    return ended.returncode == 0, (ended.stdout + ended.stderr).strip()


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default="nvcc", help="the CUDA compiler (default: %(default)s)")
    parser.add_argument("--seeds", type=numbers, default=range(1, 3), metavar="FIRST-LAST", help="one program each")
    parser.add_argument("--functions", type=int, default=10, help="in each program (default: %(default)s)")
    parser.add_argument("--mode", action="append", choices=list(MODES), help="how it is built; may be repeated "
                        "(default: all)")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("."), metavar="FOLDER",
                        help="where the text of a program goes that fails (default: here)")
    options = parser.parse_args(arguments)
    failed = 0
    with process.scratch_dir("vgpu-random-") as scratch, daemon.private_daemon([("random", {})]) as vgpud:
        vf = vgpud.show("random")
        for seed in options.seeds:
            for mode in options.mode or MODES:
                right, said = run(options.nvcc, vf, pathlib.Path(scratch), seed, mode, options.functions)
                print(f"{mode}: {said}", flush=True)
                if not right:
                    failed += 1
                    kept = options.keep / f"random-{seed}-{mode}.cu"
                    kept.write_text(program.program(seed, options.functions))
                    print(f"{mode}: seed {seed} failed, its text is in {kept}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.pop("VGPUD_RUNTIME_DIR", None)
    process.run_tool("random", main)
