#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two virtual machines do not notice that vgpud is killed and started again: what runs goes on, what starts waits."""
import contextlib
import signal

import bed
import harness
from harness import check
from vgpuguest import guest
from vgpuguest.program import GuestProgram


VFS = ("in-guest-1", "in-guest-2")


def test():
    with bed.supervised() as vgpud, contextlib.ExitStack() as stack:
        for vf in VFS:
            vgpud.create_kept(vf, vram="512MiB")
        guests = [stack.enter_context(guest.own_guest(vgpud.show(vf), vgpud.runtime_dir)) for vf in VFS]
        for running in guests:
            harness.run_in(running, harness.command("vectoradd"))
        busy = [GuestProgram(running, [*harness.command("meter")[:-1], "8"]) for running in guests]
        endless = [GuestProgram(running, harness.command("endless")) for running in guests]
        for program in endless:
            program.wait_for_line("endless: started", 60)
        for signum in (signal.SIGKILL, signal.SIGKILL, signal.SIGUSR1, signal.SIGKILL):
            vgpud.kill(signum)
            coming = [GuestProgram(running, harness.command("matmul")) for running in guests]
            vgpud.start()
            for vf in VFS:
                check(vgpud.show(vf)["client_connected"], f"the same VM has {vf}")
            for program in coming:
                harness.check_passes(program)
        for program in busy:
            harness.check_passes(program)
        for program in endless:
            check(program.code is None, f"the endless kernel goes on: {program.text()}")
            program.stop()
        for running in guests:
            harness.run_in(running, harness.command("vectoradd"))


harness.main(test)
