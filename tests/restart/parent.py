#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CUDA program with memory and a kernel without end, and another process that has its descriptors, too, and stays when it is killed.

It prints "holder PID" and waits.

usage: parent.py fork|files|message   the other process: a child that runs no handler of fork(), a child with the same table of
                                      descriptors, or one that was there before and got them in a message
"""
import ctypes
import os
import signal
import socket
import sys

BYTES = 16 << 20
PTX = b"""
.version 6.0
.target sm_70
.address_size 64
.visible .entry endless(.param .u64 data)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  .reg .pred %p;
  ld.param.u64 %rd1, [data];
again:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p, %r1, 0;
  @%p bra again;
  ret;
}
\0"""
SYS_CLONE, CLONE_FILES = 56, 0x400
libc = ctypes.CDLL(None)


def begin():
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        result = getattr(cuda, name)(*arguments)
        if result != 0:
            sys.exit(f"{name}: error {result}")

    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    kernel, data = ctypes.c_void_p(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"endless")
    call("cuMemAlloc_v2", ctypes.byref(data), ctypes.c_size_t(BYTES))
    call("cuMemsetD32_v2", data, 0, ctypes.c_size_t(1))
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(data))
    call("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, parameters, None)


def hold():
    while True:
        signal.pause()


def clone(flags):
    """As fork(), past the C library."""
    pid = libc.syscall(SYS_CLONE, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        hold()
    return pid


def sockets():
    names = {int(fd): os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}
    return [fd for fd, name in names.items() if name.startswith("socket:")]


def receiver():
    """A process that waits for descriptors, and our end of the way to it."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        held = socket.recv_fds(theirs, 1, 64)
        theirs.send(b"1" if held[1] else b"0")
        hold()
    theirs.close()
    return pid, ours


def main(way):
    pid, there = receiver() if way == "message" else (0, None)
    begin()
    if way == "message":
        socket.send_fds(there, [b"1"], [fd for fd in sockets() if fd != there.fileno()])
        if there.recv(1) != b"1":
            sys.exit("the descriptors did not arrive")
    else:
        pid = clone(CLONE_FILES if way == "files" else 0)
    print(f"holder {pid}", flush=True)
    hold()


main(sys.argv[1])
