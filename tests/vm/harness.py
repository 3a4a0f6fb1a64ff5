# SPDX-License-Identifier: Apache-2.0
"""For the tests that run CUDA programs: small checks, and the programs by name. Needs PYTHONPATH=tools/lib."""
import os
import pathlib
import sys
import time

from vgpuguest import paths, process
from vgpuguest.program import DirectProgram, GuestProgram

# Every program of tests/cuda that ends by itself, with arguments for a short run.
PROGRAMS = {"vectoradd": [], "matmul": [], "reduction": [], "collatz": [], "stencil": [], "longblocks": [],
            "meter": ["--seconds", "1"], "transfers": ["8", "4", "2"], "texture": [], "managed": [], "shared": [], "registered": [], "streamvalues": [],
            "virtualmemory": [], "flood": ["--times", "400", "--streams", "80", "--graph-nodes", "200"]}
PROGRAM_SECONDS = 120

_SKIPPED = 77

# Is this a build with a sanitizer? Such a build has no jail (base/sanitizer.h).
SANITIZED = os.environ.get("VGPUD_SANITIZED") == "1"


def available():
    """{name: command line} of what was built: all with nvcc, else what the launcher knows."""
    built = {name: [str(paths.CUDA_PROGRAMS / name), *arguments] for name, arguments in PROGRAMS.items()
             if (paths.CUDA_PROGRAMS / name).exists()}
    for name in ("vectoradd", "matmul", "longblocks", "meter"):
        built[f"vgpu-launch {name}"] = [str(paths.need(paths.LAUNCHER, "vgpu-launch")), name, *PROGRAMS[name]]
    return built


def command(name):
    return [*paths.cuda_command(name), *PROGRAMS.get(name, [])]


def check(condition, what):
    if not condition:
        raise AssertionError(what)
    print(f"ok: {what}", flush=True)


def check_passes(program, timeout=PROGRAM_SECONDS):
    """The running program ends with 0."""
    code = program.wait(timeout)
    check(code == 0, f"{program.name} ends with 0 (it ended with {code})\n{program.text()}")


def run_in(guest, argv):
    check_passes(GuestProgram(guest, argv))


def run_direct(vf, argv):
    check_passes(DirectProgram(vf, argv))


def wait_until(condition, what, timeout=30, seen=None):
    """Fails with what seen() says then when `condition` does not come true."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what}{'; ' + seen() if seen else ''}")
        time.sleep(0.02)
    print(f"ok: {what}", flush=True)


def children_of(pid, name):
    """Process ids below `pid` whose program is called `name`."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)
                parents[int(entry.name)] = (int(fields[1].split()[1]), fields[0].split("(", 1)[1])
            except (OSError, IndexError):
                continue

    def below(child):
        while child in parents:
            child = parents[child][0]
            if child == pid:
                return True
        return False
    return [child for child, (_, called) in parents.items() if called == name[:15] and below(child)]


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(_SKIPPED)


def main(test, needs_guest=True):
    """Runs test() as the whole program; skips with the reason where no guest can run."""
    process.unwind_on_signals()
    if needs_guest and not os.path.exists(paths.QEMU):
        skip("no QEMU >= 10.1 here; tools/setup fetches it")
    test()
