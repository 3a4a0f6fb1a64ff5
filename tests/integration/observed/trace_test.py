#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trace of turns that vgpud keeps and exports, on the real daemon with executors that burn time.

usage: trace_test.py    environment: as observed_daemon.py says
"""
import json
import socket

from observed_daemon import bed, check, run_tests


def slices_of(trace):
    """[(start, end, row)] of all turns and switches in us, sorted."""
    rows = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    return sorted((e["ts"], e["ts"] + e["dur"], rows[e["tid"]]) for e in trace["traceEvents"] if e["ph"] == "X")


def test_trace_shows_one_vf_at_a_time():
    with bed() as it:
        it.create("a", "b", "c")
        it.busy("a", "b", "c")
        it.runs("a", 40)
        path = f"{it.root}/trace.json"
        said = it.ctl("trace", "--last", "5s", "-o", path)
        with open(path) as file:
            trace = json.load(file)
        slices = slices_of(trace)
        turns = [s for s in slices if s[2] != "world switches"]
        check({row for _, _, row in turns} == {"VF 0 a", "VF 1 b", "VF 2 c"}, "all VFs are there")
        check(len(turns) >= 100 and f"{len(turns)} turns;" in said, said)
        for (_, end, row), (start, _, next_row) in zip(slices, slices[1:]):
            check(start >= end - 0.0011, f"{row} and {next_row} overlap: {end} > {start}")
        check(trace["otherData"] == {"turns": len(turns), "lost": 0}, trace["otherData"])
        check(json.loads(it.ctl("trace", "--last", "1ms", "-o", "-"))["otherData"]["turns"] <= 10, "only the last 1 ms")

        it.ctl("destroy", "b", "--force")
        it.create("b2")
        it.busy("b2")
        it.runs("b2", 20)
        rows = {row for _, _, row in slices_of(json.loads(it.ctl("trace", "--last", "60s", "-o", "-")))}
        check({"VF 1 b", "VF 3 b2"} <= rows, f"a VF that is gone keeps its row: {rows}")
        for arguments, says in ((("--last", "11m", "-o", path), "10min"), (("--last", "700s", "-o", path), "10min"),
                                (("--last", "0s", "-o", path), "10min"), (("--last", "1s"), "output")):
            done = it.run("trace", *arguments)
            check(done.returncode == 2 and says in done.stderr + done.stdout, f"{arguments}: {done}")
        done = it.run("trace", "-o", f"{it.root}/nowhere/trace.json")
        check(done.returncode == 1 and "cannot create" in done.stderr, done)


def test_a_small_ring_counts_what_it_lost():
    with bed("--trace-turns", "64", "--base-slice-us", "500") as it:
        it.create("a", "b")
        it.busy("a", "b")
        it.runs("a", 100)
        before = it.stats()["trace"]["turns"]
        trace = json.loads(it.ctl("trace", "--last", "600s", "-o", "-"))
        after = it.stats()["trace"]["turns"]
        counts = trace["otherData"]
        check(0 < counts["turns"] <= 64, counts)
        check(before <= counts["turns"] + counts["lost"] <= after, f"{before} <= {counts} <= {after}")
        check(any("records lost" in e["name"] for e in trace["traceEvents"]), "a mark shows where")
        said = it.ctl("trace", "--last", "600s", "-o", f"{it.root}/t.json")
        check("older ones lost" in said, said)


def test_a_reader_that_leaves_or_dawdles_harms_nobody():
    with bed("--base-slice-us", "200") as it:
        it.create("a", "b")
        it.busy("a", "b")
        it.runs("a", 1500)  # a trace larger than what fits into a socket
        for patience in range(20):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.connect(f"{it.runtime}/control.sock")
                client.send(b"GET /v1/trace?last_us=600000000 HTTP/1.1\r\nHost: x\r\n\r\n")
                for _ in range(patience % 4):
                    client.recv(4096)
        dawdler = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        dawdler.connect(f"{it.runtime}/control.sock")
        dawdler.send(b"GET /v1/trace?last_us=600000000 HTTP/1.1\r\nHost: x\r\n\r\n")
        dawdler.recv(64)
        it.runs("a", 20)
        check(json.loads(it.ctl("trace", "--last", "600s", "-o", "-"))["otherData"]["turns"] > 2000, "others are served")
        it.end()  # with the dawdler still there
        check("stopping: SIGTERM" in it.text_of_log(), "vgpud ended in order")
        dawdler.close()


if __name__ == "__main__":
    run_tests(globals())
