# SPDX-License-Identifier: Apache-2.0
"""Where things stand. VGPUD_BUILD_DIR names another build directory than build/."""
import os
import pathlib

REPO = pathlib.Path(__file__).resolve().parents[3]
CACHE = REPO / ".cache"
BUILD = pathlib.Path(os.environ.get("VGPUD_BUILD_DIR") or REPO / "build").resolve()

VGPUD = BUILD / "vgpud" / "vgpud"
VGPUCTL = BUILD / "tools" / "vgpuctl"
SHIM_DIR = BUILD / "guest-driver-shim" / "libcuda"
SHIM = SHIM_DIR / "libcuda.so.1"
NVML_DIR = BUILD / "guest-driver-shim" / "libnvidia-ml"
NVML = NVML_DIR / "libnvidia-ml.so.1"
CUDA_PROGRAMS = BUILD / "tests" / "cuda"
LAUNCHER = CUDA_PROGRAMS / "vgpu-launch"

QEMU = CACHE / "qemu" / "qemu-system-x86_64"
# Guest kernels by the Debian release they come from; the first is the default (tools/lib/kernels.sh).
KERNEL_SUITES = ("bookworm", "trixie")


def kernel_dir(suite):
    return CACHE / "kernel" / suite


def library_path():
    """LD_LIBRARY_PATH with our libraries first."""
    return f"{SHIM_DIR}:{NVML_DIR}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")


class ToolError(Exception):
    """Something the user has to know and can act on."""


def need(path, what):
    """The path, or an error that names the next step."""
    if not os.path.exists(path):
        raise ToolError(f"{what} is missing ({path}): run tools/setup")
    return path


def cuda_command(name):
    """The command line of a program of tests/cuda: built by nvcc where there was one, else by the launcher from the
    checked-in PTX."""
    program = CUDA_PROGRAMS / name
    if program.exists():
        return [str(program)]
    return [str(need(LAUNCHER, "the launcher for the checked-in PTX")), name]
