#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every CUDA program passes without a virtual machine, alone and beside others, and through tools/run-direct."""
import signal
import subprocess

import harness
from vgpuguest import daemon, paths
from vgpuguest.program import DirectProgram

TOOL = str(paths.REPO / "tools" / "run-direct")


def run_tool(*arguments):
    return subprocess.run([TOOL, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def test():
    with daemon.private_daemon([("a", {}), ("b", {})]) as vgpud:
        a, b = vgpud.show("a"), vgpud.show("b")
        for argv in harness.available().values():
            harness.run_direct(a, argv)
        programs = [DirectProgram(vf, harness.command(name)) for vf in (a, b) for name in ("matmul", "meter")]
        for program in programs:
            harness.check_passes(program)
        endless = DirectProgram(a, harness.command("endless"))
        endless.wait_for_line("endless: started", 30)
        harness.run_direct(b, harness.command("vectoradd"))
        harness.run_direct(a, harness.command("vectoradd"))
        endless.stop()
        harness.wait_until(lambda: vgpud.show("a")["executors"] == 0, "a killed program leaves no executor")
        harness.wait_until(lambda: vgpud.show("a")["vram_used_bytes"] == 0, "and no device memory")
        result = run_tool("--runtime-dir", vgpud.runtime_dir, "--vf", "b", "--", *harness.command("vectoradd"))
        harness.check(result.returncode == 0, f"run-direct on a named daemon: {result}")
        result = run_tool("--runtime-dir", vgpud.runtime_dir, "--", *harness.command("vectoradd"))
        harness.check(result.returncode == 1 and "--vf" in result.stderr, f"two VFs and none chosen: {result}")
    result = run_tool("--", *harness.command("vectoradd"))
    harness.check(result.returncode == 0, f"run-direct with a daemon of its own: {result}")
    result = run_tool("--", "/bin/sh", "-c", "kill -KILL $$")
    harness.check(result.returncode == 128 + signal.SIGKILL, f"a signal comes back as 128 + n: {result}")


harness.main(test, needs_guest=False)
