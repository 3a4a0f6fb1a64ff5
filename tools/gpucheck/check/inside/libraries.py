# SPDX-License-Identifier: Apache-2.0
"""cuBLAS and cuFFT by their own API: sums, a matrix product and a transform, checked against their rules and given as digests, each by
itself: a line RESULT, or one NOTHING with the call that was refused.

Status: 0; 77 there are no such libraries here; 1 wrong results, or none at all."""
import ctypes
import ctypes.util
import glob
import hashlib
import os
import random
import sys
import time

N = 256
CUFFT_R2C = 0x2A


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


class Refused(Exception):
    pass


class Wrong(Exception):
    pass


def check(status, call):
    if status != 0:
        raise Refused(f"{call}_answers_{status}")


class Libraries:
    def __init__(self):
        self.cudart, self.cublaslt, self.cublas, self.cufft = (find(name) for name in ("cudart", "cublasLt", "cublas", "cufft"))
        random.seed(1)
        self.values = [random.randint(-4, 4) for _ in range(N * N)]
        self.host = (ctypes.c_float * (N * N))(*self.values)
        self.size = ctypes.sizeof(self.host)
        self.out = (ctypes.c_float * (2 * N * N))()
        self.handle = None

    def buffers(self):
        """Two with the values and one with nothing."""
        pointers = [ctypes.c_void_p() for _ in range(3)]
        for pointer in pointers:
            check(self.cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(2 * self.size)), "cudaMalloc")
        for pointer in pointers[:2]:
            check(self.cudart.cudaMemcpy(pointer, self.host, ctypes.c_size_t(self.size), 1), "cudaMemcpy")
        return pointers

    def read(self, pointer):
        check(self.cudart.cudaDeviceSynchronize(), "cudaDeviceSynchronize")
        check(self.cudart.cudaMemcpy(self.out, pointer, ctypes.c_size_t(self.size), 2), "cudaMemcpy")
        return hashlib.sha256(bytes(self.out)[:self.size]).hexdigest()[:16] + "x"

    def blas(self):
        if self.cublas is None:
            raise Refused("there_is_no_cublas")
        if self.handle is None:
            handle = ctypes.c_void_p()
            check(self.cublas.cublasCreate_v2(ctypes.byref(handle)), "cublasCreate")
            self.handle = handle
        return self.cublas, self.handle

    def saxpy(self):
        cublas, handle = self.blas()
        a, b, _ = self.buffers()
        two = ctypes.c_float(2)
        check(cublas.cublasSaxpy_v2(handle, N * N, ctypes.byref(two), a, 1, b, 1), "cublasSaxpy")
        digest = self.read(b)
        if any(self.out[n] != 3 * self.values[n] for n in range(N * N)):
            raise Wrong("saxpy")
        return digest

    def sgemm(self):
        cublas, handle = self.blas()
        a, b, c = self.buffers()
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        check(cublas.cublasSgemm_v2(handle, 0, 0, N, N, N, ctypes.byref(one), a, N, b, N, ctypes.byref(zero), c, N), "cublasSgemm")
        digest = self.read(c)
        for row, column in ((0, 0), (7, 250), (255, 255)):  # column-major; small integers, so exact
            if self.out[column * N + row] != sum(self.values[k * N + row] * self.values[column * N + k] for k in range(N)):
                raise Wrong("sgemm")
        return digest

    def fft(self):
        if self.cufft is None:
            raise Refused("there_is_no_cufft")
        a, _, c = self.buffers()
        plan = ctypes.c_int()
        check(self.cufft.cufftPlan1d(ctypes.byref(plan), N * N, CUFFT_R2C, 1), "cufftPlan1d")
        check(self.cufft.cufftExecR2C(plan, a, c), "cufftExecR2C")
        digest = self.read(c)
        if abs(self.out[0] - sum(self.values)) > 1e-2 * max(1, abs(sum(self.values))):
            raise Wrong("fft")
        return digest


def main():
    libraries = Libraries()
    if libraries.cudart is None or (libraries.cublas is None and libraries.cufft is None):
        print("no cuBLAS and cuFFT with a libcudart are on this machine")
        return 77
    any_result = False
    for name in ("saxpy", "sgemm", "fft"):
        begun = time.monotonic()
        try:
            print(f"RESULT name={name} value={getattr(libraries, name)()}")
            any_result = True
        except Refused as why:
            print(f"NOTHING name={name} why={why}")
        except Wrong:
            print(f"FAILED {name}: a wrong result")
            return 1
        print(f"TIME name={name}_first_ms value={1000 * (time.monotonic() - begun):.1f}", flush=True)
    return 0 if any_result else 1


sys.exit(main())
