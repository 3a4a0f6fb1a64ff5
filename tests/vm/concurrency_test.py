#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two guests at the same time, with two processes at once in one of them."""
import harness
from vgpuguest import daemon, guest, process
from vgpuguest.program import GuestProgram


def test():
    with daemon.private_daemon([("a", {}), ("b", {})]) as vgpud:
        first = guest.start_guest(vgpud.show("a"), vgpud.runtime_dir)
        second = guest.start_guest(vgpud.show("b"), vgpud.runtime_dir)
        try:
            first.wait_until_up()
            second.wait_until_up()
            programs = [GuestProgram(first, harness.command("matmul")), GuestProgram(first, harness.command("meter")),
                        GuestProgram(second, harness.command("vectoradd")), GuestProgram(second, harness.command("meter"))]
            for program in programs:
                harness.check_passes(program)
            _, stats = vgpud.stats()
            for name in ("a", "b"):
                harness.check(stats[name]["received_ns"] > 0, f"VF {name} had the GPU")
        finally:
            process.stop(first.qemu)
            process.stop(second.qemu)


harness.main(test)
