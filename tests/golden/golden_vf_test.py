#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The golden tests through the whole chain: driver API, channel, executor, soft GPU. All are right there; of a driver that is
wrong on purpose (wrong_driver.cc) exactly what it does wrong is found.

usage: golden_vf_test.py DIRECTORY WRONG_DRIVER     DIRECTORY: of golden_cuda and the golden files
"""
import glob
import json
import os
import subprocess
import sys

import harness
from vgpuguest import daemon, direct, paths, process

BUILD, WRONG_DRIVER = sys.argv[1:3]
# What the wrong driver is told, the exit status of golden_cuda, and {form: what} of its list.
WRONG = {
    "values=add.rz.f32": (1, {"add.rz.f32": "wrong"}),
    "refuses=sub.rn.f32": (1, {"sub.rn.f32": "refused"}),
    "values=add.rz.f32 refuses=mul.rz.f32": (1, {"add.rz.f32": "wrong", "mul.rz.f32": "refused"}),
    "faults=add.rm.f32": (3, {"add.rm.f32": "fault"}),
}


def golden(vf, arguments, told=None, seconds=300):
    """(exit status, what it said, its JSON)."""
    with process.scratch_dir("vgpu-") as directory:
        listed = os.path.join(directory, "golden.json")
        environment = direct.environment(vf)
        if told is not None:
            environment["WRONG_DRIVER"] = told
        ended = subprocess.run([os.path.join(BUILD, "golden_cuda"), "--json", listed, *arguments], env=environment,
                               stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
        harness.check(os.path.exists(listed), f"there is a list: {ended.returncode} {ended.stdout[-1000:]} {ended.stderr[-1000:]}")
        with open(listed, encoding="utf-8") as file:
            return ended.returncode, ended.stdout + ended.stderr, json.load(file)


def test():
    files = sorted(glob.glob(os.path.join(BUILD, "*.golden")))
    harness.check(files, f"golden files in {BUILD}")
    # Some forms need the highest compute capability that there is.
    with daemon.private_daemon([("a", {})], ["--soft-gpu-capability", "12.1"]) as vgpud:
        a = vgpud.show("a")
        status, said, found = golden(a, ["--all", "--library", str(paths.SHIM), "--jobs", "2", *files])
        harness.check(status == 0 and not found["differences"], f"all are right: {said[-400:]}")
        harness.check(found["counts"]["right"] > 5000 and "not run" not in found["counts"], f"all have run: {found['counts']}")
        some = [os.path.join(BUILD, "float.golden")]
        for told, (expected, forms) in WRONG.items():
            status, said, found = golden(a, ["--library", WRONG_DRIVER, *some], told)
            listed = {row["form"]: row["what"] for row in found["differences"]}
            harness.check((status, listed) == (expected, forms), f"{told}: {forms} and nothing else ({status}): {said[-400:]}")
            harness.check(all(form in said for form in forms), "in words, too")
            if "faults" in told:
                harness.check(found["counts"]["not run"] > 0, f"and it says that others have not run: {found['counts']}")


harness.main(test, needs_guest=False)
