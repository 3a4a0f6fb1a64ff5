#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps tests/cuda/ptx/*.ptx, the checked-in PTX of the CUDA programs, equal to what nvcc makes of them.

usage: ptx.py update|check NVCC          both over every .cu of this folder
Exit status of check: 0 equal, 1 different, 77 another nvcc release than the PTX was made with (a skipped test).
"""

import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RELEASE = "13.0"


def compile_ptx(nvcc: str, source: pathlib.Path) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "out.ptx"
        subprocess.run([nvcc, "-O2", "-ptx", str(source), "-o", str(out)], check=True)
        text = out.read_text()
    # Names in an anonymous namespace carry a hash of the source's path, which differs from one checkout to the next.
    text = re.sub(r"(_GLOBAL__N__|_INTERNAL_)[0-9a-f]{8}_", r"\g<1>00000000_", text)
    # The leading comment names the exact compiler build.
    return text[text.index(".version"):]


def release_of(nvcc: str) -> str:
    text = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    return re.search(r"release ([0-9.]+)", text).group(1)


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1] not in ("update", "check"):
        print(__doc__, file=sys.stderr)
        return 2
    mode, nvcc = sys.argv[1:]
    release = release_of(nvcc)
    if release != RELEASE:
        print(f"nvcc {release} is here, the PTX is of {RELEASE}: not compared")
        return 77
    different = 0
    for source in sorted(HERE.glob("*.cu")):
        checked_in = HERE / "ptx" / (source.stem + ".ptx")
        fresh = compile_ptx(nvcc, source)
        if mode == "update":
            checked_in.write_text(fresh)
            continue
        old = checked_in.read_text() if checked_in.exists() else ""
        if old != fresh:
            different += 1
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), fresh.splitlines(True),
                                                       str(checked_in.relative_to(HERE)), source.name))
    if different:
        print(f"{different} files differ: run tests/cuda/ptx.py update NVCC")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
