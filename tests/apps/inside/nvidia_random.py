#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cuRAND: its generators on the GPU against the same generators on the CPU, which are part of the library."""
import ctypes

import checks
import numpy as np
from checks import add, check
from nvidia import Array, Library, handle, near

RAND = Library("libcurand.so.10")
PSEUDO = {"xorwow": 101, "mrg32k3a": 121, "mtgp32": 141, "mt19937": 142, "philox": 161}
QUASI = {"sobol32": 201, "scrambled_sobol32": 202, "sobol64": 203, "scrambled_sobol64": 204}
WIDE = ("sobol64", "scrambled_sobol64")
COUNT, DIMENSIONS = 10000, 4
# The library's own CPU side of these has no more than a float's precision in normal doubles. The GPU's agree with the inverse of the
# normal distribution within 1.4e-15.
ROUGH_DOUBLES = ("mtgp32",)
# Its state is so large that making one takes the soft GPU two minutes: integers only.
SLOW_TO_SEED = ("mt19937",)


def generator(where, kind, name):
    made = handle(where, kind)
    if name in PSEUDO:
        RAND.curandSetPseudoRandomGeneratorSeed(made, ctypes.c_ulonglong(1234))
    else:
        RAND.curandSetQuasiRandomGeneratorDimensions(made, DIMENSIONS)
    return made


def draws(name):
    """(call, numpy's type, further arguments, tolerance)"""
    integers = ("curandGenerateLongLong", np.uint64, (), 0) if name in WIDE else ("curandGenerate", np.uint32, (), 0)
    return [integers, ("curandGenerateUniform", np.float32, (), 1e-6), ("curandGenerateUniformDouble", np.float64, (), 1e-14),
            ("curandGenerateNormal", np.float32, (ctypes.c_float(1), ctypes.c_float(2)), 1e-5),
            ("curandGenerateNormalDouble", np.float64, (ctypes.c_double(1), ctypes.c_double(2)), 1e-6 if name in ROUGH_DOUBLES else 1e-12),
            ("curandGenerateLogNormal", np.float32, (ctypes.c_float(0), ctypes.c_float(0.5)), 1e-5)]


def compared(name, kind):
    worst, drawn = 0.0, draws(name)[:1 if name in SLOW_TO_SEED else None]
    for function, type_, more, tolerance in drawn:
        there, here = Array(np.zeros(COUNT, type_)), np.zeros(COUNT, type_)
        gpu, cpu = generator(RAND.curandCreateGenerator, kind, name), generator(RAND.curandCreateGeneratorHost, kind, name)
        getattr(RAND, function)(gpu, there, ctypes.c_size_t(COUNT), *more)
        getattr(RAND, function)(cpu, here.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(COUNT), *more)
        seen = there.get()
        assert len(np.unique(seen)) > COUNT // 4, f"{function}: {len(np.unique(seen))} different numbers"
        try:
            worst = max(worst, near(seen, here, tolerance))
        except AssertionError as error:
            raise AssertionError(f"{function}: {error}") from error
        RAND.curandDestroyGenerator(gpu)
        RAND.curandDestroyGenerator(cpu)
    return f"{len(drawn)} distributions as the CPU's, off by {worst:.0e}"


for _name, _kind in {**PSEUDO, **QUASI}.items():
    add(f"random_{_name}", lambda name=_name, kind=_kind: compared(name, kind))


@check
def random_poisson():
    there, here = Array(np.zeros(COUNT, np.uint32)), np.zeros(COUNT, np.uint32)
    gpu, cpu = (generator(make, PSEUDO["philox"], "philox") for make in (RAND.curandCreateGenerator, RAND.curandCreateGeneratorHost))
    RAND.curandGeneratePoisson(gpu, there, ctypes.c_size_t(COUNT), ctypes.c_double(7.5))
    RAND.curandGeneratePoisson(cpu, here.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(COUNT), ctypes.c_double(7.5))
    seen = there.get()
    assert abs(seen.mean() - 7.5) < 0.15 and abs(seen.var() - 7.5) < 0.5, f"mean {seen.mean()}, variance {seen.var()}"
    return f"mean {seen.mean():.2f}; {np.mean(seen == here):.1%} of the numbers are the CPU's"


raise SystemExit(checks.main())
