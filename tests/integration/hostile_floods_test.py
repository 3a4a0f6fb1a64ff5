#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A guest that resets, kicks or errs without pause is slowed down, and the neighbour keeps its share."""
import struct

import harness
import hostile_bed
import hostile_clients as c

_LOG_SECONDS = 5
_HEADER = 16


def message(command, body=b"", flags=0):
    return struct.pack("<HHIII", 0, command, _HEADER + len(body), flags, 0) + body


# What is sent, how often, and the size of each answer: two to four times what may come at once.
FLOODS = {
    "resets": (message(c.RESET), 200, _HEADER),
    "doorbells": (message(c.WRITE, struct.pack("<QIII", 0x1000, c.BAR0, 4, 1), c.NO_REPLY), 150_000, 0),
    "bad_messages": (message(99), 600, _HEADER),
}


def flood(bed, name):
    """All at once, as fast as the VF takes it."""
    data, count, answer = FLOODS[name]
    with c.VfioClient(bed.bad) as guest:
        guest.socket.sendall(data * count)
        guest.take(answer * count)
        harness.check(guest.register(0) == c.MAGIC, f"after a flood of {name} the guest is served")

    def slowed_down():
        return bed.vgpud.show("bad")["events"][name]["throttled"] > 0
    harness.wait_until(slowed_down, f"vgpud knows of the {name}", _LOG_SECONDS)
    shown = bed.vgpud.show("bad")
    harness.check(shown["throttled_ns"] > 0, f"and how long they waited: {shown['throttled_ns'] / 1e9:.3f} s")
    harness.check(f" {name} (at most" in bed.log(), "the log names the budget")
    harness.check(all(event["throttled"] == 0 for event in bed.vgpud.show("good")["events"].values()),
                  "the neighbour was never slowed down")


def test():
    with hostile_bed.bed() as bed:
        for name in FLOODS:
            with hostile_bed.unaffected(bed, bystander=False):
                flood(bed, name)


if __name__ == "__main__":
    harness.main(test, needs_guest=False)
