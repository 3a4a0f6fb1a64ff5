#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills vgpud at random moments under load, starts it again at once, and looks whether anybody noticed.

Two programs never rest (worker.py), programs come and go on a third VF, weights change and a fourth VF is made and
destroyed all the time. No program may fail, no VF and no counter may be lost, nothing may be left behind, and the GPU
may be away for half a second at most (99 of 100 kills). With several GPUs the VFs are on one after the other.

usage: kills.py [KILLS] [--seed N] [--user1 PERCENT] [--gpus N]   --user1: so many are hand-overs (SIGUSR1) instead
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

import bed

sys.path.insert(0, str(bed.REPO / "tests" / "vm"))

import harness  # noqa: E402
from vgpuguest.paths import VGPUCTL, ToolError  # noqa: E402
from vgpuguest.program import DirectProgram  # noqa: E402

WORKED = ("k-one", "k-two")
VISITED = "k-three"
PASSING = "k-four"
GPU_AWAY_S = 0.5
GROWS = ("received_ns", "entitled_ns", "runnable_ns", "slices", "kernels", "warp_instructions")


class Load:
    """What goes on meanwhile, in threads of its own. `problems` is what should not have happened."""

    def __init__(self, vgpud, seed):
        self.vgpud, self.random = vgpud, random.Random(seed)
        self.visited = vgpud.show(VISITED)
        self.problems, self.visits, self.changes, self.lives = [], 0, 0, 0
        self.asked = [100]   # weights of k-one, in turn
        self.answered = 0     # the last of them that was said to be in force
        self.there = False    # k-four, as the last answer has it; None: not known
        self.over = False
        self.threads = [threading.Thread(target=self._guard, args=[each]) for each in (self._visit, self._change)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.over = True
        for thread in self.threads:
            thread.join()

    def _guard(self, work):
        try:
            while not self.over:
                work()
        except Exception as error:  # pylint: disable=broad-except
            self.problems.append(f"{work.__name__}: {error!r}")

    def _visit(self):
        program = DirectProgram(self.visited, harness.command("vectoradd"))
        code = program.wait(60)
        self.visits += 1
        if code != 0:
            self.problems.append(f"vectoradd ended with {code}: {program.text()}")

    def _ask(self, *words):
        """True: done. None: nobody says, since vgpud is away."""
        asked = subprocess.run([VGPUCTL, "--runtime-dir", self.vgpud.runtime_dir, *words], stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, timeout=60, check=False)
        if asked.returncode == 0:
            return True
        time.sleep(0.005)
        return None

    def _change(self):
        weight = self.random.randint(50, 400)
        self.asked.append(weight)
        if self._ask("set", WORKED[0], "--weight", str(weight)):
            self.answered = len(self.asked) - 1
            self.changes += 1
        words = ("destroy", PASSING) if self.there else ("create", PASSING, "--vram", "64MiB")
        if self._ask(*words):
            self.there = not self.there
            self.lives += 1
        else:
            try:
                self.there = PASSING in self.vgpud.names()
            except ToolError:
                pass


class Campaign:
    def __init__(self, vgpud, options):
        self.vgpud, self.options = vgpud, options
        self.random = random.Random(options.seed)
        self.kills, self.problems, self.starts = [], [], []

    def look(self):
        vfs = {vf["name"]: vf for vf in self.vgpud.request("GET", "/v1/stats")["vfs"]}
        return {name: {key: vfs[name][key] for key in GROWS} for name in (*WORKED, VISITED)}

    def uuids(self):
        return {vf: self.vgpud.show(vf)["uuid"] for vf in (*WORKED, VISITED)}

    def compare(self, number, before, uuids, load, answered):
        after = self.look()
        for vf in (*WORKED, VISITED):
            for key in GROWS:
                if after[vf][key] < before[vf][key]:
                    self.problems.append(f"kill {number}: {key} of {vf} went from {before[vf][key]} to {after[vf][key]}")
        if self.uuids() != uuids:
            self.problems.append(f"kill {number}: other VFs: {uuids} then {self.uuids()}")
        weight = self.vgpud.show(WORKED[0])["weight"]
        possible = load.asked[answered:]
        if weight not in possible:
            self.problems.append(f"kill {number}: weight {weight}, answered and then asked: {possible}")

    def run(self, load):
        uuids = self.uuids()
        for number in range(self.options.kills):
            # At any moment; which one decides nothing.
            time.sleep(self.random.uniform(0.02, 0.3))
            before = self.look()
            time.sleep(self.random.uniform(0, 0.02))
            hand_over = self.random.uniform(0, 100) < self.options.user1
            answered = load.answered
            at = time.monotonic()
            self.vgpud.kill(signal.SIGUSR1 if hand_over else signal.SIGKILL)
            self.vgpud.start()
            self.starts.append(time.monotonic() - at)
            self.kills.append((at, time.monotonic()))
            self.compare(number, before, uuids, load, answered)
            if self.vgpud.process.poll() is not None:
                self.problems.append(f"kill {number}: the next vgpud ended")
                return

    def gaps(self, slow):
        """Of each kill: the longest round of a program that was not over when it came."""
        return [max([long for end, long in slow if end >= at and end - long <= ready + 0.05], default=0)
                for at, ready in self.kills]


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def run(vgpud, options):
    for number, (vf, weight) in enumerate(((WORKED[0], 100), (WORKED[1], 200), (VISITED, 100))):
        place = {"gpu": f"gpu{number % options.gpus}"} if options.gpus > 1 else {}
        vgpud.create_kept(vf, vram="128MiB", weight=weight, **place)
    harness.run_direct(vgpud.show(VISITED), harness.command("vectoradd"))
    bed.wait_until(lambda: vgpud.show(VISITED)["executors"] == 0, "the first program is gone")
    (keeper,) = vgpud.keepers()
    files = [bed.open_files(vgpud.process.pid), bed.open_files(keeper)]
    workers = [bed.Worker(vgpud.show(vf)) for vf in WORKED]
    for worker in workers:
        worker.wait_until_it_works()
    load = Load(vgpud, options.seed)
    campaign = Campaign(vgpud, options)
    try:
        campaign.run(load)
    finally:
        load.stop()
    problems = campaign.problems + load.problems
    slow, rounds = [], {}
    for vf, worker in zip(WORKED, workers):
        code, said = worker.finish()
        if code != 0:
            problems.append(f"the program on {vf} ended with {code}: {said}")
            continue
        rounds[vf] = json.loads(said)["rounds"]
        slow += json.loads(said)["slow"]
    for vf in (*WORKED, VISITED):
        bed.wait_until(lambda vf=vf: vgpud.show(vf)["executors"] == 0, f"no executor of {vf} is left")
    counted = {vf: figures["kernels"] for vf, figures in campaign.look().items() if vf in rounds}
    if counted != rounds:
        problems.append(f"kernels that the programs ran {rounds}, counted {counted}")
    if PASSING in vgpud.names():
        vgpud.ctl("destroy", PASSING)
    files_after = [bed.open_files(vgpud.process.pid), bed.open_files(keeper)]
    if files_after[1] > files[1] or files_after[0] > files[0] + 4:  # some that belong to vgpud's own threads come and go
        problems.append(f"open files of vgpud and vgpud-keep: {files} then {files_after}")
    gaps = campaign.gaps(slow)
    print(f"kills {len(campaign.kills)}, rounds {rounds}, programs {load.visits}, weights {load.changes}, "
          f"create/destroy {load.lives}")
    print(f"GPU away, longest round over each kill: p50 {percentile(gaps, .5) * 1e3:.0f} ms, "
          f"p99 {percentile(gaps, .99) * 1e3:.0f} ms, worst {max(gaps) * 1e3:.0f} ms; kill to ready: "
          f"p50 {percentile(campaign.starts, .5) * 1e3:.0f} ms, worst {max(campaign.starts) * 1e3:.0f} ms")
    print(f"open files of vgpud and vgpud-keep: {files} then {files_after}")
    if percentile(gaps, .99) > GPU_AWAY_S:
        problems.append(f"the GPU was away for {percentile(gaps, .99):.3f} s")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int, nargs="?", default=300)
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--user1", type=float, default=10)
    parser.add_argument("--gpus", type=int, default=1)
    options = parser.parse_args()
    gpus = [word for i in range(options.gpus) for word in ("--with-gpu", f"gpu{i}")] if options.gpus > 1 else []
    with bed.supervised(gpus) as vgpud:
        try:
            problems = run(vgpud, options)
        except BaseException:
            print(vgpud.text()[-6000:])
            raise
        had_groups = bed.groups(vgpud.runtime_dir)
        vgpud.kill(signal.SIGTERM)
        left = bed.of_vfs(*WORKED, VISITED, PASSING) + vgpud.keepers()
        files = sorted(set(os.listdir(vgpud.runtime_dir)) - {"state", "vgpud.log"})
        sockets = [line for line in pathlib.Path("/proc/net/unix").read_text().splitlines() if vgpud.runtime_dir in line]
        print(f"left behind: processes {left}, files {files}, sockets {sockets}, "
              f"control groups {bed.groups(vgpud.runtime_dir)} of {len(had_groups)}")
        if left or files or sockets or bed.groups(vgpud.runtime_dir):
            problems.append("something is left behind")
        errors = [line for line in vgpud.text().splitlines() if ": error: " in line or "warning: vf=" in line]
        print(f"errors and warnings about VFs in the log: {len(errors)}")
        for line in errors[:20]:
            print("  " + line)
    for problem in problems[:20]:
        print(f"FAILED: {problem}")
    print("FAILED" if problems else "PASS")
    return 1 if problems else 0


sys.exit(main())
