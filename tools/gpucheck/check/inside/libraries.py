# SPDX-License-Identifier: Apache-2.0
"""cuBLAS and cuFFT by their own API: a matrix product and a transform, checked against their rules and given as digests.

Status: 0; 77 there are no such libraries here; 1 wrong results."""
import ctypes
import ctypes.util
import glob
import hashlib
import os
import random
import struct
import sys
import time

N = 256


def find(name):
    places = [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), "/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"]
    for path in sys.path:
        places += glob.glob(os.path.join(path, "nvidia", "*", "lib"))
    for place in filter(None, places):
        for file in sorted(glob.glob(os.path.join(place, f"lib{name}.so*")), key=len):
            try:
                return ctypes.CDLL(file, mode=ctypes.RTLD_GLOBAL)
            except OSError:
                continue
    found = ctypes.util.find_library(name)
    return ctypes.CDLL(found) if found else None


def check(status, call):
    if status != 0:
        print(f"FAILED {call}: {status}")
        sys.exit(1)


def main():
    cudart, cublaslt, cublas, cufft = (find(name) for name in ("cudart", "cublasLt", "cublas", "cufft"))
    del cublaslt  # which cublas needs loaded first where it lies elsewhere
    if cudart is None or (cublas is None and cufft is None):
        print("no cuBLAS and cuFFT with a libcudart are on this machine")
        sys.exit(77)
    random.seed(1)
    values = [random.randint(-4, 4) for _ in range(N * N)]
    host = (ctypes.c_float * (N * N))(*values)
    size = ctypes.sizeof(host)
    a, b, c = (ctypes.c_void_p() for _ in range(3))
    for pointer in (a, b, c):
        check(cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(2 * size)), "cudaMalloc")
    for pointer in (a, b):
        check(cudart.cudaMemcpy(pointer, host, ctypes.c_size_t(size), 1), "cudaMemcpy")
    out = (ctypes.c_float * (2 * N * N))()
    if cublas is not None:
        handle, one, zero = ctypes.c_void_p(), ctypes.c_float(1), ctypes.c_float(0)
        check(cublas.cublasCreate_v2(ctypes.byref(handle)), "cublasCreate")
        begun = time.monotonic()
        check(cublas.cublasSgemm_v2(handle, 0, 0, N, N, N, ctypes.byref(one), a, N, b, N, ctypes.byref(zero), c, N), "cublasSgemm")
        check(cudart.cudaDeviceSynchronize(), "cudaDeviceSynchronize")
        print(f"TIME name=sgemm_first_ms value={1000 * (time.monotonic() - begun):.2f}")
        check(cudart.cudaMemcpy(out, c, ctypes.c_size_t(size), 2), "cudaMemcpy")
        for row, column in ((0, 0), (7, 250), (255, 255)):  # column-major; small integers, so exact
            expected = sum(values[k * N + row] * values[column * N + k] for k in range(N))
            if out[column * N + row] != expected:
                print(f"FAILED sgemm: {out[column * N + row]} instead of {expected}")
                sys.exit(1)
        print(f"RESULT name=sgemm value={hashlib.sha256(bytes(out)[:size]).hexdigest()[:16]}x")
    if cufft is not None:
        plan = ctypes.c_int()
        check(cufft.cufftPlan1d(ctypes.byref(plan), N * N, 0x2A, 1), "cufftPlan1d")  # CUFFT_R2C
        check(cufft.cufftExecR2C(plan, a, c), "cufftExecR2C")
        check(cudart.cudaDeviceSynchronize(), "cudaDeviceSynchronize")
        check(cudart.cudaMemcpy(out, c, ctypes.c_size_t(size), 2), "cudaMemcpy")
        if abs(out[0] - sum(values)) > 1e-2 * max(1, abs(sum(values))):
            print(f"FAILED fft: {out[0]} instead of {sum(values)}")
            sys.exit(1)
        print(f"RESULT name=fft value={hashlib.sha256(struct.pack(f'{N}f', *out[:N])).hexdigest()[:16]}x")
    for name, there in (("cublas", cublas), ("cufft", cufft)):
        print(f"RESULT name={name}_is_there value={'yes' if there else 'no'}")


main()
