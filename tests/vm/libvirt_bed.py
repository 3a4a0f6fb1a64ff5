# SPDX-License-Identifier: Apache-2.0
"""A vgpud, the service that follows libvirt and a domain, for the tests with a real libvirtd (libvirt_host.py)."""
import json
import os
import pathlib
import subprocess

import harness
import libvirt_host
from libvirt_host import virsh
from vgpuguest import guest, paths, process

FOLDER = "/run/vgpud/guest-a"  # consoles and command ports, as QEMU's user may write them
NAME = "guest-a"
UUID = "43979400-ac7a-42f1-b64e-09e640ed9d0d"
FOLLOWER_LOG = "/var/log/libvirt/follow.out"


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
  <uuid>{UUID}</uuid>
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


def is_up(running):
    try:
        with running.channel(timeout=1.0) as channel:
            return channel.has_device
    except (paths.ToolError, TimeoutError):
        return False


class Vgpud:
    """One in /run/vgpud that can be killed and started again."""
    log = "/var/log/libvirt/vgpud.out"

    def __init__(self, *arguments):
        self.arguments = arguments
        self.process = None

    def start(self):
        self.process = process.spawn([str(paths.need(paths.VGPUD, "vgpud")), *self.arguments], self.log)
        done = ctl("list")
        harness.check(done.returncode == 0, "vgpud serves" if done.returncode == 0 else f"no vgpud: {done.stderr} {process.tail(self.log)}")

    def kill(self):
        self.process.kill()
        self.process.wait(20)

    def stop(self):
        process.stop(self.process)


def follower():
    """vgpuctl follow, which tells vgpud whose VF is whose."""
    return process.spawn([paths.VGPUCTL, "follow"], FOLLOWER_LOG)


def owner(vf):
    return vf.get("domain"), vf.get("domain_uuid")


def wait_for_guest():
    running = guest.Guest(FOLDER)
    running.console = f"{FOLDER}/console.log"
    harness.wait_until(lambda: is_up(running), "the guest is up", 300, lambda: process.tail(running.console))
    return running
