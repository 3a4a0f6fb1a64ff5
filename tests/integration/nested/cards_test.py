#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One vgpud with two cards of NVIDIA's, each with VFs and turns of its own; and a MIG instance by its name. The drivers are of a few
calls, made for this (tests/unit/cuda/fake_driver.cc).

usage: cards_test.py LIBRARY
"""
import os
import shutil
import subprocess
import sys

import harness
from vgpuguest import daemon, direct, paths, process
from vgpuguest.program import DirectProgram

MADE_UP = sys.argv[1]
INSTANCE = "MIG-00000000-0000-0000-0000-00000000000a"

# What a program in a VF sees of its memory, and a copy there and back.
PROGRAM = """
import ctypes
cuda, context, device, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0 and cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0) == 0
assert total.value == %d, total.value
assert cuda.cuMemAlloc_v2(ctypes.byref(device), 1 << 20) == 0
there, back = ctypes.create_string_buffer(bytes(range(256)) * 4096), ctypes.create_string_buffer(1 << 20)
assert cuda.cuMemcpyHtoD_v2(device, there, 1 << 20) == 0 and cuda.cuMemcpyDtoH_v2(back, device, 1 << 20) == 0
assert there.raw[:1 << 20] == back.raw
"""


def driver(directory, like):
    library = os.path.join(directory, f"libcuda@{like}@.so")
    shutil.copy(MADE_UP, library)
    return library


def check_two(directory):
    """Each GPU has its own driver, address, rungs and VFs; beside them the built-in one."""
    left, right = driver(directory, "mig=0"), driver(directory, "slot=66@turns=218")
    cards = {"left": ("cuda", left), "right": ("cuda:0000:66:00.0", right)}
    arguments = [f"--with-gpu={name}.{key}={value}" for name, (gpu, library) in cards.items()
                 for key, value in (("gpu", gpu), ("cuda_library", library))]
    with daemon.private_daemon((), arguments + ["--with-gpu=soft.gpu=soft"]) as vgpud:
        gpus = {gpu["name"]: gpu for gpu in vgpud.ctl("gpus")["gpus"]}
        harness.check({name: gpu["kind"] for name, gpu in gpus.items()} == {"left": "cuda", "right": "cuda", "soft": "soft"},
                      f"three GPUs: {gpus}")
        devices = {name: vgpud.ctl("gpu", name)["device"] for name in cards}
        harness.check({name: (device["address"], device["taken_away_by"]) for name, device in devices.items()}
                      == {"left": ("0000:65:00.0", "safepoints"), "right": ("0000:66:00.0", "gate")}, f"as they are: {devices}")
        harness.check(all(device["mig_instance"] == "" and device["on_bus"] is None for device in devices.values()),
                      f"whole cards, of no bus: {devices}")
        for name, mib in (("left", 256), ("right", 512), ("soft", 64)):
            made = vgpud.create(f"vf-{name}", gpu=name, vram=f"{mib}MiB")
            harness.check(made["gpu"] == name, f"by name: {made}")
        programs = [DirectProgram(vgpud.show(f"vf-{name}"), [*direct.python(), "-c", PROGRAM % (mib << 20)])
                    for name, mib in (("left", 256), ("right", 512), ("soft", 64))]
        for program in programs:
            harness.check_passes(program)
        row = next(row for row in vgpud.ctl("gpu", "soft")["protections"] if row["name"] == "own-gpu-driver")
        harness.check(not row["in_force"], f"executors with a driver of their own are told of: {row}")


def check_mig(directory):
    divided = driver(directory, "mig=10")
    for gpu in (f"cuda:{INSTANCE}", "cuda"):
        with daemon.private_daemon((), ["--gpu", gpu, "--cuda-library", divided]) as vgpud:
            device = vgpud.ctl("gpu")["device"]
            harness.check(device["mig_instance"] == INSTANCE, f"{gpu}: it says which instance: {device}")
            vgpud.create("a", vram="64MiB")
            harness.check_passes(DirectProgram(vgpud.show("a"), [*direct.python(), "-c", PROGRAM % (64 << 20)]))
    whole = driver(directory, "mig=0")
    other = "MIG-00000000-0000-0000-0000-00000000000b"
    for library, name in ((divided, other), (whole, INSTANCE)):
        ended = subprocess.run([paths.VGPUD, "--runtime-dir", os.path.join(directory, "run"), "--gpu", f"cuda:{name}",
                                "--cuda-library", library], stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=60)
        harness.check(ended.returncode == 1 and f"no MIG instance {name}" in ended.stderr and "nvidia-smi -L" in ended.stderr,
                      f"no such instance: {ended.stderr}")
    ended = subprocess.run([paths.VGPUD, "--gpu", "cuda:MIG-1"], stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=60)
    harness.check(ended.returncode == 2 and "MIG-1 is no GPU" in ended.stderr, f"no name of an instance: {ended.stderr}")


def test():
    with process.scratch_dir("vgpu-") as directory:
        os.chmod(directory, 0o755)  # executors are users of their own
        check_two(directory)
        check_mig(directory)


harness.main(test, needs_guest=False)
