#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpud as a service of a real systemd: a program on a channel socket goes on while vgpud is restarted, killed and found
hanging; after a reboot the VFs are there again. Exit 77: no such system can be made here."""
import json
import pathlib
import sys
import time

import harness
import host
from harness import check

WORKER = pathlib.Path(__file__).resolve().parents[1] / "restart" / "worker.py"
# The worker is told to end through a pipe that somebody holds open.
START_WORKER = """mkfifo /tmp/end; sleep infinity > /tmp/end & echo $! > /tmp/holder
VGPU_CHANNEL=$(vgpuctl show a -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["channel_socket"])') \\
LD_LIBRARY_PATH=$(dirname $(find /usr -name libcuda.so.1)) setsid sh -c 'python3 /srv/worker.py > /tmp/said 2>&1 < /tmp/end; \\
echo $? > /tmp/code' > /dev/null 2>&1 &"""


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


def rounds(machine):
    """Turns of the VF so far: they rise while its program has the GPU."""
    stats = json.loads(machine.do("vgpuctl --timeout 60 stats -o json"))
    return {vf["name"]: vf for vf in stats["vfs"]}["a"]["received_ns"]


def check_it_works_on(machine, what):
    before = rounds(machine)
    harness.wait_until(lambda: rounds(machine) > before, f"the program goes on: {what}", 120)
    check(machine.shell("test -e /tmp/code")[0] != 0, f"and it has not ended: {machine.shell('cat /tmp/said')[1]}")


def check_what_is_in_force(machine):
    gpu = json.loads(machine.do("vgpuctl gpu -o json"))
    missing = {row["name"]: row["why_not"] for row in gpu["protections"] if not row["in_force"]}
    check(missing == {}, f"every protection is in force in the sandbox of the unit: {missing}")
    check("cpu" in machine.do("cat /sys/fs/cgroup/vgpud.slice/vgpud.service/cgroup.subtree_control"),
          "VFs are in groups of their own below the unit")


def test():
    with host.booted() as machine:
        boot = machine.wait_until_up()
        vgpud = Vgpud(machine)
        harness.wait_until(lambda: machine.shell("systemctl is-active vgpud")[0] == 0, "vgpud is active", 120,
                           lambda: machine.shell("systemctl status vgpud; journalctl -u vgpud -n 30")[1])
        check("soft0: 0 VFs" in machine.do("systemctl show vgpud -P StatusText"), "systemd knows what it does")
        for name in ("a", "b"):
            machine.do(f"vgpuctl create {name} --vram 64MiB")
        check_what_is_in_force(machine)
        uuids = {name: vf["uuid"] for name, vf in vgpud.vfs().items()}
        with machine.channel() as channel:
            channel.put(WORKER, "/srv/worker.py", 0o755)
        machine.do(START_WORKER)
        harness.wait_until(lambda: "working" in machine.shell("cat /tmp/said")[1], "a program works", 120,
                           lambda: machine.shell("cat /tmp/said /tmp/code; journalctl -u vgpud -n 30")[1])
        servers = vgpud.servers()
        check(len(servers) == 2, "each VF has its process")
        first = vgpud.pid()
        machine.do("systemctl restart vgpud")
        second = vgpud.pid()
        check(second != first, "systemctl restart")
        check_it_works_on(machine, "restarted")
        machine.do(f"kill -9 {second}")
        third = vgpud.wait_for_another(second)
        check_it_works_on(machine, "killed")
        machine.do(f"kill -STOP {third}")
        vgpud.wait_for_another(third)
        check_it_works_on(machine, "found hanging by the watchdog")
        machine.do("systemctl reload vgpud")
        check(vgpud.servers() == servers, "the VFs have the processes that they had")
        machine.do("kill $(cat /tmp/holder)")
        harness.wait_until(lambda: machine.shell("test -e /tmp/code")[0] == 0, "the program ends", 120)
        said = machine.do("cat /tmp/said; cat /tmp/code").splitlines()
        check(said[-1] == "0" and json.loads(said[-2])["rounds"] > 0, f"with 0, no result was wrong: {said}")
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


why = host.missing()
if why:
    print(f"skipped: {why}")
    sys.exit(77)
began = time.monotonic()
test()
print(f"{time.monotonic() - began:.0f} s")
