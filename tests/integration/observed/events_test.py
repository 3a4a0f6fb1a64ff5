#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl events and logs, on the real daemon: what is recorded, by whom it was caused, and that followers get all of it.

usage: events_test.py    environment: as observed_daemon.py says
"""
import json
import os
import pwd
import re
import signal
import subprocess

from observed_daemon import VGPUCTL, bed, check, eventually, run_tests

ME = pwd.getpwuid(os.getuid()).pw_name


class Follower:
    """A vgpuctl that follows, and the lines that it has printed."""

    def __init__(self, it, *arguments):
        self.process = subprocess.Popen([VGPUCTL, "--runtime-dir", it.runtime, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.lines = []

    def until(self, pattern):
        """Reads on until a line matches; the pipe's end is a failure."""
        while not (self.lines and re.search(pattern, self.lines[-1])):
            line = self.process.stdout.readline()
            check(line, f"a line with {pattern} comes after {self.lines}")
            self.lines.append(line.rstrip("\n"))
        return self.lines[-1]

    def end(self):
        self.process.kill()
        self.process.communicate()


def kinds(it, *arguments):
    return [event["kind"] for event in it.json("events", *arguments)["events"]]


def executor_of(it, name):
    """The host's pid of the executor, which the bed's channel has."""
    found = subprocess.run(["pgrep", "-P", str(it.process.pid), "-f", f"vgpud-exec.*{name}"], capture_output=True, text=True)
    pids = found.stdout.split()
    check(len(pids) == 1, f"one executor of {name}: {pids}")
    return int(pids[0])


def test_what_happens_to_a_vf_is_an_event():
    with bed() as it:
        it.create("a")
        it.ctl("set", "a", "--weight", "300")
        it.ctl("set", "a", "--weight", "300")  # which changes nothing
        it.ctl("set", "a", "--weight", "200", "--dry-run")
        it.ctl("pause", "a")
        it.ctl("resume", "a")
        it.ctl("set-gpu", "--base-slice", "3ms")
        it.busy("a")
        pid = executor_of(it, "a")
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: "ended" in kinds(it), "the executor's end is an event")
        it.ctl("reset", "a")
        it.ctl("destroy", "a", "--force")
        check(kinds(it) == ["started", "created", "changed", "changed", "changed", "changed", "ended", "reset", "destroyed"],
              f"each once, in order: {kinds(it)}")
        check(kinds(it, "a") == ["created", "changed", "changed", "changed", "ended", "reset", "destroyed"], f"of a: {kinds(it, 'a')}")
        events = it.json("events")["events"]
        check([event["number"] for event in events] == list(range(1, len(events) + 1)), "numbers without gaps")
        check(events[2]["changes"] == [{"vf": "a", "field": "weight", "old": 100, "new": 300}], f"old and new: {events[2]}")
        check(all(event["by"] == f"user {os.getuid()}" for event in events if event["kind"] in ("created", "changed", "reset", "destroyed")),
              f"by whom: {events}")
        check(events[6]["pid"] == pid and "signal 9" in events[6]["text"], f"which process, and how: {events[6]}")
        text = it.ctl("events", "a").splitlines()
        check(re.search(rf"changed +a +weight 100 -> 300 by {ME}$", text[1]), f"for people: {text}")
        check(re.search(rf"changed +a +paused false -> true by {ME}$", text[2]), f"for people: {text}")
        check("(pid %d)" % pid in text[4], f"for people: {text}")
        check(re.search(rf"gpu soft0 +base_slice 2ms -> 3ms by {ME}$", it.ctl("events").splitlines()[5]), it.ctl("events"))


def test_show_has_the_latest_of_its_vf():
    with bed() as it:
        it.create("a", "b")
        for weight in range(101, 108):
            it.ctl("set", "a", "--weight", str(weight))
        recent = it.json("show", "a")["recent_events"]
        check([event["changes"][0]["new"] for event in recent] == [103, 104, 105, 106, 107], f"the latest five: {recent}")
        text = it.ctl("show", "a")
        check("\nrecent events:\n" in text and "weight 106 -> 107" in text and "recent_events" not in text, text)
        check([event["kind"] for event in it.json("show", "b")["recent_events"]] == ["created"], "of b alone")


def test_a_follower_gets_each_as_it_comes():
    with bed() as it:
        it.create("a")
        people, programs = Follower(it, "events", "-f"), Follower(it, "events", "a", "--follow", "-o", "json")
        people.until("created +a")
        programs.until('"created"')
        it.create("b")
        it.ctl("set", "a", "--weight", "50")
        people.until("weight 100 -> 50")
        check(any("created" in line and " b " in line for line in people.lines), f"all VFs: {people.lines}")
        programs.until('"changed"')
        check([json.loads(line)["kind"] for line in programs.lines] == ["created", "changed"], f"of a alone: {programs.lines}")
        it.end()
        out, err = people.process.communicate(timeout=20)
        check(people.process.returncode == 3 and err.startswith("vgpuctl: vgpud has ended the connection: "), f"the end is told: {people.process.returncode} {out}{err}")
        programs.end()


def test_numbers_let_a_client_go_on():
    with bed() as it:
        it.create("a")
        first = it.json("events")
        it.ctl("destroy", "a")
        more = json.loads(subprocess.run(["curl", "-s", "--unix-socket", f"{it.runtime}/control.sock",
                                          f"http://x/v1/events?after={first['next']}"], capture_output=True, text=True).stdout)
        check([event["kind"] for event in more["events"]] == ["destroyed"] and more["missed"] == 0, f"only what is new: {more}")


def test_lost_and_failed_vfs_are_events():
    with bed() as it:
        it.ctl("create", "kept", "--vram", "64MiB")
        it.end()
        with open(f"{it.state}/vfs/kept.json", "w") as file:
            file.write("{")
        it.start()
        check("lost" in kinds(it, "kept"), f"a damaged definition: {it.ctl('events')}")
        it.create("b")
        server = int(subprocess.run(["pgrep", "-P", str(it.process.pid), "-f", "vgpud-vf.*b"], capture_output=True, text=True).stdout)
        os.kill(server, signal.SIGKILL)
        eventually(lambda: kinds(it, "b")[:3] == ["created", "failed", "remade"], f"a VF whose vgpud-vf died: {kinds(it, 'b')}")


def test_wait_ends_when_it_is_so():
    with bed() as it:
        def waiting(goal, *more):
            return subprocess.Popen([VGPUCTL, "--runtime-dir", it.runtime, "wait", "a", "--for", goal, *more], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)

        def result(process):
            out, err = process.communicate(timeout=30)
            return process.returncode, (out + err).strip()

        check(result(waiting("gone")) == (0, "a is gone"), "one that is not there is gone")
        check(result(waiting("idle"))[0] == 4, "and not idle")
        code, text = result(waiting("ready", "--timeout", "200ms"))
        check(code == 6 and text == 'vgpuctl: vf "a" is not ready after 200 ms: there is no such VF', f"{code} {text}")
        ready = waiting("ready")
        it.create("a")
        check(result(ready) == (0, "a is ready"), "it is ready when it is there")
        it.busy("a")
        code, text = result(waiting("idle", "--timeout", "200ms"))
        check(code == 6 and text.endswith("it is ready and 1 program uses it"), f"{code} {text}")
        idle, gone = waiting("idle", "-o", "json"), waiting("gone")
        check(idle.poll() is None and gone.poll() is None, "both wait")
        it.channels.pop().close()
        code, text = result(idle)
        check(code == 0 and json.loads(text)["executors"] == 0, f"idle when the program has ended: {code} {text}")
        it.ctl("destroy", "a")
        check(result(gone) == (0, "a is gone"), "gone when it is destroyed")
        left = waiting("ready")
        left.kill()  # vgpud forgets who has left
        left.communicate()
        it.create("a")
        check(it.json("show", "a")["state"] == "ready", "vgpud lives on")


def test_wait_does_not_wait_for_what_needs_somebody():
    with bed() as it:
        it.ctl("create", "kept", "--vram", "64MiB")
        it.end()
        with open(f"{it.state}/vfs/kept.json", "w") as file:
            file.write("{")
        it.start()
        for goal in ("ready", "idle"):
            done = it.run("wait", "kept", "--for", goal)
            check(done.returncode == 5 and 'vf "kept" is lost' in done.stderr, f"{goal}: {done}")


def test_ps_shows_the_programs():
    with bed() as it:
        it.create("a", "b")
        check(it.json("ps")["processes"] == [], "nobody")
        it.busy("a")
        it.runs("a", 3)
        process, = it.json("ps")["processes"]
        check((process["vf"], process["gpu"], process["pid"]) == ("a", "soft0", os.getpid()), f"whose it is: {process}")
        check(process["executor_pid"] == executor_of(it, "a"), f"what does its work: {process}")
        eventually(lambda: it.json("ps")["processes"][0]["cpu_ns"] > 0, "its processor time is counted")
        check(it.json("ps", "b")["processes"] == [] and len(it.json("ps", "a")["processes"]) == 1, "of one VF")
        rows = it.ctl("ps").splitlines()
        check(rows[0].split() == ["VF", "PID", "EXECUTOR", "USER", "DOMAIN", "VRAM", "GPU-TIME", "CPU-TIME"] and len(rows) == 2, f"{rows}")
        check(rows[1].split()[:3] == ["a", str(os.getpid()), str(process["executor_pid"])], f"{rows}")
        done = it.run("ps", "nosuch")
        check(done.returncode == 4, f"{done}")


def test_doctor_says_what_is_wrong_and_the_fix():
    with bed() as it:
        it.create("a")
        checks = {each["check"]: each for each in it.json("doctor")["checks"]}
        check(checks["daemon"]["verdict"] == "ok" and checks["daemon"]["what"] == "vgpud answers, 1 VFs", f"{checks['daemon']}")
        check(all(checks[name]["verdict"] == "ok" for name in ("vfs", "permissions", "history")), f"{checks}")
        check(all(each["verdict"] == "ok" or each["fix"] for each in checks.values()), f"each has its fix: {checks}")
        cdi = f"{it.root}/cdi.json"
        it.end()
        with open(f"{it.state}/usage.db", "w") as file:
            file.write("this is no database, and long enough to be told from an empty file" * 20)
        it.start("--cdi-file", cdi)
        it.create("b")
        eventually(lambda: [each["verdict"] for each in it.json("doctor")["checks"] if each["check"] == "cdi"] == ["ok"], "containers get all VFs")
        lines = {line.split()[1]: line for line in it.ctl("doctor").splitlines()}
        check(lines["history"].startswith("warn") and "(fix: " in lines["history"], lines["history"])
        os.unlink(cdi)
        done = it.run("doctor")
        check(done.returncode == 7 and f"FAIL  cdi          containers get no VF: vgpud could not write {cdi} (fix: " in done.stdout, f"{done}")
        with open(cdi, "w") as file:
            file.write("{")
        done = it.run("doctor")
        check(done.returncode == 7 and re.search(r"^FAIL  cdi .* is not JSON.*\(fix: ", done.stdout, re.MULTILINE), f"{done}")
        it.end()
        done = it.run("doctor")
        check(done.returncode == 7 and done.stdout.startswith("FAIL  daemon ") and "no vgpud reachable" in done.stdout and not done.stderr,
              f"{done}")


def test_logs_are_those_of_the_vf():
    with bed() as it:
        it.create("a", "b")
        follower = Follower(it, "logs", "-f", "a")
        it.busy("a", "b")
        follower.until(r" vgpud-vf\[a\]: info: .*channel=")
        follower.end()
        text = it.ctl("logs", "a")
        check("vgpud-vf[a]" in text and "[b]" not in text, text)
        it.ctl("destroy", "a", "--force")
        check(it.ctl("logs", "a").startswith(text), "also when it is gone")
        done = it.run("logs", "nosuch")
        check(done.returncode == 4 and 'there is no vf "nosuch"' in done.stderr, f"{done}")


run_tests(globals())
