#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A guest with two VFs: devices keep their numbers when one of them can't be used, the program is told why, and nothing is taken of a VF
that it does not use. usage: devices_test.py PROGRAM"""
import json
import sys

import harness
from vgpuguest import daemon, guest
from vgpuguest.program import GuestProgram

UNAVAILABLE = 46
VFS = ("a", "b")


def probe(running, *ordinals, **options):
    """What the program says: {what: value}, and all its lines."""
    program = GuestProgram(running, [sys.argv[1], *map(str, ordinals)], **options)
    harness.check_passes(program, 60)
    lines = [line for _, line in program.lines]
    return lines, dict(line.split(": ", 1) for line in lines if ": " in line)


def check_says(lines, *words):
    harness.check(any(all(word in line for word in words) for line in lines), f"a line says {words}: {lines}")


def numbers(running):
    lines, said = probe(running)
    harness.check(said["devices"] == "2", f"two devices: {lines}")
    harness.check("channels: 0 0" in lines, f"who counts devices takes no channel: {lines}")
    first, second = said["device 0"], said["device 1"]
    lines, said = probe(running, 1)
    harness.check(said["context on 1"] == "0" and lines[-1] == "channels: 0 1", f"a context costs a channel of its own device: {lines}")
    # A device that the user may not open.
    running.shell("chmod 600 /dev/vgpu0")
    lines, said = probe(running, 1, 0)
    harness.check(said["devices"] == "2" and said["device 1"] == second, f"the other keeps its number: {lines}")
    harness.check(said["context on 1"] == "0" and said["context on 0"] == str(UNAVAILABLE), f"and works: {lines}")
    check_says(lines, "vgpud: device 0", "/dev/vgpu0: Permission denied", "CUDA_VISIBLE_DEVICES")
    lines, said = probe(running, 0, environment={"CUDA_VISIBLE_DEVICES": "1"})
    harness.check(said["devices"] == "1" and said["device 0"] == second and said["context on 0"] == "0", f"it can be left out: {lines}")
    running.shell("chmod 666 /dev/vgpu0; echo 0 > /sys/module/vgpu/parameters/user_channels")
    lines, said = probe(running, 0)
    harness.check(said["devices"] == "2" and said["device 0"] == first, f"no channel is to be had: {lines}")
    harness.check(said["context on 0"] == str(UNAVAILABLE), f"so there is no context: {lines}")
    check_says(lines, "vgpud: device 0", "/dev/vgpu0", "Too many open files")
    # None at all.
    running.shell("chmod 600 /dev/vgpu*")
    lines, said = probe(running)
    harness.check(said["cuInit"] == "100", f"no device is left: {lines}")
    check_says(lines, "vgpud: no virtual GPU", "/dev/vgpu0: Permission denied")


def test():
    with daemon.private_daemon([(name, {}) for name in VFS]) as vgpud:
        other = {"driver": "vfio-user-pci", "bus": "pcie.0", "addr": "0xa",
                 "socket": {"type": "unix", "path": vgpud.show("b")["vfio_user_socket"]}}
        machine = guest.Machine(devices=("-device", json.dumps(other)))
        with guest.own_guest(vgpud.show("a"), vgpud.runtime_dir, machine=machine) as running:
            running.shell("chmod 666 /dev/vgpu*")
            numbers(running)


harness.main(test)
