#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that make, change and destroy VFs at the same time, on several GPUs, leave nothing behind.

What is counted before and after: processes of the daemon, its threads and descriptors, sockets and files in its directories, control
groups. Each client makes a VF, changes its weight, opens a channel on it now and then (which starts an executor), and destroys it.

usage: cycles.py [CYCLES] [--clients N] [--gpus N] [--keep-vfs]    CYCLES: of all clients together, 1000
"""
import argparse
import sys
import threading
import time

import bed
import counted

sys.path.insert(0, str(bed.REPO / "tests" / "vm"))
sys.path.insert(0, str(bed.REPO / "tests" / "integration"))

import harness  # noqa: E402
import hostile_clients  # noqa: E402
from vgpuguest import daemon  # noqa: E402

class Client:
    def __init__(self, vgpud, number, cycles):
        self.vgpud, self.number, self.cycles, self.problems = vgpud, number, cycles, []
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            for cycle in range(self.cycles):
                self._cycle(cycle)
        except Exception as error:  # pylint: disable=broad-except
            self.problems.append(f"client {self.number}: {error!r}")

    def _cycle(self, cycle):
        name = f"c{self.number}-{cycle}"
        made = self.vgpud.request("POST", "/v1/vfs", {"name": name, "vram_bytes": 16 << 20, "weight": 50,
                                                     "transient": cycle % 2 == 0})
        changed = self.vgpud.request("PATCH", f"/v1/vfs/{name}", {"weight": 200})
        if changed["vf"]["weight"] != 200:
            raise AssertionError(f"{name} has weight {changed['vf']['weight']}")
        channel = hostile_clients.ChannelClient(made) if cycle % 8 == 0 else None
        if channel is not None and cycle % 16 == 0:
            channel.close()  # the other half is open when its VF goes
        self.vgpud.request("DELETE", f"/v1/vfs/{name}")
        if channel is not None and cycle % 16 != 0:
            channel.close()


def run(vgpud, clients, cycles):
    all_clients = [Client(vgpud, number, cycles // clients) for number in range(clients)]
    for client in all_clients:
        client.thread.start()
    for client in all_clients:
        client.thread.join()
    problems = [problem for client in all_clients for problem in client.problems]
    harness.check(not problems, f"no request fails: {problems}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("cycles", nargs="?", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--keep-vfs", action="store_true")
    options = parser.parse_args()
    flags = [word for i in range(options.gpus) for word in ("--with-gpu", f"gpu{i}")]
    with daemon.private_daemon([], flags + ["--event-budget", "opens=0"] + ["--keep-vfs"] * options.keep_vfs) as vgpud:
        run(vgpud, options.clients, 2 * options.clients)  # what is made once is there from now on
        time.sleep(1)
        before = counted.counts(vgpud)
        begun = time.monotonic()
        run(vgpud, options.clients, options.cycles)
        spent = time.monotonic() - begun
        counted.check_the_same(vgpud, before)
        print(f"{options.cycles} cycles of {options.clients} clients on {options.gpus} GPUs in {spent:.1f} s "
              f"({options.cycles / spent:.0f} a second)")


if __name__ == "__main__":
    main()
