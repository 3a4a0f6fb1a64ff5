#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVML in a guest: the VF's figures and the guest's own addresses, without a channel. usage: nvml_test.py PROBE"""
import re
import sys

import harness
from vgpuguest import daemon, guest
from vgpuguest.program import GuestProgram

PROBE = sys.argv[1]
MEBIBYTE = 1 << 20


def look(running, mode):
    """{name: words behind it} of what the probe prints last."""
    program = GuestProgram(running, [PROBE, mode])
    harness.check_passes(program)
    return {words[0]: words[1:] for words in (line.split() for _, line in program.lines) if words}


def test():
    with daemon.private_daemon([("a", {"vram": "300MiB"})], ["--soft-gpu-capability", "8.9"]) as vgpud:
        vf = vgpud.show("a")
        with guest.own_guest(vf, vgpud.runtime_dir) as running:
            said = look(running, "look")
            code, address = running.shell("basename $(readlink -f /sys/class/vgpu/vgpu0/device)")
            harness.check(code == 0 and re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.0", address.strip()), f"the guest's address: {address}")
            harness.check(said["pci"] == ["0000" + address.strip().upper()], f"NVML says the guest's own address: {said['pci']}, {address}")
            harness.check(said["uuid"] == ["GPU-" + vf["uuid"]], f"the VF's UUID: {said['uuid']}")
            harness.check(said["memory"] == [str(300 * MEBIBYTE), "0", str(300 * MEBIBYTE)], f"its quota, unused: {said['memory']}")
            harness.check(said["capability"] == ["8.9"], "the capability that vgpud was started with")
            harness.check(vgpud.show("a")["events"]["opens"]["count"] == 0, "looking opens no channel")
            look(running, "use")
            busy = GuestProgram(running, harness.command("endless"))
            busy.wait_for_line("endless: started", 60)
            harness.wait_until(lambda: int(look(running, "look")["use"][0]) >= 50, "a program that computes is seen")
            busy.stop()
            code, log = running.shell("dmesg | grep -E 'vgpu.*(warn|refused|lost|waiting)|BUG|Oops|WARNING|Call Trace'")
            harness.check(code == 1, f"the guest kernel has nothing to complain about: {log}")


harness.main(test)
