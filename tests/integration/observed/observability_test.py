#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What vgpud counts and exports, on the real daemon with executors that burn time: statistics, Prometheus metrics, the
history across restarts, kills and damaged files.

usage: observability_test.py    environment: as observed_daemon.py says
"""
import contextlib
import ctypes
import datetime
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request

from observed_daemon import COUNTERS, bed, check, eventually, run_tests

# ---- Prometheus ----

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? '
                    r'(-?[0-9.e+-]+|\+Inf|NaN)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"')
GPU = ("gpu", "soft0")


def parse_metrics(text):
    """{(name, ((label, value), ...)): number}; strict: every family has HELP, TYPE, then its samples, once."""
    check(text.endswith("\n"), "the text ends with a line end")
    samples, types, family = {}, {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split(" ", 3)[2]
            check(family not in types and len(line.split(" ", 3)) == 4, f"one HELP per family: {line}")
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            check(name == family and kind in ("counter", "gauge", "histogram"), line)
            types[name] = kind
            check((kind == "counter") == name.endswith("_total"), f"counters, and only they, end in _total: {name}")
        else:
            match = SAMPLE.match(line)
            check(match, f"not a sample: {line!r}")
            name, labels, value = match[1], tuple(LABEL.findall(match[2] or "")), float(match[3])
            base = re.sub(r"_(bucket|sum|count)$", "", name) if types.get(family) == "histogram" else name
            check(base == family and family in types, f"{name} belongs to its family {family}")
            check((name, labels) not in samples, f"{name}{labels} comes once")
            check(types[family] == "gauge" or value >= 0, f"{line}: not negative")
            samples[name, labels] = value
    for (name, labels), value in samples.items():
        if not name.endswith("_bucket"):
            continue
        rest = tuple(label for label in labels if label[0] != "le")
        edges = [(float(dict(other)["le"]), count) for (other_name, other), count in samples.items()
                 if other_name == name and tuple(label for label in other if label[0] != "le") == rest]
        check(edges == sorted(edges) and [c for _, c in edges] == sorted(c for _, c in edges), f"{name}: cumulative")
        check(edges[-1][0] == float("inf") and edges[-1][1] == samples[name[:-7] + "_count", rest], f"{name}: +Inf")
    return samples


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_metrics_parse_and_say_what_stats_say():
    port = free_port()
    with bed("--metrics-listen", f"127.0.0.1:{port}") as it:
        it.create("a", "b", "idle-one")
        it.busy("a", "b")
        it.runs("a", 20)
        before, text, after = it.stats(), it.ctl("metrics"), it.stats()
        samples = parse_metrics(text)
        pairs = {"received_ns": "vgpud_vf_received_seconds_total", "entitled_ns": "vgpud_vf_entitled_seconds_total",
                 "waited_ns": "vgpud_vf_waited_seconds_total", "borrowed_ns": "vgpud_vf_borrowed_seconds_total",
                 "unclaimed_ns": "vgpud_vf_unclaimed_seconds_total"}
        for old, new in zip(before["vfs"], after["vfs"]):
            label = (GPU, ("vf", old["name"]))
            for key, metric in pairs.items():
                ns = samples[metric, label] * 1e9
                check(old[key] - 1 <= ns <= new[key] + 1, f"{metric} {label}: {old[key]} <= {ns} <= {new[key]}")
            check(old["slices"] <= samples["vgpud_vf_slices_total", label] <= new["slices"], "turns")
            uuid = it.json("show", old["name"])["uuid"]
            check(samples["vgpud_vf_info", (GPU, ("vf", old["name"]), ("uuid", uuid), ("state", "ready"))] == 1, "info")
        check(before["run_ns_total"] - 1 <= samples["vgpud_gpu_run_seconds_total", (GPU,)] * 1e9
              <= after["run_ns_total"] + 1, "run time of the GPU")
        check(samples["vgpud_history_up", (GPU,)] == 1, "the history is written")
        if promtool := shutil.which("promtool"):
            done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
            check(done.returncode == 0 and not done.stderr.strip(), f"promtool: {done.stdout}{done.stderr}")

        url = f"http://127.0.0.1:{port}"
        with urllib.request.urlopen(f"{url}/metrics", timeout=10) as reply:
            check(reply.headers["Content-Type"].startswith("text/plain; version=0.0.4"), "the type of the text")
            check(set(parse_metrics(reply.read().decode())) >= set(samples), "TCP gives the same metrics")
        for method, path in (("GET", "/v1/vfs"), ("GET", "/v1/stats"), ("DELETE", "/v1/vfs/a"), ("POST", "/metrics")):
            try:
                urllib.request.urlopen(urllib.request.Request(url + path, method=method), timeout=10)
                check(False, f"{method} {path} over TCP is refused")
            except urllib.error.HTTPError as error:
                check(error.code in (404, 405, 501), f"{method} {path}: {error.code}")
        check(it.json("show", "a")["state"] == "ready", "nothing was done over TCP")


def test_figures_add_up():
    with bed() as it:
        it.create("a", "b")
        it.busy("a", "b")
        it.ctl("set", "b", "--weight", "300")
        stats = eventually(lambda: s if (s := it.stats())["fairness"]["1s"]["busy_vfs"] == 2 else None,
                           "both VFs were busy for a second", 60)
        check(0.25 <= stats["fairness"]["1s"]["jain"] <= 1, f"Jain: {stats['fairness']}")
        check(stats["fairness"]["60s"]["jain"] is None, "no minute has passed")
        check(abs(sum(vf["share_error_1s"] for vf in stats["vfs"])) < 1e-5, "share errors cancel out")
        check(stats["switch_ns_total"] > 0 and stats["switch_ns_buckets"], "switches take time")
        for vf in stats["vfs"]:
            check(vf["received_ns"] + vf["waited_ns"] <= vf["runnable_ns"] + 1_000_000, f"waited or ran: {vf}")
            check(0 <= vf["borrowed_ns"] <= vf["received_ns"], "what is borrowed was received")
            check(sum(vf["turn_wait_ns_buckets"].values()) >= vf["slices"] - 1, "each turn has waited")
        lines = it.ctl("stats").splitlines()
        check(all(len(line) <= 150 for line in lines), f"the table fits on a screen: {lines}")
        check("fairness (Jain): 1s 0." in lines[-1] or "fairness (Jain): 1s 1." in lines[-1], lines[-1])
        for channel in it.channels[1:]:
            channel.close()
        it.runs("a", 200)
        check(it.vf("a")["borrowed_ns"] > stats["vfs"][0]["borrowed_ns"], "a borrows what b leaves")


def rows_of(table):
    """{name: {heading: cell}} of a table of vgpuctl."""
    lines = [line.split() for line in table.splitlines()]
    return {cells[0]: dict(zip(lines[0], cells)) for cells in lines[1:] if len(cells) == len(lines[0])}


def percent(cell):
    return float(cell.rstrip("%"))


def test_stats_say_who_has_the_gpu_now():
    with bed() as it:
        it.create("a", "b")
        it.busy("a")
        eventually(lambda: it.vf("a")["utilization"] > 0.8, "a has the GPU alone")
        a_had = it.vf("a")["received_ns"]
        it.channels.pop().close()
        it.busy("b")
        alone = lambda rows: percent(rows["b"]["UTIL"]) > 80 and percent(rows["a"]["UTIL"]) == 0
        eventually(lambda: alone(rows_of(it.ctl("stats"))), "b has it alone now, whatever a had before")
        check(it.vf("a")["received_ns"] >= a_had > 0, "though it had much")
        total = rows_of(it.ctl("stats", "--total"))
        check(percent(total["a"]["RECEIVED"]) > 0, f"--total counts it: {total}")
        listed = rows_of(it.ctl("list"))
        check(percent(listed["b"]["UTIL"]) > 50 and percent(listed["a"]["UTIL"]) == 0, f"list says so, too: {listed}")
        stats = it.stats()
        window = stats["last_second"]
        parts = sum(window[use] for use in ("run_ns", "switch_ns", "idle_ns", "stall_ns"))
        check(0 < window["run_ns"] <= parts <= window["window_ns"] + 1_000_000, f"the GPU's last second: {window}")
        for vf in stats["vfs"]:
            last = vf["last_second"]
            check(0 < last["window_ns"] < 2_000_000_000 and last["received_ns"] <= last["window_ns"], last)
        shown = it.json("show", "b")
        check(shown["utilization"] > 0.5, f"and show: {shown}")


def test_a_vf_has_the_same_row_alone_and_among_all():
    with bed() as it:
        it.create("a", "b")
        it.busy("a", "b")
        it.runs("a", 20)
        both = lambda rows: all(20 < percent(rows[vf]["UTIL"]) < 80 for vf in rows) and rows
        eventually(lambda: both(rows_of(it.ctl("stats"))), "each has about half of the GPU")
        eventually(lambda: both(rows_of(it.ctl("stats", "a"))), "and so has a, alone in its table")
        while it.channels:
            it.channels.pop().close()
        eventually(lambda: it.stats()["last_second"]["run_ns"] == 0, "nobody computes")
        for options in ((), ("--total",)):
            row = rows_of(it.ctl("stats", *options))["a"]
            check(rows_of(it.ctl("stats", "a", *options)) == {"a": row}, f"stats a {options}: {row}")
        check(percent(rows_of(it.ctl("stats", "a", "--total"))["a"]["RECEIVED"]) < 90, "b had the rest")


# ---- History ----

def assert_not_less(before, after):
    for key in COUNTERS:
        check(after[key] >= before[key], f"{key} never goes back: {before[key]} -> {after[key]}")


def test_counters_survive_a_restart():
    with bed() as it:
        it.create("a", "b")
        it.busy("a", "b")
        it.runs("a", 30)
        before, gpu, uuid = it.vf("a"), it.stats(), it.json("show", "a")["uuid"]
        it.ctl("destroy", "b", "--force")
        it.end()
        it.start()
        it.create("a", "b")
        check(it.json("show", "a")["uuid"] == uuid, "a is the same VF")
        assert_not_less(before, it.vf("a"))
        check(sum(it.vf("a")["turn_wait_ns_buckets"].values()) >= sum(before["turn_wait_ns_buckets"].values()),
              "histograms are kept")
        for key in ("run_ns_total", "idle_ns_total", "switch_ns_total"):
            check(it.stats()[key] >= gpu[key], f"{key} never goes back")
        check(it.vf("b")["received_ns"] == 0, "b was destroyed: this one is new")
        it.busy("a")
        check(it.vf("a")["slices"] > before["slices"], "a counts on")


def test_a_killed_daemon_loses_only_what_was_not_written():
    with bed() as it:
        it.create("a")
        it.busy("a")
        it.runs("a", 30)
        written = it.vf("a")
        database = f"{it.state}/usage.db-wal"
        stamps = {os.stat(database).st_mtime_ns}
        # Two writes later everything counted so far is on the disk.
        eventually(lambda: stamps.add(os.stat(database).st_mtime_ns) or len(stamps) > 2, "the history is written")
        it.end(signal.SIGKILL)
        eventually(lambda: not children_alive(it), "vgpud-vf ends")
        it.start()
        it.create("a")
        assert_not_less(written, it.vf("a"))


def children_alive(it):
    """Sockets of VFs whose vgpud-vf still serves them."""
    alive = []
    for entry in os.listdir(f"{it.runtime}/vf") if os.path.isdir(f"{it.runtime}/vf") else []:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET if ".channel." in entry else socket.SOCK_STREAM) as s:
            if s.connect_ex(f"{it.runtime}/vf/{entry}") == 0:
                alive.append(entry)
    return alive


def server_of(it, name):
    """The process id of the VF's vgpud-vf, None when there is none."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{entry}/stat") as stat, open(f"/proc/{entry}/cmdline") as command:
                words = command.read().split("\0")
                if int(stat.read().rsplit(")", 1)[1].split()[1]) == it.process.pid and words[1:3] == ["--name", name]:
                    return int(entry)
    return None


def test_a_failed_vf_keeps_its_figures_until_it_is_destroyed():
    with bed() as it:
        it.create("a", "b")
        it.busy("a", "b")
        it.runs("a", 20)
        before, uuid = it.vf("a"), it.json("show", "a")["uuid"]
        first = server_of(it, "a")
        os.kill(first, signal.SIGKILL)
        eventually(lambda: server_of(it, "a") not in (None, first), "a, which no VM used, is made again")
        eventually(lambda: it.json("show", "a")["state"] == "ready", "a is ready")
        assert_not_less(before, it.vf("a"))
        check(it.json("show", "a")["uuid"] == uuid, "it is the same VF")
        os.kill(server_of(it, "a"), signal.SIGKILL)
        eventually(lambda: it.json("show", "a")["state"] == "failed", "a has failed for the second time in a minute")
        assert_not_less(before, it.vf("a"))
        written = it.vf("a")["received_ns"]
        it.ctl("destroy", "a")
        eventually(lambda: [r["received_ns"] for r in it.json("report")["rows"] if r["destroyed"]] == [written],
                   "the report has all of it")
        it.create("a")
        check(it.json("show", "a")["uuid"] != uuid and it.vf("a")["received_ns"] == 0, "the next a is another VF")


def test_report_over_days():
    with bed() as it:
        it.create("a")
        it.end()
        with sqlite3.connect(f"{it.state}/usage.db") as database:
            # Days to come: days long past would be dropped.
            uuid = database.execute("SELECT uuid FROM vf WHERE name = 'a'").fetchone()[0]
            for day, received in (("2096-01-31", 3_000_000_000), ("2096-02-01", 5_000_000_000)):
                database.execute("INSERT INTO day (day, uuid, received_ns, kernels, turns) VALUES (?, ?, ?, 7, 9)",
                                 (day, uuid, received))
        database.close()
        it.start()
        it.create("a")
        it.busy("a")
        it.runs("a", 30)
        rows = it.json("report", "--from", "2096-01-31", "--to", "2096-02-28")["rows"]
        check([(r["day"], r["name"], r["received_ns"], r["kernels"], r["turns"]) for r in rows]
              == [("2096-01-31", "a", 3_000_000_000, 7, 9), ("2096-02-01", "a", 5_000_000_000, 7, 9)], rows)
        check(it.json("report", "--day", "2096-02-02")["rows"] == [], "nothing on other days")
        check("2096-02-01  a     5.00s" in it.ctl("report", "--day", "2096-02-01"), "the table")
        days = {datetime.datetime.now(datetime.timezone.utc).date().isoformat()}
        before = it.vf("a")["received_ns"]
        today = it.json("report")
        days.add(datetime.datetime.now(datetime.timezone.utc).date().isoformat())
        check(today["from"] in days and before <= sum(r["received_ns"] for r in today["rows"]) <=
              it.vf("a")["received_ns"], "today has everything up to now")
        for arguments, says in ((("--day", "2026-02-30"), "is not a day"), (("--day", "tomorrow"), "is not a day"),
                                (("--from", "2096-02-02", "--to", "2096-02-01"), "is after"),
                                (("--from", "2020-01-01", "--to", "2096-02-01"), "ask for fewer"),
                                (("--day", "2096-02-02", "--to", "2096-02-03"), "not both")):
            done = it.run("report", *arguments)
            check(done.returncode == 2 and says in done.stderr, f"{arguments}: {done}")


def serves_without_history(it, says):
    it.create("a")
    it.busy("a")
    history = it.stats()["history"]
    check(history["state"] == "off" and says in history["error"], history)
    check("history off" in it.ctl("stats"), "the table says so")
    check(says in it.text_of_log(), "the log says so")
    done = it.run("report")
    check(done.returncode == 1 and says in done.stderr, done)
    check(parse_metrics(it.ctl("metrics"))["vgpud_history_up", (GPU,)] == 0, "the metrics say so")


def test_a_damaged_or_foreign_database_does_not_stop_the_service():
    def garbage(path):
        with open(path, "wb") as file:
            file.write(b"\x00\x17" * 5000)

    def foreign(path):
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE songs (title TEXT)")
        database.close()

    def not_a_file(path):
        os.mkdir(path)

    for make, says in ((garbage, "move it away"), (foreign, "of another program"), (not_a_file, "usage history")):
        with bed(start=False) as it:
            os.mkdir(it.state)
            make(f"{it.state}/usage.db")
            it.start()
            serves_without_history(it, says)
    with bed(start=False) as it:
        with open(it.state, "w"):
            pass
        it.start()
        serves_without_history(it, "is a link or no directory")


def test_two_daemons_do_not_count_into_one_file():
    with bed() as first, bed(start=False) as second:
        second.state = first.state
        second.start()
        serves_without_history(second, "another vgpud")


class StoppedThread:
    """Stops one thread of the daemon, as a disk that hangs does. Only of a child may one that traces do so."""
    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
    ALL = 0x40000000  # __WALL

    def __init__(self, pid, name):
        self.libc = ctypes.CDLL(None, use_errno=True)
        tasks = f"/proc/{pid}/task"
        self.tid = next(int(tid) for tid in os.listdir(tasks) if open(f"{tasks}/{tid}/comm").read() == name + "\n")

    def ptrace(self, request):
        zero = ctypes.c_void_p(0)
        return self.libc.ptrace(ctypes.c_long(request), ctypes.c_long(self.tid), zero, zero)

    def __enter__(self):
        check(self.ptrace(self.SEIZE) == 0 and self.ptrace(self.INTERRUPT) == 0, f"ptrace: errno {ctypes.get_errno()}")
        os.waitpid(self.tid, self.ALL)
        return self

    def __exit__(self, *_):
        self.ptrace(self.DETACH)


def test_a_disk_that_hangs_delays_nobody():
    with bed() as it:
        it.create("a")
        it.busy("a")
        with StoppedThread(it.process.pid, "vgpud-history"):
            eventually(lambda: it.stats()["history"]["state"] == "failing", "it is noticed")
            check("has not answered for" in it.stats()["history"]["error"], it.stats()["history"])
            begin = time.monotonic()
            it.create("b")
            it.busy("b")
            it.ctl("set", "b", "--weight", "200")
            it.ctl("destroy", "b", "--force")
            it.runs("a", 5)
            check(parse_metrics(it.ctl("metrics"))["vgpud_history_up", (GPU,)] == 0, "the metrics say so")
            done = it.run("report")
            check(done.returncode == 1 and "has not answered for" in done.stderr, done)
            took = time.monotonic() - begin
            check(took < 10, f"everything else goes on: {took:.1f} s")
        eventually(lambda: it.stats()["history"]["state"] == "on", "it is written again")
        check("written again, nothing is lost" in it.text_of_log(), "the log says so")
        eventually(lambda: {r["name"] for r in it.json("report")["rows"]} == {"a", "b"}, "both are in the report")


if __name__ == "__main__":
    run_tests(globals())
