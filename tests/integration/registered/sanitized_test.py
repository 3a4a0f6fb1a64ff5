#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that are built with a sanitizer run, and it has nothing to say. usage: sanitized_test.py SANITIZER [PROGRAM]; none: the
compiler has no such sanitizer"""
import sys

import harness
from vgpuguest import daemon
from vgpuguest.program import DirectProgram


def test():
    if len(sys.argv) < 3:
        harness.skip(f"this compiler has no -fsanitize={sys.argv[1]}")
    with daemon.private_daemon([("a", {})]) as vgpud:
        # Its memory is at fixed addresses, where a kernel that places things at random ones may have put something.
        program = DirectProgram(vgpud.show("a"), ["setarch", "--addr-no-randomize", sys.argv[2], "under_sanitizer"])
        harness.check_passes(program, 60)
        harness.check("Sanitizer" not in program.text(), f"nothing is reported: {program.text()}")


harness.main(test, needs_guest=False)
