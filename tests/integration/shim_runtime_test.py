#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs built by nvcc start on our libcuda.so.1: shim_runtime_test.py FAKE_VF LIBCUDA_DIR PROGRAM.

The program is tests/cuda/vectoradd; its VF is fake_vf. Exit 77: skipped.
"""

import os
import subprocess
import sys
import tempfile


def run(program, libcuda, **extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "VGPU_"))}
    env.update(LD_LIBRARY_PATH=libcuda, **extra)
    done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def main():
    fake_vf, libcuda, program = sys.argv[1:4]
    if not os.path.exists(program):
        print("SKIP: no nvcc, so no", program)
        return 77
    failures = []

    def expect(name, got, code, *texts):
        ok = (got[0] == 0) == (code == 0) and all(t in got[1] for t in texts)
        print(("ok   " if ok else "FAIL ") + name)
        if not ok:
            failures.append(name)
            print("  exit", got[0], "output:", got[1])

    with tempfile.TemporaryDirectory() as directory:
        socket = os.path.join(directory, "vf.sock")
        vf = subprocess.Popen([fake_vf, socket], stdout=subprocess.PIPE)
        try:
            vf.stdout.readline()
            expect("plain", run(program, libcuda, VGPU_CHANNEL=socket), 0, "PASSED")
            expect("nothing unsupported is called",
                   (lambda r: (1 if "NOT_SUPPORTED" in r[1] else r[0], r[1]))(
                       run(program, libcuda, VGPU_CHANNEL=socket, VGPU_TRACE="1")), 0, "PASSED")
            expect("blocking launches", run(program, libcuda, VGPU_CHANNEL=socket, CUDA_LAUNCH_BLOCKING="1"), 0, "PASSED")
            expect("visible by uuid", run(program, libcuda, VGPU_CHANNEL=socket, CUDA_VISIBLE_DEVICES="GPU-a0a1"), 0,
                   "PASSED")
            expect("none visible", run(program, libcuda, VGPU_CHANNEL=socket, CUDA_VISIBLE_DEVICES="-1"), 1,
                   "cudaErrorNoDevice")
            expect("no such socket", run(program, libcuda, VGPU_CHANNEL=socket + "x"), 1, "cudaErrorNoDevice",
                   socket + "x: No such file or directory")
        finally:
            vf.kill()
            vf.wait()
    return 1 if failures else 0


sys.exit(main())
