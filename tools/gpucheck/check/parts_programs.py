# SPDX-License-Identifier: Apache-2.0
"""Parts that run whole programs on the driver itself and on a VF: the project's CUDA tests, NVIDIA's libraries, PyTorch."""
import os
import sys

from . import driver, vgpud
from .driver import NotMeasured, built
from .part import MIB

# Of tests/cuda, with arguments for a short run; those with a second name run from PTX in the launcher.
PROGRAMS = {"vectoradd": [], "matmul": [], "reduction": [], "collatz": [], "stencil": [], "longblocks": [], "meter": ["--seconds", "1"],
            "transfers": ["8", "4", "2"], "texture": [], "managed": [], "shared": [], "streamvalues": [], "virtualmemory": [], "linked": [],
            "nested": [], "capabilities": [], "capability_90": [], "cluster": [], "lineinfo": []}
LAUNCHED = ("vectoradd", "matmul", "longblocks", "meter")
# Not run on the driver itself: more managed memory than the card has free can hang it for everybody (it asks for little, but a
# lent card is not ours); lineinfo faults on purpose, which ends the context.
NOT_NATIVE = {"managed": "managed memory is not used on the driver itself", "lineinfo": "it faults on purpose"}
INSIDE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "inside")


def commands():
    found = {name: [built("tests", "cuda", name), *arguments] for name, arguments in PROGRAMS.items() if os.path.exists(built("tests", "cuda", name))}
    launcher = built("tests", "cuda", "vgpu-launch")
    if os.path.exists(launcher):
        found.update({f"vgpu-launch {name}": [launcher, name, *PROGRAMS[name]] for name in LAUNCHED})
    return found


def became(command, environment, seconds, native):
    """("passed", text): what became of a program."""
    program = driver.Program(command, environment)
    code = program.wait(seconds)
    driver_errors = driver.rows(program, "ERROR")
    if native and any(int(error.get("code", 0)) in driver.STICKY for error in driver_errors):
        driver.check(program, code, native=True)
    if code is None:
        return "not in time", program.text(4)
    if code == 0:
        return ("skipped" if "SKIPPED" in program.text() else "passed"), program.text(4)
    return f"failed ({code})", program.text(4)


def measure_programs(told, result):
    table = result.table("The project's CUDA tests", "program", "driver itself", "VF", "what it said")
    some = commands()
    if not some:
        raise NotMeasured("the bundle has no CUDA programs")
    if told.scale < 1:
        some = {name: command for name, command in some.items() if name.split()[-1] in ("vectoradd", "matmul")}
    with vgpud.running(told.native) as daemon:
        socket = daemon.create("a", 2048 * MIB)
        for name, command in some.items():
            if told.left() < 10:
                result.lacks(name, "no time was left")
                continue
            native, said = ("", NOT_NATIVE[name]) if name in NOT_NATIVE else became(command, told.native.environment(), 60, True)
            on_vf, said_on_vf = became(command, driver.vf_environment(socket), 60, False)
            well = on_vf in ("passed", "skipped")
            table.row(name, native, on_vf, "" if well else (said_on_vf or said).replace("\n", " | ")[-300:])
            if native == "passed" and not well:
                result.fails(f"{name} passes on the driver itself and not on a VF")


def both(told, result, title, script, seconds, *arguments):
    """A script of `inside` on the driver itself and on a VF: lines RESULT name=... value=... must be equal, TIME lines are figures,
    NOTHING name=... why=... has none on the driver itself."""
    command = [sys.executable, os.path.join(INSIDE, script), *arguments]
    native = driver.Program(command, told.native.environment())
    code = native.wait(seconds)
    if code == 77:
        raise NotMeasured(native.text(1))
    if code != 0:
        raise NotMeasured(f"on the driver itself: {native.text(4)}")
    for row in driver.rows(native, "NOTHING"):
        result.lacks(row["name"], f"on the driver itself: {row['why']}")
    with vgpud.running(told.native) as daemon:
        on_vf = daemon.start(daemon.create("a", told.facts.get("torch_vram", 8192 * MIB)), command)
        code = on_vf.wait(seconds)
    table = result.table(title, "what", "driver itself", "VF", "equal")
    got = {row["name"]: row for word in ("RESULT", "TIME") for row in driver.rows(on_vf, word)}
    for word in ("RESULT", "TIME"):
        for row in driver.rows(native, word):
            other = got.get(row["name"], {}).get("value", "nothing")
            equal = "" if word == "TIME" else "yes" if other == row["value"] else "NO"
            table.row(row["name"], row["value"], other, equal)
            if equal == "NO":
                result.fails(f"{row['name']} of {script} differs on a VF")
    if code != 0:
        result.fails(f"{script} ended with {code} on a VF: {on_vf.text(4)}")


def measure_libraries(told, result):
    both(told, result, "cuBLAS and cuFFT", "libraries.py", 60)


def measure_torch(told, result):
    both(told, result, "PyTorch", "torch_check.py", 120, *(["--small"] if told.native.channel else []))
