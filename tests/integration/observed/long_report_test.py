#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A usage report that is longer than vgpud should have in memory: it comes in pages, also for a client that does not take them.

Needs PYTHONPATH=tools/lib:tests/vm."""
import json
import os
import pathlib
import socket
import sqlite3
import subprocess
import tempfile

from harness import SANITIZED, check
from vgpuguest import daemon, paths

ROWS = 30_000
MOST_GROWTH = 48 << 20  # of memory; the answer has some 15 MB


def fill(database_path):
    """Rows of the one VF that is there, as if it had been many."""
    with sqlite3.connect(database_path) as database:
        columns = {table: [row[1] for row in database.execute(f"PRAGMA table_info({table})")] for table in ("vf", "day")}
        for table, names in columns.items():
            chosen = ", ".join("printf('%s-%06d', uuid, number)" if name == "uuid" else name for name in names)
            database.execute(f"WITH RECURSIVE n (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n WHERE number < {ROWS}) "
                             f"INSERT INTO {table} ({', '.join(names)}) SELECT {chosen} FROM n, {table}")
        database.execute("UPDATE vf SET destroyed = 1 WHERE uuid LIKE '%-______'")
    database.close()


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmHWM")


def deaf_client(vgpud):
    """Asks for the report and takes nothing of it."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(os.path.join(vgpud.runtime_dir, "control.sock"))
    client.sendall(b"GET /v1/report HTTP/1.1\r\nHost: x\r\n\r\n")
    return client


def main():
    with tempfile.TemporaryDirectory() as state:
        with daemon.private_daemon([("a", {"vram": "64MiB"})], ["--state-dir", state]):
            pass
        fill(os.path.join(state, "usage.db"))
        with daemon.private_daemon([("b", {"vram": "64MiB"})], ["--state-dir", state]) as vgpud:
            before = resident(vgpud.process.pid)
            clients = [deaf_client(vgpud) for _ in range(4)]
            for client in clients:
                check(client.recv(12) == b"HTTP/1.1 200", "the report begins")
            done = subprocess.run([paths.VGPUCTL, "--runtime-dir", vgpud.runtime_dir, "report", "-o", "json"], capture_output=True,
                                  text=True, timeout=100, check=False)
            check(done.returncode == 0, done.stderr)
            rows = json.loads(done.stdout)["rows"]
            check(len({row["uuid"] for row in rows}) == len(rows) >= ROWS, f"{len(rows)} rows, each once")
            grown = resident(vgpud.process.pid) - before
            # A sanitizer keeps what was freed for a while.
            check(SANITIZED or grown < MOST_GROWTH, f"vgpud's memory grew by {grown >> 20} MiB")
            check("b" in vgpud.names(), "and it serves the others")
            for client in clients:
                client.close()


main()
