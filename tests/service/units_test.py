#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The units as they are installed: systemd understands every line, and what the service may do is no more than is known.

usage: units_test.py BUILD_ROOT   exit 77: nothing of systemd's is here
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# What systemd-analyze adds up of what vgpud.service may do: 0 nothing, 10 everything. docs/systemd.md says what it is.
MOST_EXPOSED = 25
# Only a newer systemd knows it; others say so and go on.
NEWER = "DelegateSubgroup"
# Lines about this machine, not about the units.
NOT_OURS = ("Unit vgpud.service not found", "is not executable", "man ")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def with_programs_that_are_there(text):
    """So that only the units are judged."""
    for line in text.splitlines():
        if line.startswith(("ExecStart=", "ExecReload=")):
            text = text.replace(line.split("=", 1)[1].split()[0], "/bin/true", 1)
    return text


def complaints(root, units):
    _, said = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *map(str, units))
    return [line for line in said.splitlines() if str(root) in line and NEWER not in line and not any(each in line for each in NOT_OURS)]


def check_drop_in(root, units, service):
    """The one for real GPUs, as an administrator links it: it is understood, and lets the service see devices."""
    (shipped,) = pathlib.Path(root).glob("**/share/vgpud/systemd/real-gpu.conf")
    linked = pathlib.Path(f"{service}.d/real-gpu.conf")
    linked.parent.mkdir()
    linked.symlink_to(shipped)
    assert not complaints(root, units), complaints(root, units)
    _, said = run("systemd-analyze", "security", "--offline=yes", "--no-pager", str(service))
    without = next(line for line in said.splitlines() if "PrivateDevices=" in line)
    linked.unlink()
    linked.parent.rmdir()
    _, said = run("systemd-analyze", "security", "--offline=yes", "--no-pager", str(service))
    alone = next(line for line in said.splitlines() if "PrivateDevices=" in line)
    assert alone != without, f"the drop-in changes nothing: {alone}"


def main():
    build = sys.argv[1]
    if shutil.which("systemd-analyze") is None:
        print("skipped: no systemd-analyze (Debian: systemd)")
        return 77
    with tempfile.TemporaryDirectory() as root:
        environment = dict(os.environ, DESTDIR=root)
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--tags", "systemd"], check=True,
                       env=environment, stdout=subprocess.DEVNULL)
        directories = sorted(pathlib.Path(root).glob("**/lib/systemd/system"))
        assert len(directories) == 1, directories
        units = sorted(directories[0].iterdir())
        print([unit.name for unit in units])
        assert [unit.name for unit in units] == ["vgpud-follow.service", "vgpud-metrics.socket", "vgpud.service", "vgpud.slice", "vgpud.socket"]
        for unit in units:
            unit.write_text(with_programs_that_are_there(unit.read_text()))
        service = directories[0] / "vgpud.service"
        text = service.read_text()
        assert not complaints(root, units), complaints(root, units)
        check_drop_in(root, units, service)
        code, said = run("systemd-analyze", "security", "--offline=yes", "--no-pager", f"--threshold={MOST_EXPOSED}",
                         str(service))
        print(said.splitlines()[-1] if said else "")
        assert code == 0, said
        # The judge works: without its restrictions it would be refused.
        service.write_text("\n".join(line for line in text.splitlines() if not line.startswith("Restrict")))
        assert run("systemd-analyze", "security", "--offline=yes", "--no-pager", f"--threshold={MOST_EXPOSED}",
                   str(service))[0] != 0
        # Files of systemd's other tools, tried on an empty root.
        for tool, kind in (("systemd-sysusers", "sysusers.d"), ("systemd-tmpfiles", "tmpfiles.d")):
            (file,) = pathlib.Path(root).glob(f"**/lib/{kind}/vgpud.conf")
            with tempfile.TemporaryDirectory() as empty:
                pathlib.Path(empty, "etc").mkdir()
                pathlib.Path(empty, "etc/passwd").write_text("root:x:0:0::/:/bin/sh\n")
                pathlib.Path(empty, "etc/group").write_text("root:x:0:\n")
                code, said = run(tool, f"--root={empty}", *(["--create"] if kind == "tmpfiles.d" else []), str(file))
                if os.geteuid() != 0:
                    continue
                assert code == 0, said
                if kind == "sysusers.d":
                    assert "vgpu:" in pathlib.Path(empty, "etc/group").read_text()
                else:
                    assert pathlib.Path(empty, "var/lib/vgpud").is_dir()
    return 0


sys.exit(main())
