#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpud --cdi-file: the file is as the VFs are, for as long as vgpud lives, and its devices are those of vgpuctl cdi."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile

from harness import check, wait_until
from vgpuguest import daemon, paths, process

SMALL = {"vram": "16MiB"}


def devices(path):
    """{device: sockets in it}; nothing: there is no file."""
    try:
        spec = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return {each["name"]: [mount["hostPath"] for mount in each["containerEdits"]["mounts"]] for each in spec["devices"]}


def check_follows(directory):
    path = directory / "cdi" / "vgpud.json"
    path.parent.mkdir(mode=0o755)
    path.write_text("left by a vgpud that was killed")
    with daemon.private_daemon([], ["--cdi-file", str(path)]) as vgpud:
        wait_until(lambda: not path.exists(), "without a VF there is no file, whatever was left there")
        vgpud.create("a", **SMALL)
        a = vgpud.show("a")["channel_socket"]
        wait_until(lambda: devices(path) == {"a": [a], "all": [a]}, "a VF that is made is a device soon")
        check(path.stat().st_mode & 0o777 == 0o644, "everybody may read it")
        vgpud.create("b", **SMALL)
        b = vgpud.show("b")["channel_socket"]
        wait_until(lambda: devices(path) == {"a": [a], "b": [b], "all": [a, b]}, "two, and all of them")
        said = subprocess.run([paths.VGPUCTL, "--runtime-dir", vgpud.runtime_dir, "cdi"], capture_output=True, text=True, check=True, timeout=60)
        check(json.loads(said.stdout) == json.loads(path.read_text()), "it says what vgpuctl cdi says")
        vgpud.create("all", **SMALL)
        own = vgpud.show("all")["channel_socket"]
        wait_until(lambda: devices(path) == {"a": [a], "b": [b], "all": [own]}, "a VF of the name all has that name")
        vgpud.destroy("all")
        vgpud.destroy("b")
        wait_until(lambda: devices(path) == {"a": [a], "all": [a]}, "one that is destroyed is no device soon")
        check(os.listdir(path.parent) == ["vgpud.json"], "nothing lies beside it")
        vgpud.destroy("a")
        wait_until(lambda: not path.exists(), "no VF, no file")
        vgpud.create("c", **SMALL)
        wait_until(path.exists, "and it comes back")
    check(not path.exists(), "it is gone with vgpud")


def check_outlives(directory):
    """VFs that outlive vgpud stay devices."""
    path = directory / "kept.json"
    os.chmod(directory, 0o755)
    arguments = ["--keep-vfs", "--cdi-file", str(path)]
    with process.scratch_dir("vgpu-") as runtime_dir:
        log = os.path.join(runtime_dir, "log")
        start = [paths.VGPUD, "--runtime-dir", runtime_dir, *arguments]
        first = process.spawn(start, log)
        vgpud = daemon.Daemon(runtime_dir, log)
        vgpud.ctl("create", "kept", "--vram", "16MiB")
        wait_until(lambda: "kept" in (devices(path) or {}), "a VF")
        before = path.read_text()
        first.send_signal(signal.SIGUSR1)
        first.wait(30)
        check(path.read_text() == before, "a vgpud that leaves its VFs to the next leaves the file, too")
        second = process.spawn(start, log)
        try:
            check(vgpud.names() == ["kept"] and path.read_text() == before, "and the next goes on with both")
        finally:
            process.stop(second)
    check(not path.exists(), "until that one ends")


def check_refused(directory):
    (directory / "open").mkdir()
    (directory / "open").chmod(0o777)
    for place, reason in ((directory / "open" / "vgpud.json", "can be written by others"), ("vgpud.json", "is not an absolute path")):
        with process.scratch_dir("vgpu-") as runtime_dir:
            done = subprocess.run([paths.VGPUD, "--runtime-dir", runtime_dir, "--cdi-file", str(place)], capture_output=True, text=True, timeout=60,
                                  check=False)
        check(done.returncode != 0 and reason in done.stderr, f"refused with the reason: {done.stderr.strip()}")


def main():
    with tempfile.TemporaryDirectory() as name:
        check_follows(pathlib.Path(name))
        check_outlives(pathlib.Path(name))
        check_refused(pathlib.Path(name))


main()
