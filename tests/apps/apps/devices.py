# SPDX-License-Identifier: Apache-2.0
"""Two VFs of one program: NCCL of this machine's CUDA toolkit between them."""
from applib.application import Application, Root
from applib.inside import Script

from .toolkit import ENVIRONMENT

_SECONDS = 570  # of which each device takes most to load NCCL's kernels
_ROOT = Root("devices", "trixie", ("python3-numpy",), {}, gib=1)

# Memory of /dev/shm comes in as descriptors, and NCCL's kernels are a gigabyte of code (docs/memory.md).
APPLICATION = Application(name="devices", title="NCCL of this machine's CUDA toolkit between two VFs of one program", root=_ROOT,
                          version_of="python3-numpy", checks=lambda place: Script(place, "nvidia_nccl_devices.py", _SECONDS, environment=ENVIRONMENT).checks(),
                          vram="1GiB", host_memory="8GiB", vfs=2, daemon=("--client-memory",), toolkit=True)
