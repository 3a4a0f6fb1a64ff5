#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes of a paused VF that load modules without end, outside of any turn, beside a neighbour that computes: the
neighbour keeps its processors. Both figures are of one run. Skipped where vgpud has no control groups for processors."""
import struct
import threading
import time

import harness
import hostile_clients as c
from vgpuguest import daemon

HEAD = b".version 7.0\n.target sm_75\n.address_size 64\n"
SPIN = HEAD + b".visible .entry spin(){\n.reg .b32 %r<3>;\nmov.u32 %r1,0;\nL: add.u32 %r1,%r1,1;\nbra L;\n}\n\0"
LOADERS = 3
SECONDS = 2.0
# Of the best of three: others on the machine take processors too. Without the budget it is about a half.
LEAST = 0.70


def pace(vgpud):
    """Warp instructions of the neighbour per second."""
    before, vfs = vgpud.stats()
    begun = vfs["good"]["warp_instructions"]
    time.sleep(SECONDS)
    after, vfs = vgpud.stats()
    return (vfs["good"]["warp_instructions"] - begun) * 1e9 / (after - before)


def load_without_end(ring, stop):
    body = b"".join(b"add.u32 %%r1,%%r1,%d;\n" % i for i in range(50_000))
    number = 0
    while not stop.is_set():
        number += 1
        image = HEAD + b".visible .entry k%d(){\n.reg .b32 %%r<3>;\n" % number + body + b"ret;\n}\n\0"
        try:
            ring.load(image, module=number)
            ring.call(c.MODULE_UNLOAD, [number])
        except (AssertionError, OSError):
            return  # starved, or the daemon has ended


def main():
    with daemon.private_daemon([("bad", {"vram": "64MiB"}), ("good", {"vram": "64MiB"})]) as vgpud:
        rows = {row["name"]: row for row in vgpud.ctl("gpu")["protections"]}
        if not (rows["cgroup-cpu"]["in_force"] and rows["cgroup-cpu-account"]["in_force"]):
            harness.skip(f"no control groups for processors here: {rows['cgroup-cpu']['why_not']}")
        vgpud.ctl("pause", "bad")
        good = c.ChannelClient(vgpud.show("good"))
        good.load(SPIN)
        good.push(c.LAUNCH, [good.function("spin")], payload=struct.pack("<10I", 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), flags=0)
        harness.wait_until(lambda: vgpud.stats()[1]["good"]["slices"] > 5, "the neighbour computes")
        alone = pace(vgpud)
        stop = threading.Event()
        for _ in range(LOADERS):
            ring = c.ChannelClient(vgpud.show("bad"))
            threading.Thread(target=load_without_end, args=(ring, stop), daemon=True).start()
        harness.wait_until(lambda: vgpud.stats()[1]["bad"]["gave_way"] > 0, "the paused VF is over its budget")
        beside = [pace(vgpud) for _ in range(3)]
        stop.set()
        harness.check(vgpud.stats()[1]["good"]["gave_way"] == 0, "one that computes in its turns only never gives way")
        harness.check(max(beside) >= LEAST * alone,
                      f"the neighbour keeps its pace: {', '.join(f'{each / alone:.2f}' for each in beside)}")


if __name__ == "__main__":
    harness.main(main, needs_guest=False)
