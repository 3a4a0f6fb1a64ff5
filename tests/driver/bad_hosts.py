# SPDX-License-Identifier: Apache-2.0
"""A host that dies, and one that lies."""
import collections
import os
import signal
import struct
import threading
import time

import harness
import life_cycle
import lying_host as host
from bed import OTHER_USER

_NONE = 0xFFFFFFFF
# What is said instead of the truth. The first are errors out of the kernel's range, and numbers only the kernel knows.
_LIES = {
    **{f"status {value}": {"page": host.status(value)}
       for value in (-100000, -4096, -4095, -(1 << 31), 1, (1 << 31) - 1, -512, -516, -529, -517, -4, -11)},
    "no command was run": {"registers": {host.REG_CTRL_SEQ: 0}},
    "every channel's state is nonsense": {"page": host.words(host.CHANNEL_STATE_AT, 0xDEADBEEF)},
    "every channel is free": {"page": host.words(host.CHANNEL_STATE_AT, 0)},
    "every channel is lost": {"page": host.words(host.CHANNEL_STATE_AT, 2)},
    "every buffer was let go": {"page": host.words(host.BUFFER_ACK_AT, 0x7FFFFFFF)},
    "no buffer was let go": {"page": host.words(host.BUFFER_ACK_AT, 0x80000000)},
    "the control page is full of ones": {"page": host.words(0, _NONE, 1024)},
    "the registers are full of ones, but for the fence": {
        "registers": {at: _NONE for at in range(0, 0x100, 4)}},
}
# A driver that is bound while the host says this refuses the device, or copes.
_LIES_AT_PROBE = {
    "no channels": {0x10: 0}, "too many channels": {0x10: _NONE}, "another magic": {0x0: 0x12345678}, "another ABI": {0x4: 99},
    "all features": {0x8: _NONE, 0xC: _NONE}, "a memory of all ones": {0x18: _NONE, 0x1C: _NONE},
    "an endless name": {0x40 + at: 0x41414141 for at in range(0, 64, 4)},
    "a silent fence": {host.REG_CTRL_SEQ: _NONE},
}


def _bind_anew(bed, address):
    """A host that said it did not do what it did is put right by a reset, not by the driver alone."""
    bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/unbind", timeout=60, check=False)
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{address}/reset; echo {address} > /sys/bus/pci/drivers/vgpu/bind", timeout=60)
    bed.open_device()


def lies(bed):
    """Programs run while the host lies; then the driver is bound again, and all is well."""
    address = bed.pci_address()
    wrong = []
    for name, lie in _LIES.items():
        print(f"    # the host says: {name}", flush=True)
        bed.between.lie(**lie)
        try:
            bed.tap("garbage", "3", timeout=110)
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
        bed.between.truth()
        _bind_anew(bed, address)
        try:
            bed.tap("basic")
        except AssertionError as error:
            wrong.append(f"after {name}: {error}")
    harness.check(not wrong, f"programs see results that they know: {wrong}")


def lies_at_probe(bed):
    """The driver is bound while the host lies."""
    address = bed.pci_address()
    for name, registers in _LIES_AT_PROBE.items():
        print(f"    # the host says: {name}", flush=True)
        bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/unbind", timeout=60)
        bed.between.lie(registers=registers)
        bound = bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/bind 2>/dev/null && echo bound", timeout=60, check=False)
        if bound.strip() == "bound":
            bed.open_device()
            bed.tap("garbage", "1", timeout=110)
        bed.between.truth()
        _bind_anew(bed, address)
    bed.tap("basic")


# What a host of the first published version says: its features, and zero in the registers that came later.
_FIRST_HOST = {0x8: 3, 0xC: 0, 0x28: 0}


def first_host(bed):
    """The driver agrees with a host that knows nothing newer than the first version, and works."""
    address = bed.pci_address()
    bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/unbind", timeout=60)
    bed.between.lie(registers=_FIRST_HOST)
    bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/bind", timeout=60)
    bed.open_device()
    written = {at: value for at, value in bed.between.writes if at in (host.REG_DRIVER_FEATURES_LO, host.REG_DRIVER_FEATURES_LO + 4)}
    harness.check(written.get(host.REG_DRIVER_FEATURES_LO) == 1, f"nothing newer is asked for: {written}")
    for name in ("basic", "abi"):
        bed.tap(name, timeout=110)
    bed.between.truth()
    _bind_anew(bed, address)
    bed.tap("basic")


def interrupt_storm(bed):
    """Interrupts that nobody asked for, as fast as the host can."""
    stop = threading.Event()

    def storm():
        while not stop.is_set():
            bed.between.interrupt()
    thread = threading.Thread(target=storm, daemon=True)
    thread.start()
    try:
        time.sleep(1)
        bed.tap("basic", timeout=110)
    finally:
        stop.set()
        thread.join()
    bed.tap("basic")


def one_interrupt(bed):
    """One interrupt says two things: an event of a channel, and that another channel is lost."""
    waiting = bed.program("one_interrupt")
    waiting.wait_for_line("channels", 60 * bed.patience)
    line = next(line for _, line in waiting.lines if line.startswith("channels"))
    eventful, ended = (int(word) for word in line.split()[1:])
    page = bed.between.control_page()
    events = struct.unpack_from("<I", page, host.EVENTS_AT + 4 * eventful)[0]
    struct.pack_into("<I", page, host.EVENTS_AT + 4 * eventful, events + 1 & 0xFFFFFFFF)
    struct.pack_into("<I", page, host.CHANNEL_STATE_AT + 4 * ended, 2)
    bed.between.interrupt()
    waiting.passes(60 * bed.patience)
    bed.tap("basic")


def watch(bed):
    """A driver with a channel asks the host now and then whether it is there, by one register. One without a channel asks nothing."""
    def reads_while_it_sleeps(seconds):
        before = collections.Counter(bed.between.reads)
        times = bed.shell(f"cat /proc/uptime; sleep {seconds}; cat /proc/uptime").split()
        return dict(bed.between.reads - before), float(times[2]) - float(times[0])

    held = bed.program("hold_channel", "600")
    held.wait_for_line("holding", 60 * bed.patience)
    reads, passed = reads_while_it_sleeps(5)
    harness.check(list(reads) == [0] and 2 <= reads[0] <= 2 * passed + 1, f"twice a second, in {passed:.1f} s of the guest: {reads}")
    held.stop()
    bed.shell("for i in $(seq 300); do grep -qx 0 /sys/class/vgpu/vgpu0/channels && exit 0; sleep 0.1; done; exit 1")
    reads_while_it_sleeps(1)  # the one that was due
    reads, passed = reads_while_it_sleeps(3)
    harness.check(not reads, f"never, in {passed:.1f} s of the guest: {reads}")


def _parked(bed):
    return int(bed.shell("cat /sys/module/vgpu/parameters/parked_bytes"))


def goes_on_using_memory(bed):
    """The device says that it still uses memory, as one whose executor hangs in a driver does: what it was told of is never given back, and the device
    is used again as soon as it says that it is done."""
    address = bed.pci_address()
    attribute = lambda name: bed.shell(f"cat /sys/class/vgpu/vgpu0/{name}").strip()
    until = lambda state: bed.shell(f"for i in $(seq 300); do grep -qx {state} /sys/class/vgpu/vgpu0/state && exit 0; sleep 0.1; done; exit 1")
    pending = {"config": {host.CONFIG_DEVICE_STATUS: host.TRANSACTIONS_PENDING}}

    held = bed.program("hold_channel", str(60 * bed.patience))
    held.wait_for_line("holding", 60 * bed.patience)
    bed.between.lie(**pending)
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{address}/reset", timeout=60)
    held.passes(60 * bed.patience)
    harness.check(attribute("state") == "quiet", "after a reset it is not used yet")
    harness.check(int(attribute("parked_bytes")) >= 4 << 20, f"the memory of a program that has ended: {attribute('parked_bytes')}")
    bed.between.truth()
    until("running")
    harness.check(attribute("parked_bytes") == "0", "it is back when the device says so")
    bed.tap("basic")

    held = bed.program("hold_channel", str(60 * bed.patience))
    held.wait_for_line("holding", 60 * bed.patience)
    bed.between.lie(**pending)
    bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/unbind", timeout=60)
    held.passes(60 * bed.patience)
    harness.check(_parked(bed) >= 4 << 20, f"it outlives the binding and its program: {_parked(bed)}")
    harness.check("rmmod" in bed.shell("rmmod vgpu 2>&1", check=False), "the module stays for as long")
    bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/bind", timeout=60)
    harness.check(attribute("state") == "quiet" and _parked(bed) >= 4 << 20, "the next binding waits for the device, too")
    bed.between.truth()
    until("running")
    harness.check(_parked(bed) == 0, "it is back when the device says so")
    bed.open_device()
    bed.tap("basic")


def _until(bed, state):
    bed.shell(f"for i in $(seq 300); do grep -qx {state} /sys/class/vgpu/vgpu0/state && exit 0; sleep 0.1; done; exit 1")


def answers_too_late(bed):
    """The host runs a command, but its answer comes when QEMU waits for it no longer: all ones, from a host that is there. What it was told of in
    this command is not given back before the device says that it is done."""
    pinned = lambda: int(bed.shell("cat /sys/class/vgpu/vgpu0/pinned_bytes"))
    bed.between.lie(registers={host.REG_CTRL_SEQ: _NONE}, config={host.CONFIG_DEVICE_STATUS: host.TRANSACTIONS_PENDING})
    refused = bed.program("hold_channel", "5")
    harness.check(refused.wait(60 * bed.patience) != 0, f"no channel: {refused.text()}")
    _until(bed, "quiet")
    harness.check(pinned() >= 1 << 20, f"the host may have the rings of the channel that it was to make: {pinned()}")
    bed.between.truth()
    _until(bed, "running")
    harness.check(pinned() == 0, f"they are back when the device says so: {pinned()}")
    bed.tap("basic")


def unanswered_end(bed):
    """The host does not answer the command that ends a channel; what the control page says of the channel was so before, perhaps."""
    pinned = lambda: int(bed.shell("cat /sys/class/vgpu/vgpu0/pinned_bytes"))
    held = bed.program("hold_channel", str(60 * bed.patience))
    held.wait_for_line("holding", 60 * bed.patience)
    bed.between.lie(registers={host.REG_CTRL_SEQ: _NONE}, page=host.words(host.CHANNEL_STATE_AT, 0),
                    config={host.CONFIG_DEVICE_STATUS: host.TRANSACTIONS_PENDING})
    held.stop()
    _until(bed, "quiet")
    harness.check(pinned() >= 4 << 20, f"the host may have the program's memory still: {pinned()}")
    bed.between.truth()
    _until(bed, "running")
    harness.check(pinned() == 0, f"it is back when the device says so: {pinned()}")
    bed.tap("basic")


def silence_is_no_answer(bed):
    """The function answers nothing, not even who it is, while the driver is unbound, as when its server stands still for a while: its executors go on,
    and so what they have is not given back before a function says there that it is done."""
    address = bed.pci_address()
    held = bed.program("hold_channel", str(60 * bed.patience))
    held.wait_for_line("holding", 60 * bed.patience)
    bed.between.lie(registers={at: _NONE for at in range(0, 0x200, 4)}, config={at: 0xFF for at in range(256)})
    bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/unbind", timeout=60)
    held.passes(60 * bed.patience)
    harness.check(_parked(bed) >= 4 << 20, f"the memory of a program that has ended: {_parked(bed)}")
    bed.between.truth()
    # Found anew it is another function for the kernel, at the same address.
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{address}/remove; echo 1 > /sys/bus/pci/rescan", timeout=60)
    _until(bed, "running")
    harness.check(_parked(bed) == 0, f"it is back when a function says so: {_parked(bed)}")
    bed.open_device()
    bed.tap("basic")


def another_vf(bed):
    """After a reset another VF answers, as it may after the sleep of a machine: it can't say what the first one does."""
    address = bed.pci_address()
    attribute = lambda name: bed.shell(f"cat /sys/class/vgpu/vgpu0/{name}").strip()
    held = bed.program("hold_channel", str(60 * bed.patience))
    held.wait_for_line("holding", 60 * bed.patience)
    bed.between.lie(registers={host.REG_UUID: 0x12345678})
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{address}/reset", timeout=60)
    held.passes(60 * bed.patience)
    harness.check(attribute("state") == "dead", f"it is not used: {attribute('state')}")
    harness.check(int(attribute("pinned_bytes")) >= 4 << 20, f"nor does it speak for the first one: {attribute('pinned_bytes')}")
    bed.between.truth()
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{address}/reset", timeout=60)
    _until(bed, "running")
    harness.check(attribute("pinned_bytes") == "0", "the memory is back when the first one says so")
    bed.tap("basic")


def keeps_control_page(bed):
    """The driver is unbound while the device says that it uses memory: the control page stays allocated. (What is freed is zeroed in this guest.)"""
    address = bed.pci_address()
    bed.tap("basic")
    bed.shell("for i in $(seq 300); do grep -qx 0 /sys/class/vgpu/vgpu0/channels && exit 0; sleep 0.1; done; exit 1")
    page = bed.between.control_page()
    command = bytes(page[:0x40])
    harness.check(any(command), "the control page has a command")
    bed.between.lie(config={host.CONFIG_DEVICE_STATUS: host.TRANSACTIONS_PENDING})
    bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/unbind", timeout=60)
    harness.check(bytes(page[:0x40]) == command, "it is not freed when the device may still write to it")
    bed.between.truth()
    bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/bind", timeout=60)
    harness.check(bytes(page[:0x40]) != command, "it is freed when the device says that it is done")
    _until(bed, "running")
    bed.open_device()
    bed.tap("basic")


def kexec_after_unbind(bed):
    """The driver is unbound while the device uses memory, then another kernel starts: not before the device says that it is done."""
    asked = lambda: bed.between.config_reads[host.CONFIG_DEVICE_STATUS]
    life_cycle.put_kernel(bed)
    held = bed.program("hold_channel", str(60 * bed.patience))
    held.wait_for_line("holding", 60 * bed.patience)
    bed.between.lie(config={host.CONFIG_DEVICE_STATUS: host.TRANSACTIONS_PENDING})
    bed.shell(f"echo {bed.pci_address()} > /sys/bus/pci/drivers/vgpu/unbind", timeout=60)
    held.passes(60 * bed.patience)
    harness.check(_parked(bed) >= 4 << 20, f"it outlives the binding and its program: {_parked(bed)}")
    before = asked()
    life_cycle.start_kernel(bed)
    # A kernel that starts looks at this register, too, but not that often.
    harness.wait_until(lambda: asked() > before + 20 or life_cycle.is_started(bed), "the kernel asks the device", 60 * bed.patience)
    harness.check(not life_cycle.is_started(bed), "no other kernel has the memory that the device may write to")
    bed.between.truth()
    life_cycle.kernel_works(bed)


def late_iommu(bed):
    """Each mapping in the IOMMU takes its time. Neither root's reset nor another user waits until all pieces of a buffer have theirs, or have lost it."""
    count = 8000
    program = bed.program("pages", "pieces", str(count))
    program.wait_for_line("ready", 60 * bed.patience)
    before = bed.between.maps
    bed.between.late = 0.002
    bed.shell("killall -USR1 pages")
    harness.wait_until(lambda: bed.between.maps > before + 100, "pieces are being mapped", 60 * bed.patience)
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{bed.pci_address()}/reset", timeout=120)
    mapped = bed.between.maps - before
    bed.between.late = 0
    harness.check(mapped < count, f"the reset does not wait for the whole buffer: {mapped} of {count} pieces mapped")
    program.wait_for_line("lost", 60 * bed.patience)
    bed.shell("killall -USR1 pages")
    program.wait_for_line("pinned", 120 * bed.patience)
    before = bed.between.unmaps
    bed.between.late = 0.002
    bed.shell("killall -USR1 pages")
    harness.wait_until(lambda: bed.between.unmaps > before + 100, "pieces are being unmapped", 60 * bed.patience)
    other = bed.program("hold_channel", "600", uid=OTHER_USER)
    other.wait_for_line("holding", 120 * bed.patience)
    unmapped = bed.between.unmaps - before
    bed.between.late = 0
    other.stop()
    harness.check(unmapped < count, f"nor does another user's buffer: {unmapped} of {count} pieces unmapped")
    program.passes(60 * bed.patience)
    bed.tap("basic")


def _falls_silent(bed, end):
    """Programs hold channels and ask nothing; `end` ends the VF. They are told, and the next VF works."""
    held = [bed.program("hold_channel", str(600 * bed.patience)) for _ in range(2)]
    for program in held:
        program.wait_for_line("holding", 60 * bed.patience)
    end()
    began = time.monotonic()
    for program in held:
        program.passes(60 * bed.patience)
        print(f"    # it ended {time.monotonic() - began:.1f} s after its VF", flush=True)
    bed.shell("for i in $(seq 300); do grep -qx dead /sys/class/vgpu/vgpu0/state && exit 0; sleep 0.1; done; exit 1")
    replace_vf(bed)
    harness.check(_parked(bed) == 0, f"the next VF says that nothing uses memory: {_parked(bed)}")


def replace_vf(bed):
    """The VF is unplugged, and another one plugged in there."""
    life_cycle.take_out(bed)
    if "vf0" in bed.vgpud.names():
        bed.vgpud.destroy("vf0")
    bed.vgpud.create("vf0")
    life_cycle.put_in(bed)


def destroyed_host(bed):
    """The VF is destroyed while programs only wait: they hear of it, and so does who looks at the state."""
    _falls_silent(bed, lambda: bed.vgpud.destroy("vf0"))


def killed_host(bed):
    """The same when vgpud-vf is killed, which tells nobody."""
    _falls_silent(bed, lambda: os.kill(harness.children_of(bed.vgpud.process.pid, "vgpud-vf")[0], signal.SIGKILL))


def dead_host(bed):
    """vgpud-vf is killed: opens fail at once and keep nothing, programs are told, and root gets rid of the device. What it had comes back when there is
    another one in its place."""
    held = bed.program("hold_channel", str(60 * bed.patience))
    held.wait_for_line("holding", 60 * bed.patience)
    quiet = bed.program("hold_channel", "600")
    quiet.wait_for_line("holding", 60 * bed.patience)
    before = _available(bed)
    os.kill(harness.children_of(bed.vgpud.process.pid, "vgpud-vf")[0], signal.SIGKILL)
    bed.tap("dead_host", "60")
    held.passes(90 * bed.patience)
    quiet.stop()
    address = bed.pci_address()
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{address}/remove", timeout=60)
    harness.check(_parked(bed) >= 8 << 20, f"nobody has said that its executors are gone: {_parked(bed)}")
    harness.check("rmmod" in bed.shell("rmmod vgpu 2>&1", check=False), "the module stays for as long")
    replace_vf(bed)
    harness.check(_parked(bed) == 0, f"the next VF has said it: {_parked(bed)}")
    life_cycle.unload(bed)
    after = _available(bed)
    harness.check(after >= before - 2048, f"what the dead host held is back: {before} KiB before, {after} KiB after")


def _available(bed):
    return int(bed.shell("awk '/MemAvailable/ { print $2 }' /proc/meminfo"))


LYING = (watch, goes_on_using_memory, answers_too_late, unanswered_end, silence_is_no_answer, another_vf, keeps_control_page, lies, lies_at_probe, first_host, interrupt_storm, one_interrupt)
LATE = (late_iommu,)
KEXEC = (kexec_after_unbind,)
kexec_after_unbind.allowed = life_cycle.NO_MODULE
DEAD = (destroyed_host, killed_host, dead_host)
