#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rung "channels" is tried at start: vgpud takes an endless kernel off by the driver's own controls, through a copy of the executor's
control file. The driver and its control device are made up (tests/unit/cuda/fake_driver.cc, tests/unit/channels/rm_server.cc), but the
file, its copies and its ioctls are real ones.

usage: channels_rung_test.py FAKE_DRIVER RM_SERVER
"""
import os
import shutil
import subprocess
import sys

import harness
from vgpuguest import daemon, process

FAKE, SERVER = sys.argv[1:3]
DISABLE, SCHEDULE, PREEMPT = "2080110b", "a06c0101", "a06c0105"
# What the device is told, does the rung work, and words of what vgpud says of it.
DEVICES = (
    ([], True, ["3 times", "disabling its channels"]),
    (["no-disable"], True, ["3 times", "unscheduling its groups"]),
    ([f"refuse={DISABLE}:23"], False, ["disable 8 channels", "INVALID_CLIENT (0x23)"]),
    (["no-disable", f"refuse={PREEMPT}:65"], False, ["preempt the group", "TIMEOUT (0x65)", "hangs"]),
    (["no-disable", f"refuse={SCHEDULE}:1b"], False, ["unschedule the group", "INSUFFICIENT_PERMISSIONS"]),
    ([f"refuse={DISABLE}:f"], False, ["GPU_IS_LOST", "Xid"]),
)


def rung(library):
    with daemon.private_daemon((), ["--gpu", "cuda", "--cuda-library", library]) as vgpud:
        device = vgpud.ctl("gpu")["device"]
        rungs = {row["name"]: row for row in device["rungs"]}
        harness.check(rungs["kill"]["works"] and device["taken_away_by"] == "safepoints" + ("+channels" if rungs["channels"]["works"] else ""),
                      f"the other rungs work beside it: {device}")
        return rungs["channels"]


def on_device(directory, library, told):
    """What vgpud says of the rung on a device that is told so."""
    place = os.path.join(directory, "rm")
    server = subprocess.Popen([SERVER, place, *told], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if server.stdout.readline() != "serves\n":
            harness.skip(f"the model of the device needs a file system of its own: {server.communicate()[1].strip()}")
        return rung(library)
    finally:
        subprocess.run(["umount", "-l", place], stderr=subprocess.DEVNULL, check=False)
        server.kill()
        server.communicate()


def test():
    with process.scratch_dir("vgpu-") as directory:
        os.chmod(directory, 0o755)  # executors are users of their own
        os.mkdir(os.path.join(directory, "rm"))
        library = os.path.join(directory, "libcuda@rm=1@.so")
        shutil.copy(FAKE, library)
        none = rung(FAKE)
        harness.check(not none["works"] and "not seen making channels" in none["what"], f"a driver without channels: {none}")
        for told, works, words in DEVICES:
            row = on_device(directory, library, told)
            harness.check(row["works"] == works and all(word in row["what"] for word in words), f"a device that is told {told}: {row}")


harness.main(test, needs_guest=False)
