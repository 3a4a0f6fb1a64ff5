# SPDX-License-Identifier: Apache-2.0
"""A QEMU guest on a VF: boots, runs programs, ends. A guest leaves its sockets in RUNTIME_DIR/guests/VF, where other
processes find it."""
import contextlib
import dataclasses
import fcntl
import json
import os
import sys
import time

from . import process
from .accel import accel_arguments
from .channel import Channel
from .paths import KERNEL_SUITES, QEMU, ToolError, kernel_dir, need
from .payload import Payload

COMMAND_PORTS = 8  # commands at the same time in one guest
_BOOT_SECONDS = 90.0
_ANSWER_SECONDS = 20.0  # of a port
# no_timer_check: on a busy host an emulated timer can be too late for the kernel, which then gives up.
_KERNEL_ARGUMENTS = "console=ttyS0 panic=-1 mitigations=off no_timer_check"
_PROGRAM_UID = 1000  # programs need no root in the guest
_BASE_ENVIRONMENT = {"PATH": "/bin:/sbin:/usr/bin", "HOME": "/tmp", "USER": "cuda"}
_FORWARDED = ("CUDA_", "VGPU_")  # prefixes of the host's variables that programs see


# A machine that can never have a second processor is emulated without atomic instructions: those of a program on memory
# that kernels use at the same time would be lost (QEMU, accel/tcg: CF_PARALLEL).
_LEAST_CPUS = 2


@dataclasses.dataclass(frozen=True)
class Machine:
    """What a guest's machine has beyond that of tools/run-in-guest."""
    cpus: int = 1
    kernel_arguments: str = "quiet"
    initrd: str = ""  # instead of the image of the suite
    devices: tuple = ()  # QEMU arguments before the VF's device
    vf_device: dict = dataclasses.field(default_factory=dict)  # further or other properties of the VF's device
    options: tuple = ()  # further QEMU arguments


class Guest:
    """A running guest. Methods may be called from several threads, one command port each."""

    def __init__(self, directory):
        self.directory = directory
        self.console = os.path.join(directory, "console.log")

    @contextlib.contextmanager
    def channel(self, timeout=_BOOT_SECONDS):
        """A free command port. Its command is ended when the context is left. A port whose last command can't be ended, as
        the guest's kernel waits for something, does not answer: then it is the next one."""
        deadline = time.monotonic() + timeout
        silent = set()
        while True:
            with self._reserved_port(silent) as (port, path):
                try:
                    channel = Channel(path, min(_ANSWER_SECONDS, max(deadline - time.monotonic(), 0)))
                except TimeoutError:
                    if time.monotonic() >= deadline or len(silent) == COMMAND_PORTS - 1:
                        raise TimeoutError(f"the guest does not answer on its command ports {sorted({*silent, port})}") from None
                    silent.add(port)
                    continue
                if silent:
                    print(f"# the guest does not answer on its command ports {sorted(silent)}", file=sys.stderr, flush=True)
                with contextlib.closing(channel):
                    yield channel
                return

    def shell(self, command, timeout=60, uid=0):
        """(exit code, output) of a shell command in the guest."""
        output = bytearray()
        with self.channel() as channel:
            code = channel.run(["/bin/sh", "-c", command], _BASE_ENVIRONMENT, lambda _, data: output.extend(data), uid,
                               timeout)
        return code, output.decode(errors="replace")

    def run(self, argv, on_output, timeout=None, environment=None, uid=_PROGRAM_UID, on_channel=lambda channel: None):
        """Copies the host program argv[0] in, runs it, returns its exit code. on_channel gets the channel, to abort it."""
        payload = Payload(argv[0])
        with self.channel() as channel:
            on_channel(channel)
            if not channel.has_device:
                raise ToolError(f"the guest has no /dev/vgpu0; its console says\n{process.tail(self.console)}")
            program, needed = payload.send(channel)
            forwarded = {k: v for k, v in os.environ.items() if k.startswith(_FORWARDED) and k != "VGPU_CHANNEL"}
            return channel.run([program, *argv[1:]], {**_BASE_ENVIRONMENT, **forwarded, **(environment or {}), **needed},
                               on_output, uid, timeout)

    @contextlib.contextmanager
    def _reserved_port(self, but):
        """A port, and its socket, that no other process uses, until the context is left; none of the ports `but`."""
        for port in sorted(set(range(COMMAND_PORTS)) - but):
            path = os.path.join(self.directory, f"cmd{port}")
            with open(path + ".lock", "a+") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                if lock.seek(0) == 0 and lock.read():
                    time.sleep(0.2)  # its last user was killed: the agent needs a moment to notice
                lock.truncate(0)
                lock.write("in use")
                lock.flush()
                yield port, path
                lock.truncate(0)
                return
        raise ToolError(f"the guest runs {COMMAND_PORTS} commands already, that is the limit")


class OwnGuest(Guest):
    """A guest that this process booted."""

    def __init__(self, directory, qemu):
        super().__init__(directory)
        self.qemu = qemu

    def wait_until_up(self, timeout=_BOOT_SECONDS):
        """Returns when the guest answers; an error shows its console."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.qemu.poll() is not None:
                break
            with contextlib.suppress(ToolError, TimeoutError):
                with self.channel(timeout=1.0) as channel:
                    if not channel.has_device:
                        raise RuntimeError
                    return
        why = "QEMU ended" if self.qemu.poll() is not None else f"no answer within {timeout:.0f} s"
        raise ToolError(f"the guest did not start ({why})\n{process.tail(os.path.join(self.directory, 'qemu.log'))}"
                        f"{process.tail(self.console)}")


def start_guest(vf, runtime_dir, memory_mib=512, suite=KERNEL_SUITES[0], machine=Machine()):
    """Starts QEMU on the VF (as vgpuctl shows it) and returns at once; wait_until_up() waits for the guest."""
    directory = os.path.join(runtime_dir, "guests", vf["name"])
    os.makedirs(directory, mode=0o700, exist_ok=True)
    if len(directory) > 95:
        raise ToolError(f"the runtime directory's path is too long for Unix sockets: {runtime_dir}")
    for port in range(COMMAND_PORTS):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, f"cmd{port}"))
    qemu = process.spawn(_qemu_command(vf, directory, memory_mib, suite, machine), os.path.join(directory, "qemu.log"))
    return OwnGuest(directory, qemu)


def _qemu_command(vf, directory, memory_mib, suite, machine):
    kernel = need(kernel_dir(suite) / "vmlinuz", "the guest kernel")
    initrd = machine.initrd or need(kernel_dir(suite) / "initrd.img", "the guest image")
    device = {"driver": "vfio-user-pci", "id": "vf", "bus": "pcie.0", "addr": "0x10",
              "socket": {"type": "unix", "path": vf["vfio_user_socket"]}, **machine.vf_device}
    command = [need(QEMU, "QEMU"), "-name", vf["name"], "-machine", "q35", *accel_arguments(),
               "-smp", f"{machine.cpus},maxcpus={max(machine.cpus, _LEAST_CPUS)}", "-m", str(memory_mib), "-nodefaults", "-display", "none", "-no-reboot",
               "-object", f"memory-backend-memfd,id=ram,size={memory_mib}M,share=on", "-machine", "memory-backend=ram",
               *machine.devices, "-device", json.dumps(device), "-kernel", kernel, "-initrd", initrd,
               "-append", f"{_KERNEL_ARGUMENTS} {machine.kernel_arguments}", *machine.options,
               "-serial", f"file:{os.path.join(directory, 'console.log')}", "-device", "virtio-serial-pci"]
    for port in range(COMMAND_PORTS):
        path = os.path.join(directory, f"cmd{port}")
        command += ["-chardev", f"socket,id=c{port},path={path},server=on,wait=off",
                    "-device", f"virtserialport,chardev=c{port},name=vgpu.cmd.{port}"]
    return command


@contextlib.contextmanager
def own_guest(vf, runtime_dir, boot_seconds=_BOOT_SECONDS, **options):
    """A guest for the time of the context."""
    guest = start_guest(vf, runtime_dir, **options)
    try:
        guest.wait_until_up(boot_seconds)
        yield guest
    finally:
        process.stop(guest.qemu)


@contextlib.contextmanager
def guest_for(vf, runtime_dir, **options):
    """The guest that runs on the VF already, else a new one for the time of the context. Whoever booted a guest keeps it
    until the programs that others run in it have ended."""
    directory = os.path.join(runtime_dir, "guests", vf["name"])
    os.makedirs(directory, mode=0o700, exist_ok=True)
    with contextlib.ExitStack() as stack:
        owner = stack.enter_context(open(os.path.join(directory, "owner"), "a"))
        users = stack.enter_context(open(os.path.join(directory, "users"), "a"))
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield Guest(directory)
            return
        with own_guest(vf, runtime_dir, **options) as guest:
            yield guest
            fcntl.flock(users, fcntl.LOCK_UN)
            fcntl.flock(users, fcntl.LOCK_EX)
