# SPDX-License-Identifier: Apache-2.0
"""The same as nvidia.py with the libraries of this machine's CUDA toolkit. Python and numpy come from PyTorch's root."""
from applib.application import Application

from . import nvidia
from .shared_roots import TORCH

# libcuda.so.1 says each time, not once, what it can't load.
ENVIRONMENT = {"NVIDIA_LIBRARIES": "/opt/toolkit", "LD_LIBRARY_PATH": "/opt/vgpu:/opt/vgpu-nvml:/opt/toolkit", "VGPU_TRACE": "1"}
_MACHINE_CODE = r"no PTX for sm_\d+|the image is a cubin \(machine code\)"

APPLICATION = Application(name="toolkit", title="NVIDIA's libraries of this machine's CUDA toolkit, in the root of PyTorch", root=TORCH,
                          version_of="python3-torch-cuda", checks=lambda place: nvidia.checks(place, environment=ENVIRONMENT, excuse=_MACHINE_CODE), vram="8GiB", toolkit=True)
