#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""NCCL: one process with several devices, each of which is a VF. What they exchange goes through memory that the process shares between
its devices (/dev/shm), as they are not each other's peers."""
import ctypes
import functools

import checks
import numpy as np
from checks import add
from nvidia import RUNTIME, Array, Library, Out

COUNT = 50000  # numbers: more than a slot of NCCL's has, for each channel
TYPES = {np.int32: 2, np.int64: 4, np.float32: 7, np.float64: 8}  # ncclDataType_t
SUM, PRODUCT, MAXIMUM, MINIMUM, AVERAGE = range(5)


def count_of_devices():
    count = Out(ctypes.c_int)
    RUNTIME.cudaGetDeviceCount(count)
    return count.value


RANKS = count_of_devices()


@functools.cache
def communicators():
    """(NCCL, one communicator for each device)"""
    nccl = Library("libnccl.so.2")
    handles, devices = (ctypes.c_void_p * RANKS)(), (ctypes.c_int * RANKS)(*range(RANKS))
    nccl.ncclCommInitAll(handles, RANKS, devices)
    return nccl, [ctypes.c_void_p(handle) for handle in handles]


def on_each(make):
    """What `make(rank)` gives with each device as the current one."""
    made = []
    for rank in range(RANKS):
        RUNTIME.cudaSetDevice(rank)
        made.append(make(rank))
    return made


def data_of(rank, kind, count=COUNT):
    """Small whole numbers: no order of adding them rounds."""
    return np.random.default_rng(rank).integers(-50, 50, count).astype(kind)


def together(call, given, sizes, kind):
    """Calls call(nccl, rank, communicator, from, to) for all devices as one operation; what each then has, of `sizes[rank]` numbers."""
    nccl, handles = communicators()
    sources = on_each(lambda rank: Array(given[rank]))
    results = on_each(lambda rank: Array(np.full(sizes[rank], 77, kind)))
    nccl.ncclGroupStart()
    on_each(lambda rank: call(nccl, rank, handles[rank], sources[rank], results[rank]))
    nccl.ncclGroupEnd()
    seen = on_each(lambda rank: results[rank].get())
    on_each(lambda rank: (sources.__setitem__(rank, None), results.__setitem__(rank, None)))
    return seen


def same(seen, expected):
    for rank, (one, other) in enumerate(zip(seen, expected, strict=True)):
        assert np.array_equal(one, other), f"device {rank}: {np.count_nonzero(one != other)} of {other.size} numbers are wrong: {one[:4]}, not {other[:4]}"


def size(count):
    return ctypes.c_size_t(count)


def all_reduce():
    for kind, number in TYPES.items():
        given = [data_of(rank, kind) for rank in range(RANKS)]
        whole = np.stack(given)
        for operation, expected in ((SUM, whole.sum(0)), (PRODUCT, whole.prod(0)), (MAXIMUM, whole.max(0)), (MINIMUM, whole.min(0)),
                                    (AVERAGE, whole.sum(0) / RANKS)):
            if operation == AVERAGE and np.issubdtype(kind, np.integer):
                continue
            seen = together(lambda nccl, _, handle, source, result, operation=operation, number=number: nccl.ncclAllReduce(
                source, result, size(COUNT), number, operation, handle, None), given, [COUNT] * RANKS, kind)
            same(seen, [expected.astype(kind)] * RANKS)
    return f"{RANKS} devices, {COUNT} numbers of {len(TYPES)} types, five operations"


def broadcast():
    for kind, number in TYPES.items():
        given = [data_of(rank, kind) for rank in range(RANKS)]
        for root in range(RANKS):
            seen = together(lambda nccl, _, handle, source, result, root=root, number=number: nccl.ncclBroadcast(
                source, result, size(COUNT), number, root, handle, None), given, [COUNT] * RANKS, kind)
            same(seen, [given[root]] * RANKS)
    return f"from each of {RANKS} devices"


def reduce():
    for kind, number in TYPES.items():
        given = [data_of(rank, kind) for rank in range(RANKS)]
        for root in range(RANKS):
            seen = together(lambda nccl, _, handle, source, result, root=root, number=number: nccl.ncclReduce(
                source, result, size(COUNT), number, SUM, root, handle, None), given, [COUNT] * RANKS, kind)
            same([seen[root]], [np.stack(given).sum(0).astype(kind)])
    return f"to each of {RANKS} devices"


def all_gather():
    for kind, number in TYPES.items():
        given = [data_of(rank, kind) for rank in range(RANKS)]
        seen = together(lambda nccl, _, handle, source, result, number=number: nccl.ncclAllGather(
            source, result, size(COUNT), number, handle, None), given, [RANKS * COUNT] * RANKS, kind)
        same(seen, [np.concatenate(given)] * RANKS)
    return f"{RANKS} times {COUNT} numbers"


def reduce_scatter():
    for kind, number in TYPES.items():
        given = [data_of(rank, kind, RANKS * COUNT) for rank in range(RANKS)]
        seen = together(lambda nccl, _, handle, source, result, number=number: nccl.ncclReduceScatter(
            source, result, size(COUNT), number, SUM, handle, None), given, [COUNT] * RANKS, kind)
        whole = np.stack(given).sum(0).astype(kind)
        same(seen, [whole[rank * COUNT:(rank + 1) * COUNT] for rank in range(RANKS)])
    return f"{COUNT} numbers for each"


def send_receive():
    """Around in a ring."""
    for kind, number in TYPES.items():
        given = [data_of(rank, kind) for rank in range(RANKS)]

        def both(nccl, rank, handle, source, result, number=number):
            nccl.ncclSend(source, size(COUNT), number, (rank + 1) % RANKS, handle, None)
            nccl.ncclRecv(result, size(COUNT), number, (rank - 1) % RANKS, handle, None)
        same(together(both, given, [COUNT] * RANKS, kind), [given[(rank - 1) % RANKS] for rank in range(RANKS)])
    return f"around {RANKS} devices"


for _part in (all_reduce, broadcast, reduce, all_gather, reduce_scatter, send_receive):
    add(f"nccl_devices_{_part.__name__}", _part)
raise SystemExit(checks.main())
