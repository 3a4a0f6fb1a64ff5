#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs CUDA programs that others wrote, already built, on the soft GPU without a virtual machine; prints what passed.

FOLDER holds one folder per program, named like its executable, with the data that it reads; the program runs in there. A
private vgpud with one soft GPU serves all. Exit status: 0 when every program passed. docs/conformance.md says more.
"""
import argparse
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
sys.path.insert(0, str(HERE.parents[1] / "tools" / "lib"))
from vgpuguest import daemon, direct, paths, process  # noqa: E402

LIMIT_S = 60
# --preempt-every: cuts to aim at, and how much slower a program may get by them.
WANTED_CUTS = 150_000
ENOUGH_CUTS = 100_000
MOST_TRIES = 10
MOST_RUNS = 20  # of a program that is too short for so many cuts, unless told otherwise
# Programs that get other bytes each time, cuts or not; what they say themselves counts.
VARYING = {
    "clock": "it reads back values of the clock",
    "graphMemoryNodes": "its random numbers begin with the time of day",
    "radixSortThrust": "its random numbers begin with the processor time",
    "simpleCallback": "which of its threads gets which device memory is the host's choice",
}
SLOWER_BY_CUTS = 20
DRILL = re.compile(r"preempt drill: every=(\d+) cuts=(\d+) instructions=(\d+) copied=(\d+) printed=(\d+) "
                   r"account=([0-9a-f]{16})")
VRAM = "6GiB"
# A host that is busy with more than this must not cost a program its executor: what counts here is the result.
PATIENCE = ("--preempt-timeout-us", "2000000")
WAIVED = 2  # the exit status of a program that says that the device lacks what it shows
# How the two collections tell of a wrong result; their exit status does not always.
WRONG = re.compile(r"\bFAIL(?:ED|URE)?\b|\bmismatch(?:es)?\b|verification failed|Result = FAIL", re.I)
NOT_WRONG = re.compile(r"\b(?:no|0|zero) (?:mismatch|fail)", re.I)
UNSUPPORTED_CALL = re.compile(r"^vgpud: (cu\w+) is not supported$", re.M)
DEVICE_ERROR = re.compile(r"^vgpud: (?!cu\w+ (?:is not supported|is refused|answered ))(.*)$", re.M)
UNSUPPORTED_CODE = re.compile(r"no such instruction|is not provided|unsupported|not supported", re.I)
CUDA_ERROR = re.compile(r"[^\n]*(?:cudaError|CUDA_ERROR|CUDA error|code=\d+)[^\n]*")


def read_list(path):
    """[(name, limit in s, arguments)] of a list file."""
    programs = []
    for line in pathlib.Path(path).read_text().splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        name, words = words[0], words[1:]
        limit = LIMIT_S
        if words and words[0].startswith("limit="):
            limit = int(words.pop(0).removeprefix("limit="))
        programs.append((name, limit, words))
    return programs


def judge(status, output, errors):
    """(verdict, reason) of a program that ended with `status` (None: it ran into its limit)."""
    call = UNSUPPORTED_CALL.search(errors)
    device = DEVICE_ERROR.search(errors)
    wrong = WRONG.search(NOT_WRONG.sub("", output))
    said = CUDA_ERROR.search(output + "\n" + errors)
    if status == 0 and not wrong and not device:
        return "pass", ""
    if device and UNSUPPORTED_CODE.search(device[1]):
        return "unsupported", device[1]
    if call:
        return "unsupported", call[1]
    if status is None:
        return "fail", "time limit"
    if status == WAIVED and (line := re.search(r"[^\n]*\bwaiv[^\n]*", output, re.I)):
        return "unsupported", line[0].strip()
    if device:
        return "fail", device[1]
    if said:
        return "fail", said[0].strip()
    if wrong:
        line = next(line for line in output.splitlines() if WRONG.search(NOT_WRONG.sub("", line)))
        return "fail", f"wrong result: {line.strip()}"
    return "fail", f"exit status {status}" if status >= 0 else f"signal {-status}"


def news(log, seen):
    """(what the daemon's log says beyond `seen` bytes that is a warning or an error, its length)."""
    text = pathlib.Path(log).read_text(errors="replace")
    lines = [line for line in text[seen:].splitlines() if re.search(r": (?:warning|error): ", line)]
    return lines, len(text)


def run(vf, executable, arguments, limit):
    """{verdict, reason, seconds, output} of one program."""
    begin = time.monotonic()
    vf_environment = dict(direct.environment(vf), VGPU_TRACE="1")
    child = subprocess.Popen([str(executable), *arguments], cwd=executable.parent, env=vf_environment,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             errors="replace")
    try:
        output, errors = child.communicate(timeout=limit)
        status = child.returncode
    except subprocess.TimeoutExpired:
        child.kill()
        output, errors = child.communicate()
        status = None
    verdict, reason = judge(status, output, errors)
    return {"verdict": verdict, "reason": reason, "seconds": round(time.monotonic() - begin, 2), "status": status,
            "output": (output + errors)[-4000:]}


@contextlib.contextmanager
def drilled_vf(every):
    """A Drill with a vgpud of its own. vgpud finds vgpud-exec in VGPUD_LIBEXEC: there is one that adds the option."""
    with process.scratch_dir("vgpu-drill-") as folder:
        libexec = pathlib.Path(folder)
        libexec.chmod(0o755)  # the user of the VF runs what is in it
        (libexec / "vgpud-vf").symlink_to(paths.BUILD / "vfio" / "vgpud-vf")
        wrapper = libexec / "vgpud-exec"
        wrapper.write_text(f'#!/bin/sh\nexec "{paths.BUILD}/gpu/vgpud-exec" "$@" --threads 1 --preempt-every {every}\n')
        wrapper.chmod(0o755)
        before = os.environ.get("VGPUD_LIBEXEC")
        os.environ["VGPUD_LIBEXEC"] = str(libexec)
        try:
            with daemon.private_daemon([("drill", {"vram": VRAM})], PATIENCE) as vgpud:
                yield Drill(vgpud, vgpud.show("drill"), every)
        finally:
            os.environ.pop("VGPUD_LIBEXEC")
            if before is not None:
                os.environ["VGPUD_LIBEXEC"] = before


def add_up(log):
    """What all executors of a daemon have reported: {cuts, instructions, copied, printed, account}."""
    total = dict.fromkeys(("cuts", "instructions", "copied", "printed", "account"), 0)
    for match in DRILL.finditer(log):
        for key, value in zip(total, (int(match[n]) if n != 6 else int(match[n], 16) for n in range(2, 7))):
            total[key] += value
    total["account"] %= 1 << 64
    return total


class Drill:
    """A VF whose executors leave the GPU every so many warp instructions (0: never) and keep account of what the device
    writes to the program; for one run after the other."""

    def __init__(self, vgpud, vf, every):
        self.vgpud, self.vf, self.every = vgpud, vf, every
        self.seen = 0

    def run(self, executable, arguments, limit):
        """The result of `run`, and what the executors reported. vgpud-vf ends an executor as soon as its channel is gone, so
        that a report may be missing: then the program runs again."""
        for _ in range(MOST_TRIES):
            result = run(self.vf, executable, arguments, limit * (SLOWER_BY_CUTS if self.every else 1))
            # The executor reports when the channel is gone.
            deadline = time.monotonic() + 30
            while executors(self.vgpud) and time.monotonic() < deadline:
                time.sleep(0.02)
            log = pathlib.Path(self.vgpud.log).read_text(errors="replace")
            reported = add_up(log[self.seen:])
            self.seen = len(log)
            if reported["instructions"] or result["verdict"] != "pass":
                break
        return result, reported


def executors(vgpud):
    """The processes that vgpud has besides that of its VF."""
    children = pathlib.Path(f"/proc/{vgpud.process.pid}/task/{vgpud.process.pid}/children").read_text().split()
    return [pid for pid in children if _name(pid) == "vgpud-exec"]


def _name(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def compare(executable, arguments, limit, every, most_runs):
    """Verdict of a program whose kernels are cut: that of its own check, and whether all that the device wrote to it is
    what it is without cuts. `every` None: as often as makes WANTED_CUTS."""
    with drilled_vf(0) as drill:
        plain, undisturbed = drill.run(executable, arguments, limit)
    if plain["verdict"] != "pass":
        return plain
    if every is None:
        every = max(1, undisturbed["instructions"] // WANTED_CUTS)
    cuts, seconds, runs, same = 0, 0.0, 0, True
    with drilled_vf(every) as drill:
        while True:
            result, cut = drill.run(executable, arguments, limit)
            runs += 1
            cuts += cut["cuts"]
            seconds += result["seconds"]
            same = same and cut["account"] == undisturbed["account"]
            wrong = result["verdict"] != "pass" or not (same or executable.name in VARYING)
            if wrong or not cut["cuts"] or runs == most_runs or cuts >= ENOUGH_CUTS:
                break
    varies = ""
    if not same:
        with drilled_vf(0) as drill:
            again = drill.run(executable, arguments, limit)[1]
        varies = VARYING.get(executable.name, "")
        if again["account"] != undisturbed["account"]:
            varies = varies or "runs without cuts differ too: name it in VARYING if that is right"
        same = executable.name in VARYING
    result.update(every=every, cuts=cuts, runs=runs, same=same, seconds=round(seconds, 2), undisturbed=undisturbed,
                  cut=cut)
    result["reason"] = (f"{cuts} cuts in {runs} runs, every {every} of {cut['instructions']} instructions; "
                        f"{cut['copied']} + {cut['printed']} bytes: "
                        f"{'varies, ' + varies if varies else 'the same' if same else 'NOT THE SAME'} {result['reason']}")
    return result


def show(results):
    width = max(map(len, results), default=0)
    for name, result in results.items():
        print(f"{name:{width}}  {result['verdict']:11}  {result['seconds']:7.2f} s  {result['reason'][:150]}")
    verdicts = [result["verdict"] for result in results.values()]
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ("pass", "fail", "unsupported", "absent")),
          f"of {len(verdicts)}")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="the folder of built programs")
    parser.add_argument("--list", type=pathlib.Path, default=HERE / "cuda-samples.txt", help="names and arguments")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this program; may be repeated")
    parser.add_argument("--preempt-every", metavar="N|auto", help="each program twice, the second time with its kernels cut "
                        "every N warp instructions (auto: so often that it gets 10^5 cuts), and compare all that the "
                        "device wrote to it")
    parser.add_argument("--most-runs", type=int, default=MOST_RUNS, metavar="N", help="how often --preempt-every runs a "
                        "program that is too short for 10^5 cuts, at most (default: %(default)s)")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    programs = [p for p in read_list(options.list) if not options.only or p[0] in options.only]
    missing = set(options.only or ()) - {name for name, _, _ in programs}
    if missing:
        parser.error(f"not in {options.list}: {', '.join(sorted(missing))}")
    results = {}
    if options.preempt_every:
        every = None if options.preempt_every == "auto" else int(options.preempt_every)
        for name, limit, words in programs:
            executable = options.folder.resolve() / name / name
            if os.access(executable, os.X_OK):
                results[name] = compare(executable, words, limit, every, options.most_runs)
                print(name, results[name]["verdict"], results[name]["reason"], file=sys.stderr, flush=True)
            else:
                results[name] = {"verdict": "absent", "reason": f"no {executable}", "seconds": 0.0}
        return tell(results, options.output)
    seen = 0
    with daemon.private_daemon([("conformance", {"vram": VRAM})], PATIENCE) as vgpud:
        vf = vgpud.show("conformance")
        for name, limit, words in programs:
            executable = options.folder.resolve() / name / name
            if not os.access(executable, os.X_OK):
                results[name] = {"verdict": "absent", "reason": f"no {executable}", "seconds": 0.0}
            else:
                results[name] = run(vf, executable, words, limit)
                lines, seen = news(vgpud.log, seen)
                if lines and results[name]["verdict"] != "pass":
                    results[name]["reason"] += f" [vgpud: {lines[-1]}]"
            if options.output == "table":
                print(name, results[name]["verdict"], file=sys.stderr, flush=True)
    return tell(results, options.output)


def tell(results, output):
    if output == "json":
        json.dump(results, sys.stdout, indent=1)
        print()
    else:
        show(results)
    return 0 if all(result["verdict"] == "pass" and result.get("same", True) for result in results.values()) else 1


if __name__ == "__main__":
    process.run_tool("conformance", main)
