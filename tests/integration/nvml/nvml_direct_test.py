#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVML's figures of a VF without a virtual machine are vgpud's, and looking costs no channel. usage: nvml_direct_test.py PROBE"""
import os
import subprocess
import sys

import harness
from vgpuguest import daemon, direct
from vgpuguest.program import DirectProgram

PROBE = sys.argv[1]
MEBIBYTE = 1 << 20


def look(vf, mode="look"):
    """{name: words behind it} of what the probe prints last."""
    done = subprocess.run([PROBE, mode], env=direct.environment(vf), capture_output=True, text=True, timeout=60)
    harness.check(done.returncode == 0, f"nvml_probe {mode} of {vf['name']}: {done.stdout}{done.stderr}")
    return {words[0]: words[1:] for words in (line.split() for line in done.stdout.splitlines())}


def test():
    arguments = ["--soft-gpu-capability", "8.9"]
    with daemon.private_daemon([("a", {"vram": "300MiB"}), ("b", {"vram": "700MiB"})], arguments) as vgpud:
        for name, mebibytes in (("a", 300), ("b", 700)):
            vf = vgpud.show(name)
            said = look(vf)
            harness.check(said["devices"] == ["1"] and said["name"] == ["vgpud", "soft", "GPU"], f"one device by its name: {said}")
            harness.check(said["uuid"] == ["GPU-" + vf["uuid"]], f"the VF's UUID: {said['uuid']}, {vf['uuid']}")
            harness.check(said["memory"] == [str(mebibytes * MEBIBYTE), "0", str(mebibytes * MEBIBYTE)], f"its quota, unused: {said['memory']}")
            harness.check(said["capability"] == ["8.9"], "the capability that vgpud was started with")
            harness.check(said["use"] == ["0"] and "process" not in said, "nobody has used it")
            harness.check(vgpud.show(name)["events"]["opens"]["count"] == 0, "looking opens no channel")
        both = ",".join(vgpud.show(name)["channel_socket"] for name in ("a", "b"))
        folder = os.path.dirname(vgpud.show("a")["channel_socket"])
        addresses = set()
        for channel in (both, folder):
            said = look({"name": channel, "channel_socket": channel}, "agree")
            harness.check(said["devices"] == ["2"], f"each of several VFs is a device: {said}")
            addresses.add((said["bus0"][0], said["bus1"][0]))
        (pair,) = addresses
        harness.check(pair[0] != pair[1], f"each has a bus id of its own: {pair}")
        (alone,) = look(vgpud.show("b"), "agree")["bus0"]
        harness.check(alone == pair[1], f"the same whatever other devices a program has: {alone}, {pair}")
        look(vgpud.show("a"), "use")
        busy = DirectProgram(vgpud.show("a"), harness.command("endless"))
        busy.wait_for_line("endless: started", 30)
        harness.wait_until(lambda: int(look(vgpud.show("a"))["use"][0]) >= 90, "who computes alone has all of the GPU")
        harness.check(look(vgpud.show("a"))["process"][0] == str(busy.pid), "its process is listed")
        neighbour = look(vgpud.show("b"))
        harness.check(neighbour["use"] == ["0"] and "process" not in neighbour and neighbour["memory"][1] == "0",
                      f"its neighbour sees nothing of it: {neighbour}")
        busy.stop()
        harness.wait_until(lambda: look(vgpud.show("a"))["use"] == ["0"], "and nothing a second later")


harness.main(test, needs_guest=False)
