#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""NCCL: two processes that compute together. NCCL takes them for two hosts, since it refuses two processes on one GPU, so
what they exchange goes through the network's local interface."""
import contextlib
import ctypes
import functools
import os
import subprocess
import sys
import tempfile
import time

import checks
import numpy as np
from checks import Skip, add
from nvidia import Array, Library, Out, near

RANKS, COUNT, SECONDS = 2, 5000, 270
FLOAT32, FLOAT64, INT32 = 7, 8, 2
SUM, PRODUCT, MAXIMUM, MINIMUM, AVERAGE = range(5)


class Identity(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def data_of(rank, kind):
    return (np.random.default_rng(rank).integers(-50, 50, COUNT)).astype(kind)


def all_reduce(nccl, communicator, rank):
    both = [data_of(each, np.float32) for each in range(RANKS)]
    for operation, expected in ((SUM, both[0] + both[1]), (PRODUCT, both[0] * both[1]), (MAXIMUM, np.maximum(*both)),
                                (MINIMUM, np.minimum(*both)), (AVERAGE, (both[0] + both[1]) / 2)):
        out = Array(np.zeros(COUNT, np.float32))
        nccl.ncclAllReduce(Array(both[rank]), out, ctypes.c_size_t(COUNT), FLOAT32, operation, communicator, None)
        near(out.get(), expected, 0)
    for kind, number in ((np.float64, FLOAT64), (np.int32, INT32)):
        out = Array(np.zeros(COUNT, kind))
        nccl.ncclAllReduce(Array(data_of(rank, kind)), out, ctypes.c_size_t(COUNT), number, SUM, communicator, None)
        near(out.get(), data_of(0, kind) + data_of(1, kind), 0)


def broadcast(nccl, communicator, rank):
    out = Array(np.zeros(COUNT, np.float32))
    nccl.ncclBroadcast(Array(data_of(rank, np.float32)), out, ctypes.c_size_t(COUNT), FLOAT32, 1, communicator, None)
    near(out.get(), data_of(1, np.float32), 0)


def all_gather(nccl, communicator, rank):
    out = Array(np.zeros(RANKS * COUNT, np.float32))
    nccl.ncclAllGather(Array(data_of(rank, np.float32)), out, ctypes.c_size_t(COUNT), FLOAT32, communicator, None)
    near(out.get(), np.concatenate([data_of(each, np.float32) for each in range(RANKS)]), 0)


def reduce_scatter(nccl, communicator, rank):
    part = COUNT // RANKS
    out = Array(np.zeros(part, np.float32))
    nccl.ncclReduceScatter(Array(data_of(rank, np.float32)), out, ctypes.c_size_t(part), FLOAT32, SUM, communicator, None)
    near(out.get(), (data_of(0, np.float32) + data_of(1, np.float32))[rank * part:(rank + 1) * part], 0)


PARTS = {"nccl_all_reduce": all_reduce, "nccl_broadcast": broadcast, "nccl_all_gather": all_gather, "nccl_reduce_scatter": reduce_scatter}


def member(rank, identity):
    """One of the two processes: one part after the other, with one communicator, as it takes long to make."""
    nccl, communicator = Library("libnccl.so.2"), Out()
    nccl.ncclCommInitRank(communicator, RANKS, Identity.from_buffer_copy(bytes.fromhex(identity)), rank)
    there = ctypes.c_void_p(communicator.value)
    for name, part in PARTS.items():
        part(nccl, there, rank)
        print(f"DONE {name}", flush=True)
    nccl.ncclCommDestroy(there)
    print("DONE all", flush=True)
    return 0


@functools.cache
def said_by_both():
    """What each process has said until it ended, or was ended."""
    # The process that makes the identity has to stay: the others meet at an address of its.
    identity = Identity()
    os.environ.update(NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1", NCCL_NVLS_ENABLE="0", NCCL_DEBUG="WARN")
    Library("libnccl.so.2").ncclGetUniqueId(ctypes.byref(identity))
    words = bytes(identity).hex()
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(RANKS)]
        started = [subprocess.Popen([sys.executable, __file__, "--member", str(rank), words], stdout=file, stderr=subprocess.STDOUT,
                                    env=dict(os.environ, NCCL_HOSTID=f"host-{rank}")) for rank, file in enumerate(files)]
        deadline = time.monotonic() + SECONDS
        for process in started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0))
        for process in started:
            process.kill()
            process.wait()
        for file in files:
            file.seek(0)
        return [file.read() for file in files]


def why(text):
    """What a process said of its end: what libcuda.so.1 can't do (images that it can't load are no reason, there are others), NCCL's
    lines, else its last words."""
    said = [line for line in text.splitlines() if "NCCL WARN" in line or (line.startswith("vgpud: ") and "no PTX for" not in line)]
    return " | ".join(dict.fromkeys(said))[-600:] or text[-300:]


def shared_of_a_block():
    """Bytes that a kernel can ask for (CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)."""
    cuda, value = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetAttribute(ctypes.byref(value), 97, 0) == 0
    return value.value


def together(name):
    both = said_by_both()
    # It sets the shared memory of its kernels there.
    if all("enqueue.cc:45" in text and "'invalid argument'" in text for text in both):
        raise Skip(f"NCCL's kernels ask for more shared memory than the {shared_of_a_block()} bytes that a block of this device can have; "
                   "--capability 10.0 has as much")
    if any("libnvidia-ml.so.1" in text for text in both):
        raise Skip("NCCL wants libnvidia-ml.so.1")
    for rank, text in enumerate(both):
        assert f"DONE {name}\n" in text, f"process {rank} did not end within {SECONDS} s, or: {why(text)}"
        assert "DONE all\n" in text or name != list(PARTS)[-1], f"process {rank} does not leave: {why(text)}"
    return f"{RANKS} processes, {COUNT} numbers"


if sys.argv[1:2] == ["--member"]:
    raise SystemExit(member(int(sys.argv[2]), sys.argv[3]))
for _name in PARTS:
    add(_name, lambda name=_name: together(name))
raise SystemExit(checks.main())
