#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every fault of a kernel reaches its program as CUDA says, sticks to it alone, and is in the executor's log."""
import os
import re

import harness
from vgpuguest import daemon
from vgpuguest.program import DirectProgram

PROGRAM = os.environ["FAULT_PROGRAM"]
# Number of the CUresult, and what the log says besides the place.
FAULTS = {
    "address": (700, "store of 4 bytes at 0x1000"),
    "timeout": (702, "deadlock"),
    "assert": (710, "Assertion"),
    "stack": (714, "the call stack is full"),
    "instruction": (715, "barrier 16"),
    "misaligned": (716, "load of 16 bytes at 0x7"),
    "space": (717, "atomic operation of 4 bytes at 0x6d"),
    "pc": (718, "which is no function"),
    "failed": (719, "trap"),
}


def test():
    with daemon.private_daemon([("a", {}), ("b", {})]) as vgpud:
        a, b = vgpud.show("a"), vgpud.show("b")
        bystander = DirectProgram(b, harness.command("meter"))
        for name, (number, text) in FAULTS.items():
            harness.run_direct(a, [PROGRAM, name])
            harness.run_direct(a, [PROGRAM, "none"])
            with open(vgpud.log, encoding="utf-8") as log:
                lines = [line for line in log if f"error={number} " in line]
            place = rf"kernel {name}, .*PTX line \d+, block \(\d,0,0\), thread \(\d+,0,0\)"
            harness.check(any(re.search(place, line) and text in line for line in lines),
                          f"{name} ({number}) with its place and {text!r} in the log: {lines}")
        counted = {str(number): 1 for number, _ in FAULTS.values()}
        for answer in (vgpud.stats()[1]["a"], vgpud.show("a")):
            harness.check(answer["kernel_faults"] == counted, f"each is counted by its error: {answer['kernel_faults']}")
        metrics = vgpud.ctl_text("metrics")
        for error in [*counted, "other"]:
            harness.check(f'\nvgpud_vf_kernel_faults_total{{gpu="soft0",vf="a",error="{error}"}} {counted.get(error, 0)}\n' in metrics,
                          f"the metrics have it, too: {error}")
        faults = [event for event in vgpud.ctl("events", "a")["events"] if event["kind"] == "fault"]
        harness.check(len(faults) == len(FAULTS), f"each is an event: {faults}")
        for event, (name, (number, text)) in zip(faults, FAULTS.items()):
            harness.check(event["text"].startswith(f"error={number} ") and f"kernel {name}," in event["text"] and text in event["text"],
                          f"with its text: {event}")
        harness.check('"fault"' not in vgpud.ctl_text("events", "b", "-o", "json"), "no event of the VF beside")
        harness.check(vgpud.show("b")["kernel_faults"] == {}, "nothing is counted of the VF beside")
        harness.check_passes(bystander)


harness.main(test, needs_guest=False)
