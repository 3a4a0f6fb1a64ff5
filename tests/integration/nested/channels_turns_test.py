#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns by channels: endless kernels that nothing else can stop are taken off the GPU by the driver's own controls at the end of each
slice, go on in their next turn, and two VFs share the GPU as they should. What a driver refuses, and what an executor does not tell,
costs that program and nobody else. The driver and its control device are made up (tests/unit/cuda/fake_driver.cc,
tests/unit/channels/rm_server.cc); the file, its copies and its ioctls are real ones, and whether the kernel beats says the device.

usage: channels_turns_test.py FAKE_DRIVER RM_SERVER
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import harness
from vgpuguest import daemon, direct, process
from vgpuguest.program import DirectProgram

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "restart"))
import bed  # noqa: E402

FAKE, SERVER = sys.argv[1:3]
DISABLE, SCHEDULE, PREEMPT = "2080110b", "a06c0101", "a06c0105"
SLICE = "20ms"
PREEMPT_TIMEOUT_US = 2_000_000
LOOKS_FOR_S = 4

# Beats for ever in memory that this program sees, too, and says every 100 ms how far it is and how long it stood still at most.
PROGRAM = """
import ctypes, time
cuda, context, module, kernel = ctypes.CDLL("libcuda.so.1"), *(ctypes.c_void_p() for _ in range(3))
host, mapped = ctypes.c_void_p(), ctypes.c_uint64()
def need(status, what):
    if status: raise SystemExit(f"{what}: {status}")
need(cuda.cuInit(0), "cuInit")
need(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "retain")
cuda.cuCtxSetCurrent(context)
need(cuda.cuMemHostAlloc(ctypes.byref(host), 4096, 2), "cuMemHostAlloc")
need(cuda.cuMemHostGetDevicePointer_v2(ctypes.byref(mapped), host, 0), "cuMemHostGetDevicePointer")
ptx = b".version 7.0\\n.target sm_75\\n.address_size 64\\n.visible .entry beats(.param .u64 a, .param .u64 b)\\n{\\nagain:\\nbra again;\\n}\\n"
need(cuda.cuModuleLoadData(ctypes.byref(module), ptx), "cuModuleLoadData")
need(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"beats"), "cuModuleGetFunction")
zero = ctypes.c_uint64(0)
params = (ctypes.c_void_p * 2)(ctypes.addressof(mapped), ctypes.addressof(zero))
need(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, params, None), "cuLaunchKernel")
count = ctypes.c_uint64.from_address(host.value)
print("launched", flush=True)
last, since, still, stops, told = count.value, time.monotonic(), 0.0, 0, time.monotonic()
while True:
    now, beats = time.monotonic(), count.value
    if beats != last:
        gap = now - since
        still, stops = max(still, gap), stops + (gap > 0.01)
        last, since = beats, now
    if now - told > 0.1:
        print(f"beats {beats} {max(still, now - since):.4f} {stops}", flush=True)
        told, still = now, 0.0
    time.sleep(0.0005)
"""


@contextlib.contextmanager
def device(directory, *told):
    """The model of the control device, and a driver that has its channels there."""
    place = os.path.join(directory, "rm")
    os.makedirs(place, exist_ok=True)
    server = subprocess.Popen([SERVER, place, *told], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        # A driver answers in the caller's own time; the model must not wait behind all that runs on this host.
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, server.pid, -10)
        if server.stdout.readline() != "serves\n":
            harness.skip(f"the model of the device needs a file system of its own: {server.communicate()[1].strip()}")
        yield server
    finally:
        subprocess.run(["umount", "-l", place], stderr=subprocess.DEVNULL, check=False)
        server.kill()
        server.communicate()


def library(directory, words="rm=1"):
    path = os.path.join(directory, f"libcuda@{words}@.so")
    if not os.path.exists(path):
        shutil.copy(FAKE, path)
    return path


def arguments(path):
    return ["--gpu", "cuda", "--cuda-library", path, "--cuda-rung", "gate", "--client-memory",
            "--preempt-timeout-us", str(PREEMPT_TIMEOUT_US)]


def serving(path):
    return daemon.private_daemon([(name, {"vram": "64MiB", "slice": SLICE}) for name in "ab"], arguments(path))


def beating(vgpud, vf):
    program = DirectProgram(vgpud.show(vf), [*direct.python(), "-c", PROGRAM])
    program.wait_for_line("launched", 60)
    return program


def beats(program):
    """The last that it has said: beats, longest time without, times that it stood still."""
    line = [text for _, text in program.lines if text.startswith("beats ")][-1].split()
    return int(line[1]), float(line[2]), int(line[3])


def figures(vgpud):
    return {vf["name"]: vf for vf in vgpud.ctl("stats")["vfs"]}


def in_log(vgpud, *words):
    with open(vgpud.log, encoding="utf-8") as log:
        return any(all(word in line for word in words) for line in log)


def check_sharing(directory, told, name):
    with device(directory, *told), serving(library(directory)) as vgpud:
        gpu = vgpud.ctl("gpu")["device"]
        harness.check(gpu["taken_away_by"] == "gate+channels", f"{name}: channels are used: {gpu}")
        programs = {vf: beating(vgpud, vf) for vf in "ab"}
        for program in programs.values():
            program.wait_for_line("beats ", 60, count=3)
        before, said = figures(vgpud), {vf: beats(program) for vf, program in programs.items()}
        begun = time.monotonic()
        for program in programs.values():
            program.wait_for_line("beats ", 60, count=len([1 for _, text in program.lines if text.startswith("beats ")]) + 10 * LOOKS_FOR_S)
        after, now = figures(vgpud), {vf: beats(program) for vf, program in programs.items()}
        took_s = time.monotonic() - begun
        got = {vf: after[vf]["received_ns"] - before[vf]["received_ns"] for vf in "ab"}
        share = 100 * got["a"] / sum(got.values())
        offs = {vf: after[vf]["channels_off"] - before[vf]["channels_off"] for vf in "ab"}
        overrun = {vf: after[vf]["channels_off_took_p50_us"] for vf in "ab"}
        print(f"{name}: {took_s:.1f} s, share of a {share:.2f} %, switched off {offs}, half of them within {overrun} us, "
              f"beats {({vf: now[vf][0] - said[vf][0] for vf in 'ab'})}, stood still {({vf: now[vf][2] - said[vf][2] for vf in 'ab'})} times")
        harness.check(abs(share - 50) <= 2, f"{name}: each has half: {share:.2f} %")
        for vf in "ab":
            harness.check(offs[vf] > 10, f"{name}: {vf} is switched off turn after turn: {offs}")
            harness.check(now[vf][0] > said[vf][0], f"{name}: {vf} goes on in its turns: {said} {now}")
            harness.check(now[vf][2] - said[vf][2] > 10, f"{name}: {vf} stands still in turns of the other: {said} {now}")
            harness.check(after[vf]["hangs"] == 0 and programs[vf].code is None, f"{name}: nobody is killed")
        programs["a"].stop()
        harness.wait_until(lambda: vgpud.show("a")["executors"] == 0, f"{name}: nothing is left of a program that ends while it is off")
        vgpud.pause(["b"])
        stands = beats(programs["b"])[0]
        count = len(programs["b"].lines)
        programs["b"].wait_for_line("beats ", 60, count=count + 3)
        standing = beats(programs["b"])[0]
        programs["b"].wait_for_line("beats ", 60, count=count + 6)
        harness.check(beats(programs["b"])[0] == standing, f"{name}: a paused VF stands still: {stands} {standing} {beats(programs['b'])}")
        vgpud.pause(["b"], False)
        harness.wait_until(lambda: beats(programs["b"])[0] > standing, f"{name}: and goes on afterwards")
        vgpud.destroy("b")
        harness.wait_until(lambda: vgpud.names() == ["a"] and bed.of_vfs("b") == [], f"{name}: nothing is left of a VF that is destroyed")
        programs["b"].stop()


def check_hidden(directory):
    """An executor that makes its channels where nobody sees it, and does not leave: it is killed, and its neighbour goes on."""
    link = os.path.join(directory, "libcuda.so.1")
    os.symlink(library(directory), link)
    with device(directory), serving(link) as vgpud:
        honest = beating(vgpud, "b")
        # What executors load from now on makes its channels behind our ioctl's back.
        os.symlink(library(directory, "rm=1@hidden=1"), link + ".new")
        os.replace(link + ".new", link)
        liar = beating(vgpud, "a")
        harness.wait_until(lambda: in_log(vgpud, "vf=a", "did not leave the GPU", "killed"), "hidden: it is killed")
        harness.check(in_log(vgpud, "vf=a", "not switched off", "not seen making any"), "hidden: the log says that nothing of it is known")
        liar.stop()
        count = beats(honest)[0]
        harness.wait_until(lambda: beats(honest)[0] > count, "hidden: its neighbour goes on")
        harness.check(figures(vgpud)["b"]["hangs"] == 0 and honest.code is None, "hidden: and is not killed")
        honest.stop()


def check_refused_later(directory):
    """The driver does it at start and not any more: who does not leave is killed as without channels, and the log has the driver's words."""
    # The trial takes three of its calls off and on; the fourth off is a guest's.
    for told, words in ((["no-disable", f"refuse={PREEMPT}:65:3"], "TIMEOUT (0x65)"), ([f"refuse={DISABLE}:f:6"], "GPU_IS_LOST (0xf)")):
        with device(directory, *told), serving(library(directory)) as vgpud:
            programs = [beating(vgpud, vf) for vf in "ab"]
            harness.wait_until(lambda: in_log(vgpud, "did not leave the GPU", "killed"), f"refused: who does not leave is killed: {told}")
            harness.check(in_log(vgpud, "can't be switched", words), f"refused: in words: {told}")
            for program in programs:
                program.stop()
            harness.check(vgpud.process.poll() is None and set(vgpud.names()) == {"a", "b"}, "refused: vgpud lives and answers")


def check_restart(directory):
    """What one vgpud has switched off the next one lets on."""
    with device(directory), bed.supervised(arguments(library(directory))) as vgpud:
        for vf in "ab":
            vgpud.create_kept(vf, vram="64MiB", slice=SLICE)
        programs = {vf: beating(vgpud, vf) for vf in "ab"}
        for program in programs.values():
            program.wait_for_line("beats ", 60, count=3)
        for signum in (signal.SIGKILL, signal.SIGUSR1):
            vgpud.kill(signum)
            vgpud.start()
            said = {vf: beats(program)[0] for vf, program in programs.items()}
            for vf, program in programs.items():
                harness.wait_until(lambda: beats(program)[0] > said[vf] + 100, f"restart: {vf} goes on after signal {signum}\n{program.text()}\n{vgpud.text()}")
            harness.wait_until(lambda: all(row["channels_off"] > 0 for row in figures(vgpud).values()), "restart: and is switched off again")
        harness.check(all(program.code is None for program in programs.values()), "restart: nobody is killed")
        for program in programs.values():
            program.stop()
        harness.check(vgpud.kill(signal.SIGTERM) == 0, "restart: it stops")


def test():
    with process.scratch_dir("vgpu-") as directory:
        os.chmod(directory, 0o755)  # executors are users of their own
        check_sharing(directory, [], "disabling")
        check_sharing(directory, ["no-disable"], "unscheduling")
        check_restart(directory)
        check_refused_later(directory)
        check_hidden(directory)


harness.main(test, needs_guest=False)
