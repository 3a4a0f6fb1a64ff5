#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own assembler takes what kernels are rewritten to.

usage: ptxas_test.py REWRITE_REPORT FILE.ptx...     exit status 77: this machine has no ptxas
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def find_ptxas():
    homes = [os.environ.get("CUDA_HOME", "/usr/local/cuda"), "/usr/local/cuda"]
    return shutil.which("ptxas", path=os.pathsep.join([*(f"{home}/bin" for home in homes), os.environ.get("PATH", "")]))


def main():
    report, *files = sys.argv[1:]
    ptxas = find_ptxas()
    if ptxas is None:
        print("no ptxas is here")
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        for file in files:
            for options in ([], ["--blocks"]):
                text = subprocess.run([report, *options, "--text", file], check=True, capture_output=True).stdout
                path = pathlib.Path(scratch) / "rewritten.ptx"
                path.write_bytes(text)
                done = subprocess.run([ptxas, "-arch=sm_90", str(path), "-o", "/dev/null"], capture_output=True, text=True)
                if done.returncode != 0 or b"_turn[" not in text:
                    wrong += 1
                    print(f"{file} {options}: {done.stderr or 'nothing was rewritten'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
