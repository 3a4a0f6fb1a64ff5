#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of a program in the guest, of an executor, and of QEMU: nobody else notices, and the VF works for the next."""
import os
import signal

import harness
from vgpuguest import daemon, guest
from vgpuguest.program import GuestProgram


def program_dies(vgpud, running):
    endless = GuestProgram(running, harness.command("endless"))
    endless.wait_for_line("endless: started", 60)
    code, _ = running.shell("killall -9 $(basename $(ls -d /opt/vgpu/bin-*/endless /opt/vgpu/bin-*/vgpu-launch | head -n 1))")
    harness.check(code == 0, "the program got kill -9")
    harness.check(endless.wait(30) == 128 + signal.SIGKILL, "its exit code says so")
    harness.wait_until(lambda: vgpud.show("a")["executors"] == 0, "its executor is gone")
    harness.wait_until(lambda: vgpud.show("a")["vram_used_bytes"] == 0, "its device memory is free again")
    harness.run_in(running, harness.command("vectoradd"))


def executor_dies(vgpud, running):
    victim = GuestProgram(running, harness.command("endless"))
    victim.wait_for_line("endless: started", 60)
    executors = harness.children_of(vgpud.process.pid, "vgpud-exec")
    harness.check(len(executors) == 1, f"one executor runs: {executors}")
    bystander = GuestProgram(running, [*harness.command("meter")[:-1], "4"])
    bystander.wait_for_line("METER", 60)
    os.kill(executors[0], signal.SIGKILL)
    code = victim.wait(60)
    harness.check(code not in (0, 128 + signal.SIGKILL), f"its program sees a CUDA error: {code}\n{victim.text()}")
    harness.check_passes(bystander)
    harness.run_in(running, harness.command("vectoradd"))


def qemu_dies(vgpud):
    with guest.own_guest(vgpud.show("a"), vgpud.runtime_dir) as running:
        endless = GuestProgram(running, harness.command("endless"))
        endless.wait_for_line("endless: started", 60)
        running.qemu.kill()
        running.qemu.wait()
        harness.wait_until(lambda: not vgpud.show("a")["client_connected"], "the VF knows that its client is gone")
        harness.wait_until(lambda: vgpud.show("a")["executors"] == 0, "the executors of that guest are gone")
        harness.wait_until(lambda: vgpud.show("a")["vram_used_bytes"] == 0, "the VF's memory is free again")
    with guest.own_guest(vgpud.show("a"), vgpud.runtime_dir) as running:
        harness.run_in(running, harness.command("vectoradd"))


def test():
    with daemon.private_daemon([("a", {})]) as vgpud:
        with guest.own_guest(vgpud.show("a"), vgpud.runtime_dir) as running:
            program_dies(vgpud, running)
            executor_dies(vgpud, running)
        qemu_dies(vgpud)


harness.main(test)
