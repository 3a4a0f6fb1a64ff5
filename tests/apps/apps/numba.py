# SPDX-License-Identifier: Apache-2.0
"""Numba's CUDA kernels in Python."""
from applib.application import Application
from applib.inside import Script

from .shared_roots import PYTHON


def checks(place):
    yield from Script(place, "numba_checks.py", 200).checks()


APPLICATION = Application(name="numba", title="Numba", root=PYTHON, version_of="python3-numba", checks=checks)
