#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpud as a service of a real systemd: programs on the channel sockets of two VFs go on while vgpud is restarted, killed and
found hanging; after a reboot the VFs are there again. Exit 77: no such system can be made here.

usage: systemd_test.py [DIRECTORY]   with the Debian packages that are in the directory, installed, upgraded under the programs
                                     and purged at the end; otherwise with what is built here
"""
import json
import pathlib
import sys
import tempfile
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(REPO / "tests" / "packages"))

import harness  # noqa: E402
import host  # noqa: E402
from harness import check  # noqa: E402

WORKER = REPO / "tests/restart/worker.py"
VFS = ("a", "b")
# Of the packages those that are for hosts.
FOR_HOSTS = ("vgpud", "vgpuctl", "libcuda1-vgpud")
# The worker is told to end through a pipe that somebody holds open.
START_WORKER = """mkfifo /tmp/end-{vf}; sleep infinity > /tmp/end-{vf} & echo $! > /tmp/holder-{vf}
VGPU_CHANNEL=$(vgpuctl show {vf} -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["channel_socket"])') \\
{library} setsid sh -c 'python3 /srv/worker.py > /tmp/said-{vf} 2>&1 < /tmp/end-{vf}; echo $? > /tmp/code-{vf}' > /dev/null 2>&1 &"""
# Packages make it the library that programs find.
LIBRARY = "LD_LIBRARY_PATH=$(dirname $(find /usr -name libcuda.so.1))"


class Vgpud:
    def __init__(self, machine):
        self.machine = machine

    def pid(self):
        return int(self.machine.do("systemctl show vgpud -P MainPID"))

    def wait_for_another(self, than):
        harness.wait_until(lambda: self.machine.shell("systemctl is-active vgpud")[0] == 0 and self.pid() not in (0, than),
                           "systemd has started another one", 120)
        return self.pid()

    def vfs(self):
        answer = json.loads(self.machine.do("vgpuctl --timeout 60 list -o json"))
        return {vf["name"]: vf for vf in answer["vfs"]}

    def servers(self):
        return sorted(self.machine.do("pgrep -x vgpud-vf || true").split())


def received(machine):
    """The time that each VF has had the GPU: it rises while its program works."""
    stats = json.loads(machine.do("vgpuctl --timeout 60 stats -o json"))
    return {vf["name"]: vf["received_ns"] for vf in stats["vfs"]}


def story(machine):
    return machine.shell("vgpuctl list; cat /tmp/said-* /tmp/code-*; journalctl -u vgpud -n 60 -o short-precise --no-pager")[1]


def check_they_work_on(machine, what):
    before = received(machine)
    harness.wait_until(lambda: all(received(machine)[vf] > before[vf] for vf in VFS), f"the programs go on: {what}", 120,
                       lambda: story(machine))
    if machine.shell("ls /tmp/code-*")[0] == 0:
        raise AssertionError(f"{what}, a program has ended: {story(machine)}")


def check_what_is_in_force(machine):
    gpu = json.loads(machine.do("vgpuctl gpu -o json"))
    missing = {row["name"]: row["why_not"] for row in gpu["protections"] if not row["in_force"]}
    check(missing == {}, f"every protection is in force in the sandbox of the unit: {missing}")
    check("cpu" in machine.do("cat /sys/fs/cgroup/vgpud.slice/vgpud.service/cgroup.subtree_control"),
          "VFs are in groups of their own below the unit")


def start_programs(machine, library):
    with machine.channel() as channel:
        channel.put(WORKER, "/srv/worker.py", 0o755)
    for vf in VFS:
        machine.do(START_WORKER.format(vf=vf, library=library))
    for vf in VFS:
        harness.wait_until(lambda: "working" in machine.shell(f"cat /tmp/said-{vf}")[1], f"a program works on {vf}", 120,
                           lambda: machine.shell(f"cat /tmp/said-{vf} /tmp/code-{vf}; journalctl -u vgpud -n 30")[1])


def end_programs(machine):
    for vf in VFS:
        machine.do(f"kill $(cat /tmp/holder-{vf})")
        harness.wait_until(lambda: machine.shell(f"test -e /tmp/code-{vf}")[0] == 0, f"the program of {vf} ends", 120)
        said = machine.do(f"cat /tmp/said-{vf}; cat /tmp/code-{vf}").splitlines()
        check(said[-1] == "0" and json.loads(said[-2])["rounds"] > 0, f"with 0, no result was wrong: {said[-1]}")


def check_upgrade(machine, vgpud):
    """Packages of the next version, while the programs run."""
    before, version = vgpud.pid(), machine.do("dpkg-query -W -f '${Version}' vgpud")
    machine.do(f"DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 {' '.join(host.APT)} install /srv/later/*.deb", 600)
    check(machine.do("dpkg-query -W -f '${Version}' vgpud") == f"{version}+next", f"upgraded from {version}")
    harness.wait_until(lambda: machine.shell("systemctl is-active vgpud")[0] == 0, "vgpud is active", 60)
    check(vgpud.pid() != before and "deleted" not in machine.do(f"readlink /proc/{vgpud.pid()}/exe"), "it is the new one")
    check_they_work_on(machine, "upgraded")


def check_purge(machine):
    machine.do(f"DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 {' '.join(host.APT)} purge {' '.join(FOR_HOSTS)}", 600)
    check(machine.shell("pgrep vgpud")[0] != 0, "purged, no process is left")
    units = machine.do("systemctl list-units --all --no-legend --plain 'vgpud*'").strip()
    check(units == "", f"no unit: {units}")
    left = machine.do("find / -xdev -path /srv -prune -o -path /usr/local -prune -o -path /tmp -prune -o -path '/var/l*/[dj]*' -prune -o "
                      "-path '/var/lib/apt*' -prune -o -name '*vgpu*' -print; ls -d /run/vgpud* /sys/fs/cgroup/vgpud* 2>/dev/null || true")
    ours = [path for path in left.split() if "vgpu-agent" not in path]
    check(ours == ["/etc/vgpud", "/etc/vgpud/vgpud.toml"] or ours == ["/etc/vgpud/vgpud.toml", "/etc/vgpud"],
          f"no file but what the administrator wrote: {ours}")


def test(prepare, also, packages):
    with host.booted(prepare, also) as machine:
        boot = machine.wait_until_up()
        vgpud = Vgpud(machine)
        harness.wait_until(lambda: machine.shell("systemctl is-active vgpud")[0] == 0, "vgpud is active", 120,
                           lambda: machine.shell("systemctl status vgpud; journalctl -u vgpud -n 30")[1])
        print(machine.shell("systemd-analyze security vgpud.service --no-pager | tail -1")[1].strip(), flush=True)
        check("soft0: 0 VFs" in machine.do("systemctl show vgpud -P StatusText"), "systemd knows what it does")
        check(json.loads(machine.do("vgpuctl gpu -o json"))["preempt_timeout_us"] == host.PATIENCE_US, "/etc/vgpud/vgpud.toml holds")
        for name in VFS:
            machine.do(f"vgpuctl create {name} --vram 64MiB")
        check_what_is_in_force(machine)
        uuids = {name: vf["uuid"] for name, vf in vgpud.vfs().items()}
        start_programs(machine, "" if packages else LIBRARY)
        servers = vgpud.servers()
        check(len(servers) == 2, "each VF has its process")
        first = vgpud.pid()
        machine.do("systemctl restart vgpud")
        second = vgpud.pid()
        check(second != first, "systemctl restart")
        check_they_work_on(machine, "restarted")
        machine.do(f"kill -9 {second}")
        third = vgpud.wait_for_another(second)
        check_they_work_on(machine, "killed")
        machine.do(f"kill -STOP {third}")
        vgpud.wait_for_another(third)
        check_they_work_on(machine, "found hanging by the watchdog")
        machine.do("systemctl reload vgpud")
        if packages:
            check_upgrade(machine, vgpud)
        check(vgpud.servers() == servers, "the VFs have the processes that they had")
        end_programs(machine)
        check("a" in machine.do("journalctl -b -o json VGPU_VF=a | head -1 | python3 -c "
                                "'import json, sys; print(json.loads(sys.stdin.readline())[\"VGPU_VF\"])'"),
              "the journal finds the lines of a VF")

        machine.do("systemctl stop vgpud")
        check(machine.shell("pgrep -x 'vgpud-vf|vgpud-keep|vgpud-exec'")[0] != 0, "stopped, nothing of it is left")
        check(sorted(vgpud.vfs()) == ["a", "b"], "who asks then starts it, through its socket")

        machine.shell("systemctl reboot", 5)
        machine.wait_until_up(after=boot)
        harness.wait_until(lambda: machine.shell("systemctl is-active vgpud")[0] == 0, "after a reboot it is active", 120)
        check({name: vf["uuid"] for name, vf in vgpud.vfs().items()} == uuids, "and the VFs are those that there were")
        if packages:
            check_purge(machine)


def main():
    if len(sys.argv) == 1:
        return test(host.install, (), False)
    import bed
    debs = [deb for deb in bed.find_debs(sys.argv[1]) if deb.name.split("_")[0] in FOR_HOSTS]
    with tempfile.TemporaryDirectory(prefix="packages-", dir="/var/tmp") as directory:
        test(host.installer(debs, bed.next_version(debs, directory)), host.needs(debs), True)


why = host.missing()
if why:
    print(f"skipped: {why}")
    sys.exit(77)
began = time.monotonic()
main()
print(f"{time.monotonic() - began:.0f} s")
