# SPDX-License-Identifier: Apache-2.0
"""pyvkfft: Fourier transforms whose kernels VkFFT writes and NVRTC compiles. It asks NVRTC for machine code, which only a
real GPU runs; inside/nvrtc_ptx.c has it take PTX."""
from applib.application import Application
from applib.inside import Script
from applib.stand_ins import nvrtc_to_ptx

from .shared_roots import PYTHON


def checks(place):
    aid = {**nvrtc_to_ptx(place), "PATH": "/opt/inside/bin:/usr/bin:/bin", "PYCUDA_CACHE_DIR": "/data/compiled"}
    yield from Script(place, "pyvkfft_checks.py", 200, environment=aid).checks()


APPLICATION = Application(name="pyvkfft", title="pyvkfft", root=PYTHON, version_of="python3-pyvkfft-cuda", checks=checks)
