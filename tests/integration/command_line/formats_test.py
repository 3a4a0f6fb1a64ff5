#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The formats of lists: -o, --filter, --sort, --reverse, --no-headers and --watch, on a terminal and in a pipe.

usage: formats_test.py
"""
import csv
import io
import json
import os
import pty
import select
import signal
import subprocess

import yaml

from vgpuguest import daemon
from vgpuguest.paths import VGPUCTL

CLEAR = b"\x1b[H\x1b[2J"


class Line:
    def __init__(self, vgpud):
        self.environment = {"VGPUD_RUNTIME_DIR": vgpud.runtime_dir, "PATH": "/usr/bin:/bin"}

    def __call__(self, *words):
        done = subprocess.run([VGPUCTL, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
                              env=self.environment)
        assert done.returncode == 0 and done.stderr == "", f"{words}: {done.returncode} {done.stderr}"
        return done.stdout

    def json(self, *words):
        return json.loads(self(*words, "-o", "json"))

    def columns(self, *words):
        return self(*words).splitlines()[0].split()

    def names(self, *words):
        return self(*words, "-o", "name").split()

    def start(self, *words, stdout):
        return subprocess.Popen([VGPUCTL, *words], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, env=self.environment)


def equal(left, right):
    assert left == right, f"{left!r} is not {right!r}"


def check_formats(ctl):
    answer = ctl.json("list")
    equal(ctl.names("list"), [vf["name"] for vf in answer["vfs"]])
    equal(yaml.safe_load(ctl("list", "-o", "yaml")), answer)
    equal(yaml.safe_load(ctl("show", "a", "-o", "yaml")), ctl.json("show", "a"))
    equal(yaml.safe_load(ctl("config", "show", "-o", "yaml")), ctl.json("config", "show"))
    rows = list(csv.DictReader(io.StringIO(ctl("list", "-o", "csv"))))
    for row, vf in zip(rows, answer["vfs"], strict=True):
        for field in ("name", "weight", "slice_us", "vram_bytes", "uuid", "transient"):
            equal(row[field], str(vf[field]).lower() if isinstance(vf[field], bool) else str(vf[field]))
    assert "PRIORITY" not in ctl.columns("list"), "what all VFs have by default takes no column"
    ctl("set", "b", "--priority", "2")
    assert "PRIORITY" in ctl.columns("list"), "it does where one differs"
    assert {"UUID", "PRIORITY", "LIMIT"} < set(ctl.columns("list", "-o", "wide"))
    for what in ("gpus", "profiles", "stats", "report"):
        table = ctl(what)
        equal(len(ctl.names(what)), len(list(csv.DictReader(io.StringIO(ctl(what, "-o", "csv"))))))
        assert table.startswith(ctl.columns(what)[0]) and not ctl(what, "--no-headers").startswith(table.split()[0])
    equal(ctl("list", "--no-headers"), "".join(ctl("list").splitlines(keepends=True)[1:]))


def check_choice(ctl):
    equal(ctl.names("list", "--filter", "weight=300"), ["b"])
    equal(ctl.names("list", "--filter", "vram=16MiB"), ["a", "c-1"])
    equal(ctl.names("list", "--filter", "vram_bytes=16777216", "--filter", "name!=c-*"), ["a"])
    equal(ctl.names("list", "--filter", "NAME=c-?"), ["c-1"])
    equal(ctl.names("list", "--filter", "state=paused"), [])
    equal([vf["name"] for vf in ctl.json("list", "--filter", "transient=no")["vfs"]], [])
    equal([vf["name"] for vf in ctl.json("list", "--sort", "weight")["vfs"]], ["c-1", "a", "b"])
    equal(ctl.names("list", "--sort", "weight", "--reverse"), ["b", "a", "c-1"])
    equal(ctl.names("stats", "--sort", "slice", "--filter", "weight!=100"), ["c-1", "b"])


def check_watch(ctl):
    process = ctl.start("stats", "--watch", "20ms", "-o", "csv", stdout=subprocess.PIPE)
    lines = [process.stdout.readline().decode().split(",")[0] for _ in range(10)]
    equal(lines, ["name", "a", "b", "c-1", "a", "b", "c-1", "a", "b", "c-1"])
    process.send_signal(signal.SIGINT)
    equal(process.wait(30), -signal.SIGINT)
    terminal, inside = pty.openpty()
    process = ctl.start("list", "--watch", "20ms", stdout=inside)
    os.close(inside)
    equal(b"d " in screen(terminal), False)
    ctl("create", "d", "--vram", "16MiB", "--transient")
    while b"d " not in screen(terminal):
        pass
    process.kill()
    process.wait(30)
    os.close(terminal)


def screen(terminal):
    """What is on the terminal between two times that it is cleared."""
    seen = b""
    while seen.count(CLEAR) < 2:
        readable, _, _ = select.select([terminal], [], [], 30)
        assert readable, f"nothing comes any more after {seen!r}"
        seen += os.read(terminal, 65536)
    return seen.split(CLEAR)[1]


def main():
    vfs = [("a", {"vram": "16MiB"}), ("b", {"vram": "32MiB", "weight": 300}), ("c-1", {"vram": "16MiB", "weight": 9, "slice": "100us"})]
    with daemon.private_daemon(vfs) as vgpud:
        ctl = Line(vgpud)
        check_formats(ctl)
        check_choice(ctl)
        check_watch(ctl)
    print("all formats say the same")


if __name__ == "__main__":
    main()
