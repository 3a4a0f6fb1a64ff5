#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs built CUDA programs through the CUDA backend, nested (docs/cuda-backend.md), beside a neighbour that wants the GPU
all the time, and prints for each of their kernels how many warp instructions it still runs after the word that tells it to
leave has changed: measured by the inner GPU (gpu/exec/drill/word_watch.h), so that it does not depend on the machine.

FOLDER and --list as for run.py. A program is run until each of its kernels that hear of the word has heard of it --words
times, --runs times at most. --state FILE: what is in there is not run again; each program's result is added.

What it means on a GPU is reckoned: each multiprocessor has as many of the kernel's blocks as fit by their warps, and each
of them still runs what the one here did; the multiprocessor does --rate warp instructions in a millisecond.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools" / "lib"), str(HERE.parents[1] / "tests" / "vm")]
import nested  # noqa: E402
import run  # noqa: E402
from vgpuguest import direct, paths, process  # noqa: E402
from vgpuguest.nested import nested_daemon  # noqa: E402

# One warp instruction each clock, of four that it could begin, at 1.5 GHz.
RATE = 1_500_000
# Threads of a warp; warps and blocks of a multiprocessor (compute capability 9.0), of which an H100 has so many.
WARP, WARPS, BLOCKS, MULTIPROCESSORS = 32, 64, 32, 132
ENDS_SOON = "its threads end after a few instructions, and so few of them soon"  # gpu/cuda/cuda_gpu.cc
# Two pieces are on the GPU at a time (gpu/cuda/piece_grid.cc).
PIECES = 2
TURNS = re.compile(r"\$\w+_?turns$")
WORD = re.compile(r"word: (\S+) threads=(\d+) blocks=(\d+) launched=(\d+) after=(\d+)$", re.M)
LONGEST = re.compile(r"longest: (\S+) threads=(\d+) blocks=(\d+) launched=(\d+)$", re.M)
SLICE_US = "200"
WRAPPER = """#!/bin/sh
case "$*" in
*"--backend soft"*) exec "{build}/gpu/vgpud-exec" "$@" --threads 1 --preempt-every 0 ;;
*) exec "{build}/gpu/vgpud-exec" "$@" ;;
esac
"""


@contextlib.contextmanager
def watching():
    """vgpud finds vgpud-exec in VGPUD_LIBEXEC: there is one that has the soft GPU watch words, a block at a time."""
    with process.scratch_dir("vgpu-stops-") as folder:
        libexec = pathlib.Path(folder)
        libexec.chmod(0o755)
        (libexec / "vgpud-vf").symlink_to(paths.BUILD / "vfio" / "vgpud-vf")
        wrapper = libexec / "vgpud-exec"
        wrapper.write_text(WRAPPER.format(build=paths.BUILD))
        wrapper.chmod(0o755)
        before = os.environ.get("VGPUD_LIBEXEC")
        os.environ["VGPUD_LIBEXEC"] = str(libexec)
        try:
            yield
        finally:
            os.environ.pop("VGPUD_LIBEXEC")
            if before is not None:
                os.environ["VGPUD_LIBEXEC"] = before


def text_from(path, at):
    return pathlib.Path(path).read_text(errors="replace")[at:]


class Kernels:
    """What was seen of the kernels of one program."""

    def __init__(self):
        self.rows = {}

    def add(self, inner_text, outer_text, others):
        for name, rung, why in nested.TAKEN.findall(outer_text):
            row = self.rows.setdefault(name, {"rung": "gate", "why": "", "after": [], "longest": 0, "threads": 1, "blocks": 1,
                                              "pieces": False})
            row["rung"] = "gate" if rung == "the gate only" else rung
            row["why"] = why or ""
            row["pieces"] = row["rung"] == "blocks" and "a part of its blocks" in row["why"]
        for entry, threads, blocks, launched in LONGEST.findall(inner_text):
            row = self.rows.get(TURNS.sub("", entry))
            if row is None or entry in others or int(launched) <= row["longest"]:
                continue
            row.update(longest=int(launched), threads=int(threads), blocks=int(blocks))
        for entry, threads, blocks, _, after in WORD.findall(inner_text):
            row = self.rows.get(TURNS.sub("", entry))
            if row is not None and entry not in others and TURNS.search(entry) and not row["pieces"]:
                row["after"].append(int(after))

    def wanting(self, words):
        return [name for name, row in self.rows.items()
                if row["rung"] != "gate" and not row["pieces"] and len(row["after"]) < words]


def one(outer, inner, executable, arguments, limit, options, others):
    kernels, verdicts, runs = Kernels(), collections.Counter(), 0
    while runs < options.runs and (runs == 0 or kernels.wanting(options.words)):
        at_inner, at_outer = (len(text_from(daemon.log, 0)) for daemon in (inner, outer))
        result = run.run(outer.show("a"), executable, arguments, limit * nested.SLOWER)
        deadline = time.monotonic() + nested.GONE_SECONDS
        while outer.show("a")["executors"] and time.monotonic() < deadline:
            time.sleep(0.02)
        kernels.add(text_from(inner.log, at_inner), text_from(outer.log, at_outer), others)
        verdicts[result["verdict"]] += 1
        runs += 1
    return {"verdicts": dict(verdicts), "runs": runs, "kernels": kernels.rows}


def resident(threads):
    warps = (threads + WARP - 1) // WARP
    return max(1, min(BLOCKS, WARPS // warps))


def worst(row):
    """(warp instructions until one multiprocessor is free, by what)."""
    blocks = min(resident(row["threads"]), max(1, row["blocks"]))
    each = row["longest"] / max(1, row["blocks"])
    if row["pieces"]:
        return PIECES * blocks * each, "pieces"
    if row["rung"] != "gate" and row["after"]:
        return blocks * max(row["after"]), "word"
    return blocks * each * max(1, row["blocks"] / (blocks * MULTIPROCESSORS)), "whole"


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else 0


def demangled(names):
    try:
        done = subprocess.run(["c++filt", "-p", *names], capture_output=True, text=True, check=True).stdout.splitlines()
        return dict(zip(names, done))
    except (OSError, subprocess.CalledProcessError):
        return {name: name for name in names}


def table(results, rate):
    yield "| program | kernel | rung | words | after it: median | p99 | most | blocks at once | until free, ms |"
    yield "|---|---|---|---|---|---|---|---|---|"
    names = demangled(sorted({kernel for result in results.values() for kernel in result["kernels"]}))
    within, short_anyway, late, whole = 0, 0, [], 0
    for program, result in results.items():
        for kernel, row in sorted(result["kernels"].items()):
            instructions, how = worst(row)
            after, ms = row["after"], instructions / rate
            whole += 1
            short = names[kernel].split("(")[0].split("<")[0][:40]
            rung = "pieces" if row["pieces"] else row["rung"]
            if row["rung"] != "gate" and ms <= 1:
                within += 1
            elif row["why"].startswith(ENDS_SOON) and ms <= 1:
                short_anyway += 1
            else:
                late.append(f"{program}/{short}: {rung}{': ' + row['why'] if row['why'] else ''} ({ms:.3f} ms)")
            seen = (len(after), percentile(after, 0.5), percentile(after, 0.99), max(after)) if how == "word" else ("", "", "", "")
            yield (f"| {program} | {short} | {rung} | " + " | ".join(map(str, seen)) +
                   f" | {resident(row['threads'])} | {ms:.3f}{'' if how == 'word' else f' ({how})'} |")
    yield ""
    yield (f"{within} of {whole} kernels ({100 * within / max(1, whole):.0f} %) leave within 1 ms by blocks, pieces or "
           f"safepoints, at {rate} warp instructions of a multiprocessor in a millisecond; {short_anyway} "
           f"({100 * short_anyway / max(1, whole):.0f} %) are left as they are because they are over before; the others:")
    yield from (f"- {line}" for line in late)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="the folder of built programs")
    parser.add_argument("--list", type=pathlib.Path, default=HERE / "cuda-samples.txt", help="names and arguments")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this program; may be repeated")
    parser.add_argument("--words", type=int, default=30, help="wanted of each kernel (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=10, help="of a program at most (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=RATE, help="default: %(default)s")
    parser.add_argument("--state", type=pathlib.Path, help="what is in there is not run again; each result is added")
    options = parser.parse_args(arguments)
    results = json.loads(options.state.read_text()) if options.state and options.state.exists() else {}
    todo = [row for row in run.read_list(options.list) if row[0] not in results and
            (not options.only or row[0] in options.only) and os.access(options.folder.resolve() / row[0] / row[0], os.X_OK)]
    if todo:
        daemon_options = {"vram": run.VRAM}
        arguments = [*run.PATIENCE, "--base-slice-us", SLICE_US]
        with watching(), nested_daemon([("a", daemon_options), ("b", {"vram": "512MiB"})], arguments, run.PATIENCE,
                                       inner_vram="16GiB") as (outer, inner):
            launcher = [str(paths.need(paths.LAUNCHER, "vgpu-launch")), "meter", "--seconds", "100000"]
            meter = subprocess.Popen(launcher, env=direct.environment(outer.show("b")), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                while not outer.stats()[1]["b"]["kernels"]:
                    if meter.poll() is not None:
                        raise SystemExit("the neighbour does not compute")
                    time.sleep(0.1)
                others = {name for name, *_ in LONGEST.findall(text_from(inner.log, 0))}
                for name, limit, words in todo:
                    results[name] = one(outer, inner, options.folder.resolve() / name / name, words, limit, options, others)
                    print(name, results[name]["verdicts"], file=sys.stderr, flush=True)
                    if options.state:
                        options.state.write_text(json.dumps(results, indent=1))
            finally:
                meter.terminate()
                meter.wait()
    print("\n".join(table(results, options.rate)))
    return 0


if __name__ == "__main__":
    process.run_tool("stops", main)
