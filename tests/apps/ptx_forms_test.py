#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""ptx-forms on a program of nvcc's: its instructions are counted and none is refused; wrong questions are."""
import subprocess
import sys

TOOL, PROGRAM = sys.argv[1:]


def run(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=60)


seen = run("12.0", PROGRAM)
rows = [line.split("\t") for line in seen.stdout.splitlines()]
assert seen.returncode == 0 and rows[0][:2] == ["file", PROGRAM], seen
assert rows[0][2].endswith("functions 1, refused 0"), rows[0]
forms = {name: int(count) for kind, name, count in rows if kind == "form"}
assert forms["add.f32"] >= 1 and forms["st.global.f32"] >= 1 and forms["ret"] == 1, forms
older = run("5.0", PROGRAM)
assert older.returncode == 2 and "7.5" in older.stderr, older
assert run().returncode == 2 and run("7.5").returncode == 2
nothing = run("7.5", "/dev/null")
assert nothing.returncode == 0 and "images 0" in nothing.stdout, nothing
print("1 passed, 0 failed")
