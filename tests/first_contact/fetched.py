# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's user-space driver as tests/first_contact/fetch has fetched it, in each version that Debian's archive has."""
import os
import shutil

import harness
from vgpuguest import paths

FETCHED = paths.CACHE / "nvidia"
OLDEST = 550  # of CUDA 12.4; vgpud refuses older ones by their version


def versions():
    found = sorted(folder.name for folder in FETCHED.glob("[0-9]*.*") if (folder / "lib" / "libcuda.so.1").exists())
    if not found:
        harness.skip("NVIDIA's driver was not fetched: tests/first_contact/fetch does it where Debian's archive is in reach")
    return found


def major(version):
    return int(version.split(".")[0])


def driver_of(version, directory):
    """The path of a copy of libcuda.so.1 that users of VFs may read, with the driver's other libraries."""
    folder = os.path.join(directory, version)
    shutil.copytree(FETCHED / version / "lib", folder, symlinks=True)
    return os.path.join(folder, "libcuda.so.1")
