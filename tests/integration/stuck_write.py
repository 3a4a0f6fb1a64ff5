# SPDX-License-Identifier: Apache-2.0
"""A write to a file that lasts as long as one likes: its source is memory that nobody has brought yet (userfaultfd(2)). The kernel
holds the file's lock meanwhile, so nobody else can write to the file or free a part of it."""
import ctypes
import fcntl
import mmap
import os
import struct
import threading

_SYS_USERFAULTFD = 323
_API, _REGISTER = 0xC018AA3F, 0xC020AA00
_MISSING = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


class StuckWrite:
    """PermissionError where the host gives no userfaultfd for faults in the kernel."""

    def __init__(self, fd):
        self._watch = _LIBC.syscall(_SYS_USERFAULTFD, os.O_CLOEXEC)
        if self._watch < 0:
            raise PermissionError(ctypes.get_errno(), "userfaultfd")
        fcntl.ioctl(self._watch, _API, struct.pack("QQQ", 0xAA, 0, 0))
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        fcntl.ioctl(self._watch, _REGISTER, struct.pack("QQQQ", start, mmap.PAGESIZE, _MISSING, 0))
        self._thread = threading.Thread(target=_LIBC.pwrite, args=(fd, ctypes.c_void_p(start), ctypes.c_size_t(1), ctypes.c_long(0)))
        self._thread.start()
        os.read(self._watch, 32)  # until the kernel asks for the memory, the lock in its hand

    def release(self):
        os.close(self._watch)
        self._thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()
