#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_probe's experiments with the driver's own controls, on a device that is made up (tests/unit/channels/rm_server.cc): its file, the copy of
its descriptor and its ioctls are real ones. What they must see there is known.

usage: probe_test.py GPU_PROBE PROBE_DRIVER RM_SERVER
"""
import json
import os
import subprocess
import sys

import harness
from vgpuguest import process

PROBE, DRIVER, SERVER = sys.argv[1:4]


def probe(directory, told, only=None):
    """{id: row}"""
    place = os.path.join(directory, "rm")
    os.makedirs(place, exist_ok=True)
    # Without a version of the driver to be read, the oldest one is taken to be there.
    server = subprocess.Popen([SERVER, place, "schedule=2", *told], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
    try:
        if server.stdout.readline() != "serves\n":
            harness.skip(f"the model of the device needs a file system of its own: {server.communicate()[1].strip()}")
        environment = dict(os.environ, GPU_CHECK_LIBRARY=DRIVER, GPU_CHECK_CONTROL_DEVICE=os.path.join(place, "nvidiactl"))
        ended = subprocess.run([PROBE, "--seconds", "0.4", *(["--only", only] if only else [])], env=environment, capture_output=True, text=True,
                               timeout=120, stdin=subprocess.DEVNULL)
        harness.check(ended.returncode == 0, f"it ends well: {ended.returncode} {ended.stdout[-500:]} {ended.stderr[-500:]}")
        return {row["id"]: row for row in map(json.loads, ended.stdout.splitlines())}
    finally:
        subprocess.run(["umount", "-l", place], stderr=subprocess.DEVNULL, check=False)
        server.kill()
        server.communicate()


def stopped(row, prefix=""):
    figures = row["figures"]
    return figures[prefix + "rounds"] == 30 and figures[prefix + "frozen"] == 30 and figures[prefix + "resumed"] == 30


def check_all(rows):
    for name in ("E1", "E2", "E3", "E9", "E10", "E14"):
        harness.check(rows[name]["verdict"] == "pass", f"{name} passes: {rows[name]}")
    harness.check(rows["E1"]["figures"]["channels"] == 8 and rows["E1"]["figures"]["timeslice_us"] == 1024, f"what it finds: {rows['E1']}")
    for name in ("E4", "E5", "E6"):
        harness.check(stopped(rows[name]), f"{name} stops a kernel and lets it go on: {rows[name]}")
    harness.check(rows["E5"]["figures"]["cross_client_status"] == 0x23, f"another client may not: {rows['E5']}")
    harness.check(rows["E6"]["figures"]["alone_frozen"] == 0, f"unscheduling alone stops nothing on this device: {rows['E6']}")
    harness.check(rows["E10"]["figures"]["stops"] > 0 and rows["E14"]["figures"]["stops"] > 0, "there was something to be stopped")
    for name in ("E8", "E11"):  # how even they are is a matter of this host
        turns = {key: value for key, value in rows[name]["figures"].items() if key.startswith("turns")}
        harness.check(turns and min(turns.values()) > 5 and "ok" in rows[name]["said"], f"{name} has turns: {rows[name]}")
    harness.check(rows["E7"]["said"].count("ok") == 6, f"timeslices are set: {rows['E7']}")


def test():
    with process.scratch_dir("vgpu-") as directory:
        check_all(probe(directory, []))
        refused = probe(directory, ["no-disable"], "E4,E8")
        harness.check(refused["E4"]["verdict"] == "fail" and "NOT_SUPPORTED (0x56)" in refused["E4"]["said"], f"a refusal is said: {refused['E4']}")
        harness.check("unscheduling its groups" in refused["E8"]["said"], f"turns are given the other way: {refused['E8']}")


harness.main(test, needs_guest=False)
