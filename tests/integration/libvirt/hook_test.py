#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl hook as libvirt calls it, without libvirt: VFs come and go with the domain, sockets are QEMU's user's, and what can't
work is refused with the reason. Needs PYTHONPATH=tools/lib."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "restart"))

import bed  # noqa: E402
from vgpuguest import daemon, paths  # noqa: E402

UID = 65534
UUID = "43979400-ac7a-42f1-b64e-09e640ed9d0d"
DOMAIN = """<domain type='qemu'>
  <name>guest-a</name>
  <uuid>43979400-ac7a-42f1-b64e-09e640ed9d0d</uuid>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
  <devices>%s</devices>
</domain>
"""
HOSTDEV = "<hostdev mode='subsystem' type='vfio-user'><source %s/></hostdev>"
LABEL = f"<seclabel type='dynamic' model='dac' relabel='yes'><label>+{UID}:+{UID}</label></seclabel></domain>"


def vgpuctl(runtime_dir, *arguments, text=""):
    return subprocess.run([paths.VGPUCTL, "--runtime-dir", runtime_dir, *arguments], input=text, capture_output=True, text=True,
                          timeout=60)


def native(vgpud, vf, settings=""):
    """What a libvirt that knows the element gives the hook."""
    return (DOMAIN % f"<hostdev mode='subsystem' type='vfio-user' managed='yes'><source type='unix' path='{vgpud.runtime_dir}/vf/{vf}.sock'"
            f" mode='client' vf='{vf}' {settings}/><alias name='hostdev0'/><address type='pci' domain='0x0000' bus='0x01' "
            "slot='0x00' function='0x0'/></hostdev>").replace("</domain>", LABEL)


def compiled(vgpud, *sources):
    done = vgpuctl(vgpud.runtime_dir, "define", "-", "--print", text=DOMAIN % "".join(HOSTDEV % each for each in sources))
    assert done.returncode == 0, done
    return done.stdout.replace("</domain>", LABEL)


def hook(vgpud, text, *words):
    return vgpuctl(vgpud.runtime_dir, "hook", "guest-a", *words, "-", text=text)


def passes(done):
    assert done.returncode == 0 and done.stdout == "", done


def refused(done, reason):
    assert done.returncode != 0 and reason in done.stderr, (reason, done)


def comes_and_goes(vgpud):
    xml = compiled(vgpud, "profile='1/8' weight='300'", "vf='mine'")
    vgpud.create("mine", vram="64MiB")
    for _ in range(5):
        passes(hook(vgpud, xml, "prepare", "begin"))
        made = vgpud.show("guest-a-vgpud0")
        assert made["weight"] == 300 and made["transient"] and made["ends_with_domain"], made
        for vf in (made, vgpud.show("mine")):
            assert (vf["domain"], vf["domain_uuid"]) == ("guest-a", UUID), vf
        assert "ends_with_domain" not in vgpud.show("mine")
        if os.geteuid() == 0:
            passes(hook(vgpud, xml, "start", "begin"))
            for name in vgpud.names():
                status = os.stat(vgpud.show(name)["vfio_user_socket"])
                assert (status.st_uid, status.st_mode & 0o777) == (UID, 0o600), status
        passes(hook(vgpud, xml, "stopped", "end"))
        passes(hook(vgpud, xml, "release", "end"))
        passes(hook(vgpud, xml, "release", "end"))
        assert vgpud.names() == ["mine"]
        assert os.stat(vgpud.show("mine")["vfio_user_socket"]).st_uid == os.geteuid()
        assert "domain" not in vgpud.show("mine")


def a_libvirt_that_knows_the_element(vgpud):
    xml = native(vgpud, "guest-a-hostdev0", "profile='1/8' weight='300'")
    passes(hook(vgpud, xml, "prepare", "begin"))
    made = vgpud.show("guest-a-hostdev0")
    assert made["weight"] == 300 and made["transient"], made
    if os.geteuid() == 0:
        passes(hook(vgpud, xml, "start", "begin"))
        assert os.stat(made["vfio_user_socket"]).st_uid == UID
    refused(hook(vgpud, xml, "restore", "begin"), "does not come along")
    passes(hook(vgpud, xml, "release", "end"))
    assert vgpud.names() == ["mine"], vgpud.names()
    refused(hook(vgpud, native(vgpud, "nobodys"), "prepare", "begin"), "vgpud has no VF nobodys")
    others = native(vgpud, "nobodys").replace(f"path='{vgpud.runtime_dir}", "path='/run/another")
    passes(hook(vgpud, others, "prepare", "begin"))


def a_crash_leaves_nothing_in_the_way(vgpud):
    xml = compiled(vgpud, "profile='1/8'")
    passes(hook(vgpud, xml, "prepare", "begin"))
    uuid = vgpud.show("guest-a-vgpud0")["uuid"]
    passes(hook(vgpud, xml, "prepare", "begin"))
    assert vgpud.show("guest-a-vgpud0")["uuid"] != uuid, "it is made anew"
    passes(hook(vgpud, xml, "release", "end"))


def wrong_ones_are_refused(vgpud):
    refused(hook(vgpud, compiled(vgpud, "profile='1/8'", "vf='nobodys'"), "prepare", "begin"), "vgpud has no VF nobodys")
    refused(hook(vgpud, compiled(vgpud, "profile='nonsense'"), "prepare", "begin"), "nonsense")
    refused(hook(vgpud, compiled(vgpud, "profile='1/8' vf='lasting'"), "prepare", "begin"), "made to stay")
    assert sorted(vgpud.names()) == ["lasting", "mine"], vgpud.names()
    xml = compiled(vgpud, "vf='mine'")
    for operation in ("migrate", "restore"):
        refused(hook(vgpud, xml, operation, "begin"), "does not come along")
    refused(hook(vgpud, xml.replace("slot='0x18'", "slot='up'"), "prepare", "begin"), "was changed")
    refused(hook(vgpud, xml[:-20], "prepare", "begin"), "line")
    refused(vgpuctl(vgpud.runtime_dir + "/none", "hook", "guest-a", "prepare", "begin", "-", text=xml), "no vgpud reachable")


def a_domain_names_its_tenant(vgpud):
    """What could never be is refused when it is defined, what can't be now when the domain starts."""
    domain, other = compiled(vgpud, "profile='1/8' tenant='team-a'"), compiled(vgpud, "profile='1/8' tenant='team-a' vf='beside'")
    passes(hook(vgpud, domain, "prepare", "begin"))
    made = vgpud.show("guest-a-vgpud0")
    assert (made["tenant"], made["vram_bytes"]) == ("team-a", 64 << 20), made
    refused(hook(vgpud, other, "prepare", "begin"), 'vf "beside": tenant team-a may have 1 vfs together, its VFs have 1 and would have 2')
    passes(hook(vgpud, domain, "release", "end"))
    passes(hook(vgpud, other, "prepare", "begin"))
    passes(hook(vgpud, other, "release", "end"))
    for source, reason in (("profile='1/4' tenant='team-a'", "tenant team-a may have 64MiB vram together"),
                           ("profile='1/8' tenant='team-a' weight='101'", "weight 101 is more than VFs of tenant team-a may have"),
                           ("profile='1/8' tenant='team-a' host-memory='1TiB'", "tenant team-a may have 288MiB host_memory together"),
                           ("profile='1/8' tenant='nobodys'", 'there is no tenant "nobodys"'),
                           ("profile='1/8' vf='slurm-7-0'", "can't be a domain's")):
        xml = DOMAIN % (HOSTDEV % source)
        if "slurm" not in source:
            refused(vgpuctl(vgpud.runtime_dir, "define", "-", "--connect", "test:///default", text=xml), reason)
        refused(hook(vgpud, compiled(vgpud, source), "prepare", "begin"), reason)
    passes(hook(vgpud, native(vgpud, "beside", "profile='1/8' tenant='team-a'"), "prepare", "begin"))
    assert vgpud.show("beside")["tenant"] == "team-a"
    # It is full now, and may be defined all the same.
    may_be = vgpuctl(vgpud.runtime_dir, "define", "-", "--connect", "test:///default", text=DOMAIN % (HOSTDEV % "profile='1/8' tenant='team-a'"))
    assert "tenant" not in may_be.stderr and "libvirt refuses the domain" in may_be.stderr, may_be  # that one has no QEMU
    passes(hook(vgpud, native(vgpud, "beside", "profile='1/8' tenant='team-a'"), "release", "end"))


def others_are_let_through(vgpud):
    for operation in ("prepare", "migrate", "restore", "start"):
        passes(hook(vgpud, DOMAIN % "", operation, "begin"))
        passes(hook(vgpud, "no XML at all", operation, "begin"))
    nobody = vgpuctl("/nonexistent", "hook", "other", "prepare", "begin", "-", text=DOMAIN % "")
    passes(nobody)


def outlives_a_killed_vgpud():
    """Where VFs outlive vgpud, so do those that end with their domain; and no longer than their processes."""
    with bed.supervised() as vgpud:
        xml = compiled(vgpud, "profile='1/8'")
        passes(hook(vgpud, xml, "prepare", "begin"))
        before = vgpud.show("guest-a-vgpud0")
        vgpud.kill()
        vgpud.start()
        after = vgpud.show("guest-a-vgpud0")
        for key in ("uuid", "domain", "domain_uuid", "ends_with_domain", "transient"):
            assert before[key] == after[key], (key, before, after)
        passes(hook(vgpud, xml, "release", "end"))
        assert vgpud.names() == []
        passes(hook(vgpud, xml, "prepare", "begin"))
        vgpud.kill(signal.SIGTERM)
        vgpud.start()
        assert vgpud.names() == [], "its processes have ended, and so has its domain's claim"
        vgpud.kill()
        vgpud.start()
        assert vgpud.names() == [], "and for good"


def installs():
    with tempfile.TemporaryDirectory() as folder:
        done = vgpuctl(folder, "hook", "--install", "--hooks-dir", f"{folder}/a/qemu.d")
        assert done.returncode == 0, done
        script = subprocess.run([f"{folder}/a/qemu.d/vgpud", "other", "prepare", "begin", "-"], input="<domain/>", text=True,
                                capture_output=True)
        assert script.returncode == 0, script


def main():
    with daemon.private_daemon() as vgpud:
        comes_and_goes(vgpud)
        a_libvirt_that_knows_the_element(vgpud)
        a_crash_leaves_nothing_in_the_way(vgpud)
        vgpud.ctl("create", "lasting", "--vram", "64MiB")
        wrong_ones_are_refused(vgpud)
        others_are_let_through(vgpud)
    with daemon.private_daemon((), ["--soft-gpu-vram", "512MiB", *(f"--tenant=team-a.{limit}" for limit in ("vfs=1", "vram=64MiB", "weight_each=100"))]) as vgpud:
        a_domain_names_its_tenant(vgpud)
    outlives_a_killed_vgpud()
    installs()
    print("ok")


sys.exit(main())
