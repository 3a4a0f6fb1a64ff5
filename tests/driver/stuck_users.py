# SPDX-License-Identifier: Apache-2.0
"""A program whose ioctl waits for a page that never comes, or that has one which stays locked, does not stop an administrator, nor other devices."""
import contextlib

# A task that waits for its own FUSE server may be reported: it does so by its own will.
_OWN_WILL = "stuck_page"


@contextlib.contextmanager
def _stuck(bed, way):
    held = bed.program("stuck_page", way)
    held.wait_for_line("stuck", 60 * bed.patience)
    try:
        yield
    finally:
        held.stop()


def _bounded(bed, command, what):
    """A command of root ends though the page never comes. The limit only decides when the test gives up."""
    try:
        bed.shell(command, timeout=60)
    except TimeoutError:
        tasks = bed.shell("ps; tail -n +1 /proc/[0-9]*/stack 2>/dev/null | grep -v '^$' | tail -n 150", check=False)
        raise AssertionError(f"{what} hangs; what runs in the guest:\n{tasks}") from None


def _unbind(bed, way):
    address = bed.pci_address()
    with _stuck(bed, way):
        _bounded(bed, f"echo {address} > /sys/bus/pci/drivers/vgpu/unbind", "unbind")
    bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/bind", timeout=30)
    bed.open_device()
    bed.tap("basic")


def unbind_while_reading(bed):
    """unbind, while an argument is read."""
    _unbind(bed, "in")


def unbind_while_writing(bed):
    """unbind, while an answer is written."""
    _unbind(bed, "out")


def unbind_while_locked(bed):
    """unbind, while a page is locked of which a program has tried to make a buffer: what the driver had pinned it could not give back."""
    address = bed.pci_address()
    with _stuck(bed, "pin"):
        try:
            _bounded(bed, f"echo {address} > /sys/bus/pci/drivers/vgpu/unbind", "unbind")
        finally:
            # Who waits for the server of a file can't be killed.
            bed.shell("mkdir -p /tmp/fuse; mount -t fusectl none /tmp/fuse; for end in /tmp/fuse/*/abort; do echo 1 > $end; done; umount /tmp/fuse")
    bed.shell(f"echo {address} > /sys/bus/pci/drivers/vgpu/bind", timeout=30)
    bed.open_device()
    bed.tap("basic")


def waits_for_its_turn(bed):
    """Two threads of a user wait for such pages while they allocate; a third one, which waits for its turn, can be woken, and so be frozen before a suspend."""
    bed.tap("stuck_page", "workers")
    bed.tap("basic")


def reset_while_reading(bed):
    """A reset, while an argument is read."""
    address = bed.pci_address()
    with _stuck(bed, "in"):
        _bounded(bed, f"echo 1 > /sys/bus/pci/devices/{address}/reset", "the reset")
    bed.tap("basic")


def other_devices(bed):
    """Opening other devices, while a reset and an open of ours wait."""
    address = bed.pci_address()
    with _stuck(bed, "in"):
        bed.shell(f"(echo 1 > /sys/bus/pci/devices/{address}/reset) < /dev/null > /dev/null 2>&1 &")
        bed.shell("(sleep 0.5; exec 3<> /dev/vgpu0) < /dev/null > /dev/null 2>&1 &")
        _bounded(bed, "sleep 1.5; exec 3<> /dev/fuse", "opening /dev/fuse")
        _bounded(bed, "exec 3<> /dev/vgpu0", "opening the device")
    bed.tap("basic")


TESTS = (reset_while_reading, other_devices, unbind_while_reading, unbind_while_writing, unbind_while_locked, waits_for_its_turn)
for _test in TESTS:
    _test.allowed = _OWN_WILL
