#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpud --gpu cuda where there is no GPU, or none that can be used: one sentence that says what is wrong and what helps. And
what it says of one that can be. The driver is one of a few calls, made for this (tests/unit/cuda/fake_driver.cc).

usage: no_gpu_test.py LIBRARY
"""
import os
import shutil
import subprocess
import sys

import harness
from vgpuguest import daemon, direct, paths, process
from vgpuguest.program import DirectProgram

MADE_UP = sys.argv[1]

# What the driver is told to be like, and words of the one line that vgpud says then.
WRONG = {
    "version=11040": ["too old", "11.4", "12.4"],
    "lacks:cuLaunchKernelEx": ["no cuLaunchKernelEx", "install it again"],
    "init=100": ["CUDA_ERROR_X (100)", "nvidia-smi -L", "MIG"],
    "init=803": ["different versions"],
    "init=999": ["dmesg"],
    "compute_mode=3": ["EXCLUSIVE_PROCESS", "nvidia-smi -i 0000:65:00.0 -c DEFAULT"],
    "compute_mode=2": ["PROHIBITED"],
    "retain=46": ["another process has the GPU for itself"],
    "retain=214": ["uncorrectable memory error"],
    "retain=2": ["no memory left"],
}


# A CUDA program of a few lines: memory that goes there and comes back, as much as the VF has.
MEMORY = """
import ctypes
cuda, context, device, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0 and cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0) == 0
assert total.value == 512 << 20 and cuda.cuMemAlloc_v2(ctypes.byref(device), 1 << 20) == 0
there, back = ctypes.create_string_buffer(bytes(range(256)) * 4096), ctypes.create_string_buffer(1 << 20)
assert cuda.cuMemcpyHtoD_v2(device, there, 1 << 20) == 0 and cuda.cuMemcpyDtoH_v2(back, device, 1 << 20) == 0
assert there.raw[:1 << 20] == back.raw
"""


def refused(directory, *arguments):
    """What vgpud says when it does not start."""
    ended = subprocess.run([paths.VGPUD, "--runtime-dir", directory, *arguments], stdin=subprocess.DEVNULL, text=True,
                           capture_output=True, timeout=60)
    harness.check(ended.returncode in (1, 2), f"{' '.join(arguments)}: vgpud does not start ({ended.returncode})")
    return ended.stderr


def check_refusals(directory):
    for like, words in WRONG.items():
        library = os.path.join(directory, f"libcuda@{like}@.so")
        shutil.copy(MADE_UP, library)
        said = refused(os.path.join(directory, "run"), "--gpu", "cuda", "--cuda-library", library)
        harness.check(said.startswith("vgpud: --gpu cuda: ") and said.count("\n") == 1, f"one line: {said}")
        for word in words:
            harness.check(word in said, f"{like}: it says {word!r}: {said}")
    nowhere = refused(os.path.join(directory, "run"), "--gpu", "cuda", "--cuda-library", "/nowhere/libcuda.so.1")
    harness.check("no CUDA driver" in nowhere and "--gpu soft" in nowhere, f"no driver: {nowhere}")
    empty = refused(os.path.join(directory, "run"), "--gpu", "cuda:0000:01:00.0", "--cuda-library", MADE_UP)
    harness.check("no GPU at 0000:01:00.0" in empty, f"no such address: {empty}")
    for wrong in ("cuda:", "cuda:65", "gpu", "cuda:0000:65:00.9"):
        said = refused(os.path.join(directory, "run"), "--gpu", wrong)
        harness.check(f"{wrong} is no GPU" in said, f"no GPU by that name: {said}")


def check_description():
    with daemon.private_daemon((), ["--gpu", "cuda:0000:65:00.0", "--cuda-library", MADE_UP]) as vgpud:
        gpu = vgpud.ctl("gpu")
        device = gpu["device"]
        harness.check(gpu["kind"] == "cuda" and gpu["compute_capability"] == "9.1", f"what it can: {gpu}")
        harness.check((device["name"], device["address"], device["memory_bytes"], device["taken_away_by"])
                      == ("Fake GPU", "0000:65:00.0", 1 << 30, "safepoints"), f"what it is: {device}")
        row = next(row for row in gpu["protections"] if row["name"] == "own-gpu-driver")
        harness.check(harness.SANITIZED or not row["in_force"] and "NVIDIA" in row["why_not"], f"the weaker jail is shown: {row}")
        harness.check(vgpud.create("a", vram="512MiB")["vram_bytes"] == 512 << 20, "a VF has a part of its memory")
        program = DirectProgram(vgpud.show("a"), [*direct.python(), "-c", MEMORY])
        harness.check_passes(program)  # in the jail of executors with a driver that is not ours
        try:
            vgpud.create("b", vram="1GiB")
        except paths.ToolError as why:
            harness.check("VRAM" in str(why) or "memory" in str(why), f"and no more than there is: {why}")
        else:
            raise AssertionError("the VFs have more memory than the GPU")


# What the driver is told to be like, the best rung that works then, and what is said of one that does not.
RUNGS = {
    "loses=3": ("gate", "blocks", "not each once"),
    "forgets=1": ("blocks", "safepoints", "computed something wrong"),
    "turns=218": ("gate", "blocks", "refuses its rewritten PTX"),
    "deaf=1": ("blocks", "safepoints", "did not leave the GPU within"),
}


# What the driver is told to be like, and words of why vgpud does not start: no program of a guest would run.
PROGRAMS = {"again=304": ["no program of a guest would run on it", "after its context was reset", "first-contact.md"]}
VERSION = """
import ctypes
cuda, version = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
nvml, same = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_int()
assert cuda.cuDriverGetVersion(ctypes.byref(version)) == 0 and nvml.nvmlSystemGetCudaDriverVersion(ctypes.byref(same)) == 0
assert version.value == same.value == %d, (version.value, same.value)
"""


def driver(directory, like):
    library = os.path.join(directory, f"libcuda@{like}@.so")
    shutil.copy(MADE_UP, library)
    return library


def check_programs(directory):
    """A program from its begin to its end is tried where guests' programs run."""
    for like, words in PROGRAMS.items():
        said = refused(os.path.join(directory, "run"), "--gpu", "cuda", "--cuda-library", driver(directory, like))
        for word in words:
            harness.check(word in said, f"{like}: it says {word!r}: {said}")
    with daemon.private_daemon((), ["--gpu", "cuda", "--cuda-library", driver(directory, "wanders=1")]) as vgpud:
        row = next(row for row in vgpud.ctl("gpu")["device"]["rungs"] if row["name"] == "program")
        harness.check(row["works"] and (harness.SANITIZED or row["what"].endswith("refused: chdir")), f"what its jail has refused is listed: {row}")


def check_version(directory):
    """Programs hear the older of two versions: the host's, or ours."""
    for told, hears in ((12040, 12040), (13010, 13000)):
        with daemon.private_daemon((), ["--gpu", "cuda", "--cuda-library", driver(directory, f"version={told}")]) as vgpud:
            vgpud.create("a", vram="64MiB")
            harness.check_passes(DirectProgram(vgpud.show("a"), [*direct.python(), "-c", VERSION % hears]))


def metrics(vgpud):
    return subprocess.run([paths.VGPUCTL, "--runtime-dir", vgpud.runtime_dir, "metrics"], check=True, text=True,
                          capture_output=True, timeout=30).stdout


def check_rungs(directory):
    """Each way to take kernels away is tried at start; one that does not work is not used, and all say why."""
    for like, (best, broken, why) in RUNGS.items():
        library = os.path.join(directory, f"libcuda@{like}@.so")
        shutil.copy(MADE_UP, library)
        with daemon.private_daemon((), ["--gpu", "cuda", "--cuda-library", library]) as vgpud:
            device = vgpud.ctl("gpu")["device"]
            rungs = {row["name"]: row for row in device["rungs"]}
            harness.check(device["taken_away_by"] == best, f"{like}: the best that works is {best}: {device}")
            harness.check(not rungs[broken]["works"] and why in rungs[broken]["what"], f"{broken} does not: {rungs[broken]}")
            harness.check(rungs["gate"]["works"] and rungs["kill"]["works"], f"the others do: {rungs}")
            harness.check(not rungs["channels"]["works"], "the driver's own controls are not used")
            with open(vgpud.log, encoding="utf-8") as log:
                harness.check(any(f"taking kernels away by {broken}: " in line and why in line for line in log), "in the log")
            harness.check(f'vgpud_gpu_rung_works{{gpu="soft0",rung="{broken}"}} 0' in metrics(vgpud), "and in the metrics")
    library = os.path.join(directory, "libcuda@early=1@.so")
    shutil.copy(MADE_UP, library)
    said = refused(os.path.join(directory, "run"), "--gpu", "cuda", "--cuda-library", library)
    harness.check("can't be kept in turns" in said and "told to have ended" in said, f"without a gate it does not start: {said}")
    with daemon.private_daemon((), ["--gpu", "cuda", "--cuda-library", MADE_UP, "--cuda-rung", "gate"]) as vgpud:
        device = vgpud.ctl("gpu")["device"]
        harness.check(device["taken_away_by"] == "gate" and "--cuda-rung gate" in device["rungs"][1]["what"],
                      f"no better one than was wanted: {device}")


def test():
    with process.scratch_dir("vgpu-") as directory:
        os.chmod(directory, 0o755)  # executors are users of their own
        check_refusals(directory)
        check_rungs(directory)
        check_programs(directory)
        check_version(directory)
    check_description()


harness.main(test, needs_guest=False)
