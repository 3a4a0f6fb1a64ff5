#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the hook writes into a domain's AppArmor profile, as AppArmor's own parser reads it: with libvirt's template and rules, the
sockets of the domain's VFs and no others; out again at the end, to the byte. Loads nothing, so it needs no AppArmor in the kernel."""
import os
import pathlib
import re
import shutil
import subprocess

import harness
import libvirt_bed as bed
import libvirt_host
from libvirt_bed import UUID, ctl, hostdev, ok
from vgpuguest import paths

PROFILES = "/etc/apparmor.d"
PROFILE = pathlib.Path(PROFILES, "libvirt", f"libvirt-{UUID}")
LABELS = (f"<seclabel type='dynamic' model='apparmor' relabel='yes'><label>libvirt-{UUID}</label></seclabel>"
          "<seclabel type='dynamic' model='dac' relabel='yes'><label>+0:+0</label></seclabel></domain>")


def use_profiles_of_libvirt():
    """In this test's own /etc/apparmor.d: this machine's, and what libvirt's package brings."""
    everything = pathlib.Path("/run/libvirt/apparmor.d")
    shutil.copytree(PROFILES, everything, symlinks=True)
    for source in (libvirt_host.other(), pathlib.Path("/")):
        package = source and next(iter(source.glob("prefix/etc/apparmor.d")), source / "etc/apparmor.d")
        if package and (package / "libvirt/TEMPLATE.qemu").exists():
            shutil.copytree(package, everything, symlinks=True, dirs_exist_ok=True)
            break
    else:
        harness.skip("no AppArmor profiles of libvirt here: apt-get install libvirt-daemon-system, or VGPUD_LIBVIRT=trixie")
    subprocess.run(["mount", "--bind", everything, PROFILES], check=True)
    template = (everything / "libvirt/TEMPLATE.qemu").read_text()
    PROFILE.write_text(template.replace("LIBVIRT_TEMPLATE", f"libvirt-{UUID}"))


def rules():
    """{path: mode} of files of vgpud in the profile, as the parser reads it."""
    done = subprocess.run(["apparmor_parser", "-Q", "-K", "-b", PROFILES, "-d", str(PROFILE)], capture_output=True, text=True, timeout=60)
    harness.check(done.returncode == 0, f"AppArmor's parser takes it{'' if done.returncode == 0 else done.stderr}")
    return {path: mode for mode, path in re.findall(r"^Mode:\s+(\w+):\w+\s+Name:\s+\((/run/vgpud[^)]*)\)", done.stdout, re.MULTILINE)}


def hook(xml, *words):
    done = subprocess.run([paths.VGPUCTL, "hook", bed.NAME, *words, "-"], input=xml, capture_output=True, text=True, timeout=60)
    harness.check(done.returncode == 0, f"hook {' '.join(words)} {done.stderr}")


def test():
    libvirt_host.enter()
    if shutil.which("apparmor_parser") is None:
        harness.skip("no apparmor_parser here: apt-get install apparmor")
    use_profiles_of_libvirt()
    vgpud = bed.Vgpud()
    try:
        vgpud.start()
        os.makedirs(bed.FOLDER)
        ok(ctl("create", "mine", "--vram", "64MiB"), "create mine")
        path = pathlib.Path(bed.FOLDER, "domain.xml")
        path.write_text(bed.domain(hostdev("<source profile='1/8'/>") + hostdev("<source vf='mine'/>")))
        xml = ok(ctl("define", str(path), "--print"), "compiled").replace("</domain>", LABELS)
        before = PROFILE.read_text()
        harness.check(rules() == {}, "nothing of vgpud's is in it")
        hook(xml, "prepare", "begin")
        for _ in range(2):
            hook(xml, "start", "begin")
            harness.check(rules() == {"/run/vgpud/vf/mine.sock": "rwa", f"/run/vgpud/vf/{bed.NAME}-vgpud0.sock": "rwa",
                                      "/run/vgpud/vf/held-state.vdi": "rk"}, "its VFs' sockets and the image that holds it, and no more")
        hook(xml, "release", "end")
        harness.check(PROFILE.read_text() == before, "and they are out again, to the byte")
        PROFILE.write_text(before.replace("}", '  "/run/vgpud/vf/x.sock rw, # vgpud\n}'))
        harness.check(subprocess.run(["apparmor_parser", "-Q", "-K", "-b", PROFILES, str(PROFILE)], capture_output=True).returncode != 0,
                      "a wrong rule would have been noticed")
    finally:
        vgpud.stop()


harness.main(test, needs_guest=False)
