#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cuBLASLt against numpy: products by all the algorithms that it proposes, with bias and activation."""
import ctypes
import math

import checks
import numpy as np
from checks import Skip, add
from nvidia import TYPES, Array, Library, Out, from_bfloat16, handle, near, numbers, scratch, to_bfloat16

LT = Library("libcublasLt.so.12")
WORKSPACE = 4 << 20
TRANSA, TRANSB, EPILOGUE, BIAS_POINTER = 3, 4, 7, 8  # cublasLtMatmulDescAttributes_t
MAX_WORKSPACE = 1  # cublasLtMatmulPreferenceAttributes_t
EPILOGUES = {"none": 1, "relu": 2, "bias": 4, "relu_bias": 6, "gelu_bias": 36}
NOT_SUPPORTED = "answers 15"
_HANDLE = []


class Proposal(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t"""
    _fields_ = [("algorithm", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int), ("waves", ctypes.c_float),
                ("reserved", ctypes.c_int * 4)]


# name: (type of the factors, of the result, of alpha and beta, cublasComputeType_t, first factor transposed, tolerance)
PRODUCTS = {
    "f64": ("float64", "float64", "float64", 70, 0, 1e-14), "f32": ("float32", "float32", "float32", 68, 0, 2e-6),
    "tf32": ("float32", "float32", "float32", 77, 0, 2e-3), "f16": ("float16", "float16", "float32", 68, 1, 1e-3),
    "f16_sums_f16": ("float16", "float16", "float16", 64, 0, 2e-2), "f16_f32": ("float16", "float32", "float32", 68, 0, 2e-6),
    "bf16": ("bfloat16", "bfloat16", "float32", 68, 0, 8e-3), "int8": ("int8", "int32", "int32", 72, 1, 0),
    "c64": ("complex64", "complex64", "complex64", 68, 0, 2e-6),
}
M, COLUMNS, DEPTH = 96, 64, 128


def operands(kind, *shape):
    if kind == "bfloat16":
        return to_bfloat16(numbers("float32", *shape))
    data = numbers(kind, *shape)
    return data, data


def activated(values, name, bias):
    if "bias" in name:
        values = values + bias[:, None]
    if "relu" in name:
        return np.maximum(values, 0)
    if "gelu" in name:
        return values * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (values + 0.044715 * values ** 3)))
    return values


def description(compute, scale, transposed, epilogue, bias):
    made = handle(LT.cublasLtMatmulDescCreate, compute, TYPES[scale])
    settings = [(TRANSA, ctypes.c_int(transposed)), (EPILOGUE, ctypes.c_int(EPILOGUES[epilogue]))]
    if bias is not None:
        settings.append((BIAS_POINTER, ctypes.c_void_p(bias.address)))
    for name, value in settings:
        LT.cublasLtMatmulDescSetAttribute(made, name, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))
    return made


def layout(kind, rows, across):
    return handle(LT.cublasLtMatrixLayoutCreate, TYPES[kind], ctypes.c_uint64(rows), ctypes.c_uint64(across), ctypes.c_int64(rows))


def product(kind, result, scale, compute, transposed, tolerance, epilogue="none", most=8):
    if not _HANDLE:
        _HANDLE.append(handle(LT.cublasLtCreate))
    lt = _HANDLE[0]
    a, a_host = operands(kind, *((DEPTH, M) if transposed else (M, DEPTH)))
    b, b_host = operands(kind, DEPTH, COLUMNS)
    bias_bits, bias_host = operands(result, M)
    bias = Array(bias_bits) if "bias" in epilogue else None
    wide = np.complex128 if kind.startswith("c") else np.float64
    expected = activated((a_host.T if transposed else a_host).astype(wide) @ b_host.astype(wide), epilogue, bias_host.astype(wide))
    what = description(compute, scale, transposed, epilogue, bias)
    layouts = layout(kind, *a.shape), layout(kind, *b.shape), layout(result, M, COLUMNS)
    preference = handle(LT.cublasLtMatmulPreferenceCreate)
    LT.cublasLtMatmulPreferenceSetAttribute(preference, MAX_WORKSPACE, ctypes.byref(ctypes.c_uint64(WORKSPACE)), ctypes.c_size_t(8))
    proposals, found = (Proposal * most)(), Out(ctypes.c_int)
    LT.cublasLtMatmulAlgoGetHeuristic(lt, what, *layouts, layouts[2], preference, most, ctypes.byref(proposals), found)
    workspace, first, second = scratch(WORKSPACE), Array(a), Array(b)
    alpha, beta = np.dtype(scale).type(1), np.dtype(scale).type(0)
    worst, done, refused = 0.0, 0, 0
    for proposal in proposals[:found.value]:
        out = Array(np.zeros((M, COLUMNS), np.uint16 if result == "bfloat16" else result, order="F"))
        try:
            LT.cublasLtMatmul(lt, what, alpha, first, layouts[0], second, layouts[1], beta, out, layouts[2], out, layouts[2],
                              ctypes.byref(proposal.algorithm), workspace, ctypes.c_size_t(WORKSPACE), None)
        except RuntimeError as error:
            if NOT_SUPPORTED not in str(error):
                raise
            refused += 1
            continue
        seen = from_bfloat16(out.get()) if result == "bfloat16" else out.get()
        worst = max(worst, near(seen, expected, tolerance))
        done += 1
    if not done:
        raise Skip(f"none of the {found.value} algorithms that cuBLASLt proposes has its kernel as PTX")
    return f"{done} algorithms, off by {worst:.0e}" + (f"; {refused} refused by cuBLASLt itself" if refused else "")


for _name, _row in PRODUCTS.items():
    add(f"lt_{_name}", lambda row=_row: product(*row))
for _name in ("relu", "bias", "relu_bias", "gelu_bias"):
    add(f"lt_f32_{_name}", lambda name=_name: product(*PRODUCTS["f32"][:5], 1e-5, epilogue=name))
    add(f"lt_f16_{_name}", lambda name=_name: product(*PRODUCTS["f16"][:5], 2e-3, epilogue=name))

raise SystemExit(checks.main())
