#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the verdicts in meson's test logs (one JSON object per line): names what failed, says why something was skipped.

usage: count_tests.py DIRECTORY_OF_JSON_LOGS     the last line is "N passed, N failed"; exit 1 when one failed or none ran
"""
import json
import pathlib
import re
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}


def skip_reason(verdict):
    text = (verdict.get("stdout") or "") + (verdict.get("stderr") or "")
    lines = [line.strip() for line in text.splitlines() if re.search("skip", line, re.IGNORECASE)]
    return lines[-1] if lines else "no reason given"


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
                failed.append(f"{name}: {verdict['result']}")
    print()
    for text in skipped:
        print(f"skipped  {text}")
    for text in failed:
        print(f"FAILED   {text}")
    if not passed and not failed:
        failed.append("nothing ran")
        print("FAILED   no test has run")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
