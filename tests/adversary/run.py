#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the attacks of this directory and says for each what it tried, what stopped it, and what the others had meanwhile.

usage: run.py [--only NAME,...] [--quick] [--list] [--rung root|user|bare] [--throughput 0.95] [--share 0.02] [--json]
The last line is "N passed, N failed", and ", N skipped" where this host or rung gives no way to try one; exit 1 when one failed.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

_HERE = pathlib.Path(__file__).resolve().parent
_REPO = _HERE.parents[1]
sys.dont_write_bytecode = True
sys.path[:0] = [str(_HERE), str(_REPO / "tools" / "lib"), str(_REPO / "tests" / "vm"), str(_REPO / "tests" / "integration")]
import askers  # noqa: E402
import bed  # noqa: E402
from bed import NotHere  # noqa: E402
import hostile_clients as c  # noqa: E402
import rungs  # noqa: E402
import table  # noqa: E402
import users  # noqa: E402
from vgpuguest import control, daemon, process  # noqa: E402

BASELINE_SECONDS = 1.0
CALL_PAUSE = 0.25  # vgpud's log takes five lines of a kind per second
TRIES = 3
# Processor time that can't have slowed anybody down by a twentieth: less throughput was for want of a CPU that others had.
CHEAP = 0.04
# Other programs that use so many CPUs make a throughput say nothing.
BUSY = 0.2
FIRST = -15  # nice value, of a thread
PULSE = 0.05
QUICK = ("executor.ptrace", "executor.own-signals", "executor.wx-mmap", "executor.grant-write", "executor.sleeps-on-gpu",
         "executor.map-beyond", "executor.map-keep", "executor.log-forgery", "vf.generation-back", "vf.kill", "guest.param-overflow",
         "client.blocking-signals")


class Verdict:
    def __init__(self, attack):
        self.attack = attack
        self.complaints = []
        self.stopped_by = attack.stopped_by
        self.figures = {}
        self.tries = 1
        self.not_here = ""
        self.answer = 0.0  # seconds that vgpud took at most to answer at the control socket

    def line(self):
        a, f = self.attack, self.figures
        figures = (f"; good had {f['share']:.3f} of {f['entitled']:.3f}, {f['throughput']:.2f} of its throughput "
                   f"({f['paced']:.2f} with the CPU that it got), the attack took {f['cost']:.2f} CPUs"
                   + (f", NOT JUDGED: other programs took {f['others']:.2f}" if f["others"] > BUSY else "")) if f else ""
        again = f" (measured {self.tries} times)" if self.tries > 1 else ""
        if self.not_here:
            return f"skipped {a.name}: {self.not_here}"
        figures += f"; vgpud answered within {self.answer * 1e3:.0f} ms" if f else ""
        if self.complaints:
            return f"FAILED {a.name}: tried: {a.about}; {'; '.join(self.complaints)}{figures}{again}"
        return f"ok {a.name}: tried: {a.about}; stopped by: {self.stopped_by}{figures}{again}"


def figures(before, now):
    """What "good" got beside what it is entitled to. Its share is of the time that vgpud handed out; what it counted is of the
    time that passed, so that time which nobody had counts. What the attacked VF is entitled to goes off, no more.

    "paced" is its throughput with the CPU that it got: what others on this host took away is not in it. "cost" is the
    processor time that the attack takes from everybody, of bad outside of its turns and of vgpud; "others" what programs took
    that have nothing to do with it, all in CPUs."""
    handed_out = sum(now.share.values())
    bad = now.share.get("bad", 0.0) / handed_out
    left = 1 - min(bad, 1 / 3)
    return {"share": now.share["good"] / handed_out, "entitled": left / 2, "bad": bad,
            "throughput": now.rate / before.rate / left,
            "paced": now.pace / before.pace * min(1, handed_out / sum(before.share.values())),
            "others": max(before.others, now.others), "cost": max(0.0, now.outside.get("bad", 0.0)) + max(0.0, now.vgpud - before.vgpud)}


def unfair(found, options):
    if found["bad"] > 1 / 3 + options.share:
        yield f"bad had {found['bad']:.3f} of the GPU"
    if found["share"] < found["entitled"] - options.share:
        yield f"the share is {found['entitled'] - found['share']:.3f} too small"
    cheap = found["cost"] <= CHEAP and found["paced"] >= options.throughput
    if found["throughput"] < options.throughput and not cheap and found["others"] <= BUSY:
        yield f"throughput {found['throughput']:.3f} is below {options.throughput}"


class Pulse:
    """Asks vgpud at the control socket all the time; `patience`: seconds until it gives up and asks again. Where it may, before others that want
    a processor: what is measured is vgpud's wait, not its own."""

    def __init__(self, made, patience):
        self.patience = patience
        self.path = os.path.join(made.vgpud.runtime_dir, "control.sock")
        self.slowest = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def _ask(self):
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), FIRST)
        since = time.monotonic()
        while not self._over.wait(PULSE):
            with contextlib.suppress(OSError), control.connect(self.path, self.patience) as connection:
                connection.sendall(b"GET /v1/vfs/good HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                if connection.recv(100).startswith(b"HTTP/1.1 200"):
                    answered = time.monotonic()
                    self.slowest, since = max(self.slowest, answered - since - PULSE), answered
        self.slowest = max(self.slowest, time.monotonic() - since - PULSE)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


def keep_an_executor(made, attack, end, seen):
    """Opens a channel of "bad", or a crowd of them, and another one when its executor has ended."""
    vf, clients, opened = made.vgpud.show("bad"), [], 0
    while time.monotonic() < end and not seen():
        for client in [client for client in clients if client.state == 2]:
            client.close()
            clients.remove(client)
        while len(clients) < attack.crowd and (attack.again or opened < attack.crowd):
            try:
                clients.append(c.ChannelClient(vf))
            except (OSError, EOFError):
                break
            opened += 1
        time.sleep(0.02)
    for client in clients:
        client.close()


def act(made, attack):
    end = time.monotonic() + attack.seconds
    start = len(made.log_text())

    def seen():
        return attack.until and re.search(attack.pattern, made.log_text()[start:]) is not None
    if attack.needs and attack.needs not in made.protections():
        raise NotHere(f"{attack.needs} is not in force")
    if attack.run is not None:
        attack.run(made, end)
    if attack.actor == "executor":
        keep_an_executor(made, attack, end, seen)
    while time.monotonic() < end and not seen():
        time.sleep(0.02)


def judge_log(attack, log):
    if attack.pattern and not re.search(attack.pattern, log):
        yield f"the log does not say {attack.pattern!r}"
    if found := re.search(attack.forbidden, log):
        yield f"the log says {found[0]!r}"


def one(made, attack, options):
    """Attacks once."""
    verdict = Verdict(attack)
    log_before = len(made.log_text())
    bed.set_target(made.target, attack.name, made.vgpud)
    made.vgpud.create("bad", vram="64MiB", slice="2ms")
    with made.window() as before:
        time.sleep(BASELINE_SECONDS)
    with made.window() as now, Pulse(made, attack.answer) as pulse:
        try:
            act(made, attack)
        except NotHere as reason:
            verdict.not_here = str(reason)
        except (AssertionError, OSError, EOFError, daemon.ToolError) as error:
            verdict.complaints.append(f"the attack says {error!r}")
    if verdict.not_here:
        verdict.complaints += made.remove_bad()
        return verdict
    verdict.figures, verdict.answer = figures(before[0], now[0]), pulse.slowest
    if pulse.slowest > attack.answer:
        verdict.complaints.append(f"vgpud took {pulse.slowest:.2f} s to answer")
    shown = made.vgpud.show("bad")
    end = time.monotonic() + 2
    while True:
        complaints = list(judge_log(attack, made.log_text()[log_before:]))
        if not complaints or time.monotonic() > end:
            break
        time.sleep(0.1)
    verdict.complaints += complaints
    if attack.check is not None and (complaint := attack.check(made.vgpud.show("bad"), now[0].vfs["bad"])):
        verdict.complaints.append(complaint)
    verdict.complaints += [*made.unnoticed(), *made.remove_bad()]
    log = made.log_text()[log_before:]
    verdict.stopped_by = attack.stopped_by or table.tried(log)
    if options.verbose:
        print(f"--- {attack.name}: {shown['state']}\n" + "\n".join(log.splitlines()[:options.verbose]), flush=True)
    return verdict


def measured(made, attack, options):
    """Attacks, and again where only the shares are off: the host has other things to do as well."""
    complaints = []
    for tries in range(1, TRIES + 1):
        try:
            verdict = one(made, attack, options)
        except (daemon.ToolError, subprocess.TimeoutExpired, ValueError) as error:
            verdict = Verdict(attack)
            verdict.complaints.append(f"vgpud or the meter do not answer: {error}".splitlines()[0])
        verdict.tries = tries
        if not verdict.figures:
            break
        complaints = list(unfair(verdict.figures, options))
        if verdict.complaints or (not complaints and (verdict.figures["others"] <= BUSY or options.once)):
            break
    verdict.complaints += complaints
    return verdict


def one_call(made, attack):
    verdict = Verdict(attack)
    start = len(made.log_text())
    bed.set_target(made.target, attack.name, made.vgpud)
    begin = time.monotonic()
    with contextlib.suppress(OSError), c.ChannelClient(made.vgpud.show("bad")):
        while (complaints := list(judge_log(attack, made.log_text()[start:]))) and time.monotonic() < begin + 5:
            time.sleep(0.02)
    verdict.complaints += complaints
    verdict.stopped_by = attack.stopped_by or table.tried(made.log_text()[start:])
    time.sleep(max(0.0, begin + CALL_PAUSE - time.monotonic()))
    return verdict


def calls(made, attacks, options):
    """Attacks of one system call each, one after the other, in one measurement."""
    for tries in range(1, TRIES + 1):
        made.vgpud.create("bad", vram="64MiB", slice="2ms")
        with made.window() as before:
            time.sleep(BASELINE_SECONDS)
        with made.window() as now:
            verdicts = [one_call(made, attack) for attack in attacks]
        found = figures(before[0], now[0])
        complaints = [*made.unnoticed(), *made.remove_bad()]
        if not list(unfair(found, options)) or complaints:
            break
    for verdict in verdicts:
        verdict.complaints += [*complaints, *unfair(found, options)]
    verdicts[-1].figures, verdicts[-1].tries = found, tries
    return verdicts


def run_actor(actor, attacks, options):
    rest = [attack for attack in attacks if not attack.call]
    single = [attack for attack in attacks if attack.call]
    while single or rest:
        with bed.bed(actor, askers.ARGUMENTS + users.ARGUMENTS) as made:
            if single:
                yield from calls(made, single, options)
                single = []
            while rest:
                verdict = measured(made, rest.pop(0), options)
                yield verdict
                if verdict.complaints:
                    break  # the next ones get a vgpud that nothing has been done to


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="names, or their beginnings, with commas")
    parser.add_argument("--quick", action="store_true", help="a few of each kind")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--rung", choices=rungs.NAMES, default="own", help="run all as: own (as started) " + rungs.__doc__)
    parser.add_argument("--throughput", type=float, default=0.95, help="least part of its throughput that good keeps")
    parser.add_argument("--share", type=float, default=0.02, help="by how much a share may be off")
    parser.add_argument("--once", action="store_true", help="does not wait for a calm host with a second and third measurement")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--verbose", type=int, default=0, metavar="LINES", help="lines of the log of each attack")
    return parser.parse_args()


def main():
    options = parse()
    rungs.enter(options.rung)
    process.unwind_on_signals()
    wanted = [name for name in options.only.split(",") if name] or (QUICK if options.quick else ("",))
    exact = options.quick
    chosen = [a for a in table.attacks() if any(a.name == name if exact else a.name.startswith(name) for name in wanted)]
    if options.list:
        for attack in chosen:
            print(f"{attack.name}\t{attack.about}")
        return 0
    failed, skipped, unjudged = [], [], []
    for actor in dict.fromkeys(attack.actor if attack.actor in bed.ADVERSARIES else "real" for attack in chosen):
        mine = [a for a in chosen if (a.actor if a.actor in bed.ADVERSARIES else "real") == actor]
        for verdict in run_actor(actor, mine, options):
            print(json.dumps({"name": verdict.attack.name, "complaints": verdict.complaints, "answer": verdict.answer,
                              "not_here": verdict.not_here, **verdict.figures})
                  if options.json else verdict.line(), flush=True)
            if verdict.figures and verdict.figures["others"] > BUSY:
                unjudged.append(verdict.attack.name)
            if verdict.complaints:
                failed.append(verdict.attack.name)
            elif verdict.not_here:
                skipped.append(verdict.attack.name)
    for name in failed:
        print(f"not stopped: {name}")
    if unjudged:
        print(f"throughput not judged, this host was too busy: {len(unjudged)} of {len(chosen)} ({', '.join(unjudged)})")
    print(f"{len(chosen) - len(failed) - len(skipped)} passed, {len(failed)} failed" +
          (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    os.environ.pop("VGPUD_RUNTIME_DIR", None)
    sys.exit(main())
