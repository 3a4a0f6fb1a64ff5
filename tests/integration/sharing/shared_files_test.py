#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Registered memory that shows a file (/dev/shm, a memfd): with --client-memory the kernels of several devices of one program reach the
same bytes as the program and everybody else who maps the file. Needs PYTHONPATH=tools/lib."""
import ctypes
import mmap
import os
import subprocess
import sys
import tempfile

DEVICEMAP, INVALID_VALUE = 2, 1
BYTES = 3 * 4096 + 4  # of its last page the file has a part only
NUMBERS = 1000
PTX = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 to, .param .u32 by){
.reg .b32 %r<4>; .reg .b64 %rd<4>;
ld.param.u64 %rd1,[to]; ld.param.u32 %r1,[by];
mov.u32 %r2,%tid.x; mul.wide.u32 %rd2,%r2,4; add.u64 %rd3,%rd1,%rd2;
ld.global.u32 %r3,[%rd3]; add.u32 %r3,%r3,%r1; st.global.u32 [%rd3],%r3; ret;
}
.visible .entry wait(.param .u64 word, .param .u32 value){
.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>;
ld.param.u64 %rd1,[word]; ld.param.u32 %r1,[value];
L: ld.volatile.global.u32 %r2,[%rd1]; setp.ne.u32 %p1,%r2,%r1; @%p1 bra L;
add.u32 %r2,%r2,1; st.volatile.global.u32 [%rd1],%r2; ret;
}
\0"""


# ---- the program ----

class Device:
    """One device with the kernels; calls that fail raise."""

    def __init__(self, cuda, ordinal):
        self.cuda, self.context, module = cuda, ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuCtxCreate_v2", ctypes.byref(self.context), 0, ordinal)
        self.call("cuModuleLoadData", ctypes.byref(module), PTX)
        self.kernels = {}
        for name in (b"add", b"wait"):
            self.kernels[name] = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(self.kernels[name]), module, name)

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        assert status == 0, f"{name}: {status}"

    def current(self):
        self.call("cuCtxSetCurrent", self.context)

    def register(self, memory):
        """Where kernels have it; else what the driver answers."""
        self.current()
        self.call("cuMemHostRegister_v2", ctypes.c_void_p(memory), ctypes.c_size_t(BYTES), DEVICEMAP)
        there = ctypes.c_uint64()
        status = self.cuda.cuMemHostGetDevicePointer_v2(ctypes.byref(there), ctypes.c_void_p(memory), 0)
        return there.value if status == 0 else -status

    def forget(self, memory):
        self.current()
        self.call("cuMemHostUnregister", ctypes.c_void_p(memory))

    def launch(self, kernel, address, value, threads):
        self.current()
        address, value = ctypes.c_uint64(address), ctypes.c_uint32(value)
        parameters = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in (address, value)))
        self.call("cuLaunchKernel", self.kernels[kernel], 1, 1, 1, threads, 1, 1, 0, None, parameters, None)

    def wait(self):
        self.current()
        self.call("cuCtxSynchronize")


def mapped(fd, protection=mmap.PROT_READ | mmap.PROT_WRITE):
    """(address, numbers there) of a mapping of its own."""
    memory = mmap.mmap(fd, BYTES, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    MAPPINGS.append(memory)
    numbers = (ctypes.c_uint32 * (BYTES // 4)).from_buffer(memory)
    address = ctypes.addressof(numbers)
    if protection != mmap.PROT_READ | mmap.PROT_WRITE:
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), ctypes.c_size_t(BYTES), protection) == 0
    return address, numbers


MAPPINGS = []


def is_one_memory(devices, name):
    """As NCCL has it: a file with a name, mapped for each device, whose name and descriptors are gone when the last one registers it."""
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.ftruncate(fd, BYTES)
    places = [mapped(fd) for _ in devices]
    os.close(fd)
    there = [devices[0].register(places[0][0])]
    os.unlink(name)
    there += [device.register(place) for device, (place, _) in zip(devices[1:], places[1:])]
    assert min(there) > 0 and len(set(there)) == len(there), there
    for device, address in zip(devices, there):
        device.launch(b"add", address, 10, NUMBERS)
        device.wait()
    for _, numbers in places:
        assert list(numbers[:NUMBERS]) == [10 * len(devices)] * NUMBERS, list(numbers[:9])
    for _, numbers in places:
        numbers[0] += 1
    assert places[0][1][0] == 10 * len(devices) + len(places), "the host's bytes are the same, too"
    # The last word of the file, and words to and fro between kernels that run.
    last = BYTES - 4
    for number, device in enumerate(devices):
        device.launch(b"wait", there[number] + last, 500 + number, 1)
    places[0][1][last // 4] = 500
    for device in devices:
        device.wait()
    assert places[-1][1][last // 4] == 500 + len(devices), places[-1][1][last // 4]
    copy = ctypes.c_uint32()
    devices[0].current()
    devices[0].call("cuMemcpyDtoH_v2", ctypes.byref(copy), ctypes.c_uint64(there[0] + last), ctypes.c_size_t(4))
    assert copy.value == 500 + len(devices), "copies know the address"
    for device, (place, numbers) in zip(devices, places):
        device.forget(place)
        numbers[3] = 77  # it is the program's
    assert places[0][1][3] == 77


def is_found_by_its_descriptor(devices):
    fd = os.memfd_create("mine", os.MFD_CLOEXEC)
    os.ftruncate(fd, BYTES)
    place, numbers = mapped(fd)
    there = devices[-1].register(place)
    assert there > 0, there
    devices[-1].launch(b"add", there, 3, NUMBERS)
    devices[-1].wait()
    assert numbers[NUMBERS - 1] == 3 and os.pread(fd, 4, 0) == b"\3\0\0\0"
    devices[-1].forget(place)
    os.close(fd)


def is_refused(devices, directory):
    """What is no memory, and what the program itself may not write. It stays what it is."""
    with tempfile.TemporaryFile(dir=directory) as file:
        file.truncate(BYTES)
        place, numbers = mapped(file.fileno())
        numbers[5] = 9
        assert devices[0].register(place) == -INVALID_VALUE and numbers[5] == 9
        devices[0].forget(place)
    fd = os.memfd_create("read", os.MFD_CLOEXEC)
    os.ftruncate(fd, BYTES)
    place, _ = mapped(fd, mmap.PROT_READ)
    assert devices[0].register(place) == -INVALID_VALUE
    devices[0].forget(place)
    os.close(fd)


def program(allowed):
    cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value == 2, count
    devices = [Device(cuda, ordinal) for ordinal in range(count.value)]
    if allowed:
        name = f"/dev/shm/vgpu-test-{os.getpid()}"
        is_one_memory(devices, name)
        is_one_memory(devices[:1], name)
        is_found_by_its_descriptor(devices)
        is_refused(devices, "/var/tmp")
    else:
        fd = os.memfd_create("mine", os.MFD_CLOEXEC)
        os.ftruncate(fd, BYTES)
        assert devices[0].register(mapped(fd)[0]) == -INVALID_VALUE
    print("PASS")


# ---- the test ----

def main():
    from vgpuguest import daemon, direct, paths
    for arguments in (["--client-memory"], []):
        with daemon.private_daemon([("a", {"vram": "64MiB"}), ("b", {"vram": "64MiB"})], arguments) as vgpud:
            sockets = ",".join(vgpud.show(name)["channel_socket"] for name in ("a", "b"))
            done = subprocess.run([*direct.python(), __file__, "--program", *arguments], capture_output=True, text=True, timeout=100,
                                  env={**os.environ, "VGPU_CHANNEL": sockets, "LD_LIBRARY_PATH": str(paths.SHIM_DIR)})
            assert done.returncode == 0 and done.stdout == "PASS\n", (arguments, done)
    print("shared files: done")


if sys.argv[1:2] == ["--program"]:
    program("--client-memory" in sys.argv)
else:
    main()
