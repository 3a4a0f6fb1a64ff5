# SPDX-License-Identifier: Apache-2.0
"""PyCUDA: its own examples. It has nvcc make machine code, which only a real GPU runs; inside/bin/nvcc makes PTX of it."""
import functools

from applib.application import Application, Check, Failed, Skipped

from .shared_roots import PYTHON

_EXAMPLES = "/usr/share/doc/python-pycuda-doc/examples"
# Most of the packaged examples lack the line that makes a context.
_START = "import pycuda.autoinit, runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
_MATRIX = "laplace.mtx"
_ARGUMENTS = {"from-wiki/sparse_solve.py": ["--is-symmetric", f"/data/{_MATRIX}"]}
_SECONDS = 90
# Not those that want a screen or a key, nor those that measure.
_TESTED = ("hello_gpu.py", "demo.py", "demo_elementwise.py", "demo_struct.py", "demo_meta_template.py", "dump_properties.py",
           "fill_gpu_with_nans.py", "from-wiki/2d_fft.py", "from-wiki/arithmetic_example.py", "from-wiki/c++_function_templates.py",
           "from-wiki/demo_complex.py", "from-wiki/distance_element_wise3d.py",
           "from-wiki/gpu_scalar_mult.py", "from-wiki/kernel_concurrency.py", "from-wiki/mandelbrot.py",
           "from-wiki/manhattan_distance_for_2D_array.py", "from-wiki/matrixmul_simple.py",
           "from-wiki/matrixmul_tiled.py", "from-wiki/multiple_threads.py", "from-wiki/select_to_list.py",
           "from-wiki/sobel_filter.py", "from-wiki/threads_and_blocks.py",
           "from-wiki/using_printf.py", "from-wiki/rotate.py", "from-wiki/sparse_solve.py")
_NOT_HERE = ("ModuleNotFoundError", "No such file or directory: '", "ImportError")


def _run(place, example, path):
    return place.run(["python3", "-c", _START, f"{_EXAMPLES}/{example}", *_ARGUMENTS.get(example, [])], timeout=_SECONDS,
                     environment={"PATH": f"{path}/usr/bin:/bin", "PYCUDA_CACHE_DIR": "/data/compiled", "MPLBACKEND": "Agg"})


def _unaided(place):
    ran = place.run(["python3", "-c", _START, f"{_EXAMPLES}/hello_gpu.py"], timeout=_SECONDS, environment={"PYCUDA_DISABLE_CACHE": "1"})
    if ran.code != 0:
        raise Skipped("nvcc made machine code (cuModuleLoadDataEx: " + ran.tail(1) + "); the other checks make PTX")


def _example(place, example):
    ran = _run(place, example, "/opt/inside/bin:")
    if ran.code == 0:
        return ""
    last = ran.err.strip().splitlines()[-1:] or [""]
    if any(last[0].startswith(word) for word in _NOT_HERE):
        raise Skipped(f"it wants what is not packaged: {last[0]}")
    if "texture is not a template" in ran.err or 'overloaded function "tex2D"' in ran.err:
        raise Skipped("it has texture references, which CUDA 12 took away")
    if "SyntaxError" in ran.err or "AttributeError: module 'numpy'" in ran.err or "No registered converter" in ran.err:
        raise Skipped(f"the example is older than this Python: {last[0]}")
    raise Failed(ran.tail())


def _laplace(side):
    """A matrix that conjugate gradients can solve, in Matrix Market's format: the Laplacian of a square grid."""
    rows = []
    for y in range(side):
        for x in range(side):
            at = y * side + x + 1
            rows.append(f"{at} {at} 4")
            rows += [f"{at} {other} -1" for other, there in ((at - 1, x > 0), (at - side, y > 0)) if there]
    return "\n".join(["%%MatrixMarket matrix coordinate real symmetric", f"{side * side} {side * side} {len(rows)}", *rows, ""])


def checks(place):
    place.must(["mkdir", "-p", "/data/compiled"], timeout=10, gpu=False)
    place.write(_MATRIX, _laplace(24).encode())
    yield Check("machine code from nvcc", functools.partial(_unaided, place))
    for example in _TESTED:
        yield Check(example.removesuffix(".py"), functools.partial(_example, place, example))


APPLICATION = Application(name="pycuda", title="PyCUDA", root=PYTHON, version_of="python3-pycuda", checks=checks)
