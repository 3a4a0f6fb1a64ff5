#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/demo says what it is for, and what is wrong with its options, before it sets anything up.

usage: demo_usage_test.py REPO_ROOT
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def main():
    environment = {key: value for key, value in os.environ.items() if key != "VGPUD_BUILD_DIR"}
    with tempfile.TemporaryDirectory() as directory:
        tools = pathlib.Path(directory)
        shutil.copy(pathlib.Path(sys.argv[1]) / "tools/demo", tools / "demo")
        # It ends the demo, and leaves a trace.
        (tools / "setup").write_text(f"#!/bin/sh\ntouch {tools}/was-set-up\nexit 9\n")
        (tools / "setup").chmod(0o755)

        def run(*words):
            done = subprocess.run([tools / "demo", *words], capture_output=True, text=True, timeout=60, check=False, env=environment)
            was_set_up = (tools / "was-set-up").exists()
            (tools / "was-set-up").unlink(missing_ok=True)
            return done.returncode, done.stdout, done.stderr, was_set_up

        for words in (["--help"], ["-h"], ["--direct", "--help"]):
            code, out, _, was_set_up = run(*words)
            assert code == 0 and "usage: tools/demo" in out and "set -" not in out and not was_set_up, (words, code, out)
        for words, wrong in ((["--jsn", "x"], "--jsn"), (["--direct", "later"], "later"), (["--json", "x", "y"], "y")):
            code, _, err, was_set_up = run(*words)
            assert code == 2 and f"no option {wrong}\n" in err and "usage: tools/demo" in err and not was_set_up, (words, code, err)
        for words in ([], ["--direct"], ["--json", "--help"], ["--json=x", "--direct"], ["--apps", "anything"]):
            code, _, err, was_set_up = run(*words)
            assert code == 9 and was_set_up, (words, code, err)
    print("tools/demo answers before it sets anything up")
    return 0


if __name__ == "__main__":
    sys.exit(main())
