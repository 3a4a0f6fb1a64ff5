#!/usr/bin/python3
"""Runs CUDA programs that others wrote, already built, on the soft GPU without a virtual machine; prints what passed.

FOLDER holds one folder per program, named like its executable, with the data that it reads; the program runs in there. A
private vgpud with one soft GPU serves all. Exit status: 0 when every program passed. docs/conformance.md says more.
"""
import argparse
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
from vgpuguest import daemon, direct, process  # noqa: E402

LIMIT_S = 60
VRAM = "6GiB"
# A host that is busy with more than this must not cost a program its executor: what counts here is the result.
PATIENCE = ("--preempt-timeout-us", "2000000")
WAIVED = 2  # the exit status of a program that says that the device lacks what it shows
# How the two collections tell of a wrong result; their exit status does not always.
WRONG = re.compile(r"\bFAIL(?:ED|URE)?\b|\bmismatch(?:es)?\b|verification failed|Result = FAIL", re.I)
NOT_WRONG = re.compile(r"\b(?:no|0|zero) (?:mismatch|fail)", re.I)
UNSUPPORTED_CALL = re.compile(r"^vgpud: (cu\w+) is not supported$", re.M)
DEVICE_ERROR = re.compile(r"^vgpud: (?!cu\w+ (?:is not supported|answered ))(.*)$", re.M)
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
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    programs = [p for p in read_list(options.list) if not options.only or p[0] in options.only]
    missing = set(options.only or ()) - {name for name, _, _ in programs}
    if missing:
        parser.error(f"not in {options.list}: {', '.join(sorted(missing))}")
    results = {}
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
    if options.output == "json":
        json.dump(results, sys.stdout, indent=1)
        print()
    else:
        show(results)
    return 0 if all(result["verdict"] == "pass" for result in results.values()) else 1


if __name__ == "__main__":
    process.run_tool("conformance", main)
