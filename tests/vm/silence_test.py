#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The host of a running guest falls silent, in every way that there is: its programs, one that waits for a kernel without end and
one that is busy, get an error, and the next VF works in the same guest.

Not here: kill -9 of vgpud-vf. QEMU's vfio-user client aborts when its peer is killed with requests unread (error_setv: Assertion
`*errp == NULL'). tests/driver (killed_host) does it with programs that ask for nothing."""
import contextlib
import signal
import time

import harness
from replug import ReplugGuest
from vgpuguest import daemon, process
from vgpuguest.program import GuestProgram

_KILLED = 128 + signal.SIGKILL


# What ends it, and what the guest says of its device afterwards; None: it has none any more.
WAYS = {
    "vgpuctl destroy": (lambda vgpud, _: vgpud.destroy("a"), "dead"),
    "SIGTERM of vgpud": (lambda vgpud, _: vgpud.process.terminate(), "dead"),
    "kill -9 of vgpud": (lambda vgpud, _: vgpud.process.kill(), "dead"),
    "unplug": (lambda _, guest: guest.unplug(), None),
    "reset": (lambda _, guest: guest.shell("echo 1 > /sys/class/vgpu/vgpu0/device/reset"), "running"),
}


def try_way(guest, name):
    end, state = WAYS[name]
    with daemon.private_daemon([("a", {})]) as vgpud:
        guest.plug(vgpud.show("a"))
        programs = [GuestProgram(guest.guest, harness.command("endless")),
                    GuestProgram(guest.guest, [*harness.command("meter")[:-1], "600"])]
        programs[0].wait_for_line("endless: started", 120)
        programs[1].wait_for_line("METER", 120)
        began = time.monotonic()
        end(vgpud, guest)
        for program in programs:
            code = program.wait(60)
            harness.check(code not in (0, _KILLED) and "the kernel ended" not in program.text(),
                          f"{name}: {program.name} ends with an error, {time.monotonic() - began:.1f} s later: {code}\n{program.text()}")
        if state is None:
            return
        guest.waits_for_state(state)
        if state == "running":
            harness.run_in(guest.guest, harness.command("vectoradd"))
        guest.unplug()


def test():
    with process.scratch_dir("vgpu-") as directory, contextlib.closing(ReplugGuest(directory)) as guest:
        for name in WAYS:
            try_way(guest, name)
        with daemon.private_daemon([("a", {})]) as vgpud:
            guest.plug(vgpud.show("a"))
            harness.run_in(guest.guest, harness.command("vectoradd"))


harness.main(test)
