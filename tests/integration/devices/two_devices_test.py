#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program with two VFs, which are two devices to it: their memory has different addresses, copies go from one to the other, in streams of
either, and streams of one wait for events of the other without the call's waiting."""
import subprocess

import harness
from vgpuguest import daemon, direct

PROGRAM = r"""
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
wrong = 0
def see(what, got, wanted):
    global wrong
    if got != wanted:
        wrong += 1
        print(f"{what}: {got}, expected {wanted}", flush=True)
def must(name, *arguments):
    see(name, getattr(cuda, name)(*arguments), 0)
size = ctypes.c_size_t
def address(value):
    return ctypes.c_uint64(value)
contexts = []
must("cuInit", 0)
for ordinal in (0, 1):
    context = ctypes.c_void_p()
    must("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
    contexts.append(context)
def on(ordinal):
    must("cuCtxSetCurrent", contexts[ordinal])
def made(name, *arguments, kind=ctypes.c_void_p):
    out = kind()
    must(name, ctypes.byref(out), *arguments)
    return out
def memory(ordinal, value, words=1024):
    on(ordinal)
    at = made("cuMemAlloc_v2", size(4 * words), kind=ctypes.c_uint64)
    must("cuMemsetD32_v2", at, value, size(words))
    must("cuCtxSynchronize")
    return at.value
def word(at):
    out = ctypes.c_uint32()
    must("cuMemcpy", address(ctypes.addressof(out)), address(at), size(4))
    return out.value
def asked(attribute, at):
    out = ctypes.c_int(-7)
    must("cuPointerGetAttribute", ctypes.byref(out), attribute, address(at))
    return out.value

# Addresses.
blocks = [memory(ordinal, 10 + ordinal) for _ in range(20) for ordinal in (0, 1)]
see("different addresses", len(set(blocks)), len(blocks))
for at in blocks:
    see("the device of an address", asked(9, at), blocks.index(at) % 2)
p0, p1 = blocks[:2]
for current in (0, 1):
    on(current)
    see("memory of device 0", word(p0), 10)
    see("memory of device 1", word(p1), 11)

# Copies, with either device current; the contexts of a copy between peers count, not the current one.
for current in (0, 1):
    on(current)
    a, b = memory(0, 100), memory(1, 200)
    on(current)
    must("cuMemcpy", address(a), address(b), size(4096))
    see("a copy from device 1 to device 0", word(a), 200)
    must("cuMemsetD32_v2", address(b), 300, size(1024))
    must("cuMemcpyPeer", address(a), contexts[0], address(b), contexts[1], size(4096))
    see("a copy between peers", word(a), 300)
    out = ctypes.c_uint32(77)
    must("cuMemcpyHtoD_v2", address(b), ctypes.byref(out), size(4))
    see("a copy from the host", word(b), 77)
    must("cuMemcpyDtoD_v2", address(a + 8), address(b), size(4))
    see("a copy between devices", word(a + 8), 77)
    base, bytes = ctypes.c_uint64(), size()
    must("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(bytes), address(b + 100))
    see("the range of memory of the other device", (base.value, bytes.value), (b, 4096))
    must("cuMemFree_v2", address(a))
    must("cuCtxSetCurrent", None)
    must("cuMemFree_v2", address(b))
see("device 0's memory is still there", word(p0), 10) if on(0) is None else None

# A stream of device 1 that waits for a word; device 0 waits for the event behind it.
on(1)
flag, result1 = memory(1, 0), memory(1, 5)
s1 = made("cuStreamCreate", 1)
other1 = made("cuStreamCreate", 1)
e1 = made("cuEventCreate", 0)
must("cuStreamWaitValue32", s1, address(flag), 1, 0)
must("cuMemsetD32Async", address(result1), 42, size(1024), s1)
must("cuEventRecord", e1, s1)
result0 = memory(0, 6)
s0 = made("cuStreamCreate", 1)
e0 = made("cuEventCreate", 0)
must("cuStreamWaitEvent", s0, e1, 0)
must("cuMemcpyPeerAsync", address(result0), contexts[0], address(result1), contexts[1], size(4096), s0)
must("cuMemsetD32Async", address(result0 + 4), 43, size(1), s0)
must("cuEventRecord", e0, s0)
see("the stream of device 0 waits", cuda.cuStreamQuery(s0), 600)
see("its event, too", cuda.cuEventQuery(e0), 600)
see("an event of device 1 in a stream of device 0", cuda.cuEventRecord(e1, s0), 400)
must("cuMemsetD32Async", address(flag), 1, size(1), other1)
must("cuEventSynchronize", e0)
see("what the copy brought", word(result0), 42)
see("what came behind it", word(result0 + 4), 43)
for call in ("cuStreamSynchronize", "cuStreamQuery"):
    must(call, s1)
out = ctypes.c_uint32()
must("cuMemcpyDtoHAsync_v2", ctypes.byref(out), address(result1), size(4), s1)
must("cuStreamSynchronize", s1)
see("a copy in a stream of the other device", out.value, 42)
on(1)
must("cuStreamDestroy_v2", s0)
must("cuStreamDestroy_v2", s1)

# Memory that comes after a reset has addresses of its own again.
must("cuDevicePrimaryCtxReset_v2", 1)
must("cuDevicePrimaryCtxRetain", ctypes.byref(contexts[1]), 1)
see("after a reset", memory(1, 9) in blocks[::2], False)
sys.exit(wrong != 0)
"""


def test():
    with daemon.private_daemon([("a", {}), ("b", {})]) as vgpud:
        sockets = ",".join(vgpud.show(name)["channel_socket"] for name in ("a", "b"))
        environment = dict(direct.environment(vgpud.show("a")), VGPU_CHANNEL=sockets)
        program = subprocess.run([*direct.python(), "-c", PROGRAM], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        harness.check(program.returncode == 0, f"the program ended with {program.returncode}: {program.stdout}")


harness.main(test, needs_guest=False)
