#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A domain with a VF from its definition to its end, over and over, with a real libvirtd; nothing may be left. A command of its own,
too long for the suites.

  libvirt_cycles.py [--from N] [--count N] [--virsh]     whole cycles: define, start, run a CUDA program, re-weight, plug in a second
                                                         VF, run on both, unplug, destroy, start again, undefine. --virsh: with virsh
                                                         and the hook alone, and two VFs from the start.
  libvirt_cycles.py --native [--from N] [--count N]      whole cycles with the libvirt that contrib/libvirt/build has built, which
                                                         knows the element: no QEMU arguments of ours in the running domain.
  libvirt_cycles.py --kills [--from N] [--count N]       QEMU, libvirtd and vgpud killed (SIGKILL) at random moments of short cycles;
                                                         whatever was killed is started again, as a service manager does, and then
                                                         the next start has to work.

Needs PYTHONPATH=tools/lib:tests/vm and VGPUD_BUILD_DIR, as in tests/vm/meson.build."""
import argparse
import contextlib
import os
import pathlib
import random
import subprocess
import threading
import time

import harness
import libvirt_bed as bed
import libvirt_host
from libvirt_bed import ctl, ok, vfs
from libvirt_host import virsh
from vgpuguest import paths, process
from vgpuguest.program import GuestProgram

SPARE = "<source profile='1/8' weight='200'/>"
WHAT = ("qemu", "libvirtd", "vgpud")


class Stock:
    """A libvirt that gets QEMU arguments from vgpuctl."""
    first, second = "vgpud0", "vgpud1"

    @staticmethod
    def define(hostdevs):
        return ctl("define", written(hostdevs))


class ByVirsh(Stock):
    """The same, with virsh and the hook alone."""

    @staticmethod
    def define(hostdevs):
        path = written(hostdevs)
        pathlib.Path(path).write_text(ok(ctl("define", path, "--print"), "compiled once"))
        return virsh("define", path)


class Native:
    """One that knows the element."""
    first, second = "hostdev0", "vgpud0"

    @staticmethod
    def define(hostdevs):
        path = written(hostdevs)
        text = pathlib.Path(path).read_text()
        port = "<controller type='pci' model='pcie-root-port'/>"
        pathlib.Path(path).write_text(text.replace("<cpu ", "<features><acpi/></features><cpu ").replace(port, port * 2, 1))
        return ctl("define", path)


def written(hostdevs):
    path = pathlib.Path(bed.FOLDER, "domain.xml")
    path.write_text(bed.domain("".join(bed.hostdev(each) for each in hostdevs)))
    return str(path)


def run_on(running, *devices):
    programs = [GuestProgram(running, harness.command("vectoradd"), environment={"CUDA_VISIBLE_DEVICES": str(device)})
                for device in devices]
    for program in programs:
        harness.check_passes(program)


def of_this_place():
    """Processes in this test's mount namespace and of its VFs, by name."""
    own, names = os.readlink("/proc/self/ns/mnt"), []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
                if line and (os.readlink(entry / "ns/mnt") == own or bed.NAME in line):
                    names.append(pathlib.Path(line.split("\0")[0]).name)
    return sorted(names)


def nothing_is_left(expected):
    harness.wait_until(lambda: vfs() == {}, "no VF is left", seen=lambda: str(vfs()))
    harness.check(set(os.listdir("/run/vgpud/vf")) <= {"held-state.vdi"}, f"no socket: {os.listdir('/run/vgpud/vf')}")
    harness.check(os.listdir("/var/lib/vgpud/vfs") == [], f"no definition: {os.listdir('/var/lib/vgpud/vfs')}")
    harness.check(virsh("list", "--all", "--name").stdout.split() == [], "no domain")
    left = [str(path) for path in pathlib.Path("/etc/libvirt").rglob("*.xml") if bed.NAME in path.read_text()]
    harness.check(left == [], f"no metadata: {left}")
    rules = subprocess.run(["grep", "-rl", bed.NAME, "/etc/apparmor.d/libvirt"], capture_output=True, text=True).stdout
    harness.check(rules == "", f"no AppArmor rule: {rules}")
    harness.wait_until(lambda: of_this_place() == expected, "no process", seen=lambda: f"{of_this_place()}, not {expected}")


def whole_cycle(how, expected):
    first, second = (f"{bed.NAME}-{alias}" for alias in (how.first, how.second))
    ok(how.define([SPARE] * 2 if how is ByVirsh else [SPARE]), "define")
    ok(virsh("start", bed.NAME), "start")
    harness.check({bed.owner(vf) for vf in vfs().values()} == {(bed.NAME, bed.UUID)}, "its VFs are there and its own")
    live = ok(virsh("dumpxml", bed.NAME), "dumpxml")
    harness.check(("qemu:commandline" in live) == (how is not Native), "QEMU arguments are there, or not with a libvirt that knows the element")
    running = bed.wait_for_guest()
    run_on(running, 0)
    ok(ctl("set", first, "--weight", "500"), "re-weight it")
    harness.check(vfs()[first]["weight"] == 500, "its weight is 500 now")
    if how is ByVirsh:
        run_on(running, 0, 1)
    else:
        ok(ctl("attach", bed.NAME, "--profile", "1/8", "--live"), "plug in a second VF")
        harness.wait_until(lambda: running.shell("test -e /dev/vgpu1")[0] == 0, "the guest has it", 60)
        run_on(running, 0, 1)
        ok(ctl("detach", bed.NAME, "--vf", second, "--live"), "unplug it")
        harness.wait_until(lambda: running.shell("test -e /dev/vgpu1")[0] != 0, "the guest has lost it", 60)
        harness.check(list(vfs()) == [first], "and it is gone")
    ok(virsh("destroy", bed.NAME), "destroy")
    harness.wait_until(lambda: vfs() == {}, "its VFs are gone")
    ok(virsh("start", bed.NAME), "start again")
    ok(virsh("destroy", bed.NAME), "destroy again")
    ok(virsh("undefine", bed.NAME), "undefine")
    nothing_is_left(expected)


def qemu():
    """Its process id; nothing: there is none."""
    with contextlib.suppress(OSError, ValueError):
        return int(pathlib.Path(f"/run/libvirt/qemu/{bed.NAME}.pid").read_text())
    return None


class Killer:
    """Kills `what` after `delay` seconds."""

    def __init__(self, what, delay, victims):
        self.what, self.victims, self.hit = what, victims, False
        self.timer = threading.Timer(delay, self.kill)
        self.timer.start()

    def kill(self):
        pid = qemu() if self.what == "qemu" else self.victims[self.what].process.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
                self.hit = True


def short_steps(while_well):
    """What a cycle does that needs no guest that is up. Any of it may fail when something is killed."""
    steps = (lambda: virsh("start", bed.NAME), lambda: ctl("attach", bed.NAME, "--profile", "1/8", "--live"),
             lambda: ctl("set", f"{bed.NAME}-vgpud0", "--weight", "500"), lambda: ctl("attach", bed.NAME, "--profile", "1/8", "--config"),
             lambda: ctl("detach", bed.NAME, "--vf", "vgpud1", "--config"), lambda: virsh("destroy", bed.NAME),
             lambda: virsh("start", bed.NAME), lambda: virsh("destroy", bed.NAME))
    for step in steps:
        if not while_well():
            return
        step()


def killed(number, chance, victims, longest, expected):
    what = chance.choice(WHAT)
    delay = chance.uniform(0, longest)
    ok((ByVirsh if number % 2 == 0 else Stock).define([SPARE]), "define")
    killer = Killer(what, delay, victims)
    try:
        short_steps(lambda: not killer.hit)
        killer.timer.join()
        if what == "qemu" and not killer.hit:
            ok(virsh("start", bed.NAME), "start, to have somebody to kill")
            killer.kill()
    finally:
        killer.timer.join()
    for name, victim in victims.items():
        if name == what and killer.hit:
            victim.process.wait(20)
            victim.start()
    print(f"killed {number}: {what} after {delay:.2f} s{'' if killer.hit else ' (too late)'}", flush=True)
    # A guest that lost its VF is stopped by whoever looks after it; everything else has to be right by itself.
    if bed.NAME in virsh("list", "--name").stdout.split():
        virsh("destroy", bed.NAME)
    ok(virsh("start", bed.NAME), "the next start works")
    there = {name: vf for name, vf in vfs().items() if name == f"{bed.NAME}-vgpud0"}
    harness.check([vf["state"] for vf in there.values()] == ["ready"] and all(vf["client_connected"] for vf in there.values()),
                  "and QEMU has its VF")
    harness.check({bed.owner(vf) for vf in there.values()} == {(bed.NAME, bed.UUID)}, "which is the domain's")
    ok(virsh("destroy", bed.NAME), "destroy")
    ok(virsh("undefine", bed.NAME), "undefine")
    nothing_is_left(expected)


def campaign(arguments, vgpud, libvirtd):
    expected = of_this_place()
    harness.check({"libvirtd", "vgpud", "vgpuctl"} <= set(expected), f"what runs here: {expected}")
    victims = {"vgpud": vgpud, "libvirtd": libvirtd}
    if arguments.kills:
        begin = time.monotonic()
        ok(Stock.define([SPARE]), "define")
        short_steps(lambda: True)
        ok(virsh("undefine", bed.NAME), "undefine")
        longest = time.monotonic() - begin
    for number in range(arguments.first, arguments.first + arguments.count):
        if arguments.kills:
            killed(number, random.Random(f"{arguments.seed}/{number}"), victims, longest, expected)
        else:
            whole_cycle(Native if arguments.native else ByVirsh if arguments.virsh else Stock, expected)
        print(f"DONE {number}", flush=True)


def test():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the first")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--virsh", action="store_true")
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--kills", action="store_true")
    parser.add_argument("--keep-vfs", action="store_true", help="VFs outlive vgpud")
    parser.add_argument("--seed", default="1")
    arguments = parser.parse_args()
    libvirt_host.enter(paths.REPO / ".cache" / "libvirt" / "prefix" if arguments.native else None)
    bed.NAME = f"cycle{os.getpid()}"
    vgpud = bed.Vgpud(*(["--keep-vfs"] if arguments.keep_vfs else []))
    try:
        vgpud.start()
        os.makedirs(bed.FOLDER)
        os.chmod(bed.FOLDER, 0o777)
        following = bed.follower()
        with libvirt_host.libvirtd(lambda: ok(ctl("hook", "--install"), "install the hook"), labels=int(arguments.native)) as libvirtd:
            campaign(arguments, vgpud, libvirtd)
        process.stop(following)
    except BaseException:
        for log in (bed.FOLLOWER_LOG, vgpud.log, libvirt_host.Libvirtd.log):
            print(f"{log}\n{process.tail(log)}", flush=True)
        raise
    finally:
        vgpud.stop()


harness.main(test)
