#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real podman: a container gets a VF by name, with no change to its image, and sees that VF only. Exit 77: no podman
that can run containers here."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import harness
from harness import check
from vgpuguest import daemon, paths, process

IMAGE = "localhost/vgpu-test"
USER = 61001
# So that nothing of the machine's own podman is touched, and what it need not have is not needed: no network, no
# control groups, files copied instead of stacked.
GLOBAL = ("--storage-driver=vfs", "--cgroup-manager=cgroupfs", "--events-backend=none")
RUN = ("run", "--rm", "--network=none", "--cgroups=disabled", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1000:1000",
       "--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined")
# crun refuses hosts with control groups of both versions: it is shown those of version 2 alone.
ALONE = ("unshare", "--mount", "/bin/sh", "-c",
         'umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup; exec "$@"', "sh")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


class Podman:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        runtime = shutil.which("crun") or shutil.which("runc")
        self.command = [*ALONE, "podman", f"--root={directory}/storage", f"--runroot={directory}/run", f"--tmpdir={directory}/tmp",
                        f"--runtime={runtime}", *GLOBAL]

    def __call__(self, *arguments, timeout=120):
        """(exit status, stdout, stderr)"""
        done = subprocess.run([*self.command, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=timeout, env=dict(os.environ, TMPDIR=str(self.directory)))
        return done.returncode, done.stdout, done.stderr

    def run(self, command, *devices, user=0):
        words = [f"--user={user}", *(word for name in devices for word in ("--device", f"vgpud.dev/vf={name}"))]
        return self(*RUN, *words, IMAGE, "/bin/sh", "-c", command)


def program():
    """A CUDA program that needs nothing but the C and C++ libraries, and libcuda.so.1 from wherever it runs."""
    return str(paths.need(paths.LAUNCHER, "vgpu-launch"))


def image(directory):
    """A root with a shell and the program: the file system of a plain image, packed."""
    root = pathlib.Path(directory, "image")
    for name in ("bin", "lib64", "usr/lib/x86_64-linux-gnu", "tmp", "etc", "app"):
        (root / name).mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    for applet in ("sh", "ls", "cat", "env", "find", "test"):
        (root / "bin" / applet).symlink_to("busybox")
    shutil.copy(program(), root / "app/vgpu-launch")
    # What libcuda.so.1 needs is in every image with glibc: libc6 depends on libgcc-s1.
    listed = subprocess.run(["ldd", program(), paths.SHIM], check=True, capture_output=True, text=True).stdout
    for word in listed.split():
        if word.startswith("/") and not word.endswith(":"):
            target = root / ("lib64" if "ld-linux" in word else "usr/lib/x86_64-linux-gnu") / os.path.basename(word)
            shutil.copy(os.path.realpath(word), target)
    packed = f"{directory}/image.tar"
    subprocess.run(["tar", "-C", root, "-cf", packed, "."], check=True)
    return packed


@contextlib.contextmanager
def specification(vgpud, directory):
    """All VFs as CDI devices, where podman looks for them, for the time of the context."""
    os.makedirs("/run/cdi", exist_ok=True)
    path = f"/run/cdi/vgpud-test-{os.getpid()}.json"
    try:
        out = subprocess.run([str(paths.VGPUCTL), "--runtime-dir", vgpud.runtime_dir, "cdi", "--file", path, "--library",
                              str(paths.SHIM)], check=True, capture_output=True, text=True).stdout
        yield path, out.split()
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        with contextlib.suppress(OSError):
            os.rmdir("/run/cdi")


def main():
    if os.geteuid() != 0:
        skip("only root can run podman with a storage of its own here")
    for tool in ("podman", "busybox"):
        if shutil.which(tool) is None:
            skip(f"no {tool}")
    with tempfile.TemporaryDirectory(prefix="podman-", dir="/var/tmp") as directory:
        podman = Podman(directory)
        code, _, said = podman("import", image(directory), IMAGE)
        if code != 0:
            skip(f"podman cannot import an image here: {said.strip()[-300:]}")
        code, out, said = podman.run("echo works")
        if code != 0 or out.strip() != "works":
            skip(f"podman cannot run a container here: {said.strip()[-300:]}")
        with daemon.private_daemon([("in-box", {"vram": "128MiB"}), ("beside", {"vram": "128MiB"}),
                                    ("users", {"vram": "64MiB", "owner": str(USER)})]) as vgpud:
            with specification(vgpud, directory) as (path, devices):
                test(podman, vgpud, path, devices)


def test(podman, vgpud, path, devices):
    check(devices == ["vgpud.dev/vf=in-box", "vgpud.dev/vf=beside", "vgpud.dev/vf=users", "vgpud.dev/vf=all"], f"each VF is a device: {devices}")
    spec = json.loads(pathlib.Path(path).read_text())
    check(set(spec) == {"cdiVersion", "kind", "devices", "containerEdits"}, "as the specification has it")
    code, out, said = podman.run("/app/vgpu-launch vectoradd", "in-box")
    check(code == 0 and "PASS" in out, f"a plain CUDA program runs in a container: {code} {out} {said}")
    kernels = {name: vf["kernels"] for name, vf in vgpud.stats()[1].items()}
    check(kernels["in-box"] > 0 and kernels["beside"] == 0, f"on the VF that was named: {kernels}")
    code, out, said = podman.run("env; find / -xdev -name '*.sock' 2>/dev/null; ls /run/vgpud", "in-box")
    check("VGPU_CHANNEL=/run/vgpud\n" in out and "in-box.channel.sock" in out and "beside" not in out and "control" not in out,
          f"it sees that VF only: {out} {said}")
    code, out, said = podman.run("cat /etc/ld.so.cache; ls -l /usr/lib/x86_64-linux-gnu", "in-box")
    check(all(name in out for name in ("libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1")) and "/usr/lib/x86_64-linux-gnu/libcuda.so.1\0" in out,
          f"the dynamic linker's cache knows the libraries: {code} {said}")
    code, out, said = podman.run("ls /run/vgpud /usr/lib/x86_64-linux-gnu/libcuda.so.1")
    check(code != 0, f"without the device there is nothing in the container: {out}")
    code, _, said = podman.run("true", "nobody")
    check(code != 0 and "nobody" in said, f"a VF that there is not is refused: {said.strip()[-200:]}")
    code, out, said = podman.run("echo > /usr/lib/x86_64-linux-gnu/libcuda.so.1", "in-box")
    check(code != 0 and paths.SHIM.stat().st_size > 1000, "a container cannot write to the library")
    both = podman.run("ls /run/vgpud", "in-box", "beside")
    check(both[0] == 0 and both[1].split() == ["beside.channel.sock", "in-box.channel.sock"], f"who gets two has two: {both}")
    every = podman.run("ls /run/vgpud", "all")
    check(every[1].split() == [*both[1].split(), "users.channel.sock"], f"all is all of them: {every}")
    # An image's own user, who is not root, and who loses the variable on the way.
    for name, works in (("users", True), ("in-box", False)):
        code, out, said = podman.run("unset VGPU_CHANNEL; /app/vgpu-launch vectoradd", name, user=USER)
        check((code == 0 and "PASS" in out) == works, f"user {USER} of a container uses {name}: {works}: {code} {out} {said[-300:]}")
    for number, name in enumerate(("beside", "in-box")):
        before = vgpud.stats()[1][name]["kernels"]
        code, out, said = podman.run(f"CUDA_VISIBLE_DEVICES={number} /app/vgpu-launch vectoradd", "in-box", "beside")
        check(code == 0 and vgpud.stats()[1][name]["kernels"] > before, f"device {number} is {name}, in the order of names: {out} {said}")
    for name in ("in-box", "beside", "users"):
        vgpud.destroy(name)
    out = subprocess.run([str(paths.VGPUCTL), "--runtime-dir", vgpud.runtime_dir, "cdi", "--file", path, "--library",
                          str(paths.SHIM)], capture_output=True, text=True)
    check(out.returncode == 0 and not os.path.exists(path), f"no VF, no file: {out.stdout}")


main()
