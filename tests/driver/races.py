# SPDX-License-Identifier: Apache-2.0
"""Root takes the device away while threads of the lowest priority are anywhere in the driver: nothing is used after it was freed, and root does
not wait for them. `rounds` of each by default; run.py --rounds says how many, for a campaign."""
import time

import harness
from life_cycle import _bind, _unbind, _works_again

ROUNDS = 3
# Longer than root ever waits for the device itself: the host ends its channels meanwhile.
MOST_SECONDS = 10


def _rounds(bed, change, *arguments):
    address, longest = bed.pci_address(), 0.0
    for _ in range(ROUNDS):
        idlers = bed.program("idlers", *arguments)
        idlers.wait_for_line("ready", 60 * bed.patience)
        time.sleep(0.3)  # more of them are on their way; nothing depends on how many
        began = time.monotonic()
        change(bed, address)
        longest = max(longest, time.monotonic() - began)
        idlers.stop()
        bed.open_device()
    print(f"    # root waited {longest:.2f} s at most in {ROUNDS} rounds", flush=True)
    harness.check(longest < MOST_SECONDS * bed.patience, f"root does not wait for threads of the lowest priority: {longest:.1f} s")
    _works_again(bed)


def _unbind_and_bind(bed, address):
    _unbind(bed, address)
    _bind(bed, address)


def _reset(bed, address):
    bed.shell(f"echo 1 > /sys/bus/pci/devices/{address}/reset", timeout=120)


def close_and_unbind(bed):
    """Channels are closed at the moment at which the driver is unbound."""
    _rounds(bed, _unbind_and_bind, "close", "1", "14", "4")


def alloc_and_unbind(bed):
    """Buffers are allocated while the driver is unbound."""
    _rounds(bed, _unbind_and_bind, "alloc", "8", "64", "8")


def open_and_unbind(bed):
    """Channels are opened while the driver is unbound."""
    _rounds(bed, _unbind_and_bind, "open", "4", "8", "8")


def alloc_and_reset(bed):
    """The function is reset beside threads that allocate."""
    _rounds(bed, _reset, "alloc", "8", "16", "16")


def pinned_and_reset(bed):
    """The function is reset, and with it memory given back whose pages threads of its process have locked."""
    _rounds(bed, _reset, "pin", "4", "16", "4", "always")


TESTS = (close_and_unbind, alloc_and_unbind, open_and_unbind, alloc_and_reset, pinned_and_reset)
