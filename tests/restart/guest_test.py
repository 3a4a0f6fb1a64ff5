#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A virtual machine does not notice that vgpud is killed and started again: what runs goes on, what starts waits."""
import signal

import bed
import harness
from harness import check
from vgpuguest import guest
from vgpuguest.program import GuestProgram


def test():
    with bed.supervised() as vgpud:
        vgpud.create_kept("in-guest", vram="512MiB")
        vf = vgpud.show("in-guest")
        with guest.own_guest(vf, vgpud.runtime_dir) as running:
            harness.run_in(running, harness.command("vectoradd"))
            busy = GuestProgram(running, [*harness.command("meter")[:-1], "8"])
            endless = GuestProgram(running, harness.command("endless"))
            endless.wait_for_line("endless: started", 60)
            for signum in (signal.SIGKILL, signal.SIGKILL, signal.SIGUSR1, signal.SIGKILL):
                vgpud.kill(signum)
                coming = GuestProgram(running, harness.command("matmul"))
                vgpud.start()
                check(vgpud.show("in-guest")["client_connected"], "the same VM has the VF")
                harness.check_passes(coming)
            harness.check_passes(busy)
            check(endless.code is None, f"the endless kernel goes on: {endless.text()}")
            endless.stop()
            harness.run_in(running, harness.command("vectoradd"))


harness.main(test)
