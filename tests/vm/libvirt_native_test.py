#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real libvirtd that knows <hostdev type='vfio-user'> (contrib/libvirt/build): the same files as for any other libvirt, with
virsh and the hook alone and no QEMU arguments of ours. It makes the VF, gives it to QEMU's user, runs a CUDA program on it, plugs
a second one in, refuses to save the guest, and leaves nothing behind."""
import os
import pathlib

import harness
import libvirt_bed
import libvirt_host
from libvirt_bed import FOLDER, NAME, config, ctl, hostdev, ok, refused, vfs, wait_for_guest
from libvirt_host import virsh
from vgpuguest import paths, process
from vgpuguest.program import GuestProgram

BUILT = paths.REPO / ".cache" / "libvirt" / "prefix"
VF = f"{NAME}-hostdev0"  # the domain's name and libvirt's alias


def written(name, text):
    path = pathlib.Path(FOLDER, name)
    path.write_text(text)
    return str(path)


def domain(source):
    """As for any other libvirt, with <acpi/>: nothing adds it here, and without it a guest reaches nothing behind a root port.
    One port more: libvirt gives the VF one of those that are there."""
    spare = "<controller type='pci' model='pcie-root-port'/>"
    return libvirt_bed.domain(hostdev(source)).replace("<cpu ", "<features><acpi/></features><cpu ").replace(spare, spare * 2, 1)


def defining():
    capabilities = ok(virsh("domcapabilities", "--emulatorbin", str(paths.QEMU), "--virttype", "qemu"), "domcapabilities")
    harness.check("<value>vfio-user</value>" in capabilities, "libvirt says that it knows the element")
    text = domain("<source profile='1/8' weight='300'/>")
    ok(ctl("define", written("domain.xml", text)), "vgpuctl define takes the file that it takes for any other libvirt")
    before = config()
    harness.check("<source profile='1/8' weight='300'/>" in before, "and it is kept as it was written")
    harness.check("qemu:" not in before and "vgpud:" not in before, "nothing was compiled")
    harness.check("<source type='memfd'/>" in before and "<access mode='shared'/>" in before, "the guest's memory is shared")
    ok(virsh("define", written("again.xml", before)), "virsh define takes what virsh dumpxml gives")
    harness.check(config() == before, "and it is the same to the byte")
    ok(virsh("define", "--validate", written("again.xml", text)), "virsh define takes the file, checked against the schema")
    harness.check(config() == before, "and it is the same again")


def wrong_ones_change_nothing():
    before = config()
    private = libvirt_bed.domain(hostdev("<source vf='a'/>")).replace("<vcpu>", "<memoryBacking><access mode='private'/></memoryBacking><vcpu>")
    for text, reason in ((private, "requires shared memory"), (libvirt_bed.domain(hostdev("<source/>")), "requires the absolute 'path'"),
                         (libvirt_bed.domain(hostdev("<source vf='../a'/>")), "invalid 'vf'"),
                         (libvirt_bed.domain(hostdev("<source path='/run/a.sock' mode='server'/>")), "mode 'server'"),
                         (libvirt_bed.domain(hostdev("<source vf='a'/>") * 2), "already exists"),
                         (libvirt_bed.domain(hostdev(f"<source path='/run/{'a' * 110}'/>")), "longer than")):
        refused(virsh("define", written("wrong.xml", text)), reason)
    harness.check(config() == before, "and the domain is what it was, to the byte")


def cannot_be_saved():
    for words in (["save", NAME, f"{FOLDER}/saved"], ["managedsave", NAME],
                  ["snapshot-create-as", NAME, "s", "--memspec", f"{FOLDER}/memory,snapshot=external"]):
        refused(virsh(*words), "type='vfio-user'")
    harness.check(virsh("domstate", NAME).stdout.strip() == "running", "and the guest goes on")


def owner(vf):
    return os.stat(vfs()[vf]["vfio_user_socket"]).st_uid


def hot_plug(running, uid):
    ok(ctl("create", "spare", "--vram", "64MiB"), "create a second VF")
    device, before = written("spare.xml", hostdev("<source vf='spare'/>")), config()
    meter = GuestProgram(running, harness.command("meter")[:-2] + ["--seconds", "600"])
    harness.wait_until(lambda: vfs()[VF]["executors"] == 1, "a program runs on the first", 60)
    ok(virsh("attach-device", NAME, device, "--live"), "virsh attach-device while it runs")
    harness.wait_until(lambda: running.shell("test -e /dev/vgpu1")[0] == 0, "the guest has a second device", 30)
    harness.check(vfs()["spare"]["client_connected"] and owner("spare") == uid, "its socket was given to QEMU's user")
    ok(virsh("detach-device", NAME, device, "--live"), "virsh detach-device while it runs")
    harness.wait_until(lambda: running.shell("test -e /dev/vgpu1")[0] != 0, "the guest has lost it", 30)
    harness.wait_until(lambda: owner("spare") == 0, "and its socket is its owner's again")
    harness.check(vfs()[VF]["executors"] == 1, "the program still runs")
    refused(virsh("attach-device", NAME, written("nobody.xml", hostdev("<source vf='nobody'/>")), "--live"), "nobody.sock")
    refused(virsh("attach-device", NAME, written("made.xml", hostdev("<source profile='1/8'/>")), "--live"), "only when that starts")
    harness.check(config() == before and virsh("domstate", NAME).stdout.strip() == "running", "and nothing has changed")
    meter.stop()
    ok(ctl("destroy", "spare", "--force"), "destroy it")


def vgpuctl_knows_it():
    """lint judges the element as it is; attach and detach let libvirt do it."""
    ok(ctl("lint", NAME), "lint finds nothing")
    before = config()
    for old, new, defect in (("<access mode='shared'/>", "<access mode='shared'/><hugepages/>", "huge-pages"), ("<acpi/>", "", "no-acpi")):
        ok(virsh("define", written("broken.xml", before.replace(old, new))), f"define one with the defect {defect}")
        done = ctl("lint", NAME)
        harness.check(done.returncode == 7 and f"{NAME}: {defect}: " in done.stdout and len(done.stdout.splitlines()) == 1,
                      f"lint names {defect} and no other")
        ok(ctl("lint", NAME, "--fix"), "lint --fix puts it right")
        harness.check(config() == before, "and the domain is what it was, to the byte")
    with_port = config()
    ok(ctl("attach", NAME, "--vf", "nobodys", "--config"), "attach --config")
    harness.check("<source vf='nobodys'/>" in config() and "qemu:" not in config(), "is an element of libvirt's")
    refused(ctl("attach", NAME, "--vf", "nobodys"), "already")
    refused(virsh("start", NAME), "vgpud has no VF nobodys")
    harness.wait_until(lambda: vfs() == {}, "and the VF that was made for it is gone")
    ok(ctl("detach", NAME, "--vf", "nobodys", "--config"), "detach --config")
    harness.check(config() == with_port, "undoes it, to the byte")
    refused(ctl("detach", NAME, "--vf", "nobodys"), "no VF nobodys")


def running_guest():
    uid = libvirt_host.uid_of(libvirt_host.qemu_user())
    ok(virsh("start", NAME), "virsh start")
    live = ok(virsh("dumpxml", NAME), "dumpxml of the running domain")
    socket = vfs()[VF]["vfio_user_socket"]
    harness.check(f"<source type='unix' path='{socket}' mode='client' vf='{VF}' profile='1/8' weight='300'/>" in live,
                  "the running domain shows name and socket")
    harness.check("qemu:commandline" not in live, "and no QEMU arguments")
    harness.check(vfs()[VF]["weight"] == 300 and vfs()[VF]["transient"], "the hook has made the VF with its weight")
    harness.check(owner(VF) == uid, "its socket is QEMU's user's")
    running = wait_for_guest()
    harness.run_in(running, harness.command("vectoradd"))
    cannot_be_saved()
    hot_plug(running, uid)
    ok(virsh("destroy", NAME), "virsh destroy")
    harness.wait_until(lambda: vfs() == {}, "the VF is gone with its domain")


def named_and_missing():
    ok(virsh("define", written("domain.xml", domain("<source vf='mine'/>"))), "define one with a VF that stays")
    refused(virsh("start", NAME), "vgpud has no VF mine")
    ok(ctl("create", "mine", "--vram", "64MiB"), "create it")
    ok(virsh("start", NAME), "then it starts")
    harness.wait_until(lambda: vfs()["mine"]["client_connected"], "QEMU is connected")
    ok(virsh("destroy", NAME), "virsh destroy")
    harness.check(list(vfs()) == ["mine"] and owner("mine") == 0, "the VF stays, its socket is its owner's again")
    ok(ctl("destroy", "mine", "--force"), "destroy it")


def test():
    libvirt_host.enter(BUILT)
    vgpud = process.spawn([str(paths.need(paths.VGPUD, "vgpud"))], "/var/log/libvirt/vgpud.out")
    try:
        ok(ctl("list"), "vgpud serves")
        os.makedirs(FOLDER)
        os.chmod(FOLDER, 0o777)
        with libvirt_host.libvirtd(lambda: ok(ctl("hook", "--install"), "install the hook"), labels=1):
            defining()
            wrong_ones_change_nothing()
            vgpuctl_knows_it()
            running_guest()
            for _ in range(3):
                ok(virsh("start", NAME), "virsh start once more")
                harness.check(list(vfs()) == [VF], "its VF is there")
                ok(virsh("destroy", NAME), "virsh destroy once more")
                harness.wait_until(lambda: vfs() == {}, "and gone")
            named_and_missing()
            ok(virsh("undefine", NAME), "virsh undefine")
        harness.check(os.listdir("/run/vgpud/vf") == [], "nothing of a VF is left")
    except BaseException:
        print(process.tail(libvirt_host.Libvirtd.log), ctl("list", "-o", "json").stdout, flush=True)
        raise
    finally:
        process.stop(vgpud)


if __name__ == "__main__":
    harness.main(test)
