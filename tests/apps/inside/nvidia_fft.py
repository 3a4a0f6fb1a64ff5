#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cuFFT against numpy: complex and real, one to three dimensions, batches, sizes that are powers, odd and prime."""
import ctypes

import checks
import numpy as np
from checks import add, check
from nvidia import Array, Library, Out, near, numbers

FFT = Library("libcufft.so.11")
FORWARD, INVERSE = -1, 1
C2C, R2C, C2R, Z2Z, D2Z, Z2D = 0x29, 0x2A, 0x2C, 0x69, 0x6A, 0x6C
SINGLE, DOUBLE = 2e-6, 1e-14


def plan(shape, kind, batch=1):
    """A plan for `batch` arrays that follow each other."""
    out, sizes = Out(ctypes.c_int), (ctypes.c_int * len(shape))(*shape)
    FFT.cufftPlanMany(out, len(shape), sizes, None, 1, 0, None, 1, 0, kind, batch)
    return out.value


def transformed(function, shape, kind, data, out_shape, out_kind, *direction, batch=1):
    which, out = plan(shape, kind, batch), Array(np.zeros(out_shape, out_kind))
    try:
        getattr(FFT, function)(which, Array(np.ascontiguousarray(data)), out, *direction)
        return out.get()
    finally:
        FFT.cufftDestroy(which)


def axes(shape):
    return tuple(range(-len(shape), 0))


def complex_there_and_back(shape, double, batch=1):
    kind, function, type_, most = (np.complex128, "cufftExecZ2Z", Z2Z, DOUBLE) if double else (np.complex64, "cufftExecC2C", C2C, SINGLE)
    data = np.ascontiguousarray(numbers(kind, batch, *shape))
    seen = transformed(function, shape, type_, data, data.shape, kind, FORWARD, batch=batch)
    worst = near(seen, np.fft.fftn(data, axes=axes(shape)), most)
    back = transformed(function, shape, type_, seen, data.shape, kind, INVERSE, batch=batch)
    return max(worst, near(back / np.prod(shape), data, most))


def real_there_and_back(shape, double, batch=1):
    kind, wide, most = (np.float64, np.complex128, DOUBLE) if double else (np.float32, np.complex64, SINGLE)
    there, back = ("cufftExecD2Z", "cufftExecZ2D") if double else ("cufftExecR2C", "cufftExecC2R")
    data = np.ascontiguousarray(numbers(kind, batch, *shape))
    half = (batch, *shape[:-1], shape[-1] // 2 + 1)
    seen = transformed(there, shape, D2Z if double else R2C, data, half, wide, batch=batch)
    worst = near(seen, np.fft.rfftn(data, axes=axes(shape)), most)
    again = transformed(back, shape, Z2D if double else C2R, seen, data.shape, kind, batch=batch)
    return max(worst, near(again / np.prod(shape), data, most))


SHAPES = {"1d": [(256,), (1000,), (97,), (2048,), (8192,)], "2d": [(64, 64), (30, 42)], "3d": [(16, 16, 16), (6, 10, 15)]}
for _name, _shapes in SHAPES.items():
    for _double in (False, True):
        for _what, _there_and_back in (("complex", complex_there_and_back), ("real", real_there_and_back)):
            add(f"fft_{_name}_{_what}_{'double' if _double else 'single'}", lambda shapes=_shapes, double=_double, way=_there_and_back:
                f"{len(shapes)} sizes there and back, off by {max(way(shape, double) for shape in shapes):.0e}")


@check
def fft_batches():
    return f"off by {max(complex_there_and_back((128,), False, 17), real_there_and_back((60,), True, 9), complex_there_and_back((16, 24), False, 5)):.0e}"


@check
def fft_in_place_with_the_simple_calls():
    worst = 0.0
    for function, shape in (("cufftPlan1d", (512,)), ("cufftPlan2d", (32, 48)), ("cufftPlan3d", (8, 12, 20))):
        out, more = Out(ctypes.c_int), [1] if len(shape) == 1 else []
        getattr(FFT, function)(out, *shape, C2C, *more)
        data = np.ascontiguousarray(numbers(np.complex64, *shape))
        there = Array(data)
        FFT.cufftExecC2C(out.value, there, there, FORWARD)
        worst = max(worst, near(there.get(), np.fft.fftn(data), SINGLE))
        FFT.cufftDestroy(out.value)
    return f"off by {worst:.0e}"


@check
def fft_strided():
    """Every third number of rows that are 40 apart."""
    data = np.ascontiguousarray(numbers(np.complex64, 4 * 100))
    out, sizes, around = Out(ctypes.c_int), (ctypes.c_int * 1)(32), (ctypes.c_int * 1)(100)
    FFT.cufftPlanMany(out, 1, sizes, around, 3, 100, around, 1, 32, C2C, 4)
    there = Array(np.zeros((4, 32), np.complex64))
    FFT.cufftExecC2C(out.value, Array(data), there, FORWARD)
    rows = np.stack([data[row * 100:row * 100 + 96:3] for row in range(4)])
    return f"off by {near(there.get(), np.fft.fft(rows), SINGLE):.0e}"


raise SystemExit(checks.main())
