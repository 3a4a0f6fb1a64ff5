#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The control groups of VFs, for real: where this host gives us any, each VF's processes are in the VF's own, with limits, and
nothing is left of them afterwards, not even when vgpud was killed. Skipped, with vgpud's own reason, where it does not."""
import os
import pathlib
import signal

import harness
import hostile_clients as c
from vgpuguest import daemon, process

ROOT = pathlib.Path("/sys/fs/cgroup")


def groups_of(pid):
    """{controllers: path} of a process."""
    lines = (line.split(":", 2) for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines())
    return {controllers: path for _, controllers, path in lines}


def in_group(pid, name):
    return [controllers for controllers, path in groups_of(pid).items() if "/vgpud-" in path and path.endswith("/" + name)]


def left_over(marker):
    return [path for path in ROOT.glob(f"**/{marker}") if path.is_dir()]


def protections(vgpud):
    return {row["name"]: row for row in vgpud.ctl("gpu")["protections"]}


def processes_are_in_the_group_of_their_vf(vgpud):
    server = harness.children_of(vgpud.process.pid, "vgpud-vf")[0]
    ring = c.ChannelClient(vgpud.show("a"))
    harness.check(ring.call(c.NOP)[0] == 0, "it serves")
    executor = harness.children_of(vgpud.process.pid, "vgpud-exec")[0]
    for pid, score in ((server, 200), (executor, 500)):
        harness.wait_until(lambda pid=pid: in_group(pid, "a"), "the process is in the group of its VF")
        shown = int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text())
        harness.check(shown == score, f"and ends before others when memory runs out: {shown}")
    harness.check(not in_group(vgpud.process.pid, "a"), "vgpud itself is not")
    nice = os.getpriority(os.PRIO_PROCESS, executor)
    harness.check(nice >= 0, f"an executor's main thread has ordinary priority: {nice}")
    if os.geteuid() == 0:
        harness.wait_until(lambda: gpu_thread_nice(executor) == -10, "its GPU thread a high one")
        limits = pathlib.Path(f"/proc/{executor}/limits").read_text().splitlines()
        has_own_user = os.stat(f"/proc/{executor}").st_uid != 0  # not in a build with a sanitizer, which is not confined
        harness.check(not has_own_user or any(line.startswith("Max processes") and "unlimited" not in line
                                              and (int(line.split()[2]) - 128) % 129 == 0 for line in limits),
                      "and its VF's user so many threads and no more")
        own, theirs = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (vgpud.process.pid, server))
        harness.check(own == -15 and theirs == 0, f"vgpud comes before all of them: {own}, vgpud-vf {theirs}")
        its_session_comes_before_them(vgpud.process.pid)
    group = groups_of(executor)
    ring.close()
    return group


def its_session_comes_before_them(pid):
    """In the root group, nice values count only within a session: without this, vgpud waited for a processor for seconds while the
    VFs computed."""
    session = pathlib.Path(f"/proc/{pid}/autogroup")
    in_root = any("cpu" in controllers.split(",") and path == "/" for controllers, path in groups_of(pid).items())
    if in_root and session.exists():
        harness.check(session.read_text().split()[-1] == "-15", f"so does its session: {session.read_text().strip()}")


def gpu_thread_nice(pid):
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text() == "vgpu-gpu\n":
            return os.getpriority(os.PRIO_PROCESS, int(task.name))
    return None


def limits_are_set(vgpud, group):
    for controllers, path in group.items():
        for file in ("pids.max", "memory.max", "memory.limit_in_bytes"):
            mount = ROOT / controllers if controllers else ROOT
            at = pathlib.Path(f"{mount}{path}/{file}")
            if at.exists() and path.endswith("/a"):
                harness.check(at.read_text().strip() not in ("max", str((1 << 63) - 4096)), f"{at} is {at.read_text().strip()}")
    cpu = vgpud.stats()[1]["a"]
    harness.check(cpu["cpu_ns"] > 0 and cpu["cpu_outside_turns_ns"] <= cpu["cpu_ns"], f"processor time is counted: {cpu['cpu_ns']}")


def main():
    with daemon.private_daemon([("a", {"vram": "64MiB"})]) as vgpud:
        rows = protections(vgpud)
        if not any(row["in_force"] for row in rows.values()):
            harness.skip(f"no control groups for vgpud here: {rows['cgroup-pids']['why_not']}")
        group = processes_are_in_the_group_of_their_vf(vgpud)
        limits_are_set(vgpud, group)
        marker = next(path for path in group.values() if "/vgpud-" in path).rsplit("/", 2)[1]
        vgpud.destroy("a")
        harness.check(not left_over(f"{marker}/a"), "no group is left of a VF that is gone")
        vgpud.create("b", vram="64MiB")
        os.kill(vgpud.process.pid, signal.SIGKILL)
        vgpud.process.wait()
        harness.wait_until(lambda: all(not (path / "cgroup.procs").read_text() for path in left_over(f"{marker}/b")),
                           "its processes end")
        again = process.spawn([daemon.VGPUD, "--runtime-dir", vgpud.runtime_dir], vgpud.log, death_signal=signal.SIGTERM)
        try:
            harness.wait_until(lambda: not left_over(f"{marker}/b"), "the next vgpud removes what a killed one left")
        finally:
            process.stop(again)
        harness.check(not left_over(marker), "and itself leaves nothing")


if __name__ == "__main__":
    harness.main(main, needs_guest=False)
