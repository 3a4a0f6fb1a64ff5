# SPDX-License-Identifier: Apache-2.0
"""nvml_hold.py MIB COMMAND...: has a CUDA context with so much memory while the command runs; exits as it does."""
import ctypes
import subprocess
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def must(code):
    if code != 0:
        sys.exit(f"CUDA error {code}")


context, address = ctypes.c_void_p(), ctypes.c_uint64()
must(cuda.cuInit(0))
must(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
must(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(int(sys.argv[1]) << 20)))
sys.exit(subprocess.run(sys.argv[2:]).returncode)
