#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every CUDA program passes in a guest of the kernel named, as an ordinary user. usage: programs_test.py SUITE"""
import sys

import harness
from vgpuguest import daemon, guest


def test():
    with daemon.private_daemon([("a", {})]) as vgpud:
        with guest.own_guest(vgpud.show("a"), vgpud.runtime_dir, suite=sys.argv[1]) as running:
            for argv in harness.available().values():
                harness.run_in(running, argv)
            code, log = running.shell("dmesg | grep -E 'vgpu.*(warn|refused|lost|waiting)|BUG|Oops|WARNING|Call Trace'")
            harness.check(code == 1, f"the guest kernel has nothing to complain about: {log}")


harness.main(test)
