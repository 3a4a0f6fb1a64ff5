#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages in a system of their own: installed, tried, upgraded under a running program, removed, purged, and
nothing is left. Exit 77: no such system can be made here.

usage: packages_test.py [DIRECTORY [SUITE]]   where the .deb files are, and of which release; by default what tools/make-packages
                                              left for this machine's
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bed
from bed import APT, NAMES

WORKER = bed.REPO / "tests/restart/worker.py"
NONE = "/usr/share/libcuda1-vgpud/none.conf"
ASK = "vgpuctl --timeout 60"


def check(condition, what):
    if not condition:
        raise AssertionError(what)
    print(f"ok: {what}", flush=True)


def wait_until(condition, what, explain):
    deadline = time.monotonic() + 90
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {what}: {explain()}")
        time.sleep(0.05)
    print(f"ok: {what}", flush=True)


def check_installed(system):
    check("vgpud" in system.do("vgpud", "--version") and "vgpuctl" in system.do("vgpuctl", "--version"), "the programs start")
    check(system.units() == {"vgpud.service": "enabled", "vgpud.socket": "enabled", "vgpud-metrics.socket": "disabled",
                             "vgpud.slice": "static"}, f"units: {system.units()}")
    check("/vgpud/libcuda.so.1" in system.do("ldconfig", "-p"), "programs find libcuda.so.1")
    check("-I/usr/include/vgpud" in system.do("pkg-config", "--cflags", "vgpud"), "pkg-config finds the headers")
    system.sh("printf '#include <uapi/vgpu_channel_sock.h>\\nint main(void) { return 0; }\\n' > /tmp/a.c && "
              "gcc -Wall -Werror $(pkg-config --cflags vgpud) -o /tmp/a /tmp/a.c && /tmp/a")
    check(True, "and a C program builds with them")
    check("vgpu" in system.people(), "the group is there")
    check("installed" in system.do("dkms", "status", "vgpu"), f"dkms has built the driver: {system.do('dkms', 'status', 'vgpu').strip()}")
    modules = system.sh("find /lib/modules -name 'vgpu.ko*'").split()
    check(len(modules) == 1 and "pci:v" in system.do("modinfo", "-F", "alias", modules[0]), f"for the kernel that there is: {modules}")
    owned = system.sh("dpkg -L libcuda1-vgpud | grep '\\.so'").split()
    check(owned and all("/vgpud/" in path for path in owned), f"no file has a name that is NVIDIA's: {owned}")


def check_upgrade(system, packages, scratch):
    """A program on a VF goes on while the packages are replaced."""
    log, said = os.path.join(scratch, "vgpud.log"), os.path.join(scratch, "worker.log")
    daemon = ("vgpud", "--keep-vfs", "--runtime-dir", "/run/vgpud", "--state-dir", "/var/lib/vgpud")
    read = lambda path: pathlib.Path(path).read_text() if os.path.exists(path) else ""  # noqa: E731
    old = system.start(*daemon, log=log)
    system.sh(f"{ASK} create a --vram 64MiB")
    shutil.copy(WORKER, system.root / "srv")
    channel = system.sh(f"{ASK} show a -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)[\"channel_socket\"])'").strip()
    worker = system.start("env", f"VGPU_CHANNEL={channel}", "python3", "/srv/worker.py", stdin=subprocess.PIPE, log=said)
    wait_until(lambda: "working" in read(said), "a program works on a VF, with the library that the linker found", lambda: read(said) + read(log))
    servers = {pid: program for pid, program in system.processes().items() if "vgpud-" in program}
    check(sorted(os.path.basename(each) for each in servers.values()) == ["vgpud-exec", "vgpud-keep", "vgpud-vf"], f"with its processes: {servers}")
    system.do("update-alternatives", "--set", "vgpud-libcuda", NONE)
    received = lambda: int(system.sh(f"{ASK} stats a -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)[\"vfs\"][0][\"received_ns\"])'"))  # noqa: E731,E501

    system.do(*APT, "install", *packages)
    check("+next" in system.sh("dpkg-query -W vgpud"), "upgraded: " + " ".join(system.sh("dpkg-query -W '*vgpu*'").split()))
    check(os.readlink("/etc/alternatives/vgpud-libcuda".replace("/etc", f"{system.root}/etc", 1)) == NONE, "the administrator's choice is kept")
    before = received()
    wait_until(lambda: received() > before, "the program goes on beside the old vgpud", lambda: read(said) + read(log))
    old.send_signal(signal.SIGUSR1)
    check(old.wait(60) == 0, "the old one makes room")
    new = system.start(*daemon, log=log)
    before = received()
    wait_until(lambda: received() > before, "the program goes on under the new one", lambda: read(said) + read(log))
    still = {pid: program for pid, program in system.processes().items() if "vgpud-" in program}
    check(set(servers) <= set(still) and all(still[pid].endswith("(deleted)") for pid in servers), f"in the processes of before: {still}")
    check(any(program.endswith("/usr/bin/vgpud") for program in system.processes().values()), "and vgpud is the new program")
    worker.stdin.close()
    check(worker.wait(60) == 0, f"it ends, every result was right: {read(said)}")
    new.send_signal(signal.SIGTERM)
    check(new.wait(60) == 0, "the new one stops")
    wait_until(lambda: not system.processes(), "and no process is left", system.processes)


def difference(before, after):
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def test(debs, suite, scratch):
    system = bed.Bed(scratch, suite, debs)
    packages = system.take(debs)
    upgrade = system.take(bed.next_version(debs, scratch))
    before, people, processes = system.files(), system.people(), system.processes()
    check(system.units() == {} and not processes, f"before: {len(before)} files, {len(people)} users and groups, no unit, no process")
    system.do(*APT, "install", *packages)
    print(f"installed: {len(difference(before, system.files()))} files, {sorted(system.people() - people)}, {len(system.units())} units", flush=True)
    check_installed(system)
    check_upgrade(system, upgrade, scratch)
    kept = system.root / "var/lib/vgpud"
    definitions = difference({}, {str(path): 1 for path in kept.rglob("*")})
    check(definitions, f"vgpud has written down: {[path.removeprefix(str(system.root)) for path in definitions]}")
    system.do(*APT, "remove", *NAMES)
    check(all(os.path.exists(path) for path in definitions), "removed, what VFs were stays")
    check("libcuda.so.1" not in system.do("ldconfig", "-p"), "nobody finds libcuda.so.1 any more")
    check(not system.sh("find /lib/modules -name 'vgpu.ko*'"), "the driver is gone")
    system.do("dpkg", "--purge", *NAMES)
    left = difference(before, system.files())
    left = [path for path in left if path not in ("./var/lib/vgpud",)]
    check(not left, f"purged, the files are those of before: {left[:20]}")
    check(not os.path.exists(kept) and not os.path.exists(system.root / "run/vgpud"), "nothing is in /var/lib and /run")
    # Debian leaves groups: files of theirs may be anywhere.
    check(system.people() - people == {"vgpu"} and not people - system.people(), "the group vgpu alone is left")
    check(system.units() == {} and not system.processes(), "no unit, no process")


def main():
    suite = sys.argv[2] if len(sys.argv) > 2 else bed.this_release()
    debs = bed.find_debs(sys.argv[1] if len(sys.argv) > 1 else bed.REPO / ".cache/packages" / suite)
    with tempfile.TemporaryDirectory(prefix="packages-", dir="/var/tmp") as scratch:
        try:
            test(debs, suite, scratch)
        finally:
            for mounted in ("dev", "proc"):
                subprocess.run(["umount", "-R", "-l", pathlib.Path(scratch, "root", mounted)], check=False, capture_output=True)


why = bed.host.missing()
if why:
    print(f"skipped: {why}")
    sys.exit(77)
# Namespaces of its own, so that no mount and no process of it is left.
if os.environ.get("PACKAGES_TEST_INSIDE") != "1":
    os.environ["PACKAGES_TEST_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv])
main()
