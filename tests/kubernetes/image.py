# SPDX-License-Identifier: Apache-2.0
"""A container image of what is on this machine, as `ctr images import` takes it: busybox, a program, and the libraries that it needs."""
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile

BUSYBOX = "/bin/busybox"
PROGRAM = "/usr/bin/program"


def libraries(program):
    """{path in the image: file here} of what the dynamic linker will look for."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return {path: os.path.realpath(path) for path in re.findall(r"(/\S+) \(0x", said)}


def _layer(program):
    files = {BUSYBOX: BUSYBOX, PROGRAM: str(program), **libraries(program)}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for directory in ("bin", "dev", "etc", "lib", "lib64", "lib/x86_64-linux-gnu", "proc", "run", "sys", "tmp", "usr", "usr/bin", "usr/lib",
                          "usr/lib/x86_64-linux-gnu", "usr/lib64"):
            info = tarfile.TarInfo(directory)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        for inside, here in sorted(files.items()):
            with open(here, "rb") as file:
                info = tarfile.TarInfo(inside.lstrip("/"))
                info.size, info.mode = os.fstat(file.fileno()).st_size, 0o755
                tar.addfile(info, file)
        for name in ("sh", "sleep"):
            info = tarfile.TarInfo(f"bin/{name}")
            info.type, info.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(info)
    return out.getvalue()


def write(path, name, program):
    """Writes the image `name` to the file `path`: without a command of its own it waits, which is all that a pod's sandbox does."""
    layer = _layer(program)
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
                         "config": {"Cmd": ["/bin/sleep", "2000000000"], "Env": ["PATH=/usr/bin:/bin"]}}).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as tar:
        for member, content in (("layer.tar", layer), (config_name, config), ("manifest.json", manifest)):
            info = tarfile.TarInfo(member)
            info.size, info.mode = len(content), 0o644
            tar.addfile(info, io.BytesIO(content))
