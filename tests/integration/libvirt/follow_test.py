#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl follow with libvirt's own test driver, whose domains are in a file: whose VF is whose, in all places where it is shown,
and VFs whose domain has ended are freed. Needs PYTHONPATH=tools/lib."""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import urllib.parse

import harness
from vgpuguest import daemon, direct, paths, process

UUIDS = {"guest-a": "43979400-ac7a-42f1-b64e-09e640ed9d0d", "guest-b": "43979400-ac7a-42f1-b64e-09e640ed9d0e"}
SKIPPED = 77


def vgpuctl(*arguments, text=""):
    return subprocess.run([paths.VGPUCTL, *arguments], input=text, capture_output=True, text=True, timeout=60)


def note(vf):
    """As vgpuctl define writes it."""
    domain = f"""<domain type='kvm'><name>x</name><os><type arch='x86_64' machine='q35'>hvm</type></os><devices>
<hostdev mode='subsystem' type='vfio-user'><source vf='{vf}'/></hostdev></devices></domain>"""
    printed = vgpuctl("define", "-", "--print", text=domain).stdout
    return printed[printed.index("<metadata>"):printed.index("</metadata>")] + "</metadata>"


def follow(vgpud, node, *domains):
    """One look at a libvirt that runs `domains`: (name, VF)."""
    inside = "".join(f"<domain type='test'><name>{name}</name><uuid>{UUIDS[name]}</uuid>{note(vf) if vf else ''}<memory>8192</memory>"
                     f"<os><type>hvm</type></os></domain>" for name, vf in domains)
    node.write_text(f"<node>{inside}</node>")
    return vgpuctl("--runtime-dir", vgpud.runtime_dir, "follow", "--once", "--connect",
                   "test://" + urllib.parse.quote(str(node)))


def owner(vgpud, vf):
    shown = vgpud.show(vf)
    return shown.get("domain"), shown.get("domain_uuid")


def made_for(vgpud, vf, domain):
    vgpud.request("POST", "/v1/vfs", {"name": vf, "vram_bytes": 64 << 20, "domain": domain, "domain_uuid": UUIDS[domain],
                                      "ends_with_domain": True})


def looks(vgpud, node):
    for vf in ("mine", "other"):
        vgpud.create(vf, vram="64MiB")
    made_for(vgpud, "a-0", "guest-a")
    made_for(vgpud, "b-0", "guest-b")
    done = follow(vgpud, node, ("guest-a", "mine"))
    assert done.returncode == 0, done
    assert owner(vgpud, "mine") == ("guest-a", UUIDS["guest-a"]), vgpud.show("mine")
    assert owner(vgpud, "other") == (None, None)
    assert sorted(vgpud.names()) == ["a-0", "mine", "other"], (vgpud.names(), done)
    assert "VF b-0 is freed: its domain guest-b has ended" in done.stderr, done
    again = follow(vgpud, node, ("guest-a", "mine"))
    assert again.returncode == 0 and "VF" not in again.stderr, f"nothing is left to say: {again}"
    shown_everywhere(vgpud)
    done = follow(vgpud, node, ("guest-b", "mine"))
    assert owner(vgpud, "mine") == ("guest-b", UUIDS["guest-b"]), done
    assert sorted(vgpud.names()) == ["mine", "other"], (vgpud.names(), done)
    assert follow(vgpud, node, ("guest-b", None)).returncode == 0
    assert owner(vgpud, "mine") == ("guest-b", UUIDS["guest-b"]), "it runs, and may be getting it"
    assert follow(vgpud, node).returncode == 0
    assert owner(vgpud, "mine") == (None, None) and sorted(vgpud.names()) == ["mine", "other"]


def shown_everywhere(vgpud):
    program = direct.start(vgpud.show("mine"), [str(paths.BUILD / "tests/cuda/vgpu-launch"), "vectoradd"], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
    assert program.wait(60) == 0, program.stdout.read()
    uuid = UUIDS["guest-a"]
    for words in (["list"], ["stats"], ["report"]):
        text = vgpuctl("--runtime-dir", vgpud.runtime_dir, *words).stdout
        assert "DOMAIN" in text and "guest-a" in text, text
    assert f'domain="guest-a",domain_uuid="{uuid}"' in vgpuctl("--runtime-dir", vgpud.runtime_dir, "metrics").stdout
    _, stats = vgpud.stats()
    assert (stats["mine"]["domain"], stats["mine"]["domain_uuid"]) == ("guest-a", uuid), stats["mine"]
    trace = vgpuctl("--runtime-dir", vgpud.runtime_dir, "trace", "--last", "60s", "-o", "-").stdout
    titles = [event["args"]["name"] for event in json.loads(trace)["traceEvents"] if event.get("name") == "thread_name"]
    assert any(f"mine, domain guest-a {uuid}" in title for title in titles), titles
    row = next(row for row in vgpud.ctl("report")["rows"] if row["name"] == "mine")
    assert (row["domain"], row["domain_uuid"]) == ("guest-a", uuid), row


def another_of_the_same_name_is_left_alone(vgpud):
    made_for(vgpud, "twice", "guest-a")
    before = vgpud.show("twice")["uuid"]
    vgpud.destroy("twice")
    made_for(vgpud, "twice", "guest-a")
    try:
        vgpud.request("DELETE", f"/v1/vfs/twice?uuid={before}")
    except paths.ToolError as refused:
        assert "is not the one of uuid" in str(refused), refused
    else:
        raise AssertionError("another VF was destroyed")
    assert "twice" in vgpud.names()
    vgpud.request("DELETE", f"/v1/vfs/twice?uuid={vgpud.show('twice')['uuid']}")
    assert "twice" not in vgpud.names()


def wrong_ones_are_refused(vgpud, node):
    for name, body, field in (("mine", {"domain": "a"}, "domain_uuid"), ("mine", {}, "domain"),
                              ("mine", {"domain": "a\nb", "domain_uuid": UUIDS["guest-a"]}, "domain"),
                              ("mine", {"domain": "a", "domain_uuid": "x"}, "domain_uuid"),
                              ("nobodys", {"domain": "a", "domain_uuid": UUIDS["guest-a"]}, "nobodys")):
        try:
            vgpud.request("POST", f"/v1/vfs/{name}/domain", body)
        except paths.ToolError as refused:
            assert field in str(refused), refused
        else:
            raise AssertionError(f"not refused: {name} {body}")
    gone = vgpuctl("--runtime-dir", vgpud.runtime_dir, "follow", "--once", "--connect", f"test://{node}.none")
    assert gone.returncode != 0 and "no libvirt reachable" in gone.stderr, gone
    gone = vgpuctl("--runtime-dir", vgpud.runtime_dir + "/none", "follow", "--once", "--connect", f"test://{node}")
    assert gone.returncode == 3, gone


def a_libvirtd_that_dies_takes_nobody_along(folder):
    """libvirt's library writes to it without a care for SIGPIPE."""
    path = pathlib.Path(folder, "libvirt-sock")
    with socket.socket(socket.AF_UNIX) as dying:
        dying.bind(str(path))
        dying.listen(8)

        def die():
            with contextlib.suppress(OSError):  # shut down below
                while True:
                    dying.accept()[0].close()

        thread = threading.Thread(target=die)
        thread.start()
        try:
            for words in (["follow", "--once"], ["dumpxml", "x"]) * 20:
                done = vgpuctl(*words, "--connect", f"qemu+unix:///system?socket={path}")
                assert done.returncode == 3 and "no libvirt reachable" in done.stderr, (words, done)
        finally:
            dying.shutdown(socket.SHUT_RDWR)
            thread.join()


def main():
    if "built without libvirt" in vgpuctl("follow", "--once", "--connect", "test:///default").stderr:
        print("skipped: vgpuctl was built without libvirt (apt-get install libvirt-dev)")
        return SKIPPED
    with process.scratch_dir("vgpu-") as folder, daemon.private_daemon() as vgpud:
        node = pathlib.Path(folder, "node.xml")
        looks(vgpud, node)
        another_of_the_same_name_is_left_alone(vgpud)
        wrong_ones_are_refused(vgpud, node)
        # The runtimes of sanitizers take the calls of libvirt to xdr_u_int, and find none behind them: libvirt has it from libtirpc.
        if not harness.SANITIZED:
            a_libvirtd_that_dies_takes_nobody_along(folder)
    print("ok")
    return os.EX_OK


sys.exit(main())
