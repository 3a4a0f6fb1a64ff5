#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Without control groups, as under an ordinary user: the threads of a VF that computes too much outside of its turns get the
lowest priority, but for those that run kernels, and its neighbour's keep theirs. Run by root it becomes such a user."""
import os
import pathlib
import threading

import harness
import hostile_clients as c
from vgpuguest import daemon

USER = 64321
LOWEST = 19
HEAD = b".version 7.0\n.target sm_75\n.address_size 64\n"
BODY = b"".join(b"add.u32 %%r1,%%r1,%d;\n" % i for i in range(20_000))
GPU_THREADS = ("vgpu-gpu", "vgpu-worker")


def load_without_end(ring, stop):
    number = 0
    while not stop.is_set():
        number += 1
        image = HEAD + b".visible .entry k%d(){\n.reg .b32 %%r<3>;\n" % number + BODY + b"ret;\n}\n\0"
        try:
            ring.load(image, module=number)
            ring.call(c.MODULE_UNLOAD, [number])
        except (AssertionError, OSError):
            return  # starved, or the daemon has ended


def threads_of(vgpud, program, vf):
    """{(name, nice)} of the threads of a VF's processes."""
    found = set()
    for pid in harness.children_of(vgpud.process.pid, program):
        if vf not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0"):
            continue
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            nice = os.getpriority(os.PRIO_PROCESS, int(task.name))
            found.add(((task / "comm").read_text().strip(), nice))
    return found


def main():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
    ordinary = os.getpriority(os.PRIO_PROCESS, 0)
    arguments = ["--outside-turns-percent", "0.01", "--event-budget", "module_kib=0"]
    with daemon.private_daemon([("bad", {"vram": "16MiB"}), ("good", {"vram": "16MiB"})], arguments) as vgpud:
        row = {row["name"]: row for row in vgpud.ctl("gpu")["protections"]}["cgroup-cpu"]
        if row["in_force"]:
            harness.skip("this host gives ordinary users control groups")
        harness.check("lowest priority" in row["why_not"], "what is done instead is said")
        vgpud.ctl("pause", "bad")
        good = c.ChannelClient(vgpud.show("good"))
        harness.check(good.call(c.NOP)[0] == 0, "the neighbour serves")
        bad = c.ChannelClient(vgpud.show("bad"))
        stop = threading.Event()
        threading.Thread(target=load_without_end, args=(bad, stop), daemon=True).start()
        harness.wait_until(lambda: vgpud.stats()[1]["bad"]["gave_way"] > 0, "the paused VF is over its budget")

        def lowered():
            threads = threads_of(vgpud, "vgpud-exec", "bad") | threads_of(vgpud, "vgpud-vf", "bad")
            others = {nice for name, nice in threads if name not in GPU_THREADS}
            return "vgpu-loader" in {name for name, _ in threads} and others == {LOWEST}

        harness.wait_until(lowered, "its threads have the lowest priority")
        kernels = {nice for name, nice in threads_of(vgpud, "vgpud-exec", "bad") if name in GPU_THREADS}
        harness.check(kernels == {ordinary}, f"those that run kernels keep theirs: {kernels}")
        neighbour = {nice for _, nice in threads_of(vgpud, "vgpud-exec", "good")}
        harness.check(neighbour == {ordinary}, f"so does its neighbour: {neighbour}")
        stop.set()


if __name__ == "__main__":
    harness.main(main, needs_guest=False)
