# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's libraries of CUDA 12.4 through their public interfaces, against the CPU. They are in PyTorch's root already, with Python."""
from applib.application import Application
from applib.inside import Script

from .shared_roots import TORCH

_SCRIPTS = ("nvidia_blas.py", "nvidia_blaslt.py", "nvidia_fft.py", "nvidia_random.py", "nvidia_sparse.py", "nvidia_solver.py", "nvidia_nccl.py")
_SECONDS = 300  # of one process, which makes many checks


def checks(place, **options):
    for file in _SCRIPTS:
        yield from Script(place, file, _SECONDS, **options).checks()


APPLICATION = Application(name="nvidia", title="NVIDIA's libraries", root=TORCH, version_of="libcublas12", checks=checks,
                          vram="8GiB")  # NCCL loads all of its kernels at once: a gigabyte of code (docs/memory.md)
