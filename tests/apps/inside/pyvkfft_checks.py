#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""VkFFT's transforms against numpy's."""
import checks
import numpy as np

RANDOM = np.random.default_rng(2)


def near(seen, expected, tolerance):
    worst = np.abs(seen - expected).max() / np.abs(expected).max()
    assert worst < tolerance, f"error {worst:.1e}"
    return f"error {worst:.1e}"


def complex_check(shape, dimensions, kind=np.complex64, tolerance=1e-5):
    def run():
        import pycuda.autoprimaryctx  # noqa: F401
        import pycuda.gpuarray as gpu
        from pyvkfft.fft import fftn, ifftn
        data = (RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)).astype(kind)
        there = fftn(gpu.to_gpu(data), ndim=dimensions)
        expected = np.fft.fftn(data, axes=tuple(range(-dimensions, 0)))
        said = near(there.get(), expected, tolerance)
        near(ifftn(there, ndim=dimensions).get(), data, tolerance)
        return said
    return run


def real_check():
    import pycuda.autoprimaryctx  # noqa: F401
    import pycuda.gpuarray as gpu
    from pyvkfft.fft import irfftn, rfftn
    data = RANDOM.standard_normal((6, 32, 48)).astype(np.float32)
    there = rfftn(gpu.to_gpu(data), ndim=2)
    said = near(there.get(), np.fft.rfftn(data, axes=(1, 2)), 1e-5)
    near(irfftn(there, ndim=2).get(), data, 1e-5)
    return said


checks.add("c2c_1d", complex_check((4, 256), 1))
checks.add("c2c_1d_odd", complex_check((3, 105), 1))
checks.add("c2c_1d_prime", complex_check((2, 101), 1))
checks.add("c2c_2d", complex_check((32, 64), 2))
checks.add("c2c_3d", complex_check((16, 12, 20), 3))
checks.add("c2c_double", complex_check((8, 128), 1, np.complex128, 1e-12))
checks.add("r2c_2d", real_check)
raise SystemExit(checks.main())
