#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs on a libcuda.so.1 in which threads check the order in which they take mutexes, and what they hold when they
wait, call the program or return to it (base/locks/mutex.h): a process that breaks a rule ends with a sentence.

usage: checked_locks_test.py DIR_OF_THE_LIBRARY API_TEST
"""
import os
import pathlib
import subprocess
import sys

import harness
from vgpuguest import daemon, direct, paths

SENTENCE = "order of locks: a thread"
CHECKED = pathlib.Path(sys.argv[1])
API_TEST = sys.argv[2]
PROGRAMS = ["vgpu-launch vectoradd", "managed", "registered", "streamvalues", "virtualmemory", "texture", "transfers"]
FLOOD = ["--times", "300", "--streams", "250"]


def run(name, argv, env):
    result = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False)
    said = [line for line in (result.stdout + result.stderr).splitlines() if SENTENCE in line]
    harness.check(not said, f"{name}: {said}")
    harness.check(result.returncode == 0, f"{name}: {result.returncode}: {result.stdout[-2000:]}{result.stderr[-2000:]}")


def the_library_alone():
    """All calls that the tests of the API make, on a host that they play themselves."""
    run("the API's tests", [API_TEST, "--gtest_brief=1"], dict(os.environ))


def programs_on_a_vf():
    with daemon.private_daemon([("a", {"vram": "1GiB"})]) as vgpud:
        env = direct.environment(vgpud.show("a"))
        env["LD_LIBRARY_PATH"] = f"{CHECKED}:{env['LD_LIBRARY_PATH']}"
        for name, argv in harness.available().items():
            if name in PROGRAMS:
                run(name, argv, env)
        flood = paths.BUILD / "tests" / "cuda" / "flood"
        if flood.exists():
            run("flood", [str(flood), *FLOOD], env)


def main():
    the_library_alone()
    programs_on_a_vf()


if __name__ == "__main__":
    harness.main(main, needs_guest=False)
