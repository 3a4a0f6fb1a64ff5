#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs built CUDA programs twice: on the soft GPU, and through the CUDA backend whose GPU that is (docs/cuda-backend.md,
"Nested"). Prints for each what became of it both times, how many more warp instructions the second run took, and how
each of its kernels would be taken off the GPU, with what keeps it from better.

FOLDER and --list as for run.py. Exit status: 0 when every program that passes the first time passes the second time and
none took more than --most-percent more.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools" / "lib")]
import run  # noqa: E402
from vgpuguest import process  # noqa: E402
from vgpuguest.nested import HARDWARE, nested_daemon  # noqa: E402

# Nested everything takes longer.
SLOWER = 4
TAKEN = re.compile(r"kernel (\S+) is taken away by (the gate only|blocks|safepoints)(?:: (.*))?$", re.M)
GONE_SECONDS = 30


def settle(outer, inner):
    """Executors say what they have run when they end."""
    deadline = time.monotonic() + GONE_SECONDS
    while (outer.show("a")["executors"] or inner.show(HARDWARE)["executors"]) and time.monotonic() < deadline:
        time.sleep(0.02)


def measured(outer, inner, vf, executable, words, limit):
    """The result of run.run, with the warp instructions that the inner GPU ran for it."""
    before = inner.stats()[1][HARDWARE]["warp_instructions"]
    result = run.run(vf, executable, words, limit)
    settle(outer, inner)
    result["instructions"] = inner.stats()[1][HARDWARE]["warp_instructions"] - before
    return result


def one(outer, inner, executable, words, limit):
    plain = measured(outer, inner, inner.show(HARDWARE), executable, words, limit)
    seen = len(pathlib.Path(outer.log).read_text(errors="replace"))
    nested = measured(outer, inner, outer.show("a"), executable, words, limit * SLOWER)
    log = pathlib.Path(outer.log).read_text(errors="replace")[seen:]
    kernels = {name: {"rung": "gate" if rung == "the gate only" else rung, "why": why or ""}
               for name, rung, why in TAKEN.findall(log)}
    added = None
    if plain["instructions"] and nested["verdict"] == "pass":
        added = 100.0 * (nested["instructions"] / plain["instructions"] - 1)
    return {"verdict": plain["verdict"], "reason": plain["reason"], "nested": nested["verdict"],
            "nested_reason": nested["reason"], "instructions": plain["instructions"], "added_percent": added,
            "seconds": plain["seconds"], "nested_seconds": nested["seconds"], "kernels": kernels,
            "output": nested["output"]}


def table(results):
    yield "| program | alone | nested | warp instructions | added | kernels: safepoints | with a reason | blocks | gate |"
    yield "|---|---|---|---|---|---|---|---|---|"
    total, reasons = collections.Counter(), collections.defaultdict(list)
    for name, result in results.items():
        counts = collections.Counter()
        for kernel, how in result.get("kernels", {}).items():
            counts["some" if how["rung"] == "safepoints" and how["why"] else how["rung"]] += 1
            if how["why"]:
                reasons[f"{how['rung']}: {re.sub(r'[0-9]+', 'N', how['why'])}"].append(f"{name}/{kernel}")
        total += counts
        added = result.get("added_percent")
        yield (f"| {name} | {result['verdict']} | {result.get('nested', '')} | {result.get('instructions', 0)} | "
               f"{'' if added is None else f'{added:.1f} %'} | {counts['safepoints']} | {counts['some']} | "
               f"{counts['blocks']} | {counts['gate']} |")
    yield ""
    whole = sum(total.values()) or 1
    yield (f"{sum(total.values())} kernels: {total['safepoints']} ({100 * total['safepoints'] // whole} %) by safepoints "
           f"everywhere, {total['some']} by safepoints in some places, {total['blocks']} by blocks, {total['gate']} by the gate")
    yield (f"{sum(result.get('nested') == 'pass' for result in results.values())} of {len(results)} pass nested, "
           f"{sum(result['verdict'] == 'pass' for result in results.values())} alone")
    for reason, names in sorted(reasons.items(), key=lambda at: -len(at[1])):
        yield f"- {len(names)} {reason} ({', '.join(sorted(set(name.split('/')[0] for name in names)))})"
    for name, result in results.items():
        if result.get("nested") not in ("pass", None):
            yield f"- {name} nested: {result['nested']}: {result['nested_reason'][:200]}"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="the folder of built programs")
    parser.add_argument("--list", type=pathlib.Path, default=HERE / "cuda-samples.txt", help="names and arguments")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this program; may be repeated")
    parser.add_argument("--rung", default="safepoints", help="what to use at most (default: %(default)s)")
    parser.add_argument("--most-percent", type=float, default=float("inf"), help="more warp instructions are a failure")
    parser.add_argument("--state", type=pathlib.Path, help="what is in there is not run again; each result is added")
    options = parser.parse_args(arguments)
    results = json.loads(options.state.read_text()) if options.state and options.state.exists() else {}
    daemon_options = {"vram": run.VRAM}
    with nested_daemon([("a", daemon_options)], [*run.PATIENCE, "--cuda-rung", options.rung], run.PATIENCE) as (outer, inner):
        for name, limit, words in run.read_list(options.list):
            executable = options.folder.resolve() / name / name
            if (options.only and name not in options.only) or name in results:
                continue
            if not os.access(executable, os.X_OK):
                results[name] = {"verdict": "absent", "reason": f"no {executable}"}
                continue
            results[name] = one(outer, inner, executable, words, limit)
            print(name, results[name]["verdict"], results[name]["nested"], file=sys.stderr, flush=True)
            if options.state:
                options.state.write_text(json.dumps(results, indent=1))
    print("\n".join(table(results)))
    worse = [name for name, result in results.items() if result["verdict"] == "pass" and
             (result["nested"] != "pass" or (result["added_percent"] or 0) > options.most_percent)]
    return 1 if worse else 0


if __name__ == "__main__":
    process.run_tool("nested", main)
