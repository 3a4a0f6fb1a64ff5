#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The campaign of cuts: kernels of many kinds on the CUDA backend, nested, two VFs beside each other that both compute all
the time, until each kernel was taken off the GPU so often on each rung, by what the rung is there for. What each run
leaves must be what the same run leaves on the inner GPU, where nothing is rewritten and nobody else computes.

usage: cuts.py [--cuts N] [--rungs R,...] [--kernels K,...] [--state FILE] [--slice-us N]
       cuts.py --table FILE
--cuts: default 10000.  --state: a line for each run is added to it, and what it holds already counts: a campaign that was
stopped goes on.  --table: the table of such a file.  Exit status 1: a run left something else, or was not cut.
"""
import argparse
import json
import pathlib
import re
import subprocess
import threading
import time

import harness
from vgpuguest import paths
from vgpuguest.nested import HARDWARE, nested_daemon
from vgpuguest.paths import ToolError
from vgpuguest.program import DirectProgram

# Rounds (tests/cuda/cuts.cu) with which eight blocks take about 10 ms on the soft GPU.
KERNELS = {"tiles": 700, "steps": 20, "heat": 2000, "shuffles": 3000, "histogram": 2000, "calls": 20, "arrays": 3000,
           "doubles": 3500, "transpose": 1700, "bodies": 30}
# What is cut on each rung: short kernels, many short blocks, few long blocks. Blocks, rounds for each of the above,
# launches of one run (fewer where fewer than 3000 cuts are wanted).
SHAPES = {"gate": (8, 0.04, 10_000), "blocks": (800, 0.04, 300), "safepoints": (8, 30, 100)}
ENDS = ("safepoints", "blocks", "gate")
LEFT = re.compile(r"\[(\w+)\].*left the GPU with kernels on it: (\d+) ended by safepoints, (\d+) by blocks, "
                  r"(\d+) waited for by the gate")
RUN_SECONDS = 600
# A kernel that is never cut would be tried for ever.
MOST_IN_VAIN = 20
MOST_FAILED = 5


def command(rung, kernel, cuts):
    blocks, scale, launches = SHAPES[rung]
    rounds, launches = max(1, round(KERNELS[kernel] * scale)), round(launches * min(1, max(0.1, cuts / 3000)))
    return [str(paths.need(paths.LAUNCHER, "vgpu-launch")), "cuts", kernel, str(blocks), str(rounds), str(launches)]


def said(vf, argv):
    program = DirectProgram(vf, argv)
    code = program.wait(RUN_SECONDS)
    if code != 0:
        raise AssertionError(f"{' '.join(argv)} ends with 0 (it ended with {code})\n{program.text()}")
    return program.lines[-1][1]


def ends(log, vf):
    """{how: launches that ended so}: of all programs of the VF that have ended."""
    total = dict.fromkeys(ENDS, 0)
    with open(log, encoding="utf-8") as lines:
        for found in filter(None, map(LEFT.search, lines)):
            if found[1] == vf:
                for how, count in zip(ENDS, found.groups()[1:]):
                    total[how] += int(count)
    return total


class Campaign:
    def __init__(self, cuts, state):
        self.cuts, self.state, self.rows, self.failed = cuts, state, {}, []
        if state and state.exists():
            for line in state.read_text().splitlines():
                self.count(json.loads(line))

    def count(self, run):
        row = self.rows.setdefault((run["rung"], run["kernel"]),
                                   {"runs": 0, "seconds": 0.0, "different": 0, **dict.fromkeys(ENDS, 0)})
        row["runs"] += 1
        row["seconds"] += run["seconds"]
        row["different"] += not run["equal"]
        for how in ENDS:
            row[how] += run["ends"][how]

    def missing(self, rung, kernel):
        return self.cuts - self.rows.get((rung, kernel), {rung: 0})[rung]

    def note(self, run):
        self.count(run)
        if self.state:
            with open(self.state, "a", encoding="utf-8") as lines:
                lines.write(json.dumps(run) + "\n")
        print(f"figures: {run['rung']}: {run['kernel']}: {run['ends'][run['rung']]} cuts in {run['seconds']:.0f} s, "
              f"{max(0, self.missing(run['rung'], run['kernel']))} to come", flush=True)

    def kernel(self, outer, vf, rung, kernel, alone):
        in_vain = 0
        while self.missing(rung, kernel) > 0 and in_vain < MOST_IN_VAIN:
            before, begun = ends(outer.log, vf), time.monotonic()
            line = said(outer.show(vf), command(rung, kernel, self.cuts))
            deadline = time.monotonic() + 30
            while outer.show(vf)["executors"] != 0 and time.monotonic() < deadline:
                time.sleep(0.05)
            run = {"rung": rung, "kernel": kernel, "seconds": round(time.monotonic() - begun, 2), "equal": line == alone,
                   "ends": {how: count - before[how] for how, count in ends(outer.log, vf).items()}}
            in_vain = 0 if run["ends"][rung] else in_vain + 1
            self.note(run)
            if not run["equal"]:
                self.failed.append(f"{rung}/{kernel} left\n  {line}, alone\n  {alone}")
                return
        if in_vain == MOST_IN_VAIN:
            self.failed.append(f"{rung}/{kernel} is never cut")

    def patiently(self, outer, vf, rung, kernel, alone):
        """A busy host lets programs and commands take longer than anybody waits for them; that shows nothing."""
        for attempt in range(MOST_FAILED):
            try:
                return self.kernel(outer, vf, rung, kernel, alone)
            except (ToolError, OSError, subprocess.TimeoutExpired) as error:
                print(f"{rung}/{kernel}: attempt {attempt + 1}: {error}", flush=True)
                failed = error
            except AssertionError as error:
                failed = error
                break
        self.failed.append(f"{rung}/{kernel}: {failed}")
        return None

    def rung(self, rung, kernels, slice_us):
        """Two VFs, each with the next kernel when its own is done; when there is none it computes for the other's sake."""
        todo = [kernel for kernel in kernels if self.missing(rung, kernel) > 0]
        if not todo:
            return
        options, lock, at_work = {"vram": "512MiB"}, threading.Lock(), set()
        arguments = ["--base-slice-us", str(slice_us), "--cuda-rung", rung]
        with nested_daemon([("a", options), ("b", options)], arguments) as (outer, inner):
            alone = {kernel: said(inner.show(HARDWARE), command(rung, kernel, self.cuts)) for kernel in todo}

            def serve(vf):
                meter = None
                try:
                    while True:
                        with lock:
                            kernel = todo.pop(0) if todo else None
                            at_work.discard(vf)
                            if kernel:
                                at_work.add(vf)
                        if kernel:
                            self.patiently(outer, vf, rung, kernel, alone[kernel])
                        elif not at_work:
                            return
                        elif meter is None:
                            meter = DirectProgram(outer.show(vf), [*harness.command("meter"), "--seconds", "100000"])
                        else:
                            time.sleep(0.2)
                finally:
                    at_work.discard(vf)
                    if meter is not None:
                        meter.stop()

            threads = [threading.Thread(target=serve, args=(vf,)) for vf in "ab"]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def table(self):
        yield "| rung | kernel | cuts | besides, between blocks | besides, waited for | runs | seconds | cuts a second | results |"
        yield "|---|---|---|---|---|---|---|---|---|"
        for (rung, kernel), row in sorted(self.rows.items(), key=lambda at: (ENDS[::-1].index(at[0][0]), at[0][1])):
            result = "equal" if row["different"] == 0 else f"{row['different']} runs differ"
            between, waited = (row["blocks"] if rung == "safepoints" else "", "" if rung == "gate" else row["gate"])
            yield (f"| {rung} | {kernel} | {row[rung]} | {between} | {waited} | {row['runs']} | {row['seconds']:.0f} | "
                   f"{row[rung] / row['seconds']:.0f} | {result} |")


def words(text):
    return text.split(",")


def test():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuts", type=int, default=10_000)
    parser.add_argument("--rungs", type=words, default=list(SHAPES))
    parser.add_argument("--kernels", type=words, default=list(KERNELS))
    parser.add_argument("--state", type=pathlib.Path)
    parser.add_argument("--slice-us", type=int, default=100)
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()
    campaign = Campaign(options.cuts, options.table or options.state)
    if options.table is None:
        for rung in options.rungs:
            campaign.rung(rung, options.kernels, options.slice_us)
    print("\n".join(campaign.table()))
    harness.check(not campaign.failed, "each run left what it leaves alone, and was cut" +
                  "".join(f"\n{what}" for what in campaign.failed))


harness.main(test, needs_guest=False)
