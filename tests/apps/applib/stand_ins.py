# SPDX-License-Identifier: Apache-2.0
"""Small libraries that applications need beside our libcuda.so.1, built with this machine's compiler and put into /data."""
import glob
import os
import re
import shutil
import subprocess
import tempfile

from .application import Skipped
from .place import INSIDE

_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_NVRTC, _REAL_NVRTC, _CUDNN = "libnvrtc.so.12", "libnvrtc-real.so", "libcudnn.so.9"
_CUDNN_NOT_INITIALIZED = 1001
_FIRST = {"LD_LIBRARY_PATH": "/opt/vgpu:/data"}  # what is in /data comes before the libraries of the system


def _compile(library, source, *arguments):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Skipped(f"no C compiler on this machine for {os.path.basename(library)}")
    subprocess.run([compiler, "-O1", "-w", "-shared", "-fPIC", "-o", library, "-x", "c", source, "-x", "none", *arguments], check=True)


def _put(place, library):
    with open(library, "rb") as file:
        place.write(os.path.basename(library), file.read())


def nvrtc_to_ptx(place):
    """The environment of a program that asks NVRTC for machine code and shall get PTX. The real library is found under another
    name, which a library that has nothing but that name is linked for."""
    with tempfile.TemporaryDirectory() as directory:
        named, library = os.path.join(directory, _REAL_NVRTC), os.path.join(directory, _NVRTC)
        _compile(named, os.devnull, f"-Wl,-soname,{_REAL_NVRTC}")
        _compile(library, INSIDE / "nvrtc_ptx.c", f"-Wl,-soname,{_NVRTC}", "-Wl,--no-as-needed", named, "-ldl")
        _put(place, library)
    place.must(["ln", "-sf", f"/{_LIBRARIES}/{_NVRTC}", f"/data/{_REAL_NVRTC}"], timeout=10, gpu=False)
    return _FIRST


def without_cudnn(place):
    """The environment of a program that is linked with cuDNN, which is not packaged: each of its calls answers an error."""
    names = set()
    for library in glob.glob(os.path.join(place.root, _LIBRARIES, "libtorch_*.so.*")):
        listed = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True).stdout
        names.update(re.findall(r"\bU (cudnn\w+)", listed))
    if not names:
        raise Skipped("nm (binutils) shows no call of cuDNN in libtorch")
    with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
        source.writelines(f"int {name}(void) {{ return {_CUDNN_NOT_INITIALIZED}; }}\n" for name in sorted(names - {"cudnnGetErrorString"}))
        source.write('const char* cudnnGetErrorString(int status) { return "there is no cuDNN here"; }\n')
        source.flush()
        with tempfile.TemporaryDirectory() as directory:
            library = os.path.join(directory, _CUDNN)
            _compile(library, source.name, f"-Wl,-soname,{_CUDNN}")
            _put(place, library)
    return _FIRST
