#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""VFs on NVIDIA's own libcuda on a made-up kernel side: vgpud starts and knows the card, programs on two VFs copy and launch in their
executors' whole confinement, an endless kernel costs its program alone, and a lost card is told; the same with two cards. The trials of
kernels are answered by exec_in_front.cc.

usage: real_driver_vf_test.py
"""
import os
import shutil
import subprocess

import fetched
import harness
from made_up_kernel import BUILT, IN_FRONT, STEPS, made_up_kernel, own_mounts
from vgpuguest import daemon, paths, process
from vgpuguest.program import DirectProgram

WORK = ("init", "context", "copies", "streams", "events", "compile", "launch", "array", "free")
LAUNCHES = 101  # of the step "launch"
VFS, VRAM_MIB = ("a", "b"), 256
REAL = {"vgpud-exec": "gpu", "vgpud-vf": "vfio"}


def place(directory):
    """Programs of vgpud where users of VFs may read them, with exec-in-front in the place of vgpud-exec."""
    real = os.path.join(directory, "real")
    os.mkdir(real)
    for name, folder in REAL.items():
        shutil.copy2(paths.BUILD / folder / name, real)
    os.symlink(os.path.join(real, "vgpud-vf"), os.path.join(directory, "vgpud-vf"))
    shutil.copy2(BUILT / "exec-in-front", os.path.join(directory, "vgpud-exec"))
    shutil.copy2(IN_FRONT, directory)
    subprocess.run(["chmod", "-R", "a+rX", directory], check=True)
    os.environ.update(VGPUD_LIBEXEC=directory, REAL_VGPUD_EXEC=os.path.join(real, "vgpud-exec"),
                      VGPUD_TEST_IN_FRONT=os.path.join(directory, IN_FRONT.name))


def program(vgpud, name, *steps):
    return DirectProgram(vgpud.show(name), [str(STEPS), "libcuda.so.1", *steps])


def check_programs(version, kernel, vgpud):
    """Programs on two VFs at the same time, each within its quota."""
    programs = [program(vgpud, name, *WORK) for name in VFS]
    for each in programs:
        harness.check_passes(each)
        harness.check(all(f"{step} ok" in each.text() for step in WORK), f"{version}: {each.text()}")
        harness.check(f"of {VRAM_MIB} MiB" in each.text(), f"{version}: it has the memory of its VF")
    launched = int(kernel.order("kernels").split()[1])
    harness.check(launched >= 2 * LAUNCHES, f"{version}: {launched} launches arrived")


def check_endless(version, kernel, vgpud):
    """A kernel that does not end costs its own program, no other."""
    before = int(kernel.order("kernels").split()[1])
    kernel.order("hold")
    endless = program(vgpud, "a", "init", "context", "compile", "launch")
    other = program(vgpud, "b", "init", "context", "copies", "host", "free")
    harness.check(endless.wait(60) == 1 and "launch: cu" in endless.text(), f"{version}: an endless kernel costs its program: {endless.text()}")
    harness.check_passes(other)
    kernel.order("let-go")
    harness.check(int(kernel.order("kernels").split()[1]) == before, f"{version}: it never ended")
    harness.check_passes(program(vgpud, "a", "init", "context", "compile", "launch"))


def check_lost(version, kernel, vgpud):
    """A card that is lost: programs end with the driver's error, and vgpud goes on."""
    kernel.order("lose 0")
    for name in VFS:
        lost = program(vgpud, name, "init", "context", "copies")
        harness.check(lost.wait(60) == 1 and "CUDA_ERROR" in lost.text(), f"{version}: {name} is told: {lost.text()}")
    harness.check(sorted(vgpud.names()) == list(VFS), f"{version}: vgpud serves")


def check_version(version, directory):
    library = fetched.driver_of(version, directory)
    with made_up_kernel(version) as kernel, daemon.private_daemon((), ["--gpu", "cuda", "--cuda-library", library]) as vgpud:
        try:
            device = vgpud.ctl("gpu")["device"]
            harness.check((device["name"], device["address"]) == ("Tesla T4", "0000:65:00.0"), f"{version}: vgpud knows the card: {device}")
            for name in VFS:
                vgpud.create(name, vram=f"{VRAM_MIB}MiB")
            for check in (check_programs, check_endless, check_lost):
                check(version, kernel, vgpud)
        except BaseException:
            print(process.tail(vgpud.log, 60), kernel.log()[-3000:])
            raise


def check_two_cards(version, directory):
    """Each card is a GPU of vgpud's, with a VF on it; one that is lost takes nothing from the other."""
    library = os.path.join(directory, version, "libcuda.so.1")
    cards = {"left": "cuda:0000:65:00.0", "right": "cuda:0000:66:00.0"}
    arguments = [f"--with-gpu={name}.{key}={value}" for name, gpu in cards.items()
                 for key, value in (("gpu", gpu), ("cuda_library", library))]
    with made_up_kernel(version, cards=2) as kernel, daemon.private_daemon((), arguments) as vgpud:
        found = {name: vgpud.ctl("gpu", name)["device"]["address"] for name in cards}
        harness.check(found == {"left": "0000:65:00.0", "right": "0000:66:00.0"}, f"{version}: two cards: {found}")
        for name in cards:
            vgpud.create(f"vf-{name}", gpu=name, vram=f"{VRAM_MIB}MiB")
        programs = [program(vgpud, f"vf-{name}", "init", "context", "copies", "compile", "launch") for name in cards]
        for each in programs:
            harness.check_passes(each)
        kernel.order("lose 1")
        lost = program(vgpud, "vf-right", "init", "context", "copies")
        harness.check(lost.wait(60) == 1, f"{version}: the right one is lost: {lost.text()}")
        harness.check_passes(program(vgpud, "vf-left", "init", "context", "copies", "compile", "launch"))


def test():
    versions = [version for version in fetched.versions() if fetched.major(version) >= fetched.OLDEST]
    own_mounts()
    with process.scratch_dir("vgpu-") as directory:
        os.chmod(directory, 0o755)
        place(directory)
        for version in versions:
            check_version(version, directory)
            check_two_cards(version, directory)


harness.main(test, needs_guest=False)
