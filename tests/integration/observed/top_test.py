#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl top in a real terminal (tmux), and as text: with 64 VFs the figures are those of the API, and the keys do what they say.

usage: top_test.py    environment: as observed_daemon.py says
"""
import contextlib
import json
import os
import re
import shlex
import subprocess

from observed_daemon import VGPUCTL, bed, check, eventually, run_tests

VFS = 64
ROW = re.compile(r"^(?P<name>vf-\d\d) +(?P<state>[a-z]+) +\[[# ]{10}\] +(?P<util>\d+)% +(?P<share>\d+)% +(?P<weight>\d+) +(?P<wait>\S+) "
                 r"+(?P<vram>\S+) +(?P<programs>\d+)  (?P<used_by>.*)$")


class Terminal:
    """A tmux of its own, of a given size, in which a command runs."""

    def __init__(self, it, *command, width=160, height=80):
        self.socket = f"{it.root}/tmux"
        line = shlex.join([VGPUCTL, "--runtime-dir", it.runtime, *command])
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), f"{line}; echo ended $?; read line")

    def tmux(self, *arguments):
        done = subprocess.run(["tmux", "-S", self.socket, *arguments], capture_output=True, text=True,
                              env=dict(os.environ, TERM="screen", LC_ALL="C.UTF-8"))
        check(done.returncode == 0, f"tmux {arguments}: {done.stderr}")
        return done.stdout

    def screen(self):
        return self.tmux("capture-pane", "-p").rstrip("\n").split("\n")

    def rows(self):
        return [match.groupdict() for line in self.screen() if (match := ROW.match(line.rstrip()))]

    def shows(self, text, what):
        eventually(lambda: any(text in line for line in self.screen()), f"{what}: {text!r} is on the screen", 20)

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)


@contextlib.contextmanager
def terminal(it, *command, **size):
    screen = Terminal(it, *command, **size)
    try:
        yield screen
    except BaseException:
        print("\n".join(screen.screen()), flush=True)
        raise
    finally:
        screen.end()


def make_vfs(it):
    for i in range(VFS):
        it.ctl("create", f"vf-{i:02}", "--vram", f"{i + 1}MiB", "--weight", str(10 + i), "--transient")


def rows_of_api(it):
    return {vf["name"]: {"state": "idle" if vf["state"] == "ready" else vf["state"], "share": f"{100 * vf['share']:.0f}",
                         "weight": str(vf["weight"]), "vram": f"0B/{vf['vram_bytes'] >> 20}MiB", "programs": "0", "util": "0"}
            for vf in it.json("list")["vfs"]}


def agrees(it, rows, what):
    expected = rows_of_api(it)
    check(len(rows) == VFS, f"{what}: {len(rows)} rows")
    for row in rows:
        got = {key: row[key] for key in expected[row["name"]]}
        # Halves are rounded in either way.
        check(abs(int(got.pop("share")) - int(expected[row["name"]].pop("share"))) <= 1, f"{what}: share of {row}")
        check(got == expected[row["name"]], f"{what}: {got} is {expected[row['name']]}")


def test_text_and_json_have_the_figures_of_the_api():
    with bed() as it:
        make_vfs(it)
        text = it.ctl("top", "--batch", "--count", "1", "--sort", "name")
        agrees(it, [match.groupdict() for line in text.splitlines() if (match := ROW.match(line))], "--batch")
        check(text.startswith("soft0 [") and "policy strict" in text.splitlines()[0], text.splitlines()[0])
        frames = it.ctl("top", "--batch", "--count", "2", "--every", "10ms", "-o", "json").splitlines()
        check(len(frames) == 2, f"a line each time: {len(frames)}")
        listed = {vf["name"]: vf for vf in it.json("list")["vfs"]}
        for row in json.loads(frames[1])["vfs"]:
            check(all(row[key] == listed[row["name"]][key] for key in ("weight", "vram_bytes", "vram_used_bytes", "share")), f"{row}")
        done = it.run("top")
        check(done.returncode == 2 and "--batch" in done.stderr, f"without a terminal: {done}")


def test_the_screen_shows_64_vfs_and_follows_changes():
    with bed() as it:
        make_vfs(it)
        with terminal(it, "top", "--every", "200ms", "--sort", "name") as top:
            eventually(lambda: len(top.rows()) == VFS, "all VFs are on the screen", 20)
            agrees(it, top.rows(), "the screen")
            it.ctl("set", "vf-07", "--weight", "999")
            eventually(lambda: [row["weight"] for row in top.rows() if row["name"] == "vf-07"] == ["999"], "a change shows up", 20)
            it.busy("vf-63")
            eventually(lambda: [row["state"] for row in top.rows() if row["name"] == "vf-63"] == ["running"], "a program shows up", 20)
            top.press("s", "s", "s", "s", "s")  # from name over share, wait, vram, programs to util
            eventually(lambda: (rows := top.rows()) and rows[0]["name"] == "vf-63" and int(rows[0]["util"]) > 50, "sorted by use", 20)
            top.press("q")
            top.shows("ended 0", "q ends it")


def test_keys_act_after_a_question_only():
    with bed() as it:
        it.create("vf-00", "vf-01")
        with terminal(it, "top", "--every", "200ms", "--sort", "name", height=12) as top:
            eventually(lambda: len(top.rows()) == 2, "both VFs are on the screen", 20)
            top.press("Down", "p")
            top.shows("pause vf-01? (y/n)", "the question")
            top.press("n", "Enter")
            top.shows("nothing was done", "no")
            check(it.json("show", "vf-01")["state"] == "ready", "no means no")
            top.press("p")
            top.shows("pause vf-01? (y/n)", "the question")
            top.press("y", "Enter")
            eventually(lambda: it.json("show", "vf-01")["state"] == "paused", "yes pauses it")
            eventually(lambda: [row["state"] for row in top.rows()] == ["idle", "paused"], "the screen says so", 20)
            top.press("p")
            top.shows("resume vf-01? (y/n)", "the question")
            top.press("y", "Enter")
            eventually(lambda: it.json("show", "vf-01")["state"] == "ready", "resumed")
            top.press("Up", "w")
            top.shows("new weight of vf-00 (now 100):", "the question")
            top.press("3", "0", "0", "Enter")
            top.shows("weight of vf-00: 100 -> 300? (y/n)", "the second question")
            top.press("y", "Enter")
            eventually(lambda: it.json("show", "vf-00")["weight"] == 300, "yes changes it")
            top.press("w")
            top.shows("new weight of vf-00 (now 300):", "the question")
            top.press("0", "Enter")
            top.shows("weight of vf-00: 300 -> 0? (y/n)", "the second question")
            top.press("y", "Enter")
            top.shows("weight 0 is out of range", "the refusal")
            check(it.json("show", "vf-00")["weight"] == 300, "nothing changed")
            it.end()
            top.shows("no vgpud reachable", "the end of vgpud")
            top.press("Escape")
            top.shows("ended 0", "Escape ends it")


run_tests(globals())
