#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a program without a VM may do with registered memory. usage: registered_direct_test.py PROGRAM"""
import sys

import harness
from vgpuguest import daemon
from vgpuguest.program import DirectProgram

PARTS = ("children", "signals", "no_threads", "no_signals", "advice", "first_thread_ended")


def test():
    with daemon.private_daemon([("a", {})]) as vgpud:
        for part in PARTS:
            harness.check_passes(DirectProgram(vgpud.show("a"), [sys.argv[1], part]), 60)


harness.main(test, needs_guest=False)
