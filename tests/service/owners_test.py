#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ordinary users and a real vgpud of root: VFs that are given to users and groups, the group of the control socket, where vgpuctl finds the
service, and what it says to users who may not use it. Exit 77: only root can be somebody else."""
import os
import pathlib
import subprocess
import sys
import tempfile

import harness
from harness import check
from vgpuguest import daemon
from vgpuguest.paths import VGPUCTL, VGPUD

ALICE, BOB, TEAM, OTHERS = 61001, 61002, 61101, 61102
USAGE, REFUSED = 2, 5


def as_user(user, group=None, more=()):
    return {"user": user, "group": user if group is None else group, "extra_groups": list(more)}


def ctl(vgpud, *words, **who):
    """(exit status, standard output, standard error) of vgpuctl."""
    run = subprocess.run([VGPUCTL, "--runtime-dir", vgpud.runtime_dir, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=60, check=False, **who)
    return run.returncode, run.stdout, run.stderr


def connects(path, user, group=None, more=()):
    """Is a process of that user let in there?"""
    script = "import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1])"
    return subprocess.run([sys.executable, "-c", script, path], capture_output=True, timeout=60, check=False,
                          **as_user(user, group, more)).returncode == 0


def open_to_all(vgpud):
    os.chmod(vgpud.runtime_dir, 0o755)
    os.chmod(os.path.join(vgpud.runtime_dir, "control.sock"), 0o666)


def check_owners(vgpud):
    open_to_all(vgpud)
    check(ctl(vgpud, "create", "hers", "--vram", "1MiB", "--owner", str(ALICE))[0] == 0, "root gives a VF to a user")
    check(ctl(vgpud, "create", "theirs", "--vram", "1MiB", "--owner", f":{TEAM}")[0] == 0, "to a group")
    check(ctl(vgpud, "create", "both", "--vram", "1MiB", "--owner", f"{ALICE}:{TEAM}")[0] == 0, "to both")
    check(ctl(vgpud, "create", "roots", "--vram", "1MiB")[0] == 0, "to nobody")
    sockets = {vf["name"]: vf["channel_socket"] for vf in vgpud.ctl("list")["vfs"]}
    for name, user, group, lets in (("hers", ALICE, ALICE, True), ("hers", BOB, TEAM, False), ("theirs", BOB, TEAM, True), ("theirs", ALICE, ALICE, False),
                                    ("both", ALICE, ALICE, True), ("both", BOB, TEAM, True), ("both", BOB, BOB, False), ("roots", ALICE, TEAM, False)):
        check(connects(sockets[name], user, group) == lets, f"{name} lets user {user} of group {group} in: {lets}")
    check(connects(sockets["theirs"], BOB, BOB, [TEAM]), "also by a group that is not the first")
    shown = vgpud.show("both")
    check((shown["owner_uid"], shown["owner_gid"]) == (ALICE, TEAM) and "owner_uid" not in vgpud.show("roots"), f"it is shown: {shown}")
    check(f'owner = "{ALICE}:{TEAM}"' in ctl(vgpud, "export")[1], "and exported")


def check_who_may(vgpud):
    check(ctl(vgpud, "create", "own", "--vram", "1MiB", "--owner", str(BOB), **as_user(BOB))[0] == 0, "a user gives one to himself")
    check(ctl(vgpud, "create", "own2", "--vram", "1MiB", "--owner", f"{BOB}:{TEAM}", **as_user(BOB, BOB, [OTHERS, TEAM]))[0] == 0,
          "and to a group that he is in")
    for owner, said in ((f"{ALICE}", f"may not give a VF to user {ALICE}"), ("0", "to user 0"), (f":{TEAM}", f"to group {TEAM}"), (f"{BOB}:{TEAM}", f"to group {TEAM}")):
        status, _, err = ctl(vgpud, "create", "x", "--owner", owner, **as_user(BOB, BOB, [OTHERS]))
        check(status == REFUSED and said in err, f"user {BOB} gives nothing to {owner}: {err.strip()}")
    for owner in ("nobody-of-this-name", ":no-such-group", "", ":", "1:", "4294967295", "-1"):
        status, _, err = ctl(vgpud, "create", "x", f"--owner={owner}")
        check(status == USAGE, f"\"{owner}\" is refused: {err.strip()}")
    check("x" not in vgpud.names(), "nothing of that is made")


def check_kept():
    with tempfile.TemporaryDirectory() as state:
        options = ["--state-dir", state]
        with daemon.private_daemon([], options) as vgpud:
            check(ctl(vgpud, "create", "hers", "--vram", "1MiB", "--owner", f"{ALICE}:{TEAM}")[0] == 0, "a VF that is kept")
        with daemon.private_daemon([], options) as vgpud:
            os.chmod(vgpud.runtime_dir, 0o755)
            channel = vgpud.show("hers")["channel_socket"]
            check(connects(channel, ALICE) and connects(channel, BOB, TEAM) and not connects(channel, BOB), "lets the same in after a restart")
            exported = pathlib.Path(state, "all.toml")
            exported.write_text(ctl(vgpud, "export")[1])
            check(ctl(vgpud, "assert", "--file", str(exported))[0] == 0, "is as the exported file says")
            exported.write_text(exported.read_text().replace(f"{ALICE}:", f"{BOB}:"))
            status, out, err = ctl(vgpud, "assert", "--file", str(exported))
            check(status != 0 and "owned by" in out + err, f"and not as another one: {out} {err}")


def check_group():
    with daemon.private_daemon([], ["--socket-group", str(TEAM)]) as vgpud:
        os.chmod(vgpud.runtime_dir, 0o755)
        check(ctl(vgpud, "list", **as_user(ALICE, TEAM))[0] == 0, "the group that the configuration names may use vgpuctl")
        status, _, err = ctl(vgpud, "list", **as_user(ALICE, OTHERS))
        check(status == REFUSED and "you may not use this vgpud" in err and f"join the group {TEAM} " in err and "start it" not in err, f"others are told so: {err.strip()}")
    wrong = subprocess.run([VGPUD, "--socket-group", "no-such-group", "--check-config"], capture_output=True, text=True, timeout=60, check=False)
    check(wrong.returncode == USAGE and "no-such-group" in wrong.stderr, f"a group that there is not is refused: {wrong.stderr.strip()}")


def inside():
    """In mounts of its own, where /run is empty: the service's vgpud, and vgpuctl without a word of where it is."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    os.chmod("/run", 0o755)
    users = pathlib.Path("/run/group")
    users.write_text(pathlib.Path("/etc/group").read_text() + f"\nvgpu:x:{TEAM}:\n")
    subprocess.run(["mount", "--bind", users, "/etc/group"], check=True)
    environment = {key: value for key, value in os.environ.items() if key not in ("VGPUD_RUNTIME_DIR", "XDG_RUNTIME_DIR")}

    def bare(*words, **who):
        run = subprocess.run([VGPUCTL, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, env=environment, **who)
        return run.returncode, run.stdout, run.stderr

    service = daemon.Daemon("/run/vgpud")
    vgpud = subprocess.Popen([VGPUD, "--runtime-dir", "/run/vgpud", "--state-dir", "/run/state"], stderr=subprocess.DEVNULL, env=environment)
    try:
        service.ctl("list")
        status, _, err = bare("list", **as_user(ALICE, TEAM))
        check(status == 0, f"a member of the group vgpu finds the service without being told where it is: {err.strip()}")
        status, _, err = bare("list", **as_user(ALICE))
        check(status == REFUSED and "join the group vgpu (as root: adduser" in err, f"another user is told which group to join: {err.strip()}")
    finally:
        vgpud.terminate()
        vgpud.wait(30)
    status, _, err = bare("list", **as_user(ALICE))
    check(status == 3 and "no vgpud reachable" in err, f"where there is none, that is said: {err.strip()}")


def main():
    if os.geteuid() != 0:
        print("skipped: only root can be somebody else")
        sys.exit(77)
    if sys.argv[1:] == ["inside"]:
        return inside()
    with daemon.private_daemon() as vgpud:
        check_owners(vgpud)
        check_who_may(vgpud)
    check_kept()
    check_group()
    return subprocess.run(["unshare", "--mount", sys.executable, __file__, "inside"], check=True, timeout=120)


if __name__ == "__main__":
    harness.main(main, needs_guest=False)
