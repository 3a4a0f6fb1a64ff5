#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Modules are loaded at the pace of the VF's budget: what is beyond waits, says why, and is counted. Kernels of other
programs of the VF, and other VFs, do not wait."""
import pathlib
import time

import harness
import hostile_clients as c
from vgpuguest import daemon

HEAD = b".version 7.0\n.target sm_75\n.address_size 64\n"
KIB = 64  # per second
IMAGE = KIB * 1024 * 2


def image(number):
    """A module of IMAGE bytes that is read in no time."""
    text = HEAD + b".visible .entry k%d(){ ret; }\n" % number
    return text + b"\n" * (IMAGE - len(text) - 1) + b"\0"


def main():
    with daemon.private_daemon([("busy", {"vram": "16MiB"}), ("other", {"vram": "16MiB"})],
                               ["--event-budget", f"module_kib={KIB}"]) as vgpud:
        ring = c.ChannelClient(vgpud.show("busy"))
        begun = time.monotonic()
        for number in range(3):
            harness.check(ring.load(image(number), module=number + 1)[0] == 0, f"module {number} is loaded")
        spent = time.monotonic() - begun
        # The first finds a second's worth and owes one, the second owes two more when the third may begin.
        harness.check(spent >= 2.9, f"the others waited for it: {spent:.1f} s")
        other = c.ChannelClient(vgpud.show("other"))
        begun = time.monotonic()
        harness.check(other.load(image(9))[0] == 0 and time.monotonic() - begun < spent, "another VF does not wait")
        harness.wait_until(lambda: b"too many module_kib (at most 64 per second)" in pathlib.Path(vgpud.log).read_bytes(),
                           "the log says why")
        harness.wait_until(lambda: vgpud.show("busy")["events"]["module_kib"]["throttled"] > 0, "and it is counted")
        harness.wait_until(lambda: vgpud.show("busy")["events"]["module_kib"]["count"] == 3 * IMAGE // 1024, "in KiB")
        harness.wait_until(lambda: vgpud.stats()[1]["busy"]["module_loads"] == 3, "three loads are counted")
        busy = vgpud.stats()[1]["busy"]
        harness.check(busy["module_bytes"] == 3 * IMAGE, f"with their bytes: {busy['module_bytes']}")
        harness.check(busy["host_work_ns"] > 0 and busy["bad_slots"] == 0, "and what they took")


if __name__ == "__main__":
    harness.main(main, needs_guest=False)
