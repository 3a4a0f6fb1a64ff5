# SPDX-License-Identifier: Apache-2.0
"""The device goes away, or the guest sleeps, while programs hold channels. They are told, and the device works afterwards."""
import os
import signal
import tempfile

import harness
import overlay
from bed import PROGRAMS, USER, VF_BUS
from vgpuguest import paths

SECONDS = 60


def _hold(bed):
    held = bed.program("hold_channel", str(SECONDS * bed.patience))
    held.wait_for_line("holding", 60 * bed.patience)
    return held


def _works_again(bed):
    bed.open_device()
    bed.tap("basic")


def _unbind(bed, address):
    bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/unbind", timeout=30)


def _bind(bed, address):
    bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/bind", timeout=30)


def unbind(bed):
    """Root takes the driver off the device and puts it back."""
    address, held = bed.pci_address(), _hold(bed)
    _unbind(bed, address)
    _bind(bed, address)
    held.passes(30 * bed.patience)
    _works_again(bed)


def reset(bed):
    """Root resets the function (FLR)."""
    address, held = bed.pci_address(), _hold(bed)
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{address}/reset", timeout=30)
    held.passes(30 * bed.patience)
    _works_again(bed)


def reset_then_unbind(bed):
    """The driver is unbound while a program has memory mapped that its device has let go of before: the memory stays the program's own."""
    address, held = bed.pci_address(), bed.program("pages", "keep")
    held.wait_for_line("mapped", 60 * bed.patience)
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{address}/reset", timeout=30)
    held.wait_for_line("lost", 60 * bed.patience)
    _unbind(bed, address)
    bed.shell("killall -USR1 pages")
    held.passes(60 * bed.patience)
    _bind(bed, address)
    _works_again(bed)


def executor_dies(bed):
    """The channel's executor is killed on the host."""
    held = _hold(bed)
    for pid in harness.children_of(bed.vgpud.process.pid, "vgpud-exec"):
        os.kill(pid, signal.SIGKILL)
    held.passes(30 * bed.patience)
    _works_again(bed)


def remove_and_rescan(bed):
    """The device is removed through sysfs and found again."""
    address, held = bed.pci_address(), _hold(bed)
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{address}/remove", timeout=30)
    bed.shell("echo 1 > /sys/bus/pci/rescan", timeout=30)
    held.passes(30 * bed.patience)
    _works_again(bed)


def suspend(bed):
    """Suspend to RAM and resume."""
    out = "/tmp/held_asleep"
    # Apart from the command port, which newer kernels disconnect in their sleep.
    code, text = bed.guest.shell(f"setsid {PROGRAMS}/hold_channel {SECONDS * bed.patience} > {out} 2>&1 < /dev/null & "
                                 f"for i in $(seq 600); do grep -q holding {out} && exit 0; sleep 0.1; done; exit 1", uid=USER)
    harness.check(code == 0, f"a program holds a channel: {text}")
    bed.suspend()
    said = bed.shell(f"for i in $(seq 300); do grep '^1\\.\\.' {out} && break; sleep 0.1; done; cat {out}", timeout=60)
    print("".join(f"    {line}\n" for line in said.splitlines()), end="")
    harness.check("not ok" not in said and "ok 1" in said, "the program was told")
    _works_again(bed)


def hibernate(bed):
    """Hibernation, as far as the devices take part (pm_test): refused, or programs and the device survive it."""
    if "disk" not in bed.shell("cat /sys/power/state"):
        print("    # SKIP this kernel does not hibernate")
        return
    if bed.shell("ls /sys/power/pm_test 2>/dev/null", check=False) == "":
        print("    # SKIP this kernel has no pm_test")
        return
    held = _hold(bed)
    said = bed.shell("echo devices > /sys/power/pm_test; echo disk > /sys/power/state; echo $?; echo none > /sys/power/pm_test",
                     timeout=60)
    print(f"    # echo disk > /sys/power/state: {said.strip()}")
    held.stop()
    _works_again(bed)


def take_out(bed):
    """Unplugs the VF from the machine."""
    bed.qmp.command("device_del", id="vf")
    bed.qmp.wait_event("DEVICE_DELETED", 60 * bed.patience)


def put_in(bed):
    """Plugs it in again, or the next one with its socket."""
    bed.qmp.command("device_add", driver="vfio-user-pci", id="vf", bus=VF_BUS,
                    socket={"type": "unix", "path": bed.vf_socket})
    bed.shell("for i in $(seq 300); do ls /dev/vgpu0 2>/dev/null && exit 0; sleep 0.1; done; exit 1", timeout=60)
    _works_again(bed)


def unplug(bed):
    """The VF is unplugged from the machine."""
    held = _hold(bed)
    take_out(bed)
    held.passes(30 * bed.patience)
    bed.shell("! ls /dev/vgpu* 2>/dev/null")
    put_in(bed)


def _port_reports(bed, error, done="device recovery successful"):
    """The root port reports an error (AER); returns when the kernel has dealt with it."""
    before = bed.console_text().count(done)
    said = bed.qmp.command("human-monitor-command", **{"command-line": f"pcie_aer_inject_error {VF_BUS} {error}"})
    harness.check("Error" not in said, f"QEMU injects {error}: {said.strip()}")
    harness.wait_until(lambda: bed.console_text().count(done) > before, f"the kernel has dealt with {error}", 60 * bed.patience)


def bus_errors(bed):
    """The root port reports errors: after one that lost nothing programs go on, after a fatal one the bus is reset."""
    held = _hold(bed)
    _port_reports(bed, "COMP_TIME")
    harness.check(held.code is None, "a completion timeout, which is not fatal: the program keeps its channel")
    bed.tap("basic")
    _port_reports(bed, "DLP")
    held.passes(30 * bed.patience)
    _works_again(bed)
    # Nor does a reset of the function lose what a reset of the bus needs.
    reset(bed)
    _port_reports(bed, "DLP")
    _works_again(bed)


def failed_recovery(bed):
    """The bus is not recovered from a fatal error: the device is dead, opens say so at once, the guest can sleep, and root finds the device again."""
    address, held = bed.pci_address(), _hold(bed)
    _port_reports(bed, "DLP", "device recovery failed")
    held.passes(30 * bed.patience)
    harness.check(bed.shell("cat /sys/class/vgpu/vgpu0/state").strip() == "dead", "the device is dead")
    bed.tap("dead_host", "1")
    bed.suspend()
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{address}/remove", timeout=30)
    bed.shell("echo 1 > /sys/bus/pci/rescan", timeout=30)
    _works_again(bed)


def bus_mastering_off(bed):
    """Root forbids the device to access memory: the host ends what it does there, and a reset brings the device back."""
    address, held = bed.pci_address(), _hold(bed)
    harness.check(bed.vgpud.show("vf0")["executors"] == 1, "an executor serves the program")
    # The command register: memory space on, line interrupt off, bus mastering off.
    bed.shell(f"printf '\\002\\004' | dd of=/sys/bus/pci/devices/{address}/config bs=1 seek=4 conv=notrunc 2>/dev/null")
    harness.wait_until(lambda: bed.vgpud.show("vf0")["executors"] == 0, "no executor has the guest's memory any more", 30)
    bed.shell(f"printf '\\006\\004' | dd of=/sys/bus/pci/devices/{address}/config bs=1 seek=4 conv=notrunc 2>/dev/null")
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{address}/reset", timeout=30)
    held.passes(30 * bed.patience)
    _works_again(bed)


def put_kernel(bed):
    """Brings another kernel into the guest, for start_kernel()."""
    with tempfile.TemporaryDirectory() as directory:
        image = os.path.join(directory, "initrd.img")
        # Its init can't load the driver: what the host does before it is loaded shall show.
        module = bed.files["/lib/modules/vgpu.ko"]
        overlay.image_with(paths.kernel_dir(bed.suite) / "initrd.img",
                           {**bed.files, "/lib/modules/vgpu.ko": os.devnull, f"{PROGRAMS}/vgpu.ko": module}, image)
        with bed.guest.channel() as channel:
            channel.put(paths.kernel_dir(bed.suite) / "vmlinuz", "/tmp/vmlinuz", 0o644)
            channel.put(image, "/tmp/initrd.img", 0o644)


def start_kernel(bed):
    """Begins to start it."""
    starter = bed.program("kexec", "/tmp/vmlinuz", "/tmp/initrd.img", "console=ttyS0 panic=-1 quiet", uid=0)
    starter.wait_for_line("starting", 120 * bed.patience)


def is_started(bed):
    return bed.console_text().count("GUEST-UP") == 2


def kernel_works(bed):
    """It is up, finds a device that works, and nothing of the first kernel's is still served."""
    harness.wait_until(lambda: is_started(bed), "the other kernel is up", 180 * bed.patience)
    harness.check(bed.vgpud.show("vf0")["executors"] == 0, "nothing of the first kernel's is still served")
    bed.shell(f"insmod {PROGRAMS}/vgpu.ko", timeout=60)
    _works_again(bed)


def kexec(bed):
    """Another kernel starts in place of this one while a program holds a channel: by then no executor has memory of it, and
    the driver finds a device that works."""
    put_kernel(bed)
    _hold(bed)
    harness.check(bed.vgpud.show("vf0")["executors"] == 1, "an executor serves the program")
    start_kernel(bed)
    kernel_works(bed)


def unload(bed):
    """Unloads the module, as soon as the host has let go of what programs have closed a moment ago."""
    bed.shell("for i in $(seq 300); do rmmod vgpu 2>/dev/null && exit 0; sleep 0.1; done; rmmod vgpu", timeout=60)


def leaves_nothing(bed):
    """The module is unloaded, and all memory is back."""
    unload(bed)
    bed.shell("insmod /lib/modules/vgpu.ko", timeout=60)
    _works_again(bed)
    unload(bed)


def unbind_without_memory(bed):
    """The driver is unbound when hardly any memory is left: what a program has mapped stays its own, and nobody is killed for it."""
    address, held = bed.pci_address(), bed.program("pages", "full")
    held.wait_for_line("mapped", 60 * bed.patience)
    _unbind(bed, address)
    held.wait_for_line("lost", 60 * bed.patience)
    bed.shell("killall -USR1 pages")
    held.passes(60 * bed.patience)
    _bind(bed, address)
    _works_again(bed)


# After a suspend the machine's own hot-plug events no longer arrive.
TESTS = (executor_dies, unbind, reset, reset_then_unbind, bus_mastering_off, remove_and_rescan, unplug, hibernate, suspend, leaves_nothing)
KEXEC = (kexec,)
ERRORS = (bus_errors,)
FAILED = (failed_recovery,)
NO_MODULE = kexec.allowed = "cannot load vgpu.ko"
