#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Very many users of the host abuse vgpud's control socket in every way at once, while root goes on with vgpuctl; as root.

usage: campaign.py [--users 200] [--seconds 600] [--pace 0.25] [--processes 2] [--p99 MS] [--abuses NAME,...]
The figures, then "stopped" or what was not; exit 1 then. `--p99 0` does not judge how long root waited, only that it was answered."""
import argparse
import collections
import contextlib
import os
import pathlib
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

_HERE = pathlib.Path(__file__).resolve().parent
_REPO = _HERE.parents[1]
sys.dont_write_bytecode = True
sys.path[:0] = [str(_HERE), str(_REPO / "tools" / "lib"), str(_REPO / "tests" / "vm"), str(_REPO / "tests" / "integration")]
import bed  # noqa: E402
import crowd  # noqa: E402
import harness  # noqa: E402
import users  # noqa: E402
from vgpuguest import daemon, paths, process  # noqa: E402

TENANTS = 20
HISTORY_ROWS = 20_000
HISTORY_DAYS = 400
MIB = 1 << 20
# What the limits of docs/configuration.md ("Shares") come to. All untaken answers, and as much again for what carries them:
MOST_MEMORY = 160 * MIB
MOST_GROWTH = 8 * MIB  # once everybody has been there for a while:
SETTLED = 60
HISTORY_BYTES = (256 + 16) * MIB  # the file and its log of changes
ROWS_OF_A_TENANT = 200 + 1
LOG_AT_ONCE, LOG_PER_SECOND = MIB, 200  # of each tenant
ASK_EVERY = 0.1
POLITE_PATIENCE = 5
POLITE_EVERY = 20
SAMPLES = 20


def fill(state):
    """Days of many VFs, so that a report over all of them is long."""
    with daemon.private_daemon([("old", {"vram": "16MiB"})], ["--state-dir", state]):
        pass
    with contextlib.closing(sqlite3.connect(os.path.join(state, "usage.db"))) as database, database:
        names = {table: [row[1] for row in database.execute(f"PRAGMA table_info({table})")] for table in ("vf", "day")}
        values = {"uuid": "printf('%s-%06d', uuid, number % 50)", "day": f"date('now', printf('-%d days', number / 50 % {HISTORY_DAYS}))"}
        for table, rows in (("vf", 50), ("day", HISTORY_ROWS)):
            chosen = ", ".join(values.get(name, name) for name in names[table])
            database.execute(f"WITH RECURSIVE n (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM n WHERE number < {rows - 1}) "
                             f"INSERT OR IGNORE INTO {table} ({', '.join(names[table])}) SELECT {chosen} FROM n, {table}")
        database.execute("UPDATE vf SET destroyed = 1 WHERE uuid LIKE '%-______'")


def rows_of(state):
    with contextlib.closing(sqlite3.connect(f"file:{state}/usage.db?mode=ro", uri=True)) as database:
        return database.execute("SELECT count(*) FROM day").fetchone()[0]


def bytes_of(state, name):
    return sum(path.stat().st_size for path in pathlib.Path(state).glob(name))


class Root:
    """Asks vgpuctl list again and again, and notes what vgpud has."""

    def __init__(self, made, state, seconds):
        self.made, self.state, self.seconds = made, state, seconds
        self.waits, self.starts, self.answers, self.failures, self.samples = [], [], [], [], []
        self.polite_waits, self.polite_answers = [], collections.Counter()
        self.begin, self.waited = time.monotonic(), self._waited()

    def ask(self):
        """vgpuctl list; what of that time vgpuctl takes to start, and what vgpud to answer."""
        def vgpuctl(waits, *words):
            begin = time.monotonic()
            done = subprocess.run([paths.VGPUCTL, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
            waits.append(time.monotonic() - begin)
            return done
        done = vgpuctl(self.waits, "--runtime-dir", self.made.vgpud.runtime_dir, "--timeout", "10", "list", "-o", "json")
        if done.returncode != 0 or '"good"' not in done.stdout:
            self.failures.append(done.stderr.strip() or "the list is not whole")
        vgpuctl(self.starts, "--version")
        begin = time.monotonic()
        self.made.vgpud.request("GET", "/v1/vfs")
        self.answers.append(time.monotonic() - begin)
        if len(self.answers) % POLITE_EVERY == 0:
            self.polite()

    def polite(self):
        """One user among them asks once at a time and takes the answer: how long that takes, and what it is."""
        begin = time.monotonic()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):  # waits in connect, as vgpuctl does; settimeout would not
                client.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", POLITE_PATIENCE, 0))
            os.setresuid(-1, users.POLITE, -1)
            try:
                client.connect(os.path.join(self.made.vgpud.runtime_dir, "control.sock"))
                client.sendall(crowd.request("GET", "/v1/vfs"))
                status = client.recv(12)[9:12].decode()
            except OSError as error:
                status = type(error).__name__
            finally:
                os.setresuid(-1, 0, -1)
        self.polite_answers[status] += 1
        if status == "200":
            self.polite_waits.append(time.monotonic() - begin)

    def starved(self):
        """What part of the time vgpud's main thread could run and had no processor."""
        return (self._waited() - self.waited) / 1e9 / (time.monotonic() - self.begin)

    def _waited(self):
        pid = self.made.vgpud.process.pid
        return int(pathlib.Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1])

    def sample(self):
        at, cpu = time.monotonic() - self.begin, bed.cpu_ns("", self.made.vgpud.process.pid) / 1e9
        self.samples.append({"at": at, "memory": users.resident(self.made.vgpud), "history": bytes_of(self.state, "usage.db*"),
                             "log": len(self.made.log_text()), "cpu": cpu, "files": self.made.files()})
        print("after {at:4.0f} s: memory {memory_mib:.1f} MiB, history {history_kib} KiB, log {log_kib} KiB, {files} descriptors, {cpu:.1f} s of CPU".format(
            memory_mib=self.samples[-1]["memory"] / MIB, history_kib=self.samples[-1]["history"] >> 10,
            log_kib=self.samples[-1]["log"] >> 10, **self.samples[-1]), flush=True)

    def run(self):
        while (now := time.monotonic() - self.begin) < self.seconds:
            if now >= len(self.samples) * self.seconds / SAMPLES:
                self.sample()
            self.ask()
            time.sleep(ASK_EVERY)
        self.sample()


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def told(values):
    return f"p50 {quantile(values, 0.5) * 1e3:.1f} ms, p99 {quantile(values, 0.99) * 1e3:.1f} ms, at most {max(values) * 1e3:.1f} ms"


def complaints(root, rows, options):
    first = root.samples[0]
    settled = [sample["memory"] for sample in root.samples if sample["at"] >= SETTLED]
    if root.failures:
        yield f"vgpuctl did not get its answer {len(root.failures)} of {len(root.waits)} times: {root.failures[0]}"
    if options.p99 and quantile(root.waits, 0.99) * 1e3 > options.p99:
        yield f"p99 of vgpuctl list is {quantile(root.waits, 0.99) * 1e3:.1f} ms"
    if set(root.polite_answers) - {"200"}:
        yield f"a user who asks once at a time was not always answered: {dict(root.polite_answers)}"
    if max(sample["memory"] for sample in root.samples) > MOST_MEMORY:
        yield f"vgpud takes more than {MOST_MEMORY // MIB} MiB"
    if settled and (grown := max(settled) - settled[0]) > MOST_GROWTH:
        yield f"vgpud's memory grew by {grown / MIB:.1f} MiB after {SETTLED} s"
    if max(sample["history"] for sample in root.samples) > HISTORY_BYTES:
        yield "the usage history is larger than it may be"
    if rows > options.users + TENANTS * ROWS_OF_A_TENANT:
        yield f"{rows} rows of usage were added"
    if root.samples[-1]["log"] - first["log"] > TENANTS * (LOG_AT_ONCE + LOG_PER_SECOND * root.seconds):
        yield f"the log grew by {root.samples[-1]['log'] - first['log']} bytes"


def campaign(options, state):
    fill(state)
    rows = rows_of(state)
    arguments = ["--state-dir", state, *users.rights(options.users, TENANTS)]
    with bed.bed("real", arguments) as made:
        root = Root(made, state, options.seconds)
        with made.window() as window, users.crowd(made.vgpud, options.users, options.abuses.split(","), options.pace, options.processes) as counts:
            root.run()
            starved = root.starved()
        afterwards = users.resident(made.vgpud)
        found = made.unnoticed()
        about = [line for line in made.log_text().splitlines() if any(f"vf={name}" in line for name in bed.BYSTANDERS) or "warning" in line]
    found += complaints(root, rows_of(state) - rows, options)  # vgpud had the file for itself
    share = {name: window[0].share[name] / sum(window[0].share.values()) for name in bed.BYSTANDERS}
    if min(share.values()) < 0.48:
        found.append(f"the VFs of others had {share}")
    spent = root.samples[-1]["cpu"] - root.samples[0]["cpu"]
    print(f"{options.users} users for {options.seconds:.0f} s, a step of each abuse every {options.pace} s")
    print(f"what came of it: {dict(sorted(counts.items()))}")
    print(f"the users took {counts['cpu ms'] / 1e3 / options.seconds:.2f} CPUs, vgpud {spent / options.seconds:.2f}; "
          f"good had {share['good']:.3f} of the GPU, peer {share['peer']:.3f}")
    print(f"vgpuctl list as root, {len(root.waits)} times: {told(root.waits)}; {len(root.failures)} without an answer")
    print(f"vgpuctl that only starts (--version): {told(root.starts)}")
    print(f"the same request without vgpuctl: {told(root.answers)}; vgpud had to wait for a processor for {starved:.2f} of the time")
    print(f"a user who asks once at a time: {dict(root.polite_answers)}{'; ' + told(root.polite_waits) if root.polite_waits else ''}")
    print(f"vgpud has {afterwards / MIB:.1f} MiB when they have left")
    if found:
        print("\n".join(["of the log:", *about[-40:]]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--pace", type=float, default=0.25, help="seconds between two steps of one abuse of one user")
    parser.add_argument("--processes", type=int, default=2, help="that play the users")
    parser.add_argument("--p99", type=float, default=100, help="milliseconds, 0: not judged")
    parser.add_argument("--abuses", default=",".join(crowd.ABUSES))
    options = parser.parse_args()
    if os.geteuid() != 0:
        harness.skip("being many users needs root")
    process.unwind_on_signals()
    with tempfile.TemporaryDirectory() as state:
        found = campaign(options, state)
    for each in found:
        print(f"not stopped: {each}")
    if not found:
        print("stopped")
    return 1 if found else 0


if __name__ == "__main__":
    os.environ.pop("VGPUD_RUNTIME_DIR", None)
    sys.exit(main())
