#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thousands of wrong configurations, state files and requests: each is refused in words, with its place, and nothing is changed.

A vgpud with two GPUs and two VFs is given files with one thing wrong, through `vgpud --check-config`, `vgpuctl config reload` and
`vgpuctl apply`, and wrong requests on its control socket. After each, `export` must be what it was, to the byte.

usage: wrong_inputs.py [COUNT] [--seed N]    COUNT: of all kinds together, 10000
"""
import argparse
import pathlib
import random
import re
import subprocess
import time

import harness
import wrong_text
from vgpuguest import control, daemon, process
from vgpuguest.paths import VGPUCTL, VGPUD

RIGHT = '[gpu]\nsoft_gpu_vram = "4GiB"\n[gpu.one]\n[gpu.two]\npolicy = "reserve"\n'


def names_place(said, path, lines):
    return any(re.search(re.escape(f"{path}:{line}:"), said) for line in lines)


def names_key(said, text, lines):
    """What only the daemon knows is wrong is said with the name of the VF or GPU, and the key."""
    before, line = text.splitlines()[:lines[-1] - 1], text.splitlines()[lines[-1] - 1]
    return before[-1][1:-1].split(".")[1] in said and line.split(" ")[0] in said


class Bed:
    def __init__(self, vgpud, config, scratch):
        self.vgpud, self.config, self.scratch = vgpud, config, pathlib.Path(scratch)
        self.before = self.export()
        self.refused = {}
        self.problems = []

    def run(self, program, *words):
        done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")

    def ctl(self, *words):
        return self.run(VGPUCTL, "--runtime-dir", self.vgpud.runtime_dir, "--timeout", "20", *words)

    def export(self):
        code, text = self.ctl("export")
        harness.check(code == 0, f"export works: {text}")
        return text

    def check(self, how, what, ok, said):
        self.refused[how] = self.refused.get(how, 0) + 1
        if not ok:
            self.problems.append(f"{how}: {what}: {said[:800]}")
        after = self.export()
        if after != self.before:
            raise AssertionError(f"{how}: {what} is refused and changed something:\n{after}\nbefore:\n{self.before}")


def check_config(bed, dice):
    text, lines, what = wrong_text.wrong_file(dice, wrong_text.CONFIG_TABLES)
    path = bed.scratch / "wrong.toml"
    path.write_text(text, encoding="utf-8")
    code, said = bed.run(VGPUD, "--check-config", "--config", str(path))
    bed.check("vgpud --check-config", f"{what}\n{text}", code == 2 and names_place(said, path, lines), f"{code}: {said}")


def reload(bed, dice):
    text, lines, what = wrong_text.wrong_file(dice, wrong_text.CONFIG_TABLES)
    bed.config.write_text(RIGHT + text if "[gpu" not in text else text, encoding="utf-8")
    lines = [line + (RIGHT.count("\n") if "[gpu" not in text else 0) for line in lines]
    code, said = bed.ctl("config", "reload")
    bed.config.write_text(RIGHT, encoding="utf-8")
    bed.check("vgpuctl config reload", f"{what}\n{text}", code == 2 and names_place(said, bed.config, lines), f"{code}: {said}")


def apply(bed, dice):
    text, lines, what = wrong_text.wrong_file(dice, wrong_text.STATE_TABLES)
    path = bed.scratch / "state.toml"
    path.write_text(text, encoding="utf-8")
    code, said = bed.ctl("apply", "--file", str(path))
    bed.check("vgpuctl apply", f"{what}\n{text}", code == 2 and (names_place(said, path, lines) or names_key(said, text, lines)),
              f"{code}: {said}")


def request(bed, dice):
    method, path, body, what = wrong_text.wrong_request(dice)
    status, said = control.ask(f"{bed.vgpud.runtime_dir}/control.sock", method, path,
                               body if isinstance(body, bytes) else body.encode("utf-8", "replace"), timeout=20)
    bed.check("request", f"{method} {path} {what}", 400 <= status < 500 and '"error"' in said, f"{status}: {said}")


WAYS = (check_config, reload, apply, request)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("count", nargs="?", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    with process.scratch_dir("vgpu-") as scratch:
        config = pathlib.Path(scratch) / "vgpud.toml"
        config.write_text(RIGHT, encoding="utf-8")
        with daemon.private_daemon([], ["--config", str(config), "--state-dir", scratch + "/state"]) as vgpud:
            vgpud.ctl("create", "a", "--gpu", "one", "--vram", "64MiB", "--weight", "77")
            vgpud.ctl("create", "b", "--gpu", "two", "--vram", "64MiB", "--guarantee", "20%")
            bed = Bed(vgpud, config, scratch)
            begun = time.monotonic()
            for i in range(options.count):
                WAYS[i % len(WAYS)](bed, dice)
            harness.check(not bed.problems, f"{len(bed.problems)} are not refused as they should be:\n" + "\n\n".join(bed.problems[:20]))
            for how, count in sorted(bed.refused.items()):
                print(f"{how}: {count} refused, nothing changed")
            print(f"{options.count} in {time.monotonic() - begun:.0f} s, seed {options.seed}")
            harness.check(vgpud.ctl("config", "reload") is not None, "and the right file is still read")


if __name__ == "__main__":
    harness.main(main, needs_guest=False)
