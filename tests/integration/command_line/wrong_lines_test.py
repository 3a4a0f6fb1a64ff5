#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two hundred wrong command lines of vgpuctl: each has its exit code, says what is wrong in one line, and changes nothing.

The table is wrong_lines.txt: EXIT CODE | WORDS | what standard error has. A daemon with the VFs guest-a and guest-b (policy strict) is there
for all of them; one line in three is asked a second time with -o json, and then says the same as an object.

usage: wrong_lines_test.py
"""
import json
import pathlib
import shlex
import subprocess
import sys

from vgpuguest import daemon
from vgpuguest.paths import VGPUCTL

TABLE = pathlib.Path(__file__).with_name("wrong_lines.txt")
LEAST = 200
NAMES = {2: "usage", 4: "not found", 5: "refused", 3: "no vgpud", 6: "timed out"}


def rows():
    for number, line in enumerate(TABLE.read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            code, words, says = (part.strip() for part in line.split(" | ", 2))
            yield number, int(code), shlex.split(words), says


def run(runtime_dir, words):
    done = subprocess.run([VGPUCTL, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
                          env={"VGPUD_RUNTIME_DIR": runtime_dir, "PATH": "/usr/bin:/bin", "HOME": "/"})
    return done.returncode, done.stdout, done.stderr


def wrong_with(runtime_dir, code, words, says):
    """What is wrong with the answer to a wrong line; empty: nothing."""
    returned, out, err = run(runtime_dir, words)
    if returned != code or out or says not in err or err.count("\n") != 1 or not err.startswith("vgpuctl: "):
        return f"exit code {returned}, not {code}; {out!r} {err!r}, not {says!r}"
    return ""


def wrong_as_json(runtime_dir, code, words, says):
    returned, out, err = run(runtime_dir, [*words, "-o", "json"])
    try:
        answer = json.loads(err)
    except ValueError:
        return f"with -o json: {err!r} is not an object"
    if returned != code or out or answer["exit_code"] != code or says not in answer["error"] or answer["apiVersion"] != "vgpud/v1":
        return f"with -o json: exit code {returned}, not {code}; {out!r} {answer}"
    return ""


def main():
    table = list(rows())
    assert len(table) >= LEAST, f"{len(table)} wrong lines, not {LEAST}"
    assert len({tuple(words) for _, _, words, _ in table}) == len(table), "a line is there twice"
    problems = []
    with daemon.private_daemon([("guest-a", {"vram": "64MiB"}), ("guest-b", {"vram": "64MiB"})]) as vgpud:
        before = vgpud.request("GET", "/v1/vfs"), vgpud.request("GET", "/v1/gpu")
        for number, code, words, says in table:
            wrong = wrong_with(vgpud.runtime_dir, code, words, says)
            # A line with its own -o, or with --, can't take another one.
            if not wrong and number % 3 == 0 and not {"-o", "--output", "--", "trace"} & set(words):
                wrong = wrong_as_json(vgpud.runtime_dir, code, words, says)
            if wrong:
                problems.append(f"{TABLE.name}:{number}: vgpuctl {shlex.join(words)}: {wrong}")
        after = vgpud.request("GET", "/v1/vfs"), vgpud.request("GET", "/v1/gpu")
        assert without_use(before) == without_use(after), f"something has changed:\n{before}\n{after}"
    print("\n".join(problems))
    print(f"{len(table)} wrong lines, {len(problems)} are not answered as they should be")
    return 1 if problems else 0


def without_use(state):
    vfs, gpu = json.loads(json.dumps(state))
    for vf in vfs["vfs"]:
        del vf["utilization"], vf["events"], vf["server"]
    gpu.pop("switch_cost_ns")
    return vfs, gpu


if __name__ == "__main__":
    sys.exit(main())
