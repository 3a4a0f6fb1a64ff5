#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own libcuda on a made-up kernel side that refuses, loses a card, or stops its channels: which errors programs get. And several
cards in one process.

usage: real_driver_errors_test.py
"""
import fetched
import harness
from made_up_kernel import Steps, made_up_kernel, own_mounts

NO_MEMORY, INSUFFICIENT_RESOURCES = 0x51, 0x1a  # of the resource manager
CARD_MEMORY, CHANNEL = 0x40, 0xc46f
LOST = ("CUDA_ERROR_UNKNOWN (999)", "CUDA_ERROR_LAUNCH_FAILED (719)")  # as a call or a channel of the driver's sees it first
# What a program has done before, what happens then, what it does after, and the errors of which it gets one.
HAPPENS = (
    (("init", "context"), f"refuse {CARD_MEMORY:#x} {NO_MEMORY:#x}", ("alloc",), ("CUDA_ERROR_OUT_OF_MEMORY (2)",)),
    (("init",), f"refuse {CHANNEL:#x} {INSUFFICIENT_RESOURCES:#x}", ("context",), ("CUDA_ERROR_OUT_OF_MEMORY (2)",)),
    (("init", "context"), "fail 0 31", ("copies",), ("CUDA_ERROR_ILLEGAL_ADDRESS (700)",)),
    (("init", "context"), "fail 0 13", ("copies",), ("CUDA_ERROR_LAUNCH_FAILED (719)",)),
    (("init", "context"), "lose 0", ("alloc",), LOST),
    (("init", "context", "streams"), "lose 0", ("events",), LOST),
    (("init",), "lose 0", ("context",), LOST),
)


def check_errors(version):
    for before, order, after, errors in HAPPENS:
        with made_up_kernel(version) as kernel:
            program = Steps(kernel, *before, "wait", *after)
            program.until_waiting()
            kernel.order(order)
            program.go_on()
            said = program.rest()
            harness.check(any(error in said for error in errors), f"{version}: {' '.join(after)} after \"{order}\": {said}\n{kernel.log()}")


def check_full(version):
    with made_up_kernel(version) as kernel:
        said = Steps(kernel, "init", "context", "too-much").rest()
        harness.check("too-much ok" in said, f"{version}: a card that is full says so, and gives what it has: {said}")


def check_cards(version):
    """One process on several cards; one that is lost takes nothing from the other."""
    with made_up_kernel(version, cards=3) as kernel:
        said = Steps(kernel, "init", "each").rest()
        harness.check(all(f"device {n}:" in said and f"uuid {n + 1:x}{n + 1:x}" in said for n in range(3)), f"{version}: three cards: {said}")
        harness.check("each ok" in said, f"{version}: they work at the same time: {said}")
        program = Steps(kernel, "init", "context", "wait", "copies", "streams", "launch")
        program.until_waiting()
        kernel.order("lose 2")
        program.go_on()
        said = program.rest()
        harness.check("copies ok" in said and "streams ok" in said, f"{version}: the first works on without the third: {said}")
        said = Steps(kernel, "init", "each").rest()
        harness.check("device 1:" in said and "device 2:" not in said and "each ok" in said, f"{version}: a new program has two cards: {said}")


def test():
    versions = fetched.versions()
    own_mounts()
    for version in versions:
        check_errors(version)
        check_full(version)
        check_cards(version)


harness.main(test, needs_guest=False)
