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
_CUDNN = "libcudnn.so.9"
_CUDNN_NOT_INITIALIZED = 1001


def _build(place, name, source, *arguments):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Skipped(f"no C compiler on this machine for {name}")
    with tempfile.TemporaryDirectory() as directory:
        library = os.path.join(directory, name)
        subprocess.run([compiler, "-O1", "-w", "-shared", "-fPIC", "-o", library, "-x", "c", source, *arguments], check=True)
        with open(library, "rb") as file:
            place.write(name, file.read())


def nvrtc_to_ptx(place):
    """The environment of a program that asks NVRTC for machine code and shall get PTX."""
    _build(place, "nvrtc_ptx.so", INSIDE / "nvrtc_ptx.c", "-ldl")
    return {"LD_PRELOAD": "/data/nvrtc_ptx.so"}


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
        _build(place, _CUDNN, source.name, f"-Wl,-soname,{_CUDNN}")
    return {"LD_LIBRARY_PATH": "/opt/vgpu:/data"}
