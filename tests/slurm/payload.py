# SPDX-License-Identifier: Apache-2.0
"""What a job of the campaign does on one node, as its user, with nothing but what Slurm gave it: looks at the devices that libcuda shows it,
tries to open everybody else's VFs, runs a plain CUDA program on each device of its own, and writes down what it saw.

usage: payload.py RESULTS RUNTIME_DIR PROGRAM ARGUMENTS...
"""
import ctypes
import json
import os
import pathlib
import socket
import subprocess
import sys


def devices():
    """[(UUID, bytes of memory)] by the CUDA driver API."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        status = getattr(cuda, name)(*arguments)
        if status != 0:
            raise AssertionError(f"{name}: CUDA error {status}")

    call("cuInit", 0)
    count = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count))
    found = []
    for number in range(count.value):
        device, uuid, size = ctypes.c_int(), (ctypes.c_ubyte * 16)(), ctypes.c_size_t()
        call("cuDeviceGet", ctypes.byref(device), number)
        call("cuDeviceGetUuid", uuid, device)
        call("cuDeviceTotalMem_v2", ctypes.byref(size), device)
        found.append((bytes(uuid).hex(), size.value))
    return found


def opened_of_others(runtime_dir, own):
    """Sockets of other users' VFs that let us in."""
    opened = []
    for path in pathlib.Path(runtime_dir, "vf").glob("*.sock"):
        try:
            if str(path) in own or path.stat().st_uid == os.getuid():
                continue
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                opened.append(str(path))
        except (PermissionError, FileNotFoundError, ConnectionRefusedError):
            continue
    return opened


def main():
    results, runtime_dir, *program = sys.argv[1:]
    node = os.environ["SLURMD_NODENAME"]
    own = [path for name in ("VGPU_CHANNEL", "VGPU_VFIO_USER") for path in os.environ.get(name, "").split(",")]
    seen = {"job": int(os.environ["SLURM_JOB_ID"]), "node": node, "uid": os.getuid(), "restarts": int(os.environ.get("SLURM_RESTART_COUNT", 0)),
            "channels": os.environ.get("VGPU_CHANNEL", ""), "devices": devices(), "opened": opened_of_others(runtime_dir, own)}
    running = [subprocess.Popen(program, env=dict(os.environ, CUDA_VISIBLE_DEVICES=str(number)), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for number in range(len(seen["devices"]))]
    said = [child.communicate()[0] for child in running]
    seen["statuses"] = [child.returncode for child in running]
    seen["said"] = [text[-300:] for text, child in zip(said, running) if child.returncode != 0]
    path = os.path.join(results, f"{seen['job']}.{seen['restarts']}.{node}.json")
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(seen, file)
    os.rename(path + ".part", path)
    return 0 if set(seen["statuses"]) == {0} else 1


sys.exit(main())
