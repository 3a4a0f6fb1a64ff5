#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cuSPARSE against numpy: matrices of few numbers times vectors and matrices, in their formats."""
import ctypes

import checks
import numpy as np
from checks import add, check
from nvidia import RANDOM, TYPES, Array, Library, Out, columns, handle, near, numbers, scratch

SPARSE = Library("libcusparse.so.12")
INDEX_32, ZERO_BASED, ORDER_COLUMNS, ORDER_ROWS = 2, 0, 1, 2
PLAIN, TRANSPOSED = 0, 1
TOLERANCE = {"float32": 5e-6, "float64": 1e-13, "complex64": 5e-6, "complex128": 1e-13}
_HANDLE = []


def sparse():
    if not _HANDLE:
        _HANDLE.append(handle(SPARSE.cusparseCreate))
    return _HANDLE[0]


def matrix(kind, rows, across):
    """Some tenth of the numbers, and at least one row without any."""
    dense = np.ascontiguousarray(np.where(RANDOM.random((rows, across)) < 0.1, numbers(kind, rows, across), 0)).astype(kind)
    dense[rows // 2] = 0
    return dense


def size(count):
    return ctypes.c_int64(count)


class Sparse:
    """A matrix of the library; `kept` keeps the arrays alive."""

    def __init__(self, dense, form):
        row, column = np.nonzero(dense)
        values = dense[row, column]
        starts = np.searchsorted(row, np.arange(dense.shape[0] + 1)).astype(np.int32)
        type_ = TYPES[str(dense.dtype)]
        shape = [size(count) for count in (*dense.shape, len(values))]
        if form == "csc":
            order = np.lexsort((row, column))
            starts = np.searchsorted(column[order], np.arange(dense.shape[1] + 1)).astype(np.int32)
            self.kept = [Array(starts), Array(row[order].astype(np.int32)), Array(values[order])]
        else:
            self.kept = [Array(row.astype(np.int32) if form == "coo" else starts), Array(column.astype(np.int32)), Array(values)]
        kinds = [INDEX_32] if form == "coo" else [INDEX_32, INDEX_32]
        self.made = handle(getattr(SPARSE, f"cusparseCreate{form.capitalize()}"), *shape, *self.kept, *kinds, ZERO_BASED, type_)


def vector(array):
    return handle(SPARSE.cusparseCreateDnVec, size(array.host.size), array, TYPES[str(array.host.dtype)])


def dense_matrix(array, order=ORDER_COLUMNS):
    rows, across = array.host.shape
    lead = rows if order == ORDER_COLUMNS else across
    return handle(SPARSE.cusparseCreateDnMat, size(rows), size(across), size(lead), array, TYPES[str(array.host.dtype)], order)


def multiplied(what, operation, more, *operands):
    """SpMV and SpMM, which ask for a buffer first. `more`: the algorithm and what else stands before the buffer."""
    need = Out(ctypes.c_size_t, 0)
    getattr(SPARSE, f"cusparse{what}_bufferSize")(sparse(), *operation, *operands, *more, need)
    getattr(SPARSE, f"cusparse{what}")(sparse(), *operation, *operands, *more, scratch(need.value))


def times_vector(form, kind, operation=PLAIN):
    dense, one = matrix(kind, 150, 120), np.dtype(kind).type
    x, y = (numbers(kind, count) for count in ((120, 150) if operation == PLAIN else (150, 120)))
    a, there, out = Sparse(dense, form), Array(x), Array(y)
    multiplied("SpMV", (operation,), (TYPES[kind], 0), one(2), a.made, vector(there), one(0.5), vector(out))
    return near(out.get(), 2 * ((dense.T if operation else dense) @ x) + 0.5 * y, TOLERANCE[kind])


def times_matrix(form, kind, order=ORDER_COLUMNS):
    dense, one = matrix(kind, 150, 120), np.dtype(kind).type
    lay = columns if order == ORDER_COLUMNS else np.ascontiguousarray
    b, out = Array(lay(numbers(kind, 120, 24))), Array(lay(np.zeros((150, 24), kind)))
    a = Sparse(dense, form)
    multiplied("SpMM", (PLAIN, PLAIN), (TYPES[kind], 0), one(1), a.made, dense_matrix(b, order), one(0), dense_matrix(out, order))
    return near(out.get(), dense @ b.host, TOLERANCE[kind])


for _form in ("csr", "coo", "csc"):
    add(f"spmv_{_form}", lambda form=_form: f"off by {max(times_vector(form, kind) for kind in TOLERANCE):.0e}")
    add(f"spmv_{_form}_transposed", lambda form=_form: f"off by {max(times_vector(form, kind, TRANSPOSED) for kind in TOLERANCE):.0e}")
    add(f"spmm_{_form}", lambda form=_form: f"off by {max(times_matrix(form, kind) for kind in TOLERANCE):.0e}")


@check
def spmm_csr_rows_first():
    return f"off by {max(times_matrix('csr', kind, ORDER_ROWS) for kind in TOLERANCE):.0e}"


@check
def sparse_to_dense_and_back():
    dense = matrix("float32", 40, 30)
    a, out = Sparse(dense, "csr"), Array(columns(np.zeros((40, 30), np.float32)))
    need = Out(ctypes.c_size_t, 0)
    whole = dense_matrix(out)
    SPARSE.cusparseSparseToDense_bufferSize(sparse(), a.made, whole, 0, need)
    SPARSE.cusparseSparseToDense(sparse(), a.made, whole, 0, scratch(need.value))
    assert np.array_equal(out.get(), dense), "to dense"
    starts, count = Array(np.zeros(41, np.int32)), np.count_nonzero(dense)
    again = handle(SPARSE.cusparseCreateCsr, size(40), size(30), size(0), starts, None, None, INDEX_32, INDEX_32, ZERO_BASED, TYPES["float32"])
    SPARSE.cusparseDenseToSparse_bufferSize(sparse(), whole, again, 0, need)
    buffer = scratch(need.value)
    SPARSE.cusparseDenseToSparse_analysis(sparse(), whole, again, 0, buffer)
    at, values = Array(np.zeros(count, np.int32)), Array(np.zeros(count, np.float32))
    SPARSE.cusparseCsrSetPointers(again, starts, at, values)
    SPARSE.cusparseDenseToSparse_convert(sparse(), whole, again, 0, buffer)
    assert np.array_equal(values.get(), dense[np.nonzero(dense)]) and np.array_equal(at.get(), np.nonzero(dense)[1]), "to sparse"
    return f"{count} numbers"


@check
def sparse_triangles():
    """A triangular system, solved."""
    dense = np.tril(matrix("float64", 100, 100)) + 5 * np.eye(100)
    b, x = Array(numbers("float64", 100)), Array(np.zeros(100))
    a, one, need = Sparse(dense, "csr"), np.float64(1), Out(ctypes.c_size_t, 0)
    solver = handle(SPARSE.cusparseSpSV_createDescr)
    for attribute in (0, 1):  # lower, diagonal as it is
        SPARSE.cusparseSpMatSetAttribute(a.made, attribute, ctypes.byref(ctypes.c_int(0)), ctypes.c_size_t(4))
    rest = (sparse(), PLAIN, one, a.made, vector(b), vector(x), TYPES["float64"], 0, solver)
    SPARSE.cusparseSpSV_bufferSize(*rest, need)
    buffer = scratch(need.value)
    SPARSE.cusparseSpSV_analysis(*rest, buffer)
    SPARSE.cusparseSpSV_solve(*rest)
    return f"off by {near(dense @ x.get(), b.host, 1e-12):.0e}"


@check
def sparse_times_sparse():
    left, right, one, zero = matrix("float32", 60, 50), matrix("float32", 50, 40), np.float32(1), np.float32(0)
    a, b, starts = Sparse(left, "csr"), Sparse(right, "csr"), Array(np.zeros(61, np.int32))
    c = handle(SPARSE.cusparseCreateCsr, size(60), size(40), size(0), starts, None, None, INDEX_32, INDEX_32, ZERO_BASED, TYPES["float32"])
    plan = handle(SPARSE.cusparseSpGEMM_createDescr)
    rest = (sparse(), PLAIN, PLAIN, one, a.made, b.made, zero, c, TYPES["float32"], 0, plan)
    buffers = []
    for step in ("workEstimation", "compute"):
        need = Out(ctypes.c_size_t, 0)
        getattr(SPARSE, f"cusparseSpGEMM_{step}")(*rest, need, None)
        buffers.append(scratch(need.value))
        getattr(SPARSE, f"cusparseSpGEMM_{step}")(*rest, need, buffers[-1])
    counts = [Out(ctypes.c_int64, 0) for _ in range(3)]
    SPARSE.cusparseSpMatGetSize(c, *counts)
    at, values = Array(np.zeros(counts[2].value, np.int32)), Array(np.zeros(counts[2].value, np.float32))
    SPARSE.cusparseCsrSetPointers(c, starts, at, values)
    SPARSE.cusparseSpGEMM_copy(*rest)
    seen, begin = np.zeros((60, 40), np.float32), starts.get()
    for row in range(60):
        part = slice(begin[row], begin[row + 1])
        seen[row, at.get()[part]] = values.get()[part]
    return f"{counts[2].value} numbers, off by {near(seen, left @ right, 5e-6):.0e}"


raise SystemExit(checks.main())
