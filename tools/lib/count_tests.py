#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the verdicts in meson's test logs (one JSON object per line): names what failed and shows why, says why something was skipped.

LABEL.again.json holds second attempts of tests of LABEL.json: the second verdict counts, and the first failure is shown all the same.

usage: count_tests.py DIRECTORY_OF_JSON_LOGS     the last line is "N passed, N failed"; exit 1 when one failed or none ran
       count_tests.py --failed LOG SUITE         instead: the names of the tests of a suite that failed, a line each
"""
import json
import pathlib
import re
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}
SURE = re.compile(r"^\s*(?:not ok|Bail out)|FAILED|Traceback|timed out|TimeoutError")
LIKELY = re.compile(r"FAIL|[Ee]rror|assert|SIG[A-Z]{3}")
FINE = re.compile(r"^\s*ok \d")
LINES, COLUMNS = 16, 200  # of what a failed test said


def output(verdict):
    return (verdict.get("stdout") or "") + "\n" + (verdict.get("stderr") or "")


def skip_reason(verdict):
    lines = [line.strip() for line in output(verdict).splitlines() if re.search("skip", line, re.IGNORECASE)]
    return lines[-1] if lines else "no reason given"


def failure_reason(verdict):
    """From the first line on that tells of a failure; and always the last lines."""
    lines = [line.rstrip()[:COLUMNS] for line in output(verdict).splitlines() if line.strip()]
    end = max(0, len(lines) - LINES)
    numbers = range(len(lines))
    first = next((number for sign in (SURE, LIKELY) for number in numbers
                  if sign.search(lines[number]) and not FINE.search(lines[number])), end)
    if first + LINES >= end:
        return lines[min(first, end):]
    return [*lines[first:first + LINES], "...", *lines[end:]]


def read(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def failed_tests(log, suite):
    """Names as `meson test` takes them."""
    return [verdict["name"].split(" / ")[-1] for verdict in read(pathlib.Path(log))
            if verdict["result"] not in PASSED | SKIPPED and suite in verdict["name"].split(" / ")[0].split(":")[-1].split("+")]


def attempts(directory):
    """{name: [verdict of each attempt]}, in order."""
    made = {}
    logs = sorted(pathlib.Path(directory).glob("*.json"), key=lambda log: (log.name.endswith(".again.json"), log.name))
    for log in logs:
        for verdict in read(log):
            made.setdefault(f"{log.name.split('.')[0]}: {verdict['name']}", []).append(verdict)
    return made


def show(word, text, verdict):
    print(f"{word:8} {text}: {verdict['result']}")
    for line in failure_reason(verdict):
        print(f"         | {line}")


def main():
    if sys.argv[1] == "--failed":
        print("\n".join(failed_tests(*sys.argv[2:])))
        return 0
    passed, failed = 0, []
    print()
    made = attempts(sys.argv[1])
    for name, verdicts in made.items():
        if verdicts[-1]["result"] in PASSED:
            passed += 1
        elif verdicts[-1]["result"] in SKIPPED:
            print(f"skipped  {name}: {skip_reason(verdicts[-1])}")
        else:
            failed.append(name)
    for name, verdicts in made.items():
        if len(verdicts) > 1 and name not in failed:
            show("AGAIN", f"{name} failed first, and passed the second time", verdicts[0])
    for name in failed:
        show("FAILED", name, made[name][-1])
    if not passed and not failed:
        failed.append("nothing ran")
        print("FAILED   no test has run")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
