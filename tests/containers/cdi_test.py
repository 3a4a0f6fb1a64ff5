#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl cdi: what it writes is what the Container Device Interface, version 0.5.0, has."""
import json
import os
import pathlib
import re
import subprocess

from harness import check
from vgpuguest import daemon, paths

# What a file may have, by place; every name is required but env and mounts, of which one is.
SPEC = {"cdiVersion", "kind", "devices", "containerEdits"}
EDITS = {"env", "mounts", "hooks"}
MOUNT = {"hostPath", "containerPath", "options"}


def check_edits(edits):
    assert edits and set(edits) <= EDITS, edits
    for variable in edits.get("env", []):
        assert re.fullmatch(r"[A-Z_]+=[^\0]+", variable), variable
    for mount in edits.get("mounts", []):
        assert set(mount) == MOUNT and mount["containerPath"].startswith("/") and os.path.exists(mount["hostPath"]), mount
        assert "bind" in mount["options"], "without that it is no file of the host"
    for hook in edits.get("hooks", []):
        assert set(hook) == {"hookName", "path", "args"} and hook["hookName"] == "createContainer" and os.access(hook["path"], os.X_OK), hook


def check_spec(spec):
    assert set(spec) == SPEC and spec["cdiVersion"] == "0.5.0", spec
    assert re.fullmatch(r"[a-z0-9.-]+\.[a-z]+/[a-z0-9_-]+", spec["kind"]), spec["kind"]
    check_edits(spec["containerEdits"])
    for device in spec["devices"]:
        assert set(device) == {"name", "containerEdits"}, device
        assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?", device["name"]), device["name"]
        check_edits(device["containerEdits"])
    assert len({device["name"] for device in spec["devices"]}) == len(spec["devices"])


def cdi(vgpud, *words):
    return subprocess.run([str(paths.VGPUCTL), "--runtime-dir", vgpud.runtime_dir, "cdi", *words], capture_output=True,
                          text=True, timeout=60)


def check_hook(hooks, directory):
    """It makes the cache of the dynamic linker below the root that the bundle names, and never keeps a container from starting."""
    (hook,) = hooks

    def call(state):
        return subprocess.run([hook["path"], *hook["args"][1:]], input=state, capture_output=True, text=True, timeout=60)

    for state, reason in (("", "no JSON"), ("{}", "names no bundle"), ('{"bundle": "relative"}', "names no bundle"),
                          ('{"bundle": "/nowhere"}', "/nowhere/config.json")):
        done = call(state)
        check(done.returncode == 0 and reason in done.stderr, f"a hook that can't work says why and is no failure: {state} {done}")
    bundle = pathlib.Path(directory, "bundle")
    library = bundle / "rootfs/usr/lib/x86_64-linux-gnu/libcuda.so.1"
    library.parent.mkdir(parents=True)
    (bundle / "rootfs/etc").mkdir()
    library.write_bytes(paths.SHIM.read_bytes())
    for root in ("rootfs", str(bundle / "rootfs")):
        (bundle / "config.json").write_text(json.dumps({"root": {"path": root}}))
        done = call(json.dumps({"ociVersion": "1.0.2", "bundle": str(bundle), "pid": 1}))
        cache = bundle / "rootfs/etc/ld.so.cache"
        if os.geteuid() == 0:
            check(done.returncode == 0 and b"libcuda.so.1" in cache.read_bytes(), f"the cache has the library: {done}")
            cache.unlink()


def main():
    options = {"vram": "64MiB"}
    with daemon.private_daemon([("guest-a", options), ("1b", options), ("ends-", options)]) as vgpud:
        done = cdi(vgpud)
        check(done.returncode == 0, f"it prints: {done.stderr}")
        spec = json.loads(done.stdout)
        check_spec(spec)
        check([device["name"] for device in spec["devices"]] == ["guest-a", "1b", "all"] and '"ends-" is left out' in done.stderr,
              "each VF is a device, but for names that no device may have, which it says")
        (socket,) = [mount["hostPath"] for mount in spec["devices"][0]["containerEdits"]["mounts"]]
        check(socket == vgpud.show("guest-a")["channel_socket"], "a device has the socket of its VF and no other")
        sockets = [mount["hostPath"] for mount in spec["devices"][2]["containerEdits"]["mounts"]]
        check(sockets == [vgpud.show(name)["channel_socket"] for name in ("guest-a", "1b")], "the device all has those of all devices")
        edits = spec["containerEdits"]
        names = sorted(mount["containerPath"] for mount in edits["mounts"] if mount["containerPath"].startswith("/usr/lib64/"))
        check(names == ["/usr/lib64/" + name for name in ("libcuda.so", "libcuda.so.1", "libnvidia-ml.so.1")], f"all libraries: {names}")
        check(edits["env"] == ["VGPU_CHANNEL=/run/vgpud"] and not any("env" in device["containerEdits"] for device in spec["devices"]),
              "all devices have the same variable, so that a container may have several")
        check_hook(edits["hooks"], vgpud.runtime_dir)
        path = pathlib.Path(vgpud.runtime_dir, "spec.json")
        done = cdi(vgpud, "--file", str(path))
        check(done.stdout.split() == ["vgpud.dev/vf=guest-a", "vgpud.dev/vf=1b", "vgpud.dev/vf=all"], "written, it says what devices are called")
        check(json.loads(path.read_text()) == spec and path.stat().st_mode & 0o777 == 0o644, "and everybody may read it")
        vgpud.destroy("1b")
        cdi(vgpud, "--file", str(path))
        check([d["name"] for d in json.loads(path.read_text())["devices"]] == ["guest-a", "all"], "written again, it is as things are")
        before = path.read_text()
        for words, reason in ((("--library", "/nowhere/libcuda.so.1"), "--library"), (("--file", "/nowhere/spec.json"), "/nowhere")):
            done = cdi(vgpud, "--file", str(path), *words) if words[0] == "--library" else cdi(vgpud, *words)
            check(done.returncode == 1 and reason in done.stderr, f"refused with the reason: {done.stderr.strip()}")
        check(path.read_text() == before and os.listdir(path.parent).count("spec.json") == 1, "and nothing is changed")


main()
