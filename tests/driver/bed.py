# SPDX-License-Identifier: Apache-2.0
"""One guest on one VF, with the test programs and a module of choice in its image, and what a test may do to it."""
import contextlib
import dataclasses
import os
import pathlib
import subprocess

import harness
import overlay
from qmp import Qmp
from reports import Console
from vgpuguest import daemon, guest, paths, process
from vgpuguest.channel import Channel
from vgpuguest.program import Program

PROGRAMS = "/opt/driver"
USER, OTHER_USER = 1000, 1001
VF_BUS = "rp0"  # the VF sits behind a root port, so that it can be unplugged
_AWAKE = "PM: suspend exit"
_TASKS = "ps; for task in /proc/[0-9]*; do grep -H . $task/stack; done 2>/dev/null | grep -v kthread | tail -n 150; dmesg | tail -n 20"
SLOW = {"debug": 8, "kcsan": 8}  # how much longer things take with that kernel


@dataclasses.dataclass(frozen=True)
class Setup:
    """What a test needs of its guest."""
    cpus: int = 2
    memory_mib: int = 512
    kernel_arguments: str = ""
    vf_arguments: tuple = ()
    devices: tuple = ()
    through: object = None  # called with (VF's socket, directory): what stands between QEMU and the VF; has .socket, .close()


def module_path(suite):
    return paths.kernel_dir(suite) / "vgpu.ko"


def _extra_modules(suite):
    """Modules of the suite's kernel that tests need beside those of the image, where they are not built in."""
    tree = paths.kernel_dir(suite) / "tree" / "lib" / "modules"
    return [file for file in sorted(tree.rglob("fuse.ko*"))]


def _unpacked(file, directory):
    """A module, decompressed."""
    tools = {".xz": ["xz", "-dc"], ".zst": ["zstd", "-qdc"]}
    if file.suffix not in tools:
        return file
    target = pathlib.Path(directory) / file.stem
    with open(target, "wb") as out:
        subprocess.run([*tools[file.suffix], file], stdout=out, check=True)
    return target


class Bed:
    def __init__(self, suite, vgpud, running, qmp_path, vf_socket, files, between):
        self.suite, self.vgpud, self.guest, self.vf_socket, self.between = suite, vgpud, running, vf_socket, between
        self.files = files  # what the image has beside the suite's: {path in the guest: file of this host}
        self.console = Console(running.console)
        self.qmp = Qmp(qmp_path)
        self.patience = SLOW.get(suite, 1)
        self.console.new_text()

    def shell(self, command, timeout=60, check=True):
        """Output of a shell command of root in the guest; AssertionError when it fails, unless `check` is False."""
        code, text = self.guest.shell(command, timeout=timeout * self.patience)
        if check and code != 0:
            raise AssertionError(f"{command}: exit {code}\n{text}")
        return text

    def whats_up(self):
        """What runs in the guest and where it waits, for the report of a failure; whatever port answers tells it."""
        said = []
        for port in range(guest.COMMAND_PORTS):
            path = os.path.join(self.guest.directory, f"cmd{port}")
            try:
                with contextlib.closing(Channel(path, 10)) as channel:
                    output = bytearray()
                    channel.run(["/bin/sh", "-c", _TASKS], {"PATH": "/bin:/sbin:/usr/bin"}, lambda _, data, to=output: to.extend(data), 0, 20)
                    return "\n".join([*said, output.decode(errors="replace")])
            except (paths.ToolError, TimeoutError, OSError) as error:
                said.append(f"command port {port}: {str(error) or type(error).__name__}")
        return "\n".join(said)

    def program(self, name, *arguments, uid=USER, environment=None):
        """Starts a test program in the guest."""
        return Running(self.guest, f"{PROGRAMS}/{name}", arguments, uid, environment or {})

    def tap(self, name, *arguments, uid=USER, timeout=120, environment=None):
        """Runs a test program and prints what it prints; AssertionError with what was not ok."""
        self.program(name, *arguments, uid=uid, environment=environment).passes(timeout * self.patience)

    def open_device(self):
        """Lets ordinary users open the device, as an administrator would with a group."""
        self.shell("chmod 666 /dev/vgpu*")

    def suspend(self):
        """Suspends the guest to RAM and wakes it. Nobody may talk to the guest meanwhile: its consoles would miss it."""
        before = self.console_text().count(_AWAKE)
        # In a session of its own: the agent ends what a command leaves behind when its port is disconnected.
        self.shell("setsid sh -c 'sleep 1; echo deep > /sys/power/mem_sleep; echo mem > /sys/power/state' "
                   "< /dev/null > /dev/null 2>&1 &")
        # Now and then QEMU wakes it before it sleeps, and tells nobody.
        try:
            sleeps = self.qmp.wait_event("SUSPEND", 60 * self.patience, unless=lambda: self.console_text().count(_AWAKE) > before)
        except TimeoutError:
            tasks = self.shell("ps; tail -n +1 /proc/[0-9]*/stack 2>/dev/null | tail -n 200", check=False)
            raise AssertionError(f"the guest does not go to sleep; what runs there:\n{tasks}") from None
        if sleeps:
            self.qmp.command("system_wakeup")
        harness.wait_until(lambda: self.console_text().count(_AWAKE) > before, "the guest slept and is awake again",
                           60 * self.patience)

    def console_text(self):
        """All that the guest's kernels have written so far."""
        with open(self.guest.console, errors="replace") as file:
            return file.read()

    def pci_address(self):
        return self.shell("basename $(ls -d /sys/bus/pci/drivers/vgpu/0*)").strip()


class Running(Program):
    """A test program in the guest; its output is printed as it comes."""

    def __init__(self, running, path, arguments, uid, environment):
        super().__init__(" ".join([os.path.basename(path), *arguments]))
        self._channel, self._guest = None, running
        self._argv, self._uid = [path, *arguments], uid
        self._environment = {"PATH": "/bin:/sbin:/usr/bin", "HOME": "/tmp", **environment}
        self._start(self._run)

    def _run(self):
        try:
            with self._guest.channel() as channel:
                self._channel = channel
                self._finish(channel.run(self._argv, self._environment, lambda _, data: self._show(data), self._uid))
        except (paths.ToolError, TimeoutError, OSError) as error:
            self._finish(None, error)

    def _show(self, data):
        self._take_output(data)

    def _end(self):
        if self._channel is not None:
            self._channel.abort()

    def passes(self, timeout):
        try:
            code = self.wait(timeout)
        finally:
            print("".join(f"    {line}\n" for _, line in self.lines), end="", flush=True)
        bad = [line for _, line in self.lines if line.startswith(("not ok", "Bail out"))]
        if code != 0 or bad:
            raise AssertionError(f"{self.name} ended with {code}: {'; '.join(bad) or self.text()}")


@contextlib.contextmanager
def bed(suite, setup, programs, module=None):
    """A booted guest. `programs`: the directory with the test programs; `module`: another vgpu.ko than the suite's."""
    with contextlib.ExitStack() as stack:
        vgpud = stack.enter_context(daemon.private_daemon([("vf0", {})], arguments=setup.vf_arguments))
        vf = dict(vgpud.show("vf0"))
        between = None
        if setup.through:
            between = setup.through(vf["vfio_user_socket"], vgpud.runtime_dir)
            stack.callback(between.close)
            vf["vfio_user_socket"] = between.socket
        files = {f"{PROGRAMS}/{file.name}": file for file in pathlib.Path(programs).iterdir()
                 if file.is_file() and os.access(file, os.X_OK)}
        files["/lib/modules/vgpu.ko"] = module or module_path(suite)
        for file in _extra_modules(suite):
            files[f"/lib/modules/{file.name.split('.')[0]}.ko"] = _unpacked(file, vgpud.runtime_dir)
        initrd = os.path.join(vgpud.runtime_dir, "initrd.img")
        overlay.image_with(paths.need(paths.kernel_dir(suite) / "initrd.img", "the guest image"), files, initrd)
        qmp_path = os.path.join(vgpud.runtime_dir, "qmp")
        machine = guest.Machine(
            cpus=setup.cpus, kernel_arguments=f"quiet {setup.kernel_arguments}", initrd=initrd,
            devices=(*setup.devices, "-device", f"pcie-root-port,id={VF_BUS},bus=pcie.0,addr=0x8,chassis=1,slot=1"),
            vf_device={"bus": VF_BUS, "addr": "0x0"}, options=("-qmp", f"unix:{qmp_path},server=on,wait=off"))
        console = os.path.join(vgpud.runtime_dir, "guests", vf["name"], "console.log")
        stack.push(lambda kind, *_: kind and print(process.tail(console, 30)))
        running = stack.enter_context(guest.own_guest(vf, vgpud.runtime_dir, memory_mib=setup.memory_mib, suite=suite,
                                                      machine=machine, boot_seconds=90 * SLOW.get(suite, 2)))
        made = Bed(suite, vgpud, running, qmp_path, vf["vfio_user_socket"], files, between)
        stack.callback(made.qmp.close)
        made.shell("dmesg -n 8; echo 20 > /proc/sys/kernel/hung_task_timeout_secs 2>/dev/null; "
                   "insmod /lib/modules/fuse.ko 2>/dev/null; chmod 666 /dev/fuse 2>/dev/null; true")
        made.open_device()
        yield made
