# SPDX-License-Identifier: Apache-2.0
"""What a program of a container has, for one that runs without a container."""
import contextlib
import os
import tempfile

CHANNELS = "/run/vgpud"


@contextlib.contextmanager
def environment(envs, mounts):
    """Variables, for the time of the context. What lies at a path of the container is looked for where it is mounted from; what is below the
    container's /run/vgpud, below a folder with links. `mounts`: [(path of the host, path in the container)]."""
    with tempfile.TemporaryDirectory(prefix="inside-") as folder:
        for host, inside in mounts:
            if inside.startswith(CHANNELS + "/"):
                os.symlink(host, inside.replace(CHANNELS, folder))
        (library,) = {host for host, inside in mounts if inside.endswith("/libcuda.so.1")}
        yield {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": os.path.dirname(library),
               **{key: value.replace(CHANNELS, folder) for key, value in envs.items()}}


def channels(variables):
    """How many channel sockets VGPU_CHANNEL stands for."""
    value = variables["VGPU_CHANNEL"]
    return len([name for name in os.listdir(value) if name.endswith(".channel.sock")] if os.path.isdir(value) else value.split(","))
