#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The GPU is lost, or has a memory error, while programs of guests use it: they get the CUDA error that a real card gives, all their
later calls too, and so do programs that come later; vgpud lives, says what is wrong, and when the GPU is back new programs run. The
driver is one of a few calls, made for this (tests/unit/cuda/fake_driver.cc).

usage: lost_gpu_test.py LIBRARY
"""
import os
import shutil
import sys

import harness
from vgpuguest import daemon, direct, process
from vgpuguest.program import DirectProgram

MADE_UP = sys.argv[1]

PROGRAM = """
import ctypes, sys
cuda, context, module, kernel, memory = ctypes.CDLL("libcuda.so.1"), *(ctypes.c_void_p() for _ in range(4))
word = ctypes.c_uint64()
def said(call, status): print(f"{call} {status}", flush=True); return status
if said("cuInit", cuda.cuInit(0)) or said("retain", cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)): sys.exit(5)
cuda.cuCtxSetCurrent(context)
if said("alloc", cuda.cuMemAlloc_v2(ctypes.byref(word), 64)): sys.exit(5)
ptx = b".version 7.0\\n.target sm_75\\n.address_size 64\\n.visible .entry kernel(.param .u64 a, .param .u32 b)\\n{\\nret;\\n}\\n"
assert cuda.cuModuleLoadData(ctypes.byref(module), ptx) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"kernel") == 0
number = ctypes.c_uint32(1)
params = (ctypes.c_void_p * 2)(ctypes.addressof(word), ctypes.addressof(number))
print("begins", flush=True)
if said("launches", cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, params, None)): sys.exit(5)
said("synchronize", cuda.cuCtxSynchronize())
said("alloc", cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), 64))
said("copy", cuda.cuMemcpyDtoH_v2(ctypes.create_string_buffer(4), word, 4))
said("launch", cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, params, None))
"""

# What kernels end with, and what a process that comes later gets from cuInit of the driver.
LOSSES = {"ECC error": (214, "retain=214"), "off the bus": (999, "init=999"), "no GPU any more": (719, "init=100")}


def answers(program):
    """{call: status}"""
    return {words[0]: int(words[1]) for words in (line.split() for _, line in program.lines) if len(words) == 2 and words[1].isdigit()}


def point(link, directory, like):
    """What executors load from now on."""
    library = os.path.join(directory, f"libcuda@{like}@.so")
    if not os.path.exists(library):
        shutil.copy(MADE_UP, library)
    os.symlink(library, link + ".new")
    os.replace(link + ".new", link)


def run(vgpud, vf):
    program = DirectProgram(vgpud.show(vf), [*direct.python(), "-c", PROGRAM])
    program.wait(60)
    return program, answers(program)


def in_log(vgpud, words):
    with open(vgpud.log, encoding="utf-8") as log:
        return any(words in line for line in log)


def check_loss(directory, name, status, later):
    link = os.path.join(directory, "libcuda.so.1")
    point(link, directory, "version=13000")
    with daemon.private_daemon([("a", {"vram": "256MiB"}), ("b", {"vram": "256MiB"})], ["--gpu", "cuda", "--cuda-library", link]) as vgpud:
        _, said = run(vgpud, "a")
        harness.check(set(said.values()) == {0}, f"{name}: before it all is well: {said}")
        point(link, directory, f"lost={status}")
        for vf in "ab":
            program, said = run(vgpud, vf)
            later_calls = {call: said.get(call) for call in ("synchronize", "alloc", "copy", "launch")}
            harness.check(set(later_calls.values()) == {status}, f"{name}: {vf} gets {status} from all calls: {said}\n{program.text()}")
        point(link, directory, later)
        program, said = run(vgpud, "a")
        harness.check("begins" not in program.text() and any(said.values()), f"{name}: a program that comes later gets an error: {said}")
        harness.check(list(said.values())[-1] == int(later.split("=")[1]), f"{name}: that of the driver: {said}\n{program.text()}")
        harness.wait_until(lambda: in_log(vgpud, "the GPU can't be used"), f"{name}: the log says that it can't be used")
        harness.check(vgpud.process.poll() is None and set(vgpud.names()) == {"a", "b"}, f"{name}: vgpud lives and answers")
        point(link, directory, "version=13000")
        _, said = run(vgpud, "b")
        harness.check(set(said.values()) == {0}, f"{name}: when it is back programs run: {said}")


def test():
    with process.scratch_dir("vgpu-") as directory:
        os.chmod(directory, 0o755)  # executors are users of their own
        for name, (status, later) in LOSSES.items():
            check_loss(directory, name, status, later)


harness.main(test, needs_guest=False)
