# SPDX-License-Identifier: Apache-2.0
"""A vgpud on the CUDA backend whose GPU is a VF of another vgpud: our own libcuda is its driver (docs/cuda-backend.md)."""
import contextlib

from . import daemon
from .paths import SHIM, need

HARDWARE = "hardware"


@contextlib.contextmanager
def nested_daemon(vfs=(), arguments=(), inner_arguments=(), inner_vram="8GiB"):
    """(outer, inner): `vfs` and `arguments` are those of the outer one, as for daemon.private_daemon; the inner one has
    one VF, called HARDWARE, with the soft GPU."""
    library = need(SHIM, "the library libcuda.so.1")
    with daemon.private_daemon([(HARDWARE, {"vram": inner_vram})], ["--client-memory", *inner_arguments]) as inner:
        channel = inner.show(HARDWARE)["channel_socket"]
        gpu = ["--gpu", "cuda", "--cuda-library", str(library), "--cuda-channel", channel]
        with daemon.private_daemon(vfs, [*gpu, *arguments]) as outer:
            yield outer, inner
