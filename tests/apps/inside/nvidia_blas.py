#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cuBLAS against numpy: products of matrices in all types, levels 1 and 2, solving, batches."""
import ctypes

import checks
import numpy as np
from checks import Skip, add, check
from nvidia import TYPES, Array, Library, Out, columns, from_bfloat16, handle, near, numbers, scratch, to_bfloat16

BLAS = Library("libcublas.so.12")
N, T, C = 0, 1, 2  # cublasOperation_t
LOWER, UPPER, LEFT, NON_UNIT = 0, 1, 0, 0
EXACT = {"float32": 2e-6, "float64": 1e-14, "complex64": 2e-6, "complex128": 1e-14}
LETTERS = {"float32": "S", "float64": "D", "complex64": "C", "complex128": "Z"}
_HANDLE = []


def blas():
    if not _HANDLE:
        _HANDLE.append(handle(BLAS.cublasCreate_v2))
    return _HANDLE[0]


# name: (type of the factors, type of the result, type of alpha and beta, cublasComputeType_t, tolerance)
PRODUCTS = {
    "f64": ("float64", "float64", "float64", 70, 1e-14), "f32": ("float32", "float32", "float32", 68, 2e-6),
    "tf32": ("float32", "float32", "float32", 77, 2e-3), "f16": ("float16", "float16", "float16", 64, 2e-2),
    "f16_f32": ("float16", "float32", "float32", 68, 2e-6), "f16_sums_f32": ("float16", "float16", "float32", 68, 1e-3),
    "bf16": ("bfloat16", "bfloat16", "float32", 68, 8e-3), "bf16_f32": ("bfloat16", "float32", "float32", 68, 2e-6),
    "int8": ("int8", "int32", "int32", 72, 0), "c64": ("complex64", "complex64", "complex64", 68, 2e-6),
    "c128": ("complex128", "complex128", "complex128", 70, 1e-14),
}
SMALL = (4, 4, 4)
SHAPES = ((*SMALL, N, N), (64, 48, 32, N, N), (32, 64, 128, T, N), (128, 128, 64, N, T), (132, 100, 36, T, T), (256, 1, 256, N, N))


def factor(kind, *shape):
    """(as the device gets it, as numpy counts with it)"""
    if kind == "bfloat16":
        return to_bfloat16(numbers("float32", *shape))
    data = numbers(kind, *shape)
    return data, data.astype({"float16": np.float32, "int8": np.int32}.get(kind, kind))


def product(kind, result, scalar, compute, tolerance):
    worst = 0.0
    for m, n, k, left, right in SHAPES:
        a, a_host = factor(kind, *((m, k) if left == N else (k, m)))
        b, b_host = factor(kind, *((k, n) if right == N else (n, k)))
        alpha, beta = np.dtype(scalar).type(1), np.dtype(scalar).type(0)
        wide = {"int32": np.int64}.get(result, np.complex128 if result.startswith("c") else np.float64)
        expected = (a_host.T if left else a_host).astype(wide) @ (b_host.T if right else b_host).astype(wide)
        c = Array(np.zeros((m, n), np.uint16 if result == "bfloat16" else result, order="F"))
        try:
            BLAS.cublasGemmEx(blas(), left, right, m, n, k, alpha, Array(a), TYPES[kind], a.shape[0], Array(b), TYPES[kind], b.shape[0],
                              beta, c, TYPES[result], m, compute, -1)
        except RuntimeError as error:
            if kind != "int8" or (m, n, k) == SMALL:
                raise
            raise Skip(f"{SMALL} is right; for {(m, n, k)} {error}: that kernel is in cuBLAS as machine code only") from error
        seen = from_bfloat16(c.get()) if result == "bfloat16" else c.get()
        worst = max(worst, near(seen, expected, tolerance))
    return f"{len(SHAPES)} shapes, off by {worst:.0e}"


for _name, _row in PRODUCTS.items():
    add(f"gemm_{_name}", lambda row=_row: product(*row))


def of_all_types(function):
    def run():
        return "off by " + ", ".join(f"{max(function(LETTERS[kind], np.dtype(kind), EXACT[kind])):.0e}" for kind in LETTERS)
    add(function.__name__, run)
    return function


def call(name, *arguments):
    getattr(BLAS, f"cublas{name}_v2")(blas(), *arguments)


def plain(letter):
    """For products without conjugation: real and complex types have other names."""
    return letter + ("geru" if letter in "CZ" else "ger"), letter + ("dotu" if letter in "CZ" else "dot")


@of_all_types
def level_1(letter, kind, tolerance):
    x, y = numbers(kind, 1000), numbers(kind, 1000)
    real = {"C": "Sc", "Z": "Dz"}.get(letter, letter)
    place = np.zeros(1, kind)
    out = ctypes.c_void_p(place.ctypes.data)
    there = Array(y)
    call(letter + "axpy", 1000, kind.type(1.5), Array(x), 1, there, 1)
    yield near(there.get(), y + kind.type(1.5) * x, tolerance)
    call(plain(letter)[1], 1000, Array(x), 1, Array(y), 1, out)
    yield near([place[0], 1000], [x @ y, 1000], tolerance)  # of a thousand products, which cancel each other
    length = np.zeros(1, kind.type(0).real.dtype)
    for name, expected in (("nrm2", np.linalg.norm(x)), ("asum", (np.abs(x.real) + np.abs(x.imag)).sum())):
        call(real + name, 1000, Array(x), 1, ctypes.c_void_p(length.ctypes.data))
        yield near(length, [expected], 10 * tolerance)
    place_of = Out(ctypes.c_int)
    greatest = (np.abs(x.real) + np.abs(x.imag)).argmax() + 1
    getattr(BLAS, f"cublasI{letter.lower()}amax_v2")(blas(), 1000, Array(x), 1, place_of)
    assert place_of.value == greatest, f"amax says {place_of.value} instead of {greatest}"
    one, other = Array(x), Array(y)
    call(letter + "swap", 500, one, 2, other, 2)
    assert np.array_equal(one.get()[::2], y[::2]) and np.array_equal(one.get()[1::2], x[1::2]), "swap"
    call(letter + "copy", 1000, one, 1, other, 1)
    assert np.array_equal(one.get(), other.get()), "copy"
    call(letter + "scal", 1000, kind.type(-2), one, 1)
    yield near(one.get(), -2 * other.get(), tolerance)


@of_all_types
def level_2(letter, kind, tolerance):
    a, x, y = numbers(kind, 70, 50), numbers(kind, 50), numbers(kind, 70)
    one, zero = kind.type(1), kind.type(0)
    out = Array(y)
    call(letter + "gemv", N, 70, 50, one, Array(a), 70, Array(x), 1, zero, out, 1)
    yield near(out.get(), a @ x, 10 * tolerance)
    out = Array(x)
    call(letter + "gemv", C, 70, 50, one, Array(a), 70, Array(y), 1, one, out, 1)
    yield near(out.get(), a.conj().T @ y + x, 10 * tolerance)
    out = Array(a)
    call(plain(letter)[0], 70, 50, one, Array(y), 1, Array(x), 1, out, 70)
    yield near(out.get(), a + np.outer(y, x), tolerance)
    square = columns(numbers(kind, 60, 60) + kind.type(30) * np.eye(60, dtype=kind))
    lower, v = np.tril(square), numbers(kind, 60)
    out = Array(v)
    call(letter + "trmv", LOWER, N, NON_UNIT, 60, Array(square), 60, out, 1)
    yield near(out.get(), lower @ v, 10 * tolerance)
    call(letter + "trsv", LOWER, N, NON_UNIT, 60, Array(square), 60, out, 1)
    yield near(out.get(), v, 100 * tolerance)
    whole = lower + np.tril(square, -1).conj().T
    whole = columns(whole - 1j * np.diag(np.diag(whole).imag) if letter in "CZ" else whole).astype(kind)
    call(letter + ("hemv" if letter in "CZ" else "symv"), LOWER, 60, one, Array(columns(whole)), 60, Array(v), 1, zero, out, 1)
    yield near(out.get(), whole @ v, 10 * tolerance)


@of_all_types
def level_3(letter, kind, tolerance):
    a, b = numbers(kind, 60, 40), numbers(kind, 60, 33)
    one, zero = kind.type(1), kind.type(0)
    out = Array(columns(np.zeros((60, 60), kind)))
    call(letter + "syrk", LOWER, N, 60, 40, one, Array(a), 60, zero, out, 60)
    yield near(out.get(), np.tril(a @ a.T), 10 * tolerance)
    square = columns(numbers(kind, 60, 60) + kind.type(30) * np.eye(60, dtype=kind))
    out = Array(b)
    call(letter + "trsm", LEFT, UPPER, N, NON_UNIT, 60, 33, one, Array(square), 60, out, 60)
    yield near(np.triu(square) @ out.get(), b, 100 * tolerance)
    symmetric = columns(np.tril(square) + np.tril(square, -1).T)
    out = Array(b)
    call(letter + "symm", LEFT, LOWER, 60, 33, one, Array(symmetric), 60, Array(b), 60, zero, out, 60)
    yield near(out.get(), symmetric @ b, 10 * tolerance)


@of_all_types
def batches(letter, kind, tolerance):
    a, b = [numbers(kind, 24, 16) for _ in range(5)], [numbers(kind, 16, 20) for _ in range(5)]
    one, zero = kind.type(1), kind.type(0)
    flat = [np.concatenate([each.ravel(order="F") for each in all_of]) for all_of in (a, b)]
    out = Array(np.zeros(5 * 24 * 20, kind))
    step = [ctypes.c_longlong(size) for size in (24 * 16, 16 * 20, 24 * 20)]
    getattr(BLAS, f"cublas{letter}gemmStridedBatched")(blas(), N, N, 24, 20, 16, one, Array(flat[0]), 24, step[0], Array(flat[1]), 16, step[1],
                                                       zero, out, 24, step[2], 5)
    expected = np.concatenate([(x @ y).ravel(order="F") for x, y in zip(a, b)])
    yield near(out.get(), expected, 10 * tolerance)
    parts = [[Array(each) for each in all_of] for all_of in (a, b, [columns(np.zeros((24, 20), kind))] * 5)]
    tables = [Array(np.array([each.address for each in all_of], np.uint64)) for all_of in parts]
    getattr(BLAS, f"cublas{letter}gemmBatched")(blas(), N, N, 24, 20, 16, one, tables[0], 24, tables[1], 16, zero, tables[2], 24, 5)
    yield near(np.concatenate([each.get().ravel(order="F") for each in parts[2]]), expected, 10 * tolerance)


@check
def lu_of_a_batch():
    a = [columns(numbers("float32", 20, 20) + 10 * np.eye(20, dtype=np.float32)) for _ in range(4)]
    parts = [Array(each) for each in a]
    inverse = [Array(columns(np.zeros((20, 20), np.float32))) for _ in a]
    table, to = (Array(np.array([each.address for each in all_of], np.uint64)) for all_of in (parts, inverse))
    pivots, infos = Array(np.zeros(80, np.int32)), Array(np.zeros(4, np.int32))
    BLAS.cublasSgetrfBatched(blas(), 20, table, 20, pivots, infos, 4)
    assert not infos.get().any(), f"info {infos.get()}"
    BLAS.cublasSgetriBatched(blas(), 20, table, 20, pivots, to, 20, infos, 4)
    return f"off by {max(near(there.get() @ each, np.eye(20), 1e-5) for there, each in zip(inverse, a)):.0e}"


@check
def scalars_of_the_device():
    x, y = numbers("float64", 500), numbers("float64", 500)
    BLAS.cublasSetPointerMode_v2(blas(), 1)
    try:
        out = Array(np.zeros(1))
        call("Ddot", 500, Array(x), 1, Array(y), 1, out)
        return f"off by {near(out.get(), [x @ y], 1e-12):.0e}"
    finally:
        BLAS.cublasSetPointerMode_v2(blas(), 0)


raise SystemExit(checks.main(lambda: scratch(1)))
