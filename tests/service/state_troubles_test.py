#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What vgpud does when the disk of its state is full, read-only, or holds damaged files (docs/troubles.md): with several GPUs, on a
real file system of 1 MiB that is mounted for this test. Needs root; skips where nothing may be mounted."""
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile

import harness
from harness import check
from vgpuguest import daemon
from vgpuguest.paths import VGPUCTL

GPUS = ["--with-gpu", "one", "--with-gpu", "two"]
OK, FAILED, REFUSED = 0, 1, 5


def ctl(vgpud, *words):
    run = subprocess.run([VGPUCTL, "--runtime-dir", vgpud.runtime_dir, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=60, check=False)
    return run.returncode, run.stdout, run.stderr


@contextlib.contextmanager
def small_disk():
    with tempfile.TemporaryDirectory() as directory:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "vgpud-test", directory], capture_output=True, text=True,
                                 check=False)
        if mounted.returncode != 0:
            harness.skip(f"nothing may be mounted here: {mounted.stderr.strip()}")
        try:
            yield pathlib.Path(directory)
        finally:
            subprocess.run(["umount", "--lazy", directory], check=True)


def remount(disk, how):
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


def fill(disk):
    path = disk / "fill"
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096) > 0:
            pass
    return path


def exported(vgpud):
    status, out, err = ctl(vgpud, "export")
    check(status == OK, f"export: {err}")
    return out


def start(disk):
    return daemon.private_daemon([], [*GPUS, "--state-dir", str(disk / "state"), "--history-interval-ms", "100"])


def check_full(disk):
    with start(disk) as vgpud:
        for name, gpu in (("a", "one"), ("b", "two")):
            check(ctl(vgpud, "create", name, "--gpu", gpu, "--vram", "64MiB")[0] == OK, f"{name} is made")
        before = exported(vgpud)
        filler = fill(disk)
        status, _, err = ctl(vgpud, "create", "c", "--gpu", "one", "--vram", "64MiB")
        check(status == FAILED and "could not be written down" in err and "--transient" in err, f"a new VF is refused: {status} {err}")
        check(exported(vgpud) == before, "and is not half there")
        check(ctl(vgpud, "create", "t", "--gpu", "one", "--vram", "64MiB", "--transient")[0] == OK, "a transient one needs no disk")
        status, _, err = ctl(vgpud, "set", "a", "--weight", "300")
        check(status == FAILED and "in force" in err and "lost when vgpud ends" in err, f"a change says that it does not last: {err}")
        check(vgpud.show("a")["weight"] == 300, "and is in force")
        harness.wait_until(lambda: json.loads(ctl(vgpud, "stats", "-o", "json")[1])["gpus"][0]["history"]["state"] == "failing",
                           "the history says that it fails")
        filler.unlink()
        check(ctl(vgpud, "set", "a", "--weight", "400")[0] == OK, "with room again, the next change is written")
        harness.wait_until(lambda: json.loads(ctl(vgpud, "stats", "-o", "json")[1])["gpus"][0]["history"]["state"] == "on",
                           "and so is the history")
    with start(disk) as vgpud:
        check(vgpud.show("a")["weight"] == 400 and vgpud.show("b")["gpu"] == "two", "the next vgpud has it")


def check_read_only(disk):
    remount(disk, "ro")
    with start(disk) as vgpud:
        check(sorted(vgpud.names()) == ["a", "b"], "what can be read is there")
        status, _, err = ctl(vgpud, "create", "c", "--gpu", "one", "--vram", "64MiB")
        check(status == FAILED and "--transient" in err, f"new ones are refused with what to do: {status} {err}")
        status, _, err = ctl(vgpud, "destroy", "b")
        check(status == FAILED and "would be back after a restart" in err, f"one that can't be forgotten: {err}")
        check(ctl(vgpud, "create", "t", "--gpu", "one", "--vram", "64MiB", "--transient")[0] == OK, "transient ones are made")
    remount(disk, "rw")
    (disk / "state").rename(disk / "away")
    (disk / "state").write_text("no directory")
    with start(disk) as vgpud:
        check(vgpud.names() == [], "without its directory it starts, without VFs of earlier")
        check("new ones have to be transient" in pathlib.Path(vgpud.log).read_text(), "and says so")
    (disk / "state").unlink()
    (disk / "away").rename(disk / "state")
    with start(disk) as vgpud:
        check(sorted(vgpud.names()) == ["a", "b"], "nothing is lost")


def check_damaged(disk):
    vfs = disk / "state" / "vfs"
    for damage in (b"", b"{", b"\0" * 512, b"\xff\xfe", (vfs / "a.json").read_bytes()[:-20], b'{"version": 1, "name": "b"}'):
        good = (vfs / "a.json").read_bytes()
        (vfs / "a.json").write_bytes(damage)
        with start(disk) as vgpud:
            shown = vgpud.show("a")
            check(shown["state"] == "lost" and "vgpuctl destroy a" in shown["reason"], f"one damaged file loses one VF: {shown}")
            check(vgpud.show("b")["state"] == "ready", "not the others")
            check(ctl(vgpud, "create", "a", "--gpu", "one", "--vram", "64MiB")[0] == REFUSED, "its name is not given away")
            check((vfs / "a.json").read_bytes() == damage, "and the file is not touched")
        (vfs / "a.json").write_bytes(good)
    with start(disk) as vgpud:
        check(vgpud.show("a")["state"] == "ready" and vgpud.show("a")["weight"] == 400, "with the file put right it is back")
    for usage in (disk / "state").rglob("usage*.db"):
        good = usage.read_bytes()
        usage.write_bytes(b"garbage" * 100)
        with start(disk) as vgpud:
            states = [gpu["history"]["state"] for gpu in json.loads(ctl(vgpud, "stats", "-o", "json")[1])["gpus"]]
            check("off" in states, f"a damaged history is not used: {states}")
            check(vgpud.show("a")["state"] == "ready", "and VFs are as ever")
        check(usage.read_bytes() == b"garbage" * 100, "it is not overwritten")
        usage.write_bytes(good)


def check_a_lost_name_is_no_slip(disk):
    with start(disk) as vgpud:
        for name in ("web-1", "web-2"):
            check(ctl(vgpud, "create", name, "--gpu", "one", "--vram", "64MiB")[0] == OK, f"{name} is made")
    (disk / "state" / "vfs" / "web-1.json").write_bytes(b"{")
    with start(disk) as vgpud:
        for name, suggested in (("web-3", True), ("web-1", False)):
            err = ctl(vgpud, "set", name, "--weight", "3")[2]
            check(("did you mean" in err) == suggested, f"another VF is suggested for a slip, not for a VF that is lost: {err}")


def main():
    if os.geteuid() != 0:
        harness.skip("mounting a small disk needs root")
    with small_disk() as disk:
        check_full(disk)
        check_read_only(disk)
        check_damaged(disk)
        check_a_lost_name_is_no_slip(disk)


if __name__ == "__main__":
    harness.main(main, needs_guest=False)
