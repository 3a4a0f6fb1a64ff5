# SPDX-License-Identifier: Apache-2.0
"""A guest that gets one VF after the other, of one vgpud or of several. Its VF sits behind a root port."""
import contextlib
import os
import pathlib
import sys

from vgpuguest import guest, paths, process

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "driver"))
from qmp import Qmp  # noqa: E402

_BUS = "rp0"


class ReplugGuest:
    """Boots with the first VF. `directory` is for its sockets."""

    def __init__(self, directory, boot_seconds=180):
        self.directory, self.boot_seconds = directory, boot_seconds
        self.guest = self.qmp = None

    def shell(self, command):
        """What a shell command of root says; AssertionError when it fails."""
        code, text = self.guest.shell(command)
        if code != 0:
            raise AssertionError(f"in the guest: {command}: exit {code}\n{text}")
        return text

    def plug(self, vf):
        if self.guest is None:
            path = os.path.join(self.directory, "qmp")
            machine = guest.Machine(devices=("-device", f"pcie-root-port,id={_BUS},bus=pcie.0,addr=0x8,chassis=1,slot=1"),
                                    vf_device={"bus": _BUS, "addr": "0x0"}, options=("-qmp", f"unix:{path},server=on,wait=off"))
            self.guest = guest.start_guest(vf, self.directory, machine=machine)
            self.guest.wait_until_up(self.boot_seconds)
            self.qmp = Qmp(path)
            return
        self.qmp.command("device_add", driver="vfio-user-pci", id="vf", bus=_BUS,
                         socket={"type": "unix", "path": vf["vfio_user_socket"]})
        self.shell("for i in $(seq 600); do ls /dev/vgpu0 2>/dev/null && break; sleep 0.1; done; chmod 666 /dev/vgpu0")

    def unplug(self):
        """Returns when it is out, also one that is out already."""
        with contextlib.suppress(RuntimeError):
            self.qmp.command("device_del", id="vf")
        self.qmp.wait_event("DEVICE_DELETED", 60)

    def waits_for_state(self, state):
        self.shell(f"for i in $(seq 100); do grep -qx {state} /sys/class/vgpu/vgpu0/state && exit 0; sleep 0.1; done; "
                   "cat /sys/class/vgpu/vgpu0/state; exit 1")

    def close(self):
        if self.guest is None:
            return
        if self.guest.qemu.poll() is not None:
            raise paths.ToolError(f"QEMU ended\n{process.tail(os.path.join(self.guest.directory, 'qemu.log'))}")
        process.stop(self.guest.qemu)
