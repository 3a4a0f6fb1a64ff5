#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that is killed gives its memory and its time on the GPU back at once, though children that it forked live on: workers of a data
loader, a helper that stays in the background."""
import os
import signal
import subprocess

import harness
from vgpuguest import daemon, direct

MEBIBYTES = 48
# The child only waits, or asks for something first.
PROGRAM = f"""
import ctypes, os, signal, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t({MEBIBYTES} << 20)) == 0
child = os.fork()
if child == 0:
    if sys.argv[1] == "asks":
        assert cuda.cuCtxSynchronize() == 3
    print(os.getpid(), flush=True)
    signal.pause()
signal.pause()
"""


def test():
    with daemon.private_daemon([("a", {})]) as vgpud:
        for how in ("only waits", "asks"):
            program = subprocess.Popen([*direct.python(), "-c", PROGRAM, how], env=direct.environment(vgpud.show("a")), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, text=True, start_new_session=True)
            try:
                child = int(program.stdout.readline())
                harness.wait_until(lambda: vgpud.show("a")["vram_used_bytes"] >= MEBIBYTES << 20 and vgpud.show("a")["executors"] == 1,
                                   "the program has its memory", seen=lambda: str(vgpud.show("a")))
                program.kill()
                program.wait()
                harness.wait_until(lambda: vgpud.show("a")["vram_used_bytes"] == 0 and vgpud.show("a")["executors"] == 0,
                                   "all is free when the program is gone", seen=lambda: str(vgpud.show("a")))
                with open(f"/proc/{child}/stat", encoding="ascii") as stat:
                    harness.check(stat.read().split()[2] in "SR", f"and its child, which {how}, lives")
            finally:
                os.killpg(program.pid, signal.SIGKILL)
                program.stdout.close()


harness.main(test, needs_guest=False)
