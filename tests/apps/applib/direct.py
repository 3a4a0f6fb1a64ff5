# SPDX-License-Identifier: Apache-2.0
"""An application's root on a VF of this host, without a virtual machine."""
import os
import signal
import subprocess
import time

from vgpuguest import paths, process

from .place import INSIDE, Place, Ran

# $1: root, $2: the VF's runtime directory, $3, $4: directories of libcuda.so.1 and libnvidia-ml.so.1, $5: scripts, $6: work
# directory, $7: libraries of a CUDA toolkit, or nothing; then the command.
# The mounts are in a namespace that ends with the command.
_ENTER = """
root=$1
cd /
mkdir -p "$root/run/vgpu" "$root/opt/vgpu" "$root/opt/vgpu-nvml" "$root/opt/inside" "$root/opt/toolkit" "$root/data"
mount --bind "$2" "$root/run/vgpu"
mount --bind "$3" "$root/opt/vgpu"
mount --bind "$4" "$root/opt/vgpu-nvml"
mount --bind "$5" "$root/opt/inside"
mount --bind "$6" "$root/data"
[ -z "$7" ] || mount --bind "$7" "$root/opt/toolkit"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/root"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount -t proc proc "$root/proc"
shift 7
# The command is not process 1, which signals do not end.
chroot "$root" /usr/bin/env -i "$@" || exit $?
"""
_OWN_NAMESPACES = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child")


class Direct(Place):
    """`work` is the directory that commands see as /data, `toolkit` that which they see as /opt/toolkit, if any."""

    def __init__(self, root, gpu_seconds, vfs, runtime_dir, work, toolkit=""):
        super().__init__(root, gpu_seconds)
        self._toolkit = toolkit
        self._work = work
        self._runtime_dir = runtime_dir
        self._sockets = ",".join(os.path.join("/run/vgpu", os.path.relpath(vf["channel_socket"], runtime_dir)) for vf in vfs)

    def write(self, name, data):
        """A file in /data."""
        with open(os.path.join(self._work, name), "wb") as file:
            file.write(data)

    def read(self, name):
        with open(os.path.join(self._work, name), "rb") as file:
            return file.read()

    def _run(self, argv, timeout, environment, gpu):
        if gpu:
            environment["VGPU_CHANNEL"] = self._sockets
        inside = [*(f"{name}={value}" for name, value in environment.items()), "/bin/sh", "-c", 'cd /data && exec "$@"', "sh", *argv]
        enter = [*_OWN_NAMESPACES, "/bin/sh", "-ec", _ENTER, "sh", self.root, self._runtime_dir, paths.SHIM_DIR, paths.NVML_DIR, INSIDE, self._work, self._toolkit]
        start = time.monotonic()
        parent = os.getpid()
        child = subprocess.Popen([str(word) for word in (*enter, *inside)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, start_new_session=True,
                                 preexec_fn=lambda: process.die_with_parent(parent, signal.SIGKILL))
        try:
            out, err = child.communicate(timeout=timeout)
            code = child.returncode
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            code = None
        finally:
            process.stop(child)
        return Ran(code, out.decode(errors="backslashreplace"), err.decode(errors="backslashreplace"), time.monotonic() - start)
