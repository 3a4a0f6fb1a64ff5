#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/run-in-guest as a user sees it: output streams, exit codes and signals come back, the running guest is used, and
nothing stays behind."""
import os
import signal
import subprocess
import tempfile

import harness
from vgpuguest import daemon, guest, paths
from vgpuguest.program import GuestProgram

TOOL = str(paths.REPO / "tools" / "run-in-guest")


def run(*arguments, **options):
    return subprocess.run([TOOL, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, **options)


def exit_codes(runtime_dir):
    with tempfile.TemporaryDirectory() as directory:
        def script(text):
            path = os.path.join(directory, "script")
            with open(path, "w") as file:
                file.write("#!/bin/sh\n" + text)
            os.chmod(path, 0o755)
            return run("--runtime-dir", runtime_dir, "--", path, "--flag", "two words")
        result = script('echo "out:$1:$2"; echo err >&2; id -u; exit 7\n')
        harness.check(result.returncode == 7, f"exit code 7 comes back: {result}")
        harness.check(result.stdout == "out:--flag:two words\n1000\n", f"arguments and standard output: {result.stdout!r}")
        harness.check(result.stderr == "err\n", f"standard error: {result.stderr!r}")
        result = script("kill -SEGV $$\n")
        harness.check(result.returncode == 128 + signal.SIGSEGV, f"a signal comes back as 128 + n: {result}")
    result = run("--runtime-dir", runtime_dir, "--", "/no/such/program")
    harness.check(result.returncode == 1 and "no program" in result.stderr, f"a clear error: {result.stderr!r}")
    result = run("--runtime-dir", runtime_dir, "--vf", "nosuch", "--", "/bin/true")
    harness.check(result.returncode == 1 and "nosuch" in result.stderr, f"a VF that is not there: {result.stderr!r}")


def running_guest_is_used(vgpud):
    with guest.guest_for(vgpud.show("a"), vgpud.runtime_dir) as running:
        endless = GuestProgram(running, harness.command("endless"))
        endless.wait_for_line("endless: started", 60)
        result = run("--runtime-dir", vgpud.runtime_dir, "--", *harness.command("vectoradd"))
        harness.check(result.returncode == 0, f"a second program in the running guest passes: {result}")
        harness.check(vgpud.show("a")["executors"] == 1, "and the first one still runs")
        exit_codes(vgpud.runtime_dir)
        endless.stop()
    harness.wait_until(lambda: not vgpud.show("a")["client_connected"], "the guest is gone with its owner")


def nothing_stays_behind():
    with subprocess.Popen([TOOL, "--", *harness.command("endless")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True) as tool:
        harness.check(tool.stdout.readline() == "endless: started\n", "output streams while the program runs")
        started = [pid for name in ("vgpud", "vgpud-vf", "vgpud-exec", "ld-linux-x86-64.so.2", "qemu-system-x86_64")
                   for pid in harness.children_of(tool.pid, name)]
        harness.check(len(started) >= 4, f"a private vgpud, VF, executor and QEMU run: {started}")
        tool.send_signal(signal.SIGTERM)
        harness.check(tool.wait(30) == 128 + signal.SIGTERM, "it ends on SIGTERM")
    harness.wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in started), "everything it started is gone")


def test():
    with daemon.private_daemon([("a", {})]) as vgpud:
        running_guest_is_used(vgpud)
    nothing_stays_behind()


harness.main(test)
