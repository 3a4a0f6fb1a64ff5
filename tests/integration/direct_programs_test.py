#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every CUDA program passes without a virtual machine, alone and beside others, and through tools/run-direct."""
import signal
import os
import subprocess

import harness
from vgpuguest import daemon, direct, paths
from vgpuguest.program import DirectProgram

TOOL = str(paths.REPO / "tools" / "run-direct")


def run_tool(*arguments):
    return subprocess.run([TOOL, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


# A CUDA program of a few lines: how much device memory there is.
TOTAL_MEMORY = """
import ctypes
cuda, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0) == 0
print(total.value)
"""


def check_device_memory():
    """run-direct's VF has 2 GiB, or what was asked for."""
    for words, mebibytes in (([], 2048), (["--vram", "512MiB"], 512), (["--vram", "3GiB"], 3072)):
        result = run_tool(*words, "--", *direct.python(), "-c", TOTAL_MEMORY)
        harness.check(result.stdout.strip() == str(mebibytes << 20), f"{words}: {mebibytes} MiB expected: {result}")
    result = run_tool("--vram", "much", "--", "/bin/true")
    harness.check(result.returncode == 1 and "much" in result.stderr, f"no size: {result}")
    result = run_tool("--vram", "1GiB", "--runtime-dir", "/nowhere", "--", "/bin/true")
    harness.check(result.returncode == 1 and "--vram" in result.stderr, f"a VF that has its memory already: {result}")


# The UUIDs of all devices.
DEVICES = """
import ctypes
cuda, count, uuid = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), (ctypes.c_ubyte * 16)()
status = cuda.cuInit(0)
assert status == 0, status
assert cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
for device in range(count.value):
    assert cuda.cuDeviceGetUuid_v2(uuid, device) == 0
    print(bytes(uuid).hex())
"""


def check_several_devices(*vfs):
    """VGPU_CHANNEL may name several VFs, a device each in that order; when one of them can't be reached there is none."""
    def devices(*sockets):
        return subprocess.run([*direct.python(), "-c", DEVICES], env=direct.environment({"channel_socket": ",".join(sockets)}),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    sockets = [vf["channel_socket"] for vf in vfs]
    result = devices(*reversed(sockets))
    uuids = [vf["uuid"].replace("-", "") for vf in reversed(vfs)]
    harness.check(result.stdout.split() == uuids, f"two VFs in the order of VGPU_CHANNEL, {uuids}: {result}")
    folder = os.path.dirname(sockets[0])
    result = devices(folder)
    uuids = [vf["uuid"].replace("-", "") for vf in sorted(vfs, key=lambda vf: vf["name"])]
    harness.check(result.stdout.split() == uuids, f"a directory stands for the channel sockets in it, in the order of their names, {uuids}: {result}")
    harness.check("no file in that directory" in devices("/proc/self/fd").stderr, "there are none in it")
    result = devices(sockets[0], sockets[1] + "x")
    harness.check(result.returncode != 0 and "AssertionError: 100" in result.stderr and sockets[1] + "x: No such file" in result.stderr,
                  f"one of two can't be reached: {result}")
    harness.check("names no socket" in devices("", "").stderr, "nothing but separators")


def test():
    with daemon.private_daemon([("a", {}), ("b", {})]) as vgpud:
        a, b = vgpud.show("a"), vgpud.show("b")
        check_several_devices(a, b)
        for argv in harness.available().values():
            harness.run_direct(a, argv)
        programs = [DirectProgram(vf, harness.command(name)) for vf in (a, b) for name in ("matmul", "meter")]
        for program in programs:
            harness.check_passes(program)
        endless = DirectProgram(a, harness.command("endless"))
        endless.wait_for_line("endless: started", 30)
        harness.run_direct(b, harness.command("vectoradd"))
        harness.run_direct(a, harness.command("vectoradd"))
        endless.stop()
        harness.wait_until(lambda: vgpud.show("a")["executors"] == 0, "a killed program leaves no executor")
        harness.wait_until(lambda: vgpud.show("a")["vram_used_bytes"] == 0, "and no device memory")
        result = run_tool("--runtime-dir", vgpud.runtime_dir, "--vf", "b", "--", *harness.command("vectoradd"))
        harness.check(result.returncode == 0, f"run-direct on a named daemon: {result}")
        result = run_tool("--runtime-dir", vgpud.runtime_dir, "--", *harness.command("vectoradd"))
        harness.check(result.returncode == 1 and "--vf" in result.stderr, f"two VFs and none chosen: {result}")
    check_device_memory()
    result = run_tool("--", *harness.command("vectoradd"))
    harness.check(result.returncode == 0, f"run-direct with a daemon of its own: {result}")
    result = run_tool("--", "/bin/sh", "-c", "kill -KILL $$")
    harness.check(result.returncode == 128 + signal.SIGKILL, f"a signal comes back as 128 + n: {result}")


harness.main(test, needs_guest=False)
