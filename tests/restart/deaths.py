#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills executors and virtual machines at random moments: each program sees an error, nobody else notices, the VF works for the next,
and nothing is left behind (what counted.py counts, and each VF's memory and executors).

usage: deaths.py [--executors N] [--guests N] [--seed N]    1000 and 300; every 25th guest boots and runs a program first
"""
import argparse
import os
import pathlib
import random
import signal
import sys
import threading
import time
import traceback

import bed
import counted

sys.path.insert(0, str(bed.REPO / "tests" / "vm"))

import harness  # noqa: E402
from vgpuguest import daemon, guest, process  # noqa: E402
from vgpuguest.program import DirectProgram, GuestProgram  # noqa: E402

AT_ONCE = 2
BOOTED_EVERY = 25
EXECUTORS = [f"exec-{number}" for number in range(AT_ONCE)]
GUESTS = [f"guest-{number}" for number in range(AT_ONCE)]
BYSTANDER = "bystander"


def is_empty(vgpud, vf):
    shown = vgpud.show(vf)
    return shown["executors"] == 0 and shown["vram_used_bytes"] == 0 and not shown["client_connected"]


def kill_an_executor(vgpud, vf, chance):
    worker = bed.Worker(vgpud.show(vf))
    worker.wait_until_it_works()
    time.sleep(chance.uniform(0, 0.03))  # at any moment; which one decides nothing
    (executor,) = [pid for pid in bed.of_vfs(vf) if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"vgpud-exec")]
    os.kill(executor, signal.SIGKILL)
    out = worker.child.stdout.read()
    code = worker.child.wait(60)
    if code != 1 or ": error " not in out:
        raise AssertionError(f"{vf}: the program of a killed executor ends with {code}: {out!r}")
    bed.wait_until(lambda: is_empty(vgpud, vf), f"{vf} is empty again", 30)


def kill_a_guest(vgpud, vf, chance, booted):
    machine = guest.start_guest(vgpud.show(vf), vgpud.runtime_dir, memory_mib=256)
    program = None
    try:
        bed.wait_until(lambda: vgpud.show(vf)["client_connected"], f"QEMU has {vf}", 60)
        if booted:
            machine.wait_until_up(600)
            program = GuestProgram(machine, harness.command("endless"))
            program.wait_for_line("endless: started", 300)
        time.sleep(chance.uniform(0, 0.5 if booted else 4))  # at any moment
        machine.qemu.kill()
        machine.qemu.wait()
        bed.wait_until(lambda: is_empty(vgpud, vf), f"{vf} is empty again", 60)
    finally:
        process.stop(machine.qemu)
    del program


class Killers:
    """Do one thing so many times on each VF, all VFs at once."""

    def __init__(self, vfs, count, seed, kill):
        self.done, self.problems = 0, []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._run, args=[vf, count // len(vfs), random.Random(f"{seed} {vf}"), kill]) for vf in vfs]
        for thread in self.threads:
            thread.start()

    def _run(self, vf, count, chance, kill):
        try:
            for number in range(count):
                kill(vf, chance, number)
                with self.lock:
                    self.done += 1
        except Exception as error:  # pylint: disable=broad-except
            self.problems.append(f"{vf} after {self.done} kills: {error!r}\n{''.join(traceback.format_tb(error.__traceback__))}")

    def finish(self, what):
        for thread in self.threads:
            thread.join()
        harness.check(not self.problems, f"{what}: {self.problems}")
        return self.done


def kill_all(vgpud, options):
    begun = time.monotonic()
    done = Killers(EXECUTORS, options.executors, options.seed, lambda vf, chance, _: kill_an_executor(vgpud, vf, chance)).finish("executors")
    print(f"{done} executors killed in {time.monotonic() - begun:.0f} s: each program saw an error", flush=True)
    begun = time.monotonic()
    done = Killers(GUESTS, options.guests, options.seed,
                   lambda vf, chance, number: kill_a_guest(vgpud, vf, chance, number % BOOTED_EVERY == 0)).finish("guests")
    print(f"{done} guests killed in {time.monotonic() - begun:.0f} s, {AT_ONCE * -(-options.guests // AT_ONCE // BOOTED_EVERY)} of them with "
          "a program that never ends", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executors", type=int, default=1000)
    parser.add_argument("--guests", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20261125)
    options = parser.parse_args()
    vfs = [(vf, {"vram": "128MiB"}) for vf in (*EXECUTORS, *GUESTS, BYSTANDER)]
    with daemon.private_daemon(vfs, ["--event-budget", "opens=0"]) as vgpud:
        for vf in EXECUTORS:
            kill_an_executor(vgpud, vf, random.Random(0))  # what comes once is there from now on
        for vf in GUESTS:
            kill_a_guest(vgpud, vf, random.Random(0), False)
        harness.run_direct(vgpud.show(BYSTANDER), harness.command("vectoradd"))
        bed.wait_until(lambda: is_empty(vgpud, BYSTANDER), "the first program is gone")
        time.sleep(1)
        before = counted.counts(vgpud)
        bystander = bed.Worker(vgpud.show(BYSTANDER))
        bystander.wait_until_it_works()
        kill_all(vgpud, options)
        code, said = bystander.finish()
        harness.check(code == 0, f"the neighbour notices nothing: {code} {said}")
        for vf in (*EXECUTORS, *GUESTS):
            harness.check_passes(DirectProgram(vgpud.show(vf), harness.command("vectoradd")))
        counted.check_the_same(vgpud, before)
        print(f"PASS: nothing is left behind, and the neighbour says {said[:40]}...")


if __name__ == "__main__":
    main()
