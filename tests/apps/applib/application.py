# SPDX-License-Identifier: Apache-2.0
"""What an application is to the driver, and what its checks can say."""
import dataclasses
from typing import Any, Callable


class Failed(Exception):
    """A check's answer is wrong; the text says what was seen."""


class Skipped(Exception):
    """A check that cannot be made here; the text says why."""


@dataclasses.dataclass(frozen=True)
class Root:
    """Which packages of which suite of Debian's archive make a root directory. Applications may share one."""
    name: str
    suite: str
    packages: tuple
    empty: dict  # packages to leave out: {name: what else it provides}
    gib: float  # disk space while it is made
    without: tuple = ()  # files to leave out, as dpkg's path-exclude


@dataclasses.dataclass(frozen=True)
class Check:
    """`run()` returns a few words about what it saw, or raises Failed or Skipped."""
    name: str
    run: Callable
    batch: Any = None  # is told the names of all its checks that will run: batch.want(name)


@dataclasses.dataclass(frozen=True)
class Application:
    """A row of the driver's table."""
    name: str
    title: str
    root: Root
    version_of: str  # the package whose version is the application's
    checks: Callable  # checks(place) -> iterable of Check, in the order in which they run
    vram: str = "2GiB"
    host_memory: str = ""  # what goes with vram, where it is not said
    vfs: int = 1  # devices of its programs
    daemon: tuple = ()  # arguments of vgpud
    toolkit: bool = False  # it uses the libraries of this machine's CUDA toolkit, in /opt/toolkit
