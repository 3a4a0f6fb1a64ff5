#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills programs whose descriptors another process has, and ends VFs under a busy guest: what they had is given back, waiting programs
are told, and nothing is left behind (memory, executors, processes, descriptors). Says how long it took at worst.

usage: silences.py [--programs N] [--vfs N] [--seed N]    1000 and 300
"""
import argparse
import collections
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

import bed
import counted

sys.path[1:1] = [str(bed.REPO / "tests" / "vm"), str(bed.REPO / "tests" / "driver")]

import harness  # noqa: E402
from replug import ReplugGuest  # noqa: E402
from reports import Console  # noqa: E402
from vgpuguest import daemon, direct, process  # noqa: E402
from vgpuguest.paths import ToolError  # noqa: E402
from vgpuguest.program import GuestProgram  # noqa: E402

PARENT = str(pathlib.Path(__file__).with_name("parent.py"))
WAYS = ("fork", "files", "message")
DIRECT = ("direct-0", "direct-1")
IN_VM = "in-vm"
PATIENCE_S = 60
SAY_EVERY = 50


def is_empty(vgpud, vf):
    shown = vgpud.request("GET", f"/v1/vfs/{vf}")
    return shown["executors"] == 0 and shown["vram_used_bytes"] == 0


def server_of(vf):
    (server,) = [pid for pid, words in bed.processes() if words[0] == "vgpud-vf" and vf in words]
    return server


def kill_a_program(vgpud, vf, way, chance):
    """How long its memory and its executor were there after it, in seconds."""
    program = direct.start(vgpud.show(vf), [*direct.python(), PARENT, way], stdout=subprocess.PIPE, text=True)
    line = program.stdout.readline().split()
    if line[:1] != ["holder"]:
        raise AssertionError(f"the program says {line} and ends with {program.wait(10)}")
    try:
        time.sleep(chance.uniform(0, 0.03))  # at any moment; which one decides nothing
        program.kill()
        program.wait()
        began = time.monotonic()
        bed.wait_until(lambda: is_empty(vgpud, vf), f"{vf} is empty although the other process lives ({way})", PATIENCE_S)
        return time.monotonic() - began
    finally:
        program.kill()
        os.kill(int(line[1]), signal.SIGKILL)
        program.stdout.close()


def kill_programs(vgpud, count, seed):
    """The longest wait."""
    waits, problems = [], []

    def run(vf):
        chance = random.Random(f"{seed} {vf}")
        try:
            for number in range(count // len(DIRECT)):
                waits.append(kill_a_program(vgpud, vf, WAYS[number % len(WAYS)], chance))
                if len(waits) % SAY_EVERY == 0:
                    print(f"{len(waits)} programs killed, {max(waits):.2f} s at worst", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            problems.append(f"{vf} after {len(waits)} kills: {error!r}")

    threads = [threading.Thread(target=run, args=[vf]) for vf in DIRECT]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    harness.check(not problems, f"each program's memory and executor go with it: {problems}")
    return len(waits), max(waits, default=0)


def end_a_vf(vgpud, guest, chance):
    """How it was ended, and how long each program in the guest waited for what had gone, in seconds."""
    vgpud.create(IN_VM, vram="128MiB")
    guest.plug(vgpud.show(IN_VM))
    by_kill = chance.random() < 0.5
    programs = [GuestProgram(guest.guest, harness.command("endless"))]
    programs[0].wait_for_line("endless: started", 300)
    if not by_kill:  # QEMU aborts when its peer is killed with requests unread: tests/vm/silence_test.py
        programs.append(GuestProgram(guest.guest, [*harness.command("meter")[:-1], "3600"]))
        programs[1].wait_for_line("METER", 300)
    time.sleep(1 if by_kill else chance.uniform(0, 0.3))
    began = time.monotonic()
    if by_kill:
        os.kill(server_of(IN_VM), signal.SIGKILL)
    else:
        vgpud.destroy(IN_VM)
    waited = {"the request": time.monotonic() - began}
    for program in programs:
        code = program.wait(PATIENCE_S)
        if code in (0, 128 + signal.SIGKILL):
            raise AssertionError(f"{program.name} ends with {code}\n{program.text()}")
        waited[program.name] = time.monotonic() - began
    guest.waits_for_state("dead")
    if by_kill:
        bed.wait_until(lambda: vgpud.request("GET", f"/v1/vfs/{IN_VM}")["state"] == "failed" and is_empty(vgpud, IN_VM),
                       "the VF has failed and nothing is in use", PATIENCE_S)
        vgpud.destroy(IN_VM)
    guest.unplug()
    return "killed" if by_kill else "destroyed", waited


def end_vfs(vgpud, guest, count, seed):
    """By how a VF ended and who waited: how long; and how often QEMU did not survive it (docs/restart.md)."""
    chance, waits, ended, aborts = random.Random(f"{seed} vfs"), collections.defaultdict(list), 0, 0
    console = None
    while ended + aborts < count:
        try:
            way, waited = end_a_vf(vgpud, guest, chance)
            ended += 1
            for who, seconds in waited.items():
                waits[way, who.rpartition("/")[2]].append(seconds)
        except ToolError:
            if guest.guest.qemu.wait(PATIENCE_S) != -signal.SIGABRT:
                raise
            aborts += 1
            guest.guest = console = None  # the next one boots
            bed.wait_until(lambda: is_empty(vgpud, IN_VM), "nothing is in use after QEMU's end", PATIENCE_S)
            vgpud.destroy(IN_VM)
            continue
        console = console or Console(guest.guest.console)
        if reports := console.reports():
            raise AssertionError(f"the guest's kernel reports {reports[0]}")
        if ended % 10 == 0:
            print(f"{ended} VFs ended; QEMU aborted {aborts} times", flush=True)
    return ended, waits, aborts


def say_waits(waits):
    for (way, who), seconds in sorted(waits.items()):
        seconds.sort()
        print(f"  {way:<10} {who:<28} {len(seconds):>4} times: median {seconds[len(seconds) // 2]:.2f} s, "
              f"p90 {seconds[len(seconds) * 9 // 10]:.2f} s, at most {seconds[-1]:.2f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--vfs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20261127)
    options = parser.parse_args()
    vfs = [(vf, {"vram": "128MiB"}) for vf in DIRECT]
    with contextlib.ExitStack() as stack:
        vgpud = stack.enter_context(daemon.private_daemon(vfs, ["--event-budget", "opens=0"]))
        guest = stack.enter_context(contextlib.closing(ReplugGuest(stack.enter_context(process.scratch_dir("vgpu-")))))
        for vf in DIRECT:
            kill_a_program(vgpud, vf, WAYS[0], random.Random(0))  # what comes once is there from now on
        if options.vfs:
            end_a_vf(vgpud, guest, random.Random(0))
        time.sleep(1)
        before, files = counted.counts(vgpud), {vf: bed.open_files(server_of(vf)) for vf in DIRECT}
        killed, slowest = kill_programs(vgpud, options.programs, options.seed)
        print(f"{killed} programs killed: their memory and executors were gone after {slowest:.2f} s at worst", flush=True)
        bed.wait_until(lambda: files == {vf: bed.open_files(server_of(vf)) for vf in DIRECT}, f"each vgpud-vf has as many descriptors: {files}", 30)
        ended, waits, aborts = end_vfs(vgpud, guest, options.vfs, options.seed)
        print(f"{ended} VFs ended under a busy guest; QEMU aborted {aborts} times more. From the end of a VF to the end of")
        say_waits(waits)
        counted.check_the_same(vgpud, before)
        print("PASS: nothing is left behind")


if __name__ == "__main__":
    main()
