#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The units of systemd that docs/libvirt.md shows, as systemd itself reads them. Needs PYTHONPATH=tools/lib."""
import pathlib
import re
import shutil
import subprocess
import sys

from vgpuguest import paths, process

SKIPPED = 77
STAND_INS = {"vgpud.service": f"[Unit]\nDescription=vgpud\n[Service]\nType=notify\nExecStart={paths.VGPUD}\n",
             "libvirtd.service": "[Unit]\nDescription=libvirtd\n[Service]\nExecStart=/bin/true\n"}


def blocks():
    text = (paths.REPO / "docs/libvirt.md").read_text()
    found = re.findall(r"`(/etc/systemd/system/[^`]+)`.*?^```ini\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return {name.removeprefix("/etc/systemd/system/"): body.replace("/usr/bin/vgpuctl", str(paths.VGPUCTL)) for name, body in found}


def verify(folder, units):
    """What systemd says of them; empty: nothing is wrong."""
    for name, body in {**STAND_INS, **units}.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(body)
    services = sorted(str(path) for path in pathlib.Path(folder).glob("*.service"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *services], capture_output=True, text=True,
                          timeout=60)
    return "".join(line + "\n" for line in done.stderr.splitlines() if folder in line or any(pathlib.Path(s).name in line for s in services))


def main():
    units = blocks()
    assert sorted(units) == ["libvirtd.service.d/vgpud.conf", "vgpud-follow.service"], units
    if shutil.which("systemd-analyze") is None:
        print("skipped: no systemd-analyze here")
        return SKIPPED
    with process.scratch_dir("vgpu-") as folder:
        said = verify(folder, units)
        assert said == "", said
    for name, right, wrong in (("libvirtd.service.d/vgpud.conf", "After=vgpud.service", "Aftr=vgpud.service"),
                               ("vgpud-follow.service", "DynamicUser=yes", "DynamicUser=perhaps")):
        with process.scratch_dir("vgpu-") as folder:
            assert verify(folder, {**units, name: units[name].replace(right, wrong)}) != "", f"{wrong} was not noticed"
    print("ok")
    return 0


sys.exit(main())
