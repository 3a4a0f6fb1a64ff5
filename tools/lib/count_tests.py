#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the verdicts in meson's test logs (one JSON object per line): names what failed and shows why, says why something was skipped.

usage: count_tests.py DIRECTORY_OF_JSON_LOGS     the last line is "N passed, N failed"; exit 1 when one failed or none ran
"""
import json
import pathlib
import re
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}
FAILURE = re.compile(r"not ok|FAIL|[Ee]rror|Traceback|assert|timed out|Timeout|SIG[A-Z]{3}")
LINES, COLUMNS = 12, 200  # of what a failed test said


def output(verdict):
    return (verdict.get("stdout") or "") + "\n" + (verdict.get("stderr") or "")


def skip_reason(verdict):
    lines = [line.strip() for line in output(verdict).splitlines() if re.search("skip", line, re.IGNORECASE)]
    return lines[-1] if lines else "no reason given"


def failure_reason(verdict):
    """From the first line that looks like a failure on; the last lines where none does."""
    lines = [line.rstrip()[:COLUMNS] for line in output(verdict).splitlines() if line.strip()]
    first = next((number for number, line in enumerate(lines) if FAILURE.search(line)), max(0, len(lines) - LINES))
    return lines[first:first + LINES]


def main():
    passed, failed = 0, []
    skipped = []
    for log in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
        for line in log.read_text().splitlines():
            verdict = json.loads(line)
            name = f"{log.stem}: {verdict['name']}"
            if verdict["result"] in PASSED:
                passed += 1
            elif verdict["result"] in SKIPPED:
                skipped.append(f"{name}: {skip_reason(verdict)}")
            else:
                failed.append((f"{name}: {verdict['result']}", failure_reason(verdict)))
    print()
    for text in skipped:
        print(f"skipped  {text}")
    for text, reason in failed:
        print(f"FAILED   {text}")
        for line in reason:
            print(f"         | {line}")
    if not passed and not failed:
        failed.append(("nothing ran", []))
        print("FAILED   no test has run")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
