# SPDX-License-Identifier: Apache-2.0
"""The roots. Suites: trixie is a release, sid has what no release has yet."""
from applib.application import Root

# NVIDIA's own driver library is left out (the VF brings its own), and cuDNN, whose package is a downloader.
_LIBCUDA = {"libcuda1": "libcuda.so.1"}
_LIBRARIES = "/usr/lib/x86_64-linux-gnu"
# The CUDA toolkit's libraries for static linking are most of its size.
_STATIC = tuple(f"{_LIBRARIES}/lib{name}*.a" for name in ("cub", "cufft", "cusparse", "cusolver", "curand", "npp", "nvrtc",
                                                          "nvJitLink", "nvjpeg", "nvptx", "lapack_static", "metis_static"))

SID = Root("sid", "sid", ("llama.cpp-tools", "llama.cpp-tests", "libggml0-backend-cuda", "python3-gguf", "bart-cuda"),
           _LIBCUDA, gib=3)
TOOLS = Root("tools", "trixie", ("hashcat", "libnvrtc12", "ffmpeg", "starpu-contrib-examples"), _LIBCUDA, gib=5)
PYTHON = Root("python", "trixie", ("python3-numba", "python3-pycuda", "python-pycuda-doc", "python3-pyvkfft-cuda",
                                   "python3-scipy", "g++-13"), _LIBCUDA, gib=9, without=_STATIC)
TORCH = Root("torch", "trixie", ("python3-torch-cuda", "libcublas12"), {**_LIBCUDA, "nvidia-cudnn": ""}, gib=6, without=_STATIC)
