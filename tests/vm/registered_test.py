#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a program in a guest may do with registered memory: its pages are pinned, and stay what they are. usage:
registered_test.py PROGRAM SUITE"""
import sys

import harness
from vgpuguest import daemon, guest
from vgpuguest.program import GuestProgram

PARTS = ("pinned", "unpinned", "too_much", "children", "signals", "no_threads", "no_signals", "advice")


def test():
    with daemon.private_daemon([("a", {})]) as vgpud:
        with guest.own_guest(vgpud.show("a"), vgpud.runtime_dir, suite=sys.argv[2]) as running:
            for part in PARTS:
                harness.check_passes(GuestProgram(running, [sys.argv[1], part]), 120)
            code, log = running.shell("dmesg | grep -E 'vgpu.*(warn|refused|lost|waiting)|BUG|Oops|WARNING|Call Trace'")
            harness.check(code == 1, f"the guest kernel has nothing to complain about: {log}")
            code, log = running.shell("cat /sys/class/vgpu/vgpu0/pinned_bytes")
            harness.check(log.strip() == "0", f"nothing is pinned any more: {log}")


harness.main(test)
