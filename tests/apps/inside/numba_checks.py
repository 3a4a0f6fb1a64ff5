#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Numba's CUDA target against numpy."""
import math
import subprocess
import sys

import checks
import numpy as np
from checks import Skip, check
from numba import cuda, float32, vectorize
from numba.cuda.cudadrv import driver as numba_driver
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

RANDOM = np.random.default_rng(1)


def expect(seen, wanted, tolerance=1e-5):
    np.testing.assert_allclose(seen, wanted, rtol=tolerance, atol=tolerance)


@check
def device():
    gpu = cuda.get_current_device()
    return f"{gpu.name.decode() if isinstance(gpu.name, bytes) else gpu.name}, capability {gpu.compute_capability}"


@check
def unaided():
    """In a process of its own, as Numba is."""
    code = ("from numba import cuda; import numpy; a = cuda.to_device(numpy.ones(9)); "
            "cuda.jit('void(float64[:])')(lambda x: None)[1, 1](a); cuda.synchronize()")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if ran.returncode != 0:
        raise Skip("this version does not know CUDA 13's driver: " + (ran.stderr.strip().splitlines() or ["?"])[-1])


@check
def vector_add():
    @cuda.jit
    def add(a, b, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = a[i] + b[i]
    a, b = RANDOM.random(1000), RANDOM.random(1000)
    out = np.zeros(1000)
    add[8, 128](a, b, out)
    expect(out, a + b)


@check
def matmul_shared():
    @cuda.jit
    def multiply(a, b, c):
        left = cuda.shared.array((16, 16), float32)
        right = cuda.shared.array((16, 16), float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = float32(0)
        for k in range(a.shape[1] // 16):
            left[tx, ty] = a[x, ty + k * 16]
            right[tx, ty] = b[tx + k * 16, y]
            cuda.syncthreads()
            for j in range(16):
                total += left[tx, j] * right[j, ty]
            cuda.syncthreads()
        c[x, y] = total
    a, b = RANDOM.random((64, 64), dtype=np.float32), RANDOM.random((64, 64), dtype=np.float32)
    c = np.zeros((64, 64), np.float32)
    multiply[(4, 4), (16, 16)](a, b, c)
    expect(c, a @ b, 1e-4)


@check
def atomics():
    @cuda.jit
    def histogram(values, bins, highest):
        i = cuda.grid(1)
        if i < values.size:
            cuda.atomic.add(bins, values[i], 1)
            cuda.atomic.max(highest, 0, values[i])
    values = RANDOM.integers(0, 10, 3000)
    bins, highest = np.zeros(10, np.int64), np.zeros(1, np.int64)
    histogram[24, 128](values, bins, highest)
    expect(bins, np.bincount(values, minlength=10))
    expect(highest, values.max())


@check
def mathematics():
    @cuda.jit
    def apply(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = math.sin(x[i]) + math.exp(-x[i]) * math.sqrt(x[i]) + math.lgamma(x[i]) + math.pow(x[i], 1.5)
    x = RANDOM.random(500) + 0.5
    out = np.zeros(500)
    apply[4, 128](x, out)
    expect(out, [math.sin(v) + math.exp(-v) * math.sqrt(v) + math.lgamma(v) + v ** 1.5 for v in x])


@check
def reduce():
    data = RANDOM.random(5000)
    expect(cuda.reduce(lambda a, b: a + b)(data), data.sum())


@check
def ufunc():
    @vectorize(["float32(float32, float32)"], target="cuda")
    def hypotenuse(a, b):
        return math.sqrt(a * a + b * b)
    a, b = RANDOM.random(700, dtype=np.float32), RANDOM.random(700, dtype=np.float32)
    expect(hypotenuse(a, b), np.hypot(a, b))


@check
def streams_pinned():
    stream = cuda.stream()
    host = cuda.pinned_array(1000, np.float64)
    host[:] = np.arange(1000)
    there = cuda.to_device(host, stream)
    back = np.zeros(1000)
    there.copy_to_host(back, stream)
    stream.synchronize()
    expect(back, np.arange(1000))


@check
def warp_shuffle():
    @cuda.jit
    def turn(out):
        lane = cuda.threadIdx.x
        out[lane] = cuda.shfl_sync(0xffffffff, lane, (lane + 5) % 32) + cuda.popc(cuda.ballot_sync(0xffffffff, lane % 2))
    out = np.zeros(32, np.int64)
    turn[1, 32](out)
    expect(out, (np.arange(32) + 5) % 32 + 16)


@check
def grid_sync():
    @cuda.jit
    def rows(m):
        column = cuda.grid(1)
        grid = cuda.cg.this_grid()
        for row in range(1, m.shape[0]):
            m[row, column] = m[row - 1, m.shape[1] - column - 1] + 1
            grid.sync()
    m = np.zeros((20, 256), np.int32)
    try:
        rows[8, 32](m)
    except numba_driver.LinkerError as error:
        if "libcudadevrt.a not found" in str(error):
            raise Skip("Numba does not find libcudadevrt.a, which it links into such kernels; no call of the driver is involved") from error
        raise
    expect(m[19], np.full(256, 19))


@check
def random_numbers():
    @cuda.jit
    def draw(states, out):
        i = cuda.grid(1)
        out[i] = xoroshiro128p_uniform_float32(states, i)
    out = np.zeros(4096, np.float32)
    draw[32, 128](create_xoroshiro128p_states(4096, seed=1), out)
    assert 0.45 < out.mean() < 0.55, out.mean()


@check
def print_and_assert():
    @cuda.jit
    def say(x):
        print("thread", cuda.threadIdx.x, x)
    say[1, 2](3.5)
    cuda.synchronize()


@check
def events():
    begin, end = cuda.event(), cuda.event()
    begin.record()
    end.record()
    end.synchronize()
    assert cuda.event_elapsed_time(begin, end) >= 0


@check
def managed():
    data = cuda.managed_array(100, np.float32)
    data[:] = 2

    @cuda.jit
    def double(x):
        x[cuda.grid(1)] *= 2
    double[1, 100](data)
    cuda.synchronize()
    expect(data, np.full(100, 4))


def prepare():
    """Numba calls the newest variant of each driver call with the arguments of the oldest. CUDA 13 gave two a second one."""
    find = numba_driver.Driver._find_api

    def find_old(self, name):
        return getattr(self.lib, name) if name in ("cuCtxGetDevice", "cuCtxSynchronize") else find(self, name)
    numba_driver.Driver._find_api = find_old


raise SystemExit(checks.main(prepare))
