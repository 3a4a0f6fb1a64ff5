#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own libcuda, in each version that was fetched, on a made-up kernel side: it starts, makes contexts, copies, compiles, launches,
waits, and hears what a card refuses. The kernels themselves do nothing.

usage: real_driver_test.py
"""
import fetched
import harness
from made_up_kernel import Steps, made_up_kernel, own_mounts

CHIPS = {"t4": "device 0: Tesla T4, 7.5, 40 processors, 15360 MiB", "h100": "device 0: NVIDIA H100 80GB HBM3, 9.0, 132 processors, 81920 MiB"}
WORK = ("init", "context", "copies", "host", "streams", "events", "compile", "launch", "mapped", "array", "reset")
LAUNCHES = 101  # of the step "launch"


def said_ok(said, steps):
    return [line for line in said.splitlines() if line.endswith(" ok")] == [f"{step} ok" for step in steps]


def check_work(version, chip):
    with made_up_kernel(version, chip) as kernel:
        said = Steps(kernel, *WORK).rest()
        harness.check(CHIPS[chip] in said, f"{version}, {chip}: the card is what it is: {said}")
        harness.check(said_ok(said, WORK), f"{version}, {chip}: every step: {said}\n{kernel.log()}")
        launched = int(kernel.order("kernels").split()[1])
        harness.check(launched >= LAUNCHES, f"{version}, {chip}: {launched} launches arrived")
        harness.check(kernel.order("unknown") == "unknown", f"{version}, {chip}: no control was missing")
        harness.wait_until(lambda: kernel.order("used 0") == "used 0", f"{version}, {chip}: its memory is given back when it ends")


def test():
    versions = fetched.versions()
    own_mounts()
    for version in versions:
        for chip in CHIPS:
            check_work(version, chip)


harness.main(test, needs_guest=False)
