# SPDX-License-Identifier: Apache-2.0
"""The applications, one file each. `ALL` is the driver's table."""
import importlib

NAMES = ("llama", "hashcat", "numba", "pycuda", "pyvkfft", "ffmpeg", "bart", "starpu", "torch", "nvidia", "toolkit", "devices", "monitors")


def load(name):
    return importlib.import_module(f"apps.{name}").APPLICATION
