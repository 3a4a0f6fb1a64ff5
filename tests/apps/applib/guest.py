# SPDX-License-Identifier: Apache-2.0
"""An application's root in a virtual machine on a VF. The root is a disk of the guest, made once and never written to;
where the host has no KVM everything but kernels is emulated, and slow."""
import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import time

from vgpuguest import guest, paths, process

from .application import Skipped
from .place import ENVIRONMENT, INSIDE, Place, Ran

_MEMORY_MIB = 4096
_BOOT_SECONDS = 180.0
_AROUND = 20  # seconds beyond a command's time limit
# In the guest, once. The disks are found by what is on them.
_MOUNT = """
mkdir -p /mnt /extra
for disk in /dev/nvme?n1; do
  mount -t ext4 "$disk" /mnt && { [ -d /mnt/opt/inside ] && root=$disk || extra=$disk; umount /mnt; }
done
mount -t ext4 "$root" /mnt && mount -t ext4 "$extra" /extra || exit 1
for pair in vgpu:opt/vgpu inside:opt/inside work:data; do mount -o bind "/extra/${pair%%:*}" "/mnt/${pair#*:}" || exit 1; done
mount -t tmpfs tmpfs /mnt/tmp && mount -o bind /dev /mnt/dev && mount -o bind /sys /mnt/sys && mount -t proc proc /mnt/proc && mkdir -p /mnt/dev/shm
"""


def _disk(directory, image):
    """An ext4 image of a directory, with room to write."""
    used = int(subprocess.run(["du", "-sxm", directory], capture_output=True, text=True, check=True).stdout.split()[0])
    part = f"{image}.part"
    subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", directory, part, f"{used * 6 // 5 + 256}M"],
                   check=True, capture_output=True, env=dict(os.environ, PATH=f"{os.environ['PATH']}:/usr/sbin:/sbin"))
    os.replace(part, image)


def _root_disk(root):
    image = os.path.join(os.path.dirname(root), "root.ext4")
    if not os.path.exists(image):
        for folder in ("opt/vgpu", "opt/inside", "data"):
            os.makedirs(os.path.join(root, folder), exist_ok=True)
        _disk(root, image)
    return image


def _drive(name, image):
    return ("-drive", f"file={image},if=none,id={name},format=raw,snapshot=on", "-device", f"nvme,drive={name},serial={name}")


@contextlib.contextmanager
def booted(root, gpu_seconds, vf, runtime_dir, work, memory_mib=_MEMORY_MIB):
    """An InGuest place, for the time of the context."""
    if not os.path.exists(paths.QEMU):
        raise Skipped("no QEMU here; tools/setup fetches it")
    with process.scratch_dir("vgpu-apps-") as scratch:
        stage = os.path.join(scratch, "extra")
        shutil.copytree(INSIDE, os.path.join(stage, "inside"))
        os.makedirs(os.path.join(stage, "vgpu"))
        for library in (paths.SHIM, paths.NVML):
            shutil.copy(library, os.path.join(stage, "vgpu"))
        shutil.copytree(work, os.path.join(stage, "work"), symlinks=True)
        _disk(stage, os.path.join(scratch, "extra.ext4"))
        machine = guest.Machine(options=(*_drive("root", _root_disk(root)), *_drive("extra", os.path.join(scratch, "extra.ext4"))))
        with guest.own_guest(vf, runtime_dir, _BOOT_SECONDS, memory_mib=memory_mib, machine=machine) as running:
            code, said = running.shell(_MOUNT)
            if code != 0:
                raise Skipped(f"the guest could not mount its disks: {said[-300:]}")
            yield InGuest(root, gpu_seconds, running)


class InGuest(Place):
    slowness = 5  # emulated

    def __init__(self, root, gpu_seconds, running):
        super().__init__(root, gpu_seconds)
        self._guest = running

    def write(self, name, data):
        """A file in /data."""
        with tempfile.NamedTemporaryFile() as file, self._guest.channel() as channel:
            file.write(data)
            file.flush()
            channel.put(file.name, f"/mnt/data/{name}", 0o755)

    def read(self, name):
        data = bytearray()
        with self._guest.channel() as channel:
            channel.run(["/bin/cat", f"/mnt/data/{name}"], {}, lambda _, part: data.extend(part), 0, _AROUND)
        return bytes(data)

    def start(self, argv, environment=None):
        """Starts a command and returns at once: a Started."""
        return Started(self._guest, [str(word) for word in argv], {**ENVIRONMENT, **(environment or {})})

    def _run(self, argv, timeout, environment, gpu):
        if not gpu:
            environment["CUDA_VISIBLE_DEVICES"] = "-1"
        start = time.monotonic()
        command = Started(self._guest, argv, environment)
        try:
            command.wait(timeout + _AROUND)
        finally:
            command.stop()
        return Ran(command.code, command.text(1), command.text(2), time.monotonic() - start)


class Started:
    """A command in the guest's root, and what it has said until now. `code` is None until it has ended by itself."""

    def __init__(self, running, argv, environment):
        self.code = None
        self._said = {1: bytearray(), 2: bytearray()}
        self._lost = None  # why nobody knows how it goes on
        self._running = running
        self._channel = None
        self._stopped = False
        self._changed = threading.Condition()
        command = ["/bin/busybox", "chroot", "/mnt", "/bin/sh", "-c", 'cd /data && exec "$@"', "sh", *argv]
        self._thread = threading.Thread(target=self._follow, args=(command, environment), daemon=True)
        self._thread.start()

    def said(self, stream=1):
        """Its output as bytes."""
        with self._changed:
            return bytes(self._said[stream])

    def text(self, stream=1):
        return self.said(stream).decode(errors="backslashreplace")

    def wait(self, timeout, until=lambda said: False):
        """Returns True when `until` is true of its standard output, False when it has ended or after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: until(bytes(self._said[1])) or not self._thread.is_alive() or self._ended(), timeout)
            if self._lost is not None and not self._stopped:
                raise self._lost
            return until(bytes(self._said[1]))

    def stop(self):
        """Ends it, and waits until it is gone."""
        with self._changed:
            self._stopped = True
            if self._channel is not None:
                self._channel.abort()
        self._thread.join(_AROUND)

    def _ended(self):
        return self.code is not None or self._lost is not None

    def _hear(self, stream, data):
        with self._changed:
            self._said[stream].extend(data)
            self._changed.notify_all()

    def _follow(self, command, environment):
        code, lost = None, None
        try:
            with self._running.channel() as channel:
                with self._changed:
                    self._channel = channel
                    if self._stopped:
                        return
                code = channel.run(command, environment, self._hear, 0)
        except (paths.ToolError, TimeoutError, OSError) as error:
            lost = error
        finally:
            with self._changed:
                self.code, self._lost, self._channel = code, lost, None
                self._changed.notify_all()
