#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CUDA program that does what its stdin says, a line each, and answers with a line of JSON:

info         what cuMemGetInfo says: [free, total]
fill BYTES   takes so much device memory, fills it, looks at its ends and in between, and frees it
hold BYTES   takes so much device memory, fills it, and keeps it: until the next drop
drop         frees what it holds, having looked at it
pin BYTES    takes so much pinned memory, writes all of it, copies it to the device and back in pieces, and frees it

An answer that is a string says what was wrong.
"""
import ctypes
import json
import sys

PIECE = 1 << 20


class Failed(Exception):
    pass


class Program:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
        self.rounds = 0
        self.held = None

    def call(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        if result != 0:
            raise Failed(f"{name}: error {result}")

    def info(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return [free.value, total.value]

    def take(self, size):
        memory = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
        self.rounds += 1
        self.call("cuMemsetD32_v2", memory, self.rounds, ctypes.c_size_t(size // 4))
        return memory, size, self.rounds

    def give(self, taken):
        memory, size, value = taken
        word = ctypes.c_uint32()
        for at in {0, size // 3 & ~3, size // 2 & ~3, size - 4}:
            self.call("cuMemcpyDtoH_v2", ctypes.byref(word), ctypes.c_uint64(memory.value + at), ctypes.c_size_t(4))
            if word.value != value:
                raise Failed(f"byte {at} of {size} is {word.value}, not {value}")
        self.call("cuMemFree_v2", memory)

    def fill(self, size):
        self.give(self.take(size))
        return self.info()

    def hold(self, size):
        self.held = self.take(size)
        return self.info()

    def drop(self):
        held, self.held = self.held, None
        self.give(held)
        return self.info()

    def pin(self, size):
        pinned = ctypes.c_void_p()
        self.call("cuMemAllocHost_v2", ctypes.byref(pinned), ctypes.c_size_t(size))
        ctypes.memset(pinned, 7, size)
        memory = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(PIECE))
        for at in range(0, size - PIECE + 1, PIECE):
            place = ctypes.c_void_p(pinned.value + at)
            self.call("cuMemcpyHtoD_v2", memory, place, ctypes.c_size_t(PIECE))
            self.call("cuMemsetD8_v2", memory, 9, ctypes.c_size_t(1))
            self.call("cuMemcpyDtoH_v2", place, memory, ctypes.c_size_t(PIECE))
            if ctypes.string_at(place, 2) != b"\x09\x07":
                raise Failed(f"pinned byte {at} of {size} is wrong")
        self.call("cuMemFree_v2", memory)
        self.call("cuMemFreeHost", pinned)
        return self.info()


def main():
    program = Program()
    for line in sys.stdin:
        word, *numbers = line.split()
        try:
            answer = getattr(program, word)(*map(int, numbers))
        except Failed as failed:
            answer = f"{line.strip()}: {failed}"
        print(json.dumps(answer), flush=True)


main()
