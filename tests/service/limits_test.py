#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of tenants and of the site hold for the VF that results, at every door: create with options and with a profile, a dry run, a place
in the queue, set, settings of many VFs, files, the calendar, a reload, and definitions that are made VFs again."""
import json
import os
import pathlib
import subprocess
import tempfile

import harness
from harness import check
from vgpuguest import daemon
from vgpuguest.paths import VGPUCTL

REFUSED = 5
CONFIG = """
[site]
ram = "1GiB"
priority = 2
[profile.heavy]
vram = "16MiB"
weight = 5000
[profile.first]
vram = "16MiB"
priority = 3
[profile.stuffed]
vram = "16MiB"
host_memory = "1TiB"
[tenant.team-a]
vfs = 3
vram = "128MiB"
weight_each = 200
guarantee = "30%"
priority = 1
burst_us = 1000
wake_first = 0
"""
# What one VF of team-a may not be, and the key that says so.
TOO_MUCH = [(("--weight", "201"), "weight_each"), (("--slice", "1ms"), "slice_us is not for VFs of tenant team-a, whose weight is limited"),
            (("--group", "0"), "group is not for VFs of tenant team-a"), (("--guarantee", "31%"), "guarantee"), (("--priority", "2"), "priority"),
            (("--burst", "2ms"), "burst_us"), (("--wake-first", "1"), "wake_first is not for")]
TOO_MUCH_AT_CREATE = [(("--vram", "129MiB"), "may have 128MiB vram together"), (("--host-memory", "1TiB"), "host_memory together (which goes with its vram)"),
                      (("--profile", "heavy"), "weight_each"), (("--profile", "first"), "priority"), (("--profile", "stuffed"), "host_memory")]
SMALL = ("--vram", "16MiB")


def ctl(vgpud, *words, given=None):
    """(exit status, standard output, standard error) of vgpuctl."""
    run = subprocess.run([VGPUCTL, "--runtime-dir", vgpud.runtime_dir, "--timeout", "20", *words], input=given, capture_output=True, text=True,
                         timeout=60, check=False)
    return run.returncode, run.stdout, run.stderr


def works(what, answer):
    check(answer[0] == 0, f"{what}: {answer}")


def refused(what, answer, *words):
    check(answer[0] == REFUSED, f"{what}: exit status {REFUSED}: {answer}")
    for word in words:
        check(word in answer[2], f"{what}: the refusal says \"{word}\": {answer[2]}")


def settings_of(vgpud):
    rows = json.loads(ctl(vgpud, "list", "-o", "json")[1])["vfs"]
    return {row["name"]: (row["revision"], row["vram_bytes"], row["host_memory_bytes"]) for row in rows}


def check_create(vgpud):
    before = settings_of(vgpud)
    for wish, says in TOO_MUCH + TOO_MUCH_AT_CREATE:
        memory = () if wish[0] in ("--vram", "--profile") else SMALL
        for door in ((), ("--dry-run",), ("--queue",)):
            refused(f"create {wish} {door}", ctl(vgpud, "create", "x", "--tenant", "team-a", *memory, *wish, *door), says)
    check(settings_of(vgpud) == before, "nothing was made")


def check_changes(vgpud):
    before = settings_of(vgpud)
    for wish, says in TOO_MUCH:
        key, value = wish[0].removeprefix("--"), wish[1]
        for door in ((), ("--dry-run",)):
            refused(f"set {wish} {door}", ctl(vgpud, "set", "a1", *wish, *door), says)
            refused(f"apply {wish} {door}", ctl(vgpud, "apply", "root1:weight=100", f"a1:{key}={value}", *door), says)
    refused("a file", ctl(vgpud, "apply", "--file", "-", given="[vf.a1]\npriority = 2\n"), "priority")
    refused("a new VF of a file", ctl(vgpud, "apply", "--file", "-", given='[vf.x]\ntenant = "team-a"\nvram = "16MiB"\nweight = 300\n'), "weight_each")
    check(settings_of(vgpud) == before, "nothing was changed")


def check_site(vgpud):
    """Whoever it is."""
    refused("root's priority", ctl(vgpud, "set", "root1", "--priority", "3"), "VFs of this host may have, 2 each", "[site]")
    refused("root's profile", ctl(vgpud, "create", "x", "--profile", "first"), "priority", "[site]")
    refused("root's memory", ctl(vgpud, "create", "x", *SMALL, "--host-memory", "1TiB"), "this host may have 1GiB ram together", "would have")
    refused("VRAM of the soft GPU", ctl(vgpud, "create", "x", "--vram", "950MiB", "--host-memory", "16MiB"), "ram together")
    site = json.loads(ctl(vgpud, "tenants", "-o", "json")[1])["site"]
    check(site["vfs"] == 3 and site["quota"]["ram_bytes"] == 1 << 30 and site["ram_bytes"] == 3 * (32 << 20), f"all together: {site}")
    check("(all VFs)" in ctl(vgpud, "tenants")[1], "and people read it")


def check_waits_for_ram(vgpud):
    big = ("create", "big", "--vram", "16MiB", "--host-memory", "1000MiB")
    waiting = subprocess.Popen([VGPUCTL, "--runtime-dir", vgpud.runtime_dir, *big, "--queue"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    harness.wait_until(lambda: json.loads(ctl(vgpud, "gpus", "-o", "json")[1])["waiting"] == 1, "what fits into the empty host waits")
    for name in ("a1", "a2", "root1"):
        works("room", ctl(vgpud, "destroy", name))
    check(waiting.wait(30) == 0 and vgpud.names() == ["big"], "and is made when there is room")
    refused("not beside it", ctl(vgpud, "create", "x", *SMALL, "--host-memory", "16MiB"), "ram together")


def check_calendar(vgpud, config):
    works("for the calendar", ctl(vgpud, "create", "a1", "--tenant", "team-a", *SMALL, "--host-memory", "16MiB"))
    works("for the calendar", ctl(vgpud, "create", "root1", *SMALL, "--host-memory", "16MiB"))
    config.write_text(CONFIG + "[calendar.always.vf.a1]\nweight = 800\n[calendar.always.vf.root1]\npriority = 3\n[calendar.more.vf.root1]\nweight = 300\n")
    works("reload", ctl(vgpud, "config", "reload"))

    def problem():
        return json.loads(ctl(vgpud, "calendar", "-o", "json")[1]).get("problem", "")
    harness.wait_until(lambda: "weight_each" in problem() and "[site]" in problem(), "the calendar is bound as everybody, and says so")
    check((vgpud.show("a1")["weight"], vgpud.show("root1")["priority"]) == (100, 1), "nothing of that holds")


def check_reload(vgpud, config):
    """What is there stays, and gets no more."""
    works("as much as it may", ctl(vgpud, "set", "a1", "--weight", "200"))
    config.write_text(CONFIG.replace("weight_each = 200", "weight_each = 100"))
    works("reload", ctl(vgpud, "config", "reload"))
    check(vgpud.show("a1")["weight"] == 200, "no VF is touched")
    refused("more", ctl(vgpud, "set", "a1", "--weight", "201"), "weight_each")
    works("less, still above", ctl(vgpud, "set", "a1", "--weight", "150"))
    refused("back", ctl(vgpud, "set", "a1", "--weight", "200"), "weight_each")


def check_kept(config):
    with tempfile.TemporaryDirectory() as state:
        options = ["--config", str(config), "--state-dir", state]
        config.write_text(CONFIG)
        with daemon.private_daemon([], options) as vgpud:
            works("kept", ctl(vgpud, "create", "a1", "--tenant", "team-a", *SMALL, "--host-memory", "16MiB", "--weight", "200"))
            works("kept", ctl(vgpud, "create", "large", *SMALL, "--host-memory", "600MiB"))
            works("kept", ctl(vgpud, "create", "small", *SMALL, "--host-memory", "16MiB"))
        config.write_text(CONFIG.replace('ram = "1GiB"', 'ram = "512MiB"').replace("weight_each = 200", "weight_each = 100"))
        with daemon.private_daemon([], options) as vgpud:
            check(vgpud.show("a1")["weight"] == 200, "a tenant keeps what it has over a lowered quota")
            check("vf=a1: keeps what it has, and would not get it now" in pathlib.Path(vgpud.log).read_text(), "and the log says so")
            refused("more", ctl(vgpud, "set", "a1", "--weight", "201"), "weight_each")
            lost = vgpud.show("large")
            check(lost["state"] == "lost" and "ram together" in lost["reason"], f"what the host can't hold is lost: {lost}")
            check(vgpud.show("small")["state"] == "ready", "others are not")
            works("what is lost takes nothing of the host", ctl(vgpud, "create", "more", *SMALL, "--host-memory", "200MiB"))


def check_host(config):
    """Without a word about it nobody gets more than the host has."""
    config.write_text('[tenant.team-a]\nvfs = 1\nvram = "1MiB"\n')
    has = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with daemon.private_daemon([], ["--config", str(config)]) as vgpud:
        refused("a tenant", ctl(vgpud, "create", "x", "--tenant", "team-a", "--vram", "1MiB", "--host-memory", "1TiB"), "may have 256.5MiB host_memory")
        works("as much as goes with its VRAM", ctl(vgpud, "create", "x", "--tenant", "team-a", "--vram", "1MiB"))
        site = json.loads(ctl(vgpud, "tenants", "-o", "json")[1])["site"]
        check(site["quota"]["ram_bytes"] == has, f"this host has {has}: {site}")
        if has < 1 << 40:
            refused("root", ctl(vgpud, "create", "y", "--vram", "1MiB", "--host-memory", "1TiB"), "(what the host has)")


def main():
    with tempfile.TemporaryDirectory() as directory:
        config = pathlib.Path(directory) / "vgpud.toml"
        config.write_text(CONFIG)
        with daemon.private_daemon([], ["--config", str(config), "--policy", "reserve"]) as vgpud:
            for name, tenant in (("a1", ("--tenant", "team-a")), ("a2", ("--tenant", "team-a")), ("root1", ())):
                works("within the limits", ctl(vgpud, "create", name, *tenant, *SMALL, "--host-memory", "16MiB"))
            check_create(vgpud)
            check_changes(vgpud)
            check_site(vgpud)
            check_waits_for_ram(vgpud)
            works("room", ctl(vgpud, "destroy", "big"))
            check_calendar(vgpud, config)
        config.write_text(CONFIG)
        with daemon.private_daemon([], ["--config", str(config)]) as vgpud:
            works("within the limits", ctl(vgpud, "create", "a1", "--tenant", "team-a", *SMALL))
            check_reload(vgpud, config)
        check_kept(config)
        check_host(config)


if __name__ == "__main__":
    harness.main(main, needs_guest=False)
