#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cuSOLVER against numpy: LU, QR, Cholesky, eigenvalues, singular values."""
import ctypes

import checks
import numpy as np
from checks import add
from nvidia import Array, Library, Out, columns, handle, near, numbers, scratch

SOLVER = Library("libcusolver.so.11")
KINDS = {"S": ("float32", 2e-5), "D": ("float64", 1e-12), "C": ("complex64", 2e-5), "Z": ("complex128", 1e-12)}
LOWER, UPPER, PLAIN, CONJUGATED, LEFT, VECTORS = 0, 1, 0, 2, 0, 1
SIZE, HEIGHT = 50, 70
_HANDLE = []


class Problem:
    """A type's calls, their work area and what they say about the matrix."""

    def __init__(self, letter):
        if not _HANDLE:
            _HANDLE.append(handle(SOLVER.cusolverDnCreate))
        self.letter, (self.kind, self.tolerance) = letter, KINDS[letter]
        self.real = np.dtype(self.kind).type(0).real.dtype
        self.complex = letter in "CZ"
        self.info = Array(np.zeros(1, np.int32))

    def call(self, name, *arguments):
        getattr(SOLVER, f"cusolverDn{self.letter}{name}")(_HANDLE[0], *arguments)

    def work(self, name, *arguments):
        """(the work area of a call, its size in numbers)"""
        size = Out(ctypes.c_int)
        self.call(f"{name}_bufferSize", *arguments, size)
        return scratch(size.value * np.dtype(self.kind).itemsize), size.value

    def clean(self):
        info = self.info.get()[0]
        assert info == 0, f"devInfo is {info}"

    def square(self):
        return columns(numbers(self.kind, SIZE, SIZE) + (8 * np.eye(SIZE)).astype(self.kind))

    def symmetric(self):
        a = numbers(self.kind, SIZE, SIZE)
        return columns((a + a.conj().T).astype(self.kind))


def lu(problem):
    a, b = problem.square(), numbers(problem.kind, SIZE, 3)
    there, right, pivots = Array(a), Array(b), Array(np.zeros(SIZE, np.int32))
    work, _ = problem.work("getrf", SIZE, SIZE, there, SIZE)
    problem.call("getrf", SIZE, SIZE, there, SIZE, work, pivots, problem.info)
    problem.clean()
    problem.call("getrs", PLAIN, SIZE, 3, there, SIZE, pivots, right, SIZE, problem.info)
    problem.clean()
    return near(a @ right.get(), b, problem.tolerance)


def qr(problem):
    a = numbers(problem.kind, HEIGHT, SIZE)
    there, reflectors = Array(a), Array(np.zeros(SIZE, problem.kind))
    work, size = problem.work("geqrf", HEIGHT, SIZE, there, HEIGHT)
    problem.call("geqrf", HEIGHT, SIZE, there, HEIGHT, reflectors, work, size, problem.info)
    problem.clean()
    upper = np.triu(there.get()[:SIZE])
    name = "ungqr" if problem.complex else "orgqr"
    work, size = problem.work(name, HEIGHT, SIZE, SIZE, there, HEIGHT, reflectors)
    problem.call(name, HEIGHT, SIZE, SIZE, there, HEIGHT, reflectors, work, size, problem.info)
    problem.clean()
    q = there.get()
    return max(near(q @ upper, a, problem.tolerance), near(q.conj().T @ q, np.eye(SIZE), problem.tolerance))


def cholesky(problem):
    a = numbers(problem.kind, SIZE, SIZE)
    a = columns((a @ a.conj().T + SIZE * np.eye(SIZE)).astype(problem.kind))
    there, b = Array(a), numbers(problem.kind, SIZE, 2)
    right = Array(b)
    work, size = problem.work("potrf", LOWER, SIZE, there, SIZE)
    problem.call("potrf", LOWER, SIZE, there, SIZE, work, size, problem.info)
    problem.clean()
    lower = np.tril(there.get())
    problem.call("potrs", LOWER, SIZE, 2, there, SIZE, right, SIZE, problem.info)
    return max(near(lower @ lower.conj().T, a, problem.tolerance), near(a @ right.get(), b, problem.tolerance))


def eigenvalues(problem):
    a = problem.symmetric()
    there, values = Array(a), Array(np.zeros(SIZE, problem.real))
    name = "heevd" if problem.complex else "syevd"
    work, size = problem.work(name, VECTORS, LOWER, SIZE, there, SIZE, values)
    problem.call(name, VECTORS, LOWER, SIZE, there, SIZE, values, work, size, problem.info)
    problem.clean()
    vectors, seen = there.get(), values.get()
    return max(near(seen, np.linalg.eigvalsh(a), problem.tolerance), near(a @ vectors, vectors * seen, problem.tolerance))


def eigenvalues_by_jacobi(problem):
    a = problem.symmetric()
    there, values, how = Array(a), Array(np.zeros(SIZE, problem.real)), handle(SOLVER.cusolverDnCreateSyevjInfo)
    name = "heevj" if problem.complex else "syevj"
    size = Out(ctypes.c_int)
    problem.call(f"{name}_bufferSize", VECTORS, LOWER, SIZE, there, SIZE, values, size, how)
    work = scratch(size.value * np.dtype(problem.kind).itemsize)
    problem.call(name, VECTORS, LOWER, SIZE, there, SIZE, values, work, size.value, problem.info, how)
    problem.clean()
    return near(values.get(), np.linalg.eigvalsh(a), problem.tolerance)


def singular_values(problem):
    a = numbers(problem.kind, HEIGHT, SIZE)
    there, values = Array(a), Array(np.zeros(SIZE, problem.real))
    u, v = Array(columns(np.zeros((HEIGHT, HEIGHT), problem.kind))), Array(columns(np.zeros((SIZE, SIZE), problem.kind)))
    work, size = problem.work("gesvd", HEIGHT, SIZE)
    problem.call("gesvd", ctypes.c_byte(ord("A")), ctypes.c_byte(ord("A")), HEIGHT, SIZE, there, HEIGHT, values, u, HEIGHT, v, SIZE, work, size,
                 None, problem.info)
    problem.clean()
    seen = values.get()
    return max(near(seen, np.linalg.svd(a, compute_uv=False), problem.tolerance), near((u.get()[:, :SIZE] * seen) @ v.get(), a, problem.tolerance))


for _function in (lu, qr, cholesky, eigenvalues, eigenvalues_by_jacobi, singular_values):
    for _letter in KINDS:
        add(f"{_function.__name__}_{KINDS[_letter][0]}", lambda function=_function, letter=_letter: f"off by {function(Problem(letter)):.0e}")

raise SystemExit(checks.main())
