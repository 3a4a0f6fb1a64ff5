#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two virtual machines share one soft GPU: llama.cpp generates tokens in one, PyTorch trains a network in the other. First both
VFs have the same weight, then one gets three times as much while both run. What they computed is compared with the CPU's.

Needs root, Debian's archive and 14 GiB of disk (docs/applications.md); where one of them is missing it says so.

Exit status: 0 PASS, 1 FAIL, 75 the host was too busy with other things to tell, 77 it could not be run here."""
import argparse
import contextlib
import os
import sys
import time

sys.dont_write_bytecode = True
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [_HERE, os.path.join(_HERE, "..", "..", "tools", "lib")]
from applib import guest, roots, together  # noqa: E402
from applib.application import Failed, Skipped  # noqa: E402
from applib.direct import Direct  # noqa: E402
from vgpuguest import daemon, interference, paths, process, shares, verdict  # noqa: E402

CAPABILITY = "12.0"  # with which both applications run as they are
HEAVY = 300
SETTLE = 2.0
# An application computes on its CPU between kernels, so that it wants a little less than its weight's part; one that wants
# far less has stood still, and its phase says nothing about shares.
MOST_UNCLAIMED = 0.10
LOOKS = 5  # at a window while it is measured
FIRST_SECONDS = 420.0  # until a program has done something: loading its libraries is slow in an emulated guest

_start = time.monotonic()


def say(text):
    print(f"demo: {time.monotonic() - _start:5.1f} s  {text}", flush=True)


def window(vgpud, programs, title, seconds, attempt):
    """A verdict.Phase with what each has done in it."""
    say(f"{title}, {seconds:.0f} s")
    host, begin = interference.Window(), time.monotonic()
    (_, before), done = vgpud.stats(), {name: program.units() for name, program in programs.items()}
    for look in range(1, LOOKS + 1):
        time.sleep(max(0.0, begin + look * seconds / LOOKS - time.monotonic()))
        _, after = vgpud.stats()
        metered = shares.metered(before, after)
        say("   " + "  ".join(f"{name} {100 * metered[name]:.1f}% of the GPU, {program.units() - done[name]} {program.what}"
                              for name, program in programs.items()))
    by_weight, claimed = shares.entitled({name: vf["weight"] for name, vf in before.items()}), shares.claimed(before, after)
    rows = {name: {"weight": after[name]["weight"], "by_weight": by_weight[name], "entitled": claimed[name], "metered": metered[name],
                   "counted": None, "done": programs[name].units() - done[name]} for name in programs}
    problems = [f"{name} has ended before its time:\n{program.last_words()}" for name, program in programs.items() if program.ended()]
    problems += [f"{title}: {name} wanted only {100 * claimed[name]:.1f}% of the GPU, its weight gives it {100 * by_weight[name]:.1f}%"
                 for name in programs if claimed[name] < by_weight[name] - MOST_UNCLAIMED]
    return verdict.Phase(title, time.monotonic() - begin, rows, host.so_far(), problems)


def measure(vgpud, programs, seconds):
    """Both phases."""
    phases = [verdict.measured(lambda attempt: window(vgpud, programs, "phase 1: equal weights", seconds, attempt), say)]
    say(f"vgpuctl set training --weight {HEAVY}, while both run")
    vgpud.set("training", weight=HEAVY)
    time.sleep(SETTLE)
    title = f"phase 2: training re-weighted live to {HEAVY}"
    return phases + [verdict.measured(lambda attempt: window(vgpud, programs, title, seconds, attempt), say)]


def print_table(phases, programs):
    for phase in phases:
        print(f"\n{phase.title}, {phase.seconds:.0f} s")
        print("VF        program    weight  by weight  entitled and wanted  metered  done in this time")
        for name, row in phase.vfs.items():
            program = programs[name]
            print(f"{name:<8}  {program.title:<9}  {row['weight']:>6}  {100 * row['by_weight']:>8.1f}%  "
                  f"{100 * row['entitled']:>18.1f}%  {100 * row['metered']:>6.1f}%  "
                  f"{row['done']} {program.what}")
    print()


def demo(cache, seconds):
    """(phases, {name: sentence about what it computed})"""
    say("the applications' roots (downloaded and unpacked the first time)")
    homes = {name: str(roots.directory_of(kind.root, cache)) for name, kind in together.PROGRAMS.items()}
    say(f"starting vgpud with one soft GPU of capability {CAPABILITY} and two VFs")
    vfs = [(name, {"vram": kind.vram}) for name, kind in together.PROGRAMS.items()]
    with daemon.private_daemon(vfs, ["--soft-gpu-capability", CAPABILITY]) as vgpud, contextlib.ExitStack() as stack:
        direct, programs = {}, {}
        for name, kind in together.PROGRAMS.items():
            work = os.path.join(cache, "work", f"two-vms-{name}")
            os.makedirs(work, exist_ok=True)
            direct[name] = Direct(homes[name], lambda: 0.0, [vgpud.show(name)], vgpud.runtime_dir, work)
            environment = kind.prepare(direct[name])
            say(f"booting a guest for {kind.title}")
            place = stack.enter_context(guest.booted(homes[name], lambda: 0.0, vgpud.show(name), vgpud.runtime_dir, work, kind.memory_mib))
            programs[name] = kind(place, environment)
            stack.callback(programs[name].stop)
        for name in sorted(programs, key=lambda name: programs[name].slow_to_start, reverse=True):
            programs[name].start(FIRST_SECONDS)
            say(f"{programs[name].title} works")
        time.sleep(SETTLE)
        phases = measure(vgpud, programs, seconds)
        say("ending both guests")
        stack.close()
        say("the same on this host's CPU, to compare")
        return phases, programs, {name: program.compared(direct[name]) for name, program in programs.items()}


def main(arguments):
    parser = argparse.ArgumentParser(prog="tests/apps/two_vms.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", default=str(paths.CACHE / "apps"), metavar="DIR", help="where the applications are kept (%(default)s)")
    parser.add_argument("--seconds", type=float, default=20.0, metavar="N", help="of each phase (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        phases, programs, compared = demo(os.path.abspath(options.cache), options.seconds)
    except Skipped as why:
        print(f"SKIP: {why}")
        return 77
    except Failed as failure:
        print(f"FAIL: {failure}")
        return 1
    print_table(phases, programs)
    for name, sentence in compared.items():
        print(f"{name}: {sentence}")
    print("\n".join(verdict.sentences(phases, time.monotonic() - _start)))
    return verdict.exit_status(phases)


process.run_tool("tests/apps/two_vms.py", main)
