# SPDX-License-Identifier: Apache-2.0
"""StarPU's examples: tasks with kernels for the GPU, which StarPU schedules itself."""
import functools
import os

from applib.application import Application, Check, Failed, Skipped

from .shared_roots import TOOLS

_DIRECTORY = "/usr/lib/x86_64-linux-gnu/starpu/examples"
_SECONDS = 60
_EXAMPLES = {  # name: arguments
    "vector_scal": [], "incrementer": [], "block": [], "mandelbrot": ["-width", "80", "-height", "80", "-niter", "2", "-no-x11"],
    "axpy": [], "sgemm": ["-x", "256", "-y", "256", "-z", "256", "-nblocks", "2", "-iter", "2", "-check"],
    "cholesky_implicit": ["-size", "256", "-nblocks", "2", "-check"],
    "lu_implicit_example_float": ["-size", "256", "-nblocks", "2", "-check"], "add_vectors": [], "minmax_reduction": [],
    "dot_product": [], "heat": ["-ntheta", "18", "-nthick", "18", "-nblocks", "4"], "fvector": [], "fmatrix": [], "pi": [], "gpu_partition": [],
}
_QUIET = 77  # what StarPU's examples answer where there is nothing to do


def _example(place, name, arguments):
    # Without CPU workers every task that has a CUDA kernel must run it; one stays for the tasks that have none.
    ran = place.run([f"{_DIRECTORY}/{name}", *arguments], timeout=_SECONDS,
                    environment={"STARPU_NCPU": "1", "STARPU_NCUDA": "1", "STARPU_NOPENCL": "0", "STARPU_HOME": "/tmp",
                                 "STARPU_SILENT": "0", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    if ran.code == _QUIET:
        raise Skipped("the example says that there is nothing here that it could run on")
    if ran.code != 0 and "no PTX for sm_" in ran.err:
        raise Skipped("cuBLAS 12.4 has no PTX for this capability, and the example needs it: --capability 12.0")
    if ran.code != 0:
        raise Failed(ran.tail())
    return ""


def checks(place):
    for name, arguments in _EXAMPLES.items():
        path = f"{_DIRECTORY}/{name}"
        if os.path.exists(f"{place.root}{path}") or os.path.exists(f"{place.root}{path}/{name}"):
            nested = "" if os.path.isfile(f"{place.root}{path}") else f"/{name}"
            yield Check(name, functools.partial(_example, place, name + nested, arguments))


APPLICATION = Application(name="starpu", title="StarPU", root=TOOLS, version_of="starpu-contrib-examples", checks=checks)
