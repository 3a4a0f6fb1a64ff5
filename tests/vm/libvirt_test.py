#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real libvirtd with a domain whose administrator wrote a <hostdev> and nothing else: it starts, runs a CUDA program, gets
a second VF while another program runs, refuses to be saved, and leaves nothing behind."""
import json
import os
import pathlib
import subprocess

import harness
import libvirt_host
from libvirt_host import virsh
from vgpuguest import guest, paths, process
from vgpuguest.program import GuestProgram

FOLDER = "/run/vgpud/guest-a"  # consoles and command ports, as QEMU's user may write them
NAME = "guest-a"


def ctl(*arguments):
    return subprocess.run([paths.VGPUCTL, "--timeout", "30", *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120)


def ok(done, what):
    harness.check(done.returncode == 0, what if done.returncode == 0 else f"{what}: {done.stdout[-300:]} {done.stderr[-600:]}")
    return done.stdout


def refused(done, reason):
    is_so = done.returncode != 0 and reason in done.stderr
    harness.check(is_so, f"refused: {reason}" if is_so else f"not refused with '{reason}': {done.returncode} {done.stderr[-600:]}")


def vfs():
    return {vf["name"]: vf for vf in json.loads(ok(ctl("list", "-o", "json"), "vgpuctl list"))["vfs"]}


def config():
    return ok(virsh("dumpxml", "--inactive", NAME), "dumpxml")


def domain(hostdevs, machine="q35"):
    kernel = paths.kernel_dir(paths.KERNEL_SUITES[0])
    port = "<controller type='pci' model='pcie-root-port'/>"
    channels = "".join(f"<channel type='unix'><source mode='bind' path='{FOLDER}/cmd{i}'/>"
                       f"<target type='virtio' name='vgpu.cmd.{i}'/></channel>" for i in range(guest.COMMAND_PORTS))
    return f"""<domain type='qemu'>
  <name>{NAME}</name>
  <uuid>43979400-ac7a-42f1-b64e-09e640ed9d0d</uuid>
  <memory unit='MiB'>512</memory>
  <vcpu>2</vcpu>
  <os>
    <type arch='x86_64' machine='{machine}'>hvm</type>
    <kernel>{kernel}/vmlinuz</kernel>
    <initrd>{kernel}/initrd.img</initrd>
    <cmdline>console=ttyS0 panic=-1 mitigations=off no_timer_check quiet</cmdline>
  </os>
  <cpu mode='maximum'/>
  <on_reboot>destroy</on_reboot>
  <devices>
    <emulator>{paths.QEMU}</emulator>
    <controller type='pci' index='0' model='pcie-root'/>{port}{port}
    <controller type='usb' model='none'/>{channels}
    <serial type='file'><source path='{FOLDER}/console.log'/></serial>
    <memballoon model='none'/>
    {hostdevs}
  </devices>
</domain>
"""


def hostdev(inside):
    return f"<hostdev mode='subsystem' type='vfio-user' managed='yes'>{inside}</hostdev>"


def define(text):
    path = pathlib.Path(FOLDER, "domain.xml")
    path.write_text(text)
    return ctl("define", str(path))


def defining():
    ok(define(domain(hostdev("<source profile='1/8' weight='300'/>"))), "define takes a hostdev")
    before, shown = config(), ok(ctl("dumpxml", NAME), "dumpxml shows it again")
    harness.check("type='vfio-user'" in shown and "weight='300'" in shown and "qemu:" not in shown, "as a hostdev, nothing of QEMU's")
    ok(define(shown), "what was shown can be defined")
    harness.check(config() == before, "and is the same to the byte")
    ok(ctl("lint", NAME), "lint finds nothing")


def linting_and_editing():
    before = config()
    broken = pathlib.Path(FOLDER, "broken.xml")
    broken.write_text(before.replace("<access mode='shared'/>", "<access mode='private'/>"))
    ok(virsh("define", str(broken)), "virsh define takes private memory")
    done = ctl("lint", NAME)
    harness.check(done.returncode == 7 and "private-memory" in done.stdout, "lint names it")
    ok(ctl("lint", NAME, "--fix"), "lint --fix puts it right")
    harness.check(config() == before, "and the domain is what it was, to the byte")
    for old, new in (("300", "400"), ("400", "300")):
        os.environ["EDITOR"] = rf"sed -i s/\(weight=.\){old}/\1{new}/"
        ok(ctl("edit", NAME), "edit")
        harness.check(f"weight='{new}'" in ctl("dumpxml", NAME).stdout, f"the weight is {new} at its next start")
    harness.check(config() == before, "edited there and back, it is what it was, to the byte")
    os.environ["EDITOR"] = "sed -i s/vfio-user/nonsense/"
    refused(ctl("edit", NAME), "nothing was changed")
    harness.check(config() == before, "nothing was changed")


def cycles():
    for _ in range(3):
        ok(virsh("start", NAME), "virsh start once more")
        harness.check(len(vfs()) == 1, "its VF is there")
        ok(virsh("destroy", NAME), "virsh destroy once more")
        harness.wait_until(lambda: vfs() == {}, "and gone")


def wrong_ones_change_nothing():
    before = config()
    for text, reason in ((domain(hostdev("")), "no <source"), (domain(hostdev("<source vf='a b'/>")), "not a name"),
                         (domain(hostdev("<source vf='a'/>"), "pc"), "no PCIe root ports"), ("<domain>", "line"),
                         (domain("<hostdev mode='subsystem' type='nonsense'/>"), "libvirt refuses")):
        refused(define(text), reason)
    for words, reason in ((["attach", NAME], "which VF"), (["attach", NAME, "--vf", "X"], "not a name"),
                          (["attach", NAME, "--vf", "a", "--live"], "does not run"), (["attach", "nobody", "--vf", "a"], "no domain"),
                          (["attach", NAME, "--vf", "a", "--weight", "3"], "--weight"), (["detach", NAME, "--vf", "a"], "no VF a"),
                          (["attach", NAME, "--vf", f"{NAME}-vgpud0"], "already")):
        refused(ctl(*words), reason)
    harness.check(config() == before, "and the domain is what it was, to the byte")


def config_attach():
    before = config()
    ok(ctl("attach", NAME, "--vf", "nobodys", "--config"), "attach --config")
    refused(virsh("start", NAME), "vgpud has no VF nobodys")
    harness.wait_until(lambda: vfs() == {}, "and the VF that was made for it is gone", seen=lambda: str(vfs()))
    ok(ctl("detach", NAME, "--vf", "nobodys", "--config"), "detach --config")
    harness.check(config() == before, "undoes it to the byte")


def cannot_be_saved():
    for words in (["save", NAME, f"{FOLDER}/saved"], ["managedsave", NAME],
                  ["snapshot-create-as", NAME, "s", "--memspec", f"{FOLDER}/memory,snapshot=external"]):
        refused(virsh(*words), "vgpud-gpu-state-would-be-lost")
    harness.check(virsh("domstate", NAME).stdout.strip() == "running", "and the guest goes on")


def hot_plug(running):
    ok(ctl("create", "spare", "--vram", "64MiB"), "create a second VF")
    before = config()
    meter = GuestProgram(running, harness.command("meter")[:-2] + ["--seconds", "600"])
    harness.wait_until(lambda: vfs()[f"{NAME}-vgpud0"]["executors"] == 1, "a program runs on the first", 60)
    ok(ctl("attach", NAME, "--vf", "spare"), "attach while it runs")
    harness.wait_until(lambda: running.shell("test -e /dev/vgpu1")[0] == 0, "the guest has a second device", 30)
    harness.check("spare" in config() and vfs()["spare"]["client_connected"], "and so has the configuration")
    ok(ctl("detach", NAME, "--vf", "spare"), "detach while it runs")
    harness.wait_until(lambda: running.shell("test -e /dev/vgpu1")[0] != 0, "the guest has lost it", 30)
    harness.check(config() == before, "the configuration is what it was, to the byte")
    harness.check(vfs()[f"{NAME}-vgpud0"]["executors"] == 1, "and the program still runs")
    meter.stop()
    ok(ctl("destroy", "spare"), "destroy it")


def running_guest():
    ok(virsh("start", NAME), "virsh start")
    vf = vfs()[f"{NAME}-vgpud0"]
    harness.check(vf["weight"] == 300 and vf["transient"], "the hook has made the VF with its weight")
    socket = os.stat(vf["vfio_user_socket"])
    uid = libvirt_host.uid_of(libvirt_host.qemu_user())
    harness.check((socket.st_uid, socket.st_mode & 0o777) == (uid, 0o600), "its socket is QEMU's user's and nobody else's")
    running = guest.Guest(FOLDER)
    running.console = f"{FOLDER}/console.log"
    harness.wait_until(lambda: is_up(running), "the guest is up", 120, lambda: process.tail(running.console))
    harness.run_in(running, harness.command("vectoradd"))
    ok(ctl("set", f"{NAME}-vgpud0", "--weight", "500"), "re-weight it while it runs")
    cannot_be_saved()
    hot_plug(running)
    ok(virsh("destroy", NAME), "virsh destroy")
    harness.wait_until(lambda: vfs() == {}, "the VF is gone with its domain")


def is_up(running):
    try:
        with running.channel(timeout=1.0) as channel:
            return channel.has_device
    except (paths.ToolError, TimeoutError):
        return False


def test():
    libvirt_host.enter()
    vgpud = process.spawn([str(paths.need(paths.VGPUD, "vgpud"))], "/var/log/libvirt/vgpud.out")
    try:
        ok(ctl("list"), "vgpud serves")
        os.makedirs(FOLDER)
        os.chmod(FOLDER, 0o777)
        with libvirt_host.libvirtd(lambda: ok(ctl("hook", "--install"), "install the hook")):
            defining()
            linting_and_editing()
            wrong_ones_change_nothing()
            config_attach()
            running_guest()
            cycles()
            ok(virsh("undefine", NAME), "virsh undefine")
        harness.check(sorted(os.listdir("/run/vgpud/vf")) == ["held-state.vdi"], "nothing of a VF is left")
    finally:
        process.stop(vgpud)


if __name__ == "__main__":
    harness.main(test)
