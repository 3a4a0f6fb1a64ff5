# SPDX-License-Identifier: Apache-2.0
"""PyTorch: its operations one by one, and what programs do with it, against its CPU backend. Debian has no cuDNN, so
convolutions and recurrent layers run without it."""
from applib.application import Application
from applib.inside import Script
from applib.stand_ins import nvrtc_to_ptx, without_cudnn

from .shared_roots import TORCH

_LIBRARIES = "/usr/lib/x86_64-linux-gnu"
_SECONDS = 240  # of one process, which makes many checks


def checks(place):
    # The package has the library under its full name only, PyTorch looks for the short one.
    place.must(["ln", "-sf", f"{_LIBRARIES}/libtorch_cuda_linalg.so.2.6", "/data/libtorch_cuda_linalg.so"], timeout=10, gpu=False)
    aid = {**without_cudnn(place), **nvrtc_to_ptx(place)}
    for file in ("torch_operations.py", "torch_programs.py"):
        yield from Script(place, file, _SECONDS, environment=aid).checks()


APPLICATION = Application(name="torch", title="PyTorch", root=TORCH, version_of="python3-torch-cuda", checks=checks, vram="4GiB")
