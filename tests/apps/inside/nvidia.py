# SPDX-License-Identifier: Apache-2.0
"""Calls of NVIDIA's libraries from Python: numpy arrays there and back, and statuses that are errors. The libraries are Debian's, or with
NVIDIA_LIBRARIES those of that directory, whatever their versions."""
import ctypes
import glob
import os

import numpy as np

RANDOM = np.random.default_rng(7)
_TO_DEVICE, _TO_HOST = 1, 2
# Numbers of cudaDataType (library_types.h).
TYPES = {"float32": 0, "float64": 1, "float16": 2, "int8": 3, "complex64": 4, "complex128": 5, "int32": 10, "bfloat16": 14}


class Library:
    """Its functions, under their names. Integers are C's int, arrays of the device their address, numpy's numbers and what
    Out makes are passed by reference. A status that is not 0 raises."""

    def __init__(self, name):
        directory = os.environ.get("NVIDIA_LIBRARIES")
        if directory:
            there = sorted(glob.glob(f"{directory}/{name.split('.so.')[0]}.so.*"), key=len)
            if not there:
                raise OSError(f"{directory} has no {name}, nor another version of it")
            name = there[0]
        self._library = ctypes.CDLL(name)
        self._name = name

    def __getattr__(self, function):
        entry = getattr(self._library, function)

        def call(*arguments):
            status = entry(*[_argument(one) for one in arguments])
            if status != 0:
                raise RuntimeError(f"{function} answers {status}")
        return call


class Out:
    """A place of the host that a call writes to."""

    def __init__(self, kind=ctypes.c_void_p, value=None):
        self.cell = kind() if value is None else kind(value)

    @property
    def value(self):
        return self.cell.value


def _argument(one):
    if isinstance(one, Array):
        return ctypes.c_void_p(one.address)
    if isinstance(one, Out):
        return ctypes.byref(one.cell)
    if isinstance(one, np.generic):
        return one.tobytes()
    return one


def handle(create, *arguments):
    """What a function that makes something puts into its first parameter."""
    out = Out()
    create(out, *arguments)
    return ctypes.c_void_p(out.value)


RUNTIME = Library("libcudart.so.12")


class Array:
    """A numpy array in device memory, columns first if it is a matrix made by `columns`."""

    def __init__(self, host):
        self.host = host if host.flags.f_contiguous else np.ascontiguousarray(host)
        out = Out()
        RUNTIME.cudaMalloc(out, ctypes.c_size_t(max(self.host.nbytes, 16)))
        self.address = out.value
        RUNTIME.cudaMemcpy(self, self.host.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(self.host.nbytes), _TO_DEVICE)

    def get(self):
        RUNTIME.cudaDeviceSynchronize()
        out = np.empty_like(self.host)
        RUNTIME.cudaMemcpy(out.ctypes.data_as(ctypes.c_void_p), self, ctypes.c_size_t(out.nbytes), _TO_HOST)
        return out

    def __del__(self):
        RUNTIME.cudaFree(self)


def scratch(size):
    """Device memory of so many bytes, or a little more."""
    return Array(np.zeros(max(int(size), 256), np.uint8))


def numbers(kind, *shape):
    """Random numbers around zero, columns first."""
    kind = np.dtype(kind)
    if kind.kind == "i":
        data = RANDOM.integers(-100, 100, shape)
    else:
        data = RANDOM.standard_normal(shape)
        if kind.kind == "c":
            data = data + 1j * RANDOM.standard_normal(shape)
    return np.asfortranarray(data.astype(kind))


def columns(data):
    return np.asfortranarray(data)


def to_bfloat16(data):
    """(bits of the nearest numbers that bfloat16 has, these numbers as float32)"""
    bits = data.astype(np.float32).view(np.uint32)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return columns(bits.astype(np.uint16)), columns((bits << 16).astype(np.uint32).view(np.float32))


def from_bfloat16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def near(seen, expected, tolerance):
    """The greatest difference relative to the greatest number expected; raises where that is more than the tolerance."""
    seen, expected = np.asarray(seen), np.asarray(expected)
    assert seen.shape == expected.shape, f"shape {seen.shape} instead of {expected.shape}"
    wide = np.complex128 if np.iscomplexobj(expected) else np.float64
    scale = max(np.abs(expected).max(initial=0), 1e-30)
    worst = np.abs(seen.astype(wide) - expected.astype(wide)).max(initial=0) / scale
    assert worst <= tolerance, f"off by {worst:.1e} of the greatest number, allowed are {tolerance:.0e}"
    return float(worst)
