#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpud as a service: what its manager is told, that a scheduler thread that hangs is noticed, sockets that are passed on."""
import os
import signal
import socket
import subprocess

import harness
import manager
from harness import check
from vgpuguest import paths, process

INTERVAL = 0.4  # of the watchdog, in seconds


def check_what_the_manager_is_told():
    with manager.service() as vgpud:
        vgpud.start()
        check(vgpud.wait_for("STATUS=") == "STATUS=soft0: 0 VFs", "what it does, in a line")
        vgpud.create("told", vram="64MiB")
        check(vgpud.wait_for("STATUS=") == "STATUS=soft0: 1 VF", "and again when that changes")
        check("WATCHDOG=1" not in vgpud.told, "nothing that nobody asked for")
        vgpud.process.send_signal(signal.SIGHUP)
        check("MONOTONIC_USEC=" in vgpud.wait_for("RELOADING=1"), "it says when it reads its files again")
        vgpud.wait_for("READY=1")
        check(vgpud.stop() == 0, "it stops")
        vgpud.wait_for("STOPPING=1")


def check_that_a_scheduler_that_hangs_is_noticed():
    with manager.service(watchdog=INTERVAL) as vgpud:
        vgpud.start()
        for _ in range(3):
            vgpud.wait_for("WATCHDOG=1")
        check(True, "it says that it is alive, again and again")
        with manager.stopped(vgpud.thread("sched-gpu")):
            # One answer may have been on its way.
            before = [vgpud.read(INTERVAL / 2) for _ in range(2)]
            silence = [vgpud.read(INTERVAL) for _ in range(4)]
            check(silence == [None] * 4, f"nothing while its scheduler thread hangs: {before} {silence}")
            check(vgpud.names() == [], "though its main loop answers")
        vgpud.wait_for("WATCHDOG=1")
        check(True, "and again when the thread goes on")
        vgpud.process.send_signal(signal.SIGSTOP)
        for _ in range(2):
            vgpud.read(INTERVAL / 2)
        check(vgpud.read(2 * INTERVAL) is None, "nothing while it is stopped")
        vgpud.process.send_signal(signal.SIGCONT)
        vgpud.wait_for("WATCHDOG=1")


def start_asking(runtime_dir):
    return subprocess.Popen([str(paths.VGPUCTL), "--runtime-dir", runtime_dir, "--timeout", "30", "list", "-o", "json"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def check_that_clients_wait_at_a_passed_socket():
    with process.scratch_dir("vgpu-") as elsewhere, manager.service() as vgpud:
        path = os.path.join(vgpud.runtime_dir, "control.sock")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen(16)
            vgpud.listening = listening
            early = start_asking(vgpud.runtime_dir)
            for round_ in range(2):
                vgpud.start()
                out, _ = early.communicate(timeout=30)
                check(early.returncode == 0, f"who came before is answered: {out}")
                check(vgpud.stop() == 0 and os.path.exists(path), "the socket is not vgpud's to remove")
                early = start_asking(vgpud.runtime_dir)
            early.kill()
            early.communicate()
        with socket.socket(socket.AF_UNIX) as wrong:
            wrong.bind(os.path.join(elsewhere, "other"))
            wrong.listen(1)
            vgpud.listening = wrong
            try:
                vgpud.start()
            except AssertionError:
                pass
            check(vgpud.process.wait(30) == 1, "a socket where no client looks is refused")
            with open(vgpud.log, encoding="utf-8") as log:
                check(f"clients look for it at {path}" in log.read(), "with the reason")


for each in (check_what_the_manager_is_told, check_that_a_scheduler_that_hangs_is_noticed,
             check_that_clients_wait_at_a_passed_socket):
    print(f"--- {each.__name__}", flush=True)
    each()
