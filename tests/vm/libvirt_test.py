#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real libvirtd with a domain whose administrator wrote a <hostdev> and nothing else: it starts, runs a CUDA program, gets
a second VF while another program runs, refuses to be saved, and leaves nothing behind. Each VF shows whose it is, and is
free when its domain has ended in any way."""
import os
import pathlib
import shutil
import signal
import subprocess

import harness
import libvirt_host
from libvirt_bed import FOLDER, FOLLOWER_LOG, NAME, UUID, Vgpud, config, ctl, define, domain, follower, hostdev, ok, owner, refused, \
    vfs, wait_for_guest
from libvirt_host import virsh
from vgpuguest import paths, process
from vgpuguest.program import GuestProgram

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
    attached = ctl("attach", NAME, "--vf", "nobodys", "--config")
    ok(attached, "attach --config")
    harness.check('there is no vf "nobodys" yet' in attached.stderr, f"it is said that the VF is not there: {attached.stderr}")
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
    harness.check(owner(vfs()["spare"]) == (NAME, UUID), "and the VF is the domain's")
    ok(ctl("detach", NAME, "--vf", "spare"), "detach while it runs")
    harness.wait_until(lambda: running.shell("test -e /dev/vgpu1")[0] != 0, "the guest has lost it", 30)
    harness.check(config() == before, "the configuration is what it was, to the byte")
    harness.check(owner(vfs()["spare"]) == (None, None), "and the VF is nobody's")
    harness.check(vfs()[f"{NAME}-vgpud0"]["executors"] == 1, "and the program still runs")
    unplug_in_use(running)
    harness.check(vfs()[f"{NAME}-vgpud0"]["executors"] == 1, "the one on the first VF still runs")
    meter.stop()
    ok(ctl("destroy", "spare", "--force"), "destroy it")


def unplug_in_use(running):
    """A program that has a channel of a VF that is unplugged gets an error of CUDA's, and nobody waits for it."""
    ok(ctl("attach", NAME, "--vf", "spare", "--live"), "attach it again")
    harness.wait_until(lambda: running.shell("test -e /dev/vgpu1")[0] == 0, "the guest has it", 30)
    holder = GuestProgram(running, harness.command("meter")[:-2] + ["--seconds", "600"], environment={"CUDA_VISIBLE_DEVICES": "1"})
    holder.wait_for_line("METER", 60)
    ok(ctl("detach", NAME, "--vf", "spare", "--live"), "detach it while a program computes on it")
    code = holder.wait(60)
    harness.check(0 < code < 128, f"that program ends with an error: {code}\n{holder.text()}")
    harness.check("CUDA" in holder.text() or "cu" in holder.text(), "which is one of CUDA's")
    harness.wait_until(lambda: running.shell("test -e /dev/vgpu1")[0] != 0, "the guest has lost it", 30)
    harness.check(vfs()["spare"]["executors"] == 0 and not vfs()["spare"]["client_connected"], "and its VF is free")


def running_guest():
    ok(virsh("start", NAME), "virsh start")
    vf = vfs()[f"{NAME}-vgpud0"]
    harness.check(vf["weight"] == 300 and vf["transient"], "the hook has made the VF with its weight")
    socket = os.stat(vf["vfio_user_socket"])
    uid = libvirt_host.uid_of(libvirt_host.qemu_user())
    harness.check((socket.st_uid, socket.st_mode & 0o777) == (uid, 0o600), "its socket is QEMU's user's and nobody else's")
    harness.check(owner(vf) == (NAME, UUID) and vf["ends_with_domain"], f"it is {NAME}'s")
    running = wait_for_guest()
    harness.run_in(running, harness.command("vectoradd"))
    ok(ctl("set", f"{NAME}-vgpud0", "--weight", "500"), "re-weight it while it runs")
    cannot_be_saved()
    hot_plug(running)
    ok(virsh("destroy", NAME), "virsh destroy")
    harness.wait_until(lambda: vfs() == {}, "the VF is gone with its domain")


def cannot_be_migrated():
    """QEMU here refuses; where it would not, the hook of the other host does. Nothing of the guest is lost."""
    before, known = config(), vfs()
    compiled = pathlib.Path(FOLDER, "not-held.xml")
    with libvirt_host.second_libvirtd() as other:
        words = ["migrate", "--live", NAME, other, "--migrateuri", "tcp://127.0.0.1"]
        ok(virsh("start", NAME), "start it")
        refused(virsh(*words), "vgpud-gpu-state-would-be-lost")
        harness.check(virsh("domstate", NAME).stdout.strip() == "running", "the guest goes on")
        harness.check(vfs()[f"{NAME}-vgpud0"]["client_connected"], "and has its VF")
        ok(virsh("destroy", NAME), "destroy it")
        lines = before.splitlines(keepends=True)
        held = [i for i, line in enumerate(lines) if "held-state.vdi" in line]
        compiled.write_text("".join(line for i, line in enumerate(lines) if i not in held and i + 1 not in held))
        ok(virsh("define", str(compiled)), "define it without what holds it")
        ok(virsh("start", NAME), "start it")
        refused(virsh(*words), "does not come along")
        harness.check(virsh("domstate", NAME).stdout.strip() == "running", "the guest goes on")
        harness.check(vfs()[f"{NAME}-vgpud0"]["client_connected"], "and has its VF")
        ok(virsh("destroy", NAME), "destroy it")
    compiled.write_text(before)
    ok(virsh("define", str(compiled)), "define it as it was")
    harness.check(config() == before and vfs() == known, "and all is as before")


def whose(vf):
    return owner(vfs().get(vf, {}))


def without_the_hook(libvirtd):
    """What the hook did not see, the service finds out."""
    vf = f"{NAME}-vgpud0"
    hook = pathlib.Path(libvirt_host.HOOKS, "vgpud")
    ok(virsh("start", NAME), "start it with its hook")
    hook.rename("/etc/libvirt/vgpud.away")
    ok(virsh("destroy", NAME), "it ends without its hook")
    harness.wait_until(lambda: vfs() == {}, "the service frees its VF")
    shutil.move("/etc/libvirt/vgpud.away", hook)
    ok(virsh("start", NAME), "start it again")
    libvirtd.kill()
    qemu = int(pathlib.Path(f"/run/libvirt/qemu/{NAME}.pid").read_text())
    os.kill(qemu, signal.SIGKILL)
    harness.check(whose(vf) == (NAME, UUID), "libvirtd is dead: nobody knows, and nobody guesses")
    libvirtd.start()
    harness.wait_until(lambda: vfs() == {}, "libvirtd is back: the VF is freed", 30)


def whose_is_by_hand():
    """A device that vgpuctl did not put there is found by its socket."""
    ok(ctl("create", "by-hand", "--transient", "--vram", "64MiB"), "create by-hand")
    socket = vfs()["by-hand"]["vfio_user_socket"]
    os.chown(socket, libvirt_host.uid_of(libvirt_host.qemu_user()), -1)
    device = f'{{"driver":"vfio-user-pci","id":"x","bus":"pcie.0","addr":"0x10","socket":{{"type":"unix","path":"{socket}"}}}}'
    text = domain("").replace("<domain type='qemu'>", "<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>") \
        .replace("</domain>", f"<qemu:commandline><qemu:arg value='-device'/><qemu:arg value='{device}'/></qemu:commandline></domain>") \
        .replace("<cpu ", "<memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking><features><acpi/></features><cpu ")
    path = pathlib.Path(FOLDER, "by-hand.xml")
    path.write_text(text)
    ok(virsh("create", str(path)), "a domain that was written by hand")
    harness.wait_until(lambda: whose("by-hand") == (NAME, UUID), "the service knows whose VF it has", 10)
    ok(virsh("destroy", NAME), "destroy it")
    harness.wait_until(lambda: whose("by-hand") == (None, None), "and that it is free", 10)
    ok(ctl("destroy", "by-hand", "--force"), "destroy by-hand")


def vgpud_comes_back(vgpud, libvirtd):
    """What vgpud knew is said again; a libvirtd that hangs keeps nobody waiting."""
    ok(ctl("create", "mine", "--vram", "64MiB"), "create mine")
    ok(define(domain(hostdev("<source vf='mine'/>"))), "define it with that VF")
    ok(virsh("start", NAME), "start it")
    harness.check(whose("mine") == (NAME, UUID), "its hook says whose it is")
    ok(ctl("create", "other", "--vram", "64MiB"), "create other")
    libvirtd.process.send_signal(signal.SIGSTOP)
    vgpud.kill()
    vgpud.start()
    harness.check("other" in vfs(), "vgpud serves while libvirtd hangs")
    libvirtd.process.send_signal(signal.SIGCONT)
    harness.wait_until(lambda: whose("mine") == (NAME, UUID), "the service says again whose it is", 30)
    ok(virsh("destroy", NAME), "destroy it")
    harness.check(whose("mine") == (None, None), "it is nobody's")
    for name in ("mine", "other"):
        ok(ctl("destroy", name, "--force"), f"destroy {name}")


def test():
    libvirt_host.enter()
    vgpud = Vgpud()
    try:
        vgpud.start()
        os.makedirs(FOLDER)
        os.chmod(FOLDER, 0o777)
        following = follower()
        with libvirt_host.libvirtd(lambda: ok(ctl("hook", "--install"), "install the hook")) as libvirtd:
            defining()
            linting_and_editing()
            wrong_ones_change_nothing()
            config_attach()
            running_guest()
            cycles()
            cannot_be_migrated()
            without_the_hook(libvirtd)
            vgpud_comes_back(vgpud, libvirtd)
            ok(virsh("undefine", NAME), "virsh undefine")
            whose_is_by_hand()
        harness.check(following.poll() is None, "the service that follows libvirt runs on")
        process.stop(following)
        harness.check(sorted(os.listdir("/run/vgpud/vf")) == ["held-state.vdi"], "nothing of a VF is left")
    except BaseException:
        print(process.tail(FOLLOWER_LOG), flush=True)
        raise
    finally:
        vgpud.stop()


harness.main(test)
