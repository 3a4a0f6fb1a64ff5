#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tenants, users and the calendar of a real vgpud: quotas at create, set and reload, who may do what by the kernel's word, and settings
of a period that come and go, also over a restart."""
import json
import os
import pathlib
import subprocess
import tempfile

import harness
from harness import check
from vgpuguest import daemon
from vgpuguest.paths import VGPUCTL

QUOTAS = """
[tenant.team-a]
vfs = 2
vram = "1GiB"
weight = 300
guarantee = "30%"
priority = 1
[tenant.team-b]
"""
USERS = """
[daemon]
others_may = "nothing"
[tenant.team-a]
vfs = 3
[tenant.team-b]
vfs = 3
[user.61001]
may = "manage"
[user.61002]
may = "manage"
tenant = "team-a"
[user.61003]
may = "look"
"""
REFUSED = 5


def ctl(vgpud, *words, user=None):
    """(exit status, standard output, standard error) of vgpuctl, run by that user number."""
    as_user = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
    run = subprocess.run([VGPUCTL, "--runtime-dir", vgpud.runtime_dir, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=60, check=False, **as_user)
    return run.returncode, run.stdout, run.stderr


def refused(what, answer, *words):
    check(answer[0] == REFUSED, f"{what}: exit status {REFUSED}: {answer}")
    for word in words:
        check(word in answer[2], f"{what}: the refusal says \"{word}\": {answer[2]}")


def reload(vgpud, config, text):
    config.write_text(text)
    status, out, err = ctl(vgpud, "config", "reload")
    check(status == 0, f"reload: {err}")
    return out


def check_quotas(vgpud, config):
    check(ctl(vgpud, "create", "a1", "--tenant", "team-a", "--vram", "512MiB")[0] == 0, "within the quota")
    refused("too much memory", ctl(vgpud, "create", "a2", "--tenant", "team-a", "--vram", "768MiB"), "may have 1GiB vram", "512MiB")
    check(ctl(vgpud, "create", "a2", "--tenant", "team-a", "--vram", "512MiB")[0] == 0, "to the byte")
    refused("one VF too many", ctl(vgpud, "create", "a3", "--tenant", "team-a", "--vram", "1MiB"), "may have 2 vfs")
    check(ctl(vgpud, "create", "b1", "--vram", "64MiB")[0] == 0, "without a tenant there is no quota")
    status, _, err = ctl(vgpud, "create", "x", "--tenant", "team-c")
    check(status == 2 and 'no tenant "team-c"' in err, f"an unknown tenant: {err}")
    refused("weights", ctl(vgpud, "set", "a1", "--weight", "201"), "may have 300 weight", "200")
    check(ctl(vgpud, "set", "a1", "--weight", "200")[0] == 0, "as much weight as it may")
    ctl(vgpud, "set-gpu", "--policy", "reserve")
    check(ctl(vgpud, "set", "a1", "--guarantee", "20%")[0] == 0, "a guarantee within the quota")
    refused("guarantees", ctl(vgpud, "set", "a2", "--guarantee", "11%"), "may have 30% guarantee")
    refused("guarantees of a file", ctl(vgpud, "apply", "a1:guarantee=25%", "a2:guarantee=10%"), "guarantee")
    check(ctl(vgpud, "apply", "a1:guarantee=15%", "a2:guarantee=15%")[0] == 0, "moved from one to the other at once")
    rows = {row["name"]: row for row in json.loads(ctl(vgpud, "tenants", "-o", "json")[1])["tenants"]}
    check(rows["team-a"]["vfs"] == 2 and rows["team-a"]["vram_bytes"] == 1 << 30 and abs(rows["team-a"]["guarantee"] - 0.3) < 1e-9,
          f"what it has: {rows}")
    check('tenant="team-a"' in ctl(vgpud, "metrics")[1], "metrics name the tenant")
    check("team-a" in ctl(vgpud, "tenants")[1], "and people read it")
    # A lowered quota takes nothing away, and gives nothing more.
    reload(vgpud, config, QUOTAS.replace("vfs = 2", "vfs = 1"))
    check(len(vgpud.names()) == 3, "all VFs are there")
    ctl(vgpud, "destroy", "a2")
    refused("over a lowered quota", ctl(vgpud, "create", "a4", "--tenant", "team-a", "--vram", "1MiB"), "may have 1 vfs")


def check_waiting(vgpud, config):
    waiting = subprocess.Popen([VGPUCTL, "--runtime-dir", vgpud.runtime_dir, "create", "a5", "--tenant", "team-a", "--vram", "1MiB", "--queue"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while json.loads(ctl(vgpud, "gpus", "-o", "json")[1])["waiting"] != 1:
        check(waiting.poll() is None, "it waits for its tenant's quota")
    late = subprocess.run([VGPUCTL, "--runtime-dir", vgpud.runtime_dir, "--timeout", "20", "create", "b2", "--vram", "1MiB", "--queue"],
                          capture_output=True, timeout=60, check=False)
    check(late.returncode == 0, f"and keeps nobody else waiting: {late.stderr}")
    reload(vgpud, config, QUOTAS)
    check(waiting.wait(30) == 0, "a raised quota lets it in")


def check_kept(config):
    with tempfile.TemporaryDirectory() as state:
        options = ["--config", str(config), "--state-dir", state]
        config.write_text(QUOTAS)
        with daemon.private_daemon([], options) as vgpud:
            ctl(vgpud, "create", "a1", "--tenant", "team-a", "--vram", "1GiB")
            exported = ctl(vgpud, "export")[1]
            check('tenant = "team-a"' in exported, f"export names the tenant: {exported}")
        config.write_text(QUOTAS.replace('"1GiB"', '"64MiB"'))
        with daemon.private_daemon([], options) as vgpud:
            check(vgpud.show("a1")["tenant"] == "team-a", "a VF is of its tenant after a restart, also over a lowered quota")


def check_users(vgpud, config):
    os.chmod(vgpud.runtime_dir, 0o755)
    os.chmod(os.path.join(vgpud.runtime_dir, "control.sock"), 0o666)
    reload(vgpud, config, USERS)
    refused("one who is not named", ctl(vgpud, "list", user=61009), "user 61009 may not use this vgpud")
    check(ctl(vgpud, "create", "all", "--tenant", "team-b", "--vram", "1MiB", user=61001)[0] == 0, "who manages makes VFs")
    check(ctl(vgpud, "list", user=61003)[0] == 0 and ctl(vgpud, "metrics", user=61003)[0] == 0, "who looks may look")
    for words in (("create", "x"), ("set", "all", "--weight", "5"), ("destroy", "all"), ("pause", "all"), ("set-gpu", "--base-slice", "1ms"),
                  ("config", "reload"), ("reset", "all"), ("create", "x", "--dry-run")):
        refused(f"who looks: {words[0]}", ctl(vgpud, *words, user=61003), "only look")
    check(ctl(vgpud, "create", "own", "--vram", "1MiB", user=61002)[0] == 0, "who has a tenant makes VFs of it")
    check(vgpud.show("own")["tenant"] == "team-a", "without saying so")
    check(ctl(vgpud, "set", "own", "--weight", "300", user=61002)[0] == 0, "and changes them")
    check(ctl(vgpud, "apply", "own:weight=200", user=61002)[0] == 0, "several at once, too")
    for words in (("create", "x", "--tenant", "team-b"), ("set", "all", "--weight", "5"), ("destroy", "all"), ("pause", "all"),
                  ("set-gpu", "--base-slice", "1ms"), ("config", "reload"), ("apply", "own:weight=100", "all:weight=5"),
                  ("apply", "--base-slice", "1ms", "own:weight=100")):
        refused(f"of one tenant: {words}", ctl(vgpud, *words, user=61002), "user 61002 may not")
    check(vgpud.show("all")["weight"] == 100 and vgpud.show("own")["weight"] == 200, "nothing of that was done")
    check(ctl(vgpud, "destroy", "own", user=61002)[0] == 0, "and ends them")
    # A reload counts for who is connected next.
    reload(vgpud, config, USERS.replace('may = "look"', 'may = "nothing"'))
    refused("who may nothing any more", ctl(vgpud, "list", user=61003), "may not use")
    check(ctl(vgpud, "list", user=0)[0] == 0, "root is never locked out")


def check_calendar(config):
    always = '[calendar.always]\n[calendar.always.vf.training]\nweight = 800\n[calendar.always.gpu]\nbase_slice_us = 4000\n'
    with tempfile.TemporaryDirectory() as state:
        options = ["--config", str(config), "--state-dir", state]
        config.write_text("")
        with daemon.private_daemon([], options) as vgpud:
            check(ctl(vgpud, "create", "training", "--vram", "1MiB", "--weight", "200")[0] == 0, "a VF that is kept")
            reload(vgpud, config, always)
            harness.wait_until(lambda: vgpud.show("training")["weight"] == 800, "a period that holds is in force soon after a reload")
            gpu = json.loads(ctl(vgpud, "gpu", "-o", "json")[1])
            check(gpu["base_slice_us"] == 4000, "of the GPU as well")
            shown = json.loads(ctl(vgpud, "calendar", "-o", "json")[1])
            check(shown["periods"][0]["holds"] and "vf training weight = 800" in shown["periods"][0]["settings"], f"and is shown: {shown}")
            check("always" in ctl(vgpud, "calendar")[1], "for people, too")
        # Ended while no vgpud was there.
        config.write_text("")
        with daemon.private_daemon([], options) as vgpud:
            harness.wait_until(lambda: vgpud.show("training")["weight"] == 200, "the next vgpud puts back what was there")
            reload(vgpud, config, '[calendar.always.vf.training]\nguarantee = "50%"\n')
            harness.wait_until(lambda: "guarantee" in json.loads(ctl(vgpud, "calendar", "-o", "json")[1]).get("problem", ""),
                               "what cannot be is said")
            check(vgpud.show("training")["guarantee"] in (None, 0, 0.0), "and not done")


def main():
    with tempfile.TemporaryDirectory() as directory:
        config = pathlib.Path(directory) / "vgpud.toml"
        config.write_text(QUOTAS)
        with daemon.private_daemon([], ["--config", str(config)]) as vgpud:
            check_quotas(vgpud, config)
            check_waiting(vgpud, config)
        check_kept(config)
        check_calendar(config)
        if os.geteuid() != 0:
            print("users are not looked at: that needs root, to be somebody else")
            return
        config.write_text("")
        with daemon.private_daemon([], ["--config", str(config)]) as vgpud:
            check_users(vgpud, config)


if __name__ == "__main__":
    harness.main(main, needs_guest=False)
