#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/run-direct --check and --profile: what docs/check-mode.md shows, silence about sound programs, the table of forms."""
import os
import re
import subprocess
import sys

import harness
from vgpuguest import paths

TOOL = str(paths.REPO / "tools" / "run-direct")
PROGRAM = os.environ["FAULT_PROGRAM"]


def run(*arguments):
    return subprocess.run([TOOL, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def shape(text):
    """A report with what differs from run to run taken out."""
    return re.sub(r"0x[0-9a-f]+", "ADDRESS", text)


def documented(name):
    """The lines behind `$ tools/run-direct --check ./NAME` on the page."""
    page = (paths.REPO / "docs" / "check-mode.md").read_text(encoding="utf-8")
    session = re.search(rf"^\$ tools/run-direct --check -- \./fault_program {name}\n(.*?)^(?=\$|```)", page, re.M | re.S)
    harness.check(session, f"the page shows {name}")
    return session.group(1)


def check_source_lines(program):
    source = paths.REPO / "tests" / "cuda" / "parts" / "lineinfo.cu"
    line = 1 + [("// OVERRUN" in text) for text in source.read_text(encoding="utf-8").splitlines()].index(True)
    checked = run("--check", "--", program)
    place = rf"check: kernel \w*Overrun\w*, \S*lineinfo.cu:{line}, PTX line \d+, block \(1,0,0\), thread \(0,0,0\): store"
    harness.check(checked.returncode == 86 and re.search(place, checked.stderr), f"{place!r} in {checked}")


def check_profile():
    """What a program's kernels executed is told when its context has ended."""
    argv = harness.available()["vgpu-launch vectoradd"]
    profiled = run("--profile", "--", *argv)
    harness.check(profiled.returncode == 0, f"the program runs as without: {profiled}")
    rows = re.findall(r"^(\S+) +\d+\.\d+ +([\d,]+) +\d+\.\d+ +\d+\.\d+$", profiled.stderr, re.M)
    executed = {form: int(count.replace(",", "")) for form, count in rows}
    total = re.search(r"^\d+ forms, ([\d,]+) warp instructions", profiled.stderr, re.M)
    harness.check(executed.get("add.f32", executed.get("add.rn.f32", 0)) > 0, f"additions: {profiled.stderr}")
    harness.check(total and int(total[1].replace(",", "")) == sum(executed.values()), f"the sum: {profiled.stderr}")
    both = run("--check", "--profile", "--", *argv)
    harness.check(both.returncode == 0 and "the check has no reports" in both.stderr and "add" in both.stderr, f"both at once: {both}")


def test():
    check_profile()
    for program in sys.argv[1:]:
        check_source_lines(program)
    for name in ("overrun", "unwritten"):
        plain = run("--", PROGRAM, name)
        harness.check(plain.returncode == 0 and "check" not in plain.stderr, f"{name} without the check: {plain}")
        checked = run("--check", "--", PROGRAM, name)
        harness.check(checked.returncode == 86, f"{name} with the check: {checked}")
        output = shape(checked.stdout + checked.stderr)
        for line in shape(documented(name)).splitlines():
            harness.check(line in output, f"{name}: {line!r} in {output!r}")
    for name, argv in harness.available().items():
        if name in ("endless", "meter"):
            continue
        clean = run("--check", "--", *argv)
        harness.check(clean.returncode == 0 and "the check has no reports" in clean.stderr, f"{name}: {clean}")
    for mode in ("--check", "--profile"):
        refused = run(mode, "--runtime-dir", "/nonexistent", "--", PROGRAM, "none")
        harness.check(refused.returncode == 1 and "needs a vgpud of its own" in refused.stderr, f"a named daemon: {refused}")


harness.main(test, needs_guest=False)
