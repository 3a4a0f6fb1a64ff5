#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CUDA program that never rests: fills, launches, copies back and compares, until its stdin ends.

At the end one line of JSON: rounds, and the rounds that took long as [when they ended, how long], in seconds of the
monotonic clock. Exit status 1: a call failed or a result was wrong, which it says.

usage: worker.py [SECONDS]   ends after so many seconds at the latest
"""
import ctypes
import json
import os
import select
import sys
import time

LONG = 0.02
COUNT = 4096
PTX = b"""
.version 6.0
.target sm_70
.address_size 64
.visible .entry step(.param .u64 data, .param .u32 add)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [add];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r2, 128, %r3;
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r5, [%rd3];
  add.u32 %r5, %r5, %r1;
  add.u32 %r5, %r5, %r4;
  st.global.u32 [%rd3], %r5;
  ret;
}
\0"""


def main():
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        result = getattr(cuda, name)(*arguments)
        if result != 0:
            print(f"{name}: error {result} at {time.monotonic():.3f}", flush=True)
            sys.exit(1)

    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    kernel, data = ctypes.c_void_p(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"step")
    call("cuMemAlloc_v2", ctypes.byref(data), ctypes.c_size_t(4 * COUNT))
    back = (ctypes.c_uint32 * COUNT)()
    end = time.monotonic() + float(sys.argv[1] if len(sys.argv) > 1 else "inf")
    rounds, slow = 0, []
    print("working", flush=True)
    before = time.monotonic()
    while before < end and not select.select([sys.stdin], [], [], 0)[0]:
        add = ctypes.c_uint32(rounds)
        parameters = (ctypes.c_void_p * 2)(ctypes.addressof(data), ctypes.addressof(add))
        call("cuMemsetD32_v2", data, 7, ctypes.c_size_t(COUNT))
        call("cuLaunchKernel", kernel, COUNT // 128, 1, 1, 128, 1, 1, 0, None, parameters, None)
        call("cuMemcpyDtoH_v2", back, data, ctypes.c_size_t(4 * COUNT))
        for i in (0, 1, COUNT // 2, COUNT - 1):
            if back[i] != 7 + rounds + i:
                print(f"round {rounds}: element {i} is {back[i]}, not {7 + rounds + i}", flush=True)
                sys.exit(1)
        rounds += 1
        now = time.monotonic()
        if now - before > LONG:
            slow.append([now, now - before])
        before = now
    call("cuCtxDestroy_v2", context)
    print(json.dumps({"rounds": rounds, "slow": slow}), flush=True)


main()
