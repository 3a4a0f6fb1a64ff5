#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What VFs cost that nobody uses: processor time and memory of one vgpud with several GPUs and VFs on all of them.

usage: idle_bench.py [--gpus N] [--vfs N] [--seconds S] [--check] [-- FLAGS OF VGPUD]    environment: VGPUD_BUILD_DIR

Time is that of all threads of vgpud and of its children (schedstat), in percent of one processor. Memory is the proportional set size:
of a vgpud-vf, of vgpud without VFs, and how much vgpud grows with each. --check: exit status 1 if all of it together takes more
than 1 % of a processor, or a VF (its process, and its part of vgpud's growth) more than 1 MiB.
"""
import argparse
import os
import re
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tools/lib"))
from vgpuguest import daemon  # noqa: E402

MOST_PERCENT = 1.0
MOST_KIB = 1024


def pss_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return int(re.search(r"^Pss: +(\d+) kB", file.read(), re.M)[1])


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def children(root):
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            if parent_of(pid) == root:
                found.append(pid)
        except OSError:
            pass
    return found


def threads_ns(pid):
    """{name: time on a processor so far}, of all threads of the process."""
    times = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8", errors="replace") as file:
            name = file.read().strip()
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            times[name] = times.get(name, 0) + int(file.read().split()[0])
    return times


def measure(options):
    gpus = [f"gpu{i}" for i in range(options.gpus)]
    flags = [word for gpu in gpus for word in ("--with-gpu", gpu)] + options.flags
    with daemon.private_daemon([], flags) as vgpud:
        pid = vgpud.process.pid
        empty_kib = pss_kib(pid)
        for i in range(options.vfs):
            vgpud.request("POST", "/v1/vfs", {"name": f"vf{i}", "vram_bytes": 64 << 20, "transient": True})
        placed = [vf["gpu"] for vf in vgpud.request("GET", "/v1/vfs")["vfs"]]
        time.sleep(options.settle)
        servers = children(pid)
        before, before_servers, begun = threads_ns(pid), [threads_ns(s) for s in servers], time.monotonic()
        time.sleep(options.seconds)
        after, after_servers, spent = threads_ns(pid), [threads_ns(s) for s in servers], time.monotonic() - begun
        percent = {name: (after[name] - before.get(name, 0)) / spent / 1e7 for name in after}
        of_servers = sum(sum(a.values()) - sum(b.values()) for a, b in zip(after_servers, before_servers)) / spent / 1e7
        servers_kib = sum(map(pss_kib, servers)) / max(len(servers), 1)
        return {"placed": [placed.count(gpu) for gpu in gpus], "vgpud_percent": sum(percent.values()),
                "threads": percent, "vfs_percent": of_servers, "empty_kib": empty_kib,
                "growth_kib": (pss_kib(pid) - empty_kib) / max(options.vfs, 1), "vf_kib": servers_kib}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--vfs", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--settle", type=float, default=2, help="seconds before the measurement begins")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    row = measure(options)
    print(f"{options.vfs} VFs on {options.gpus} GPUs: {row['placed']}")
    busy = sorted(row["threads"].items(), key=lambda item: -item[1])[:6]
    print(f"vgpud {row['vgpud_percent']:.2f} % of a processor ("
          + ", ".join(f"{name} {percent:.2f}" for name, percent in busy) + f"), all vgpud-vf {row['vfs_percent']:.2f} %")
    whole_kib = row["vf_kib"] + row["growth_kib"]
    print(f"a VF: vgpud-vf {row['vf_kib']:.0f} KiB, vgpud grows by {row['growth_kib']:.0f} KiB; vgpud without VFs {row['empty_kib']} KiB")
    good = row["vgpud_percent"] + row["vfs_percent"] <= MOST_PERCENT and whole_kib <= MOST_KIB
    print("within the bounds" if good else f"MORE than {MOST_PERCENT} % or {MOST_KIB} KiB")
    return 1 if options.check and not good else 0


if __name__ == "__main__":
    sys.exit(main())
