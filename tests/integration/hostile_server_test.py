#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever a vgpud-vf does that was taken over or no longer serves: vgpud and the other VFs go on, and its own VF is lost at
most."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import harness
import hostile_clients as c
from vgpuguest import daemon, paths, process

EVIL = pathlib.Path(__file__).with_name("evil_server.py")


def state_of(vgpud, name):
    return vgpud.show(name)["state"]


def log_of(vgpud):
    return pathlib.Path(vgpud.log).read_bytes().decode(errors="backslashreplace")


def works(vgpud, name="good"):
    """How long a new program of the VF takes from its connection to its first answer."""
    start = time.monotonic()
    ring = c.ChannelClient(vgpud.show(name))
    harness.check(ring.call(c.NOP)[0] == 0, f"{name} serves")
    ring.close()
    return time.monotonic() - start


def memory_of_its_own_is_refused(vgpud):
    try:
        vgpud.create("evil-page", vram="64MiB")
        harness.check(False, "the VF must not start")
    except daemon.ToolError as error:
        # Where vgpud-vf is not confined the kernel refuses the descriptor already.
        harness.check("broke the link protocol" in str(error) or "Operation not permitted" in log_of(vgpud), f"refused with the reason: {error}")
    works(vgpud)


def a_storm_of_executors_goes_at_the_rate_of_the_budget(vgpud):
    vgpud.create("evil-storm", vram="64MiB")
    slowest = max(works(vgpud) for _ in range(8))
    harness.check(slowest < 8, f"others start programs meanwhile: the slowest took {slowest:.2f} s")
    harness.wait_until(lambda: "executors started" in log_of(vgpud), "the storm is over", timeout=30,
                       seen=lambda: process.tail(vgpud.log, 20))
    started = int(re.search(r"storm: (\d+) executors started", log_of(vgpud)).group(1))
    # 100 at once, then 55 per second.
    harness.check(started <= 100 + 4.5 * 55, f"{started} executors were started in 4 s")
    shown = vgpud.show("evil-storm")
    harness.check(shown["state"] == "ready" and (shown["server"]["throttled"] > 0 or started < 250),
                  f"it was slowed down, where the host let it try: {shown['server']}")
    vgpud.destroy("evil-storm")


def nothing_that_a_child_writes_harms_the_log(vgpud):
    vgpud.create("evil-log", vram="64MiB")
    harness.wait_until(lambda: vgpud.show("evil-log")["server"]["log_lines_dropped"] > 1000, "most of a flood is dropped",
                       timeout=20)
    works(vgpud)
    raw, text = pathlib.Path(vgpud.log).read_bytes(), log_of(vgpud)
    harness.check(all(byte == 10 or 32 <= byte < 127 for byte in raw), "only printable text is in the log")
    harness.check(not re.search(r"^vgpud: error: vf=good: parked", text, re.M), "no line is forged")
    harness.check(re.search(r"^vgpud: vf=evil-log pid=\d+: vgpud: error: vf=good: parked", text, re.M), "it has its origin")
    harness.check(r"\x1b[2J\xff\xfe" in text, "control characters are shown as text")
    harness.check("it worked on the log" not in text and "harmless" in text, "the log cannot be cut or written over")
    harness.check(max(map(len, text.splitlines())) < 2500, "lines are bounded")
    harness.check(len(raw) < 100_000, f"a flood does not fill the disk: {len(raw)} bytes")
    vgpud.destroy("evil-log")


def impossible_figures_end_the_vf_alone(vgpud):
    vgpud.create("evil-figures", vram="64MiB")
    harness.wait_until(lambda: state_of(vgpud, "evil-figures") == "failed", "the VF failed")
    harness.check("broke the link protocol" in vgpud.show("evil-figures")["reason"], "with the reason")
    works(vgpud)
    vgpud.destroy("evil-figures")


def one_that_does_not_answer_is_found_out(vgpud):
    vgpud.create("evil-deaf", vram="64MiB")
    harness.wait_until(lambda: state_of(vgpud, "evil-deaf") == "failed", "a deaf vgpud-vf is found out", timeout=20)
    shown = vgpud.show("evil-deaf")
    harness.check("vgpud-vf does not answer" in shown["reason"] and shown["server"]["hangs"] == 1, f"and why: {shown}")
    vgpud.destroy("evil-deaf")


def a_stopped_one_is_found_out_and_its_executors_leave(vgpud):
    vgpud.create("stopped", vram="64MiB")
    ring = c.ChannelClient(vgpud.show("stopped"))
    harness.check(ring.call(c.NOP)[0] == 0, "it serves")
    servers = [pid for pid in harness.children_of(vgpud.process.pid, "vgpud-vf")
               if b"stopped" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    executors = harness.children_of(vgpud.process.pid, "vgpud-exec")
    harness.check(len(servers) == 1 and len(executors) == 1, f"one of each: {servers} {executors}")
    start = time.monotonic()
    os.kill(servers[0], signal.SIGSTOP)
    harness.wait_until(lambda: state_of(vgpud, "stopped") == "failed", "it is found out", timeout=20)
    took = time.monotonic() - start
    # 2 s once it is asked, on a host with time to spare; never more than 10 s, and as long as the question takes.
    harness.check(took < 15, f"within the limits: {took:.1f} s")
    harness.check("does not answer" in vgpud.show("stopped")["reason"], "the reason is shown")
    harness.wait_until(lambda: not harness.children_of(vgpud.process.pid, "vgpud-exec"), "its executors are gone")
    metrics = subprocess.run([paths.VGPUCTL, "--runtime-dir", vgpud.runtime_dir, "metrics"], capture_output=True, text=True,
                             timeout=30, check=True).stdout
    harness.check('vgpud_vf_server_hangs_total{gpu="soft0",vf="stopped"} 1' in metrics, "it is counted")
    harness.check(state_of(vgpud, "good") == "ready", "the neighbour is not concerned")
    works(vgpud)
    ring.close()
    vgpud.destroy("stopped")


def main():
    with process.scratch_dir("vgpu-evil-") as libexec:
        os.chmod(libexec, 0o755)  # the users of VFs run what is in it
        shutil.copy(EVIL, os.path.join(libexec, "vgpud-vf"))
        os.chmod(os.path.join(libexec, "vgpud-vf"), 0o755)
        os.symlink(paths.BUILD / "gpu" / "vgpud-exec", os.path.join(libexec, "vgpud-exec"))
        real = os.path.join(libexec, "real", "vgpud-vf")  # where the users of VFs get at it, too
        os.mkdir(os.path.dirname(real), 0o755)
        shutil.copy(paths.BUILD / "vfio" / "vgpud-vf", real)
        os.environ.update(VGPUD_LIBEXEC=libexec, REAL_VGPUD_VF=real)
        with daemon.private_daemon([("good", {"vram": "64MiB"})]) as vgpud:
            for attack in (memory_of_its_own_is_refused, a_storm_of_executors_goes_at_the_rate_of_the_budget,
                           nothing_that_a_child_writes_harms_the_log, impossible_figures_end_the_vf_alone,
                           one_that_does_not_answer_is_found_out, a_stopped_one_is_found_out_and_its_executors_leave):
                print(attack.__name__, flush=True)
                attack(vgpud)


if __name__ == "__main__":
    harness.main(main, needs_guest=False)
