# SPDX-License-Identifier: Apache-2.0
"""Attacks of users of the host on the daemon itself, over its control socket: crowd.py plays them. Whoever is not one of them, root first, must be
served, and they may cost the daemon neither memory nor disk. No figure here is a time that a busy host could spoil."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

from bed import NotHere
from crowd import ABUSES
from vgpuguest import daemon

FIRST = 61300
POLITE = FIRST - 1  # one who abuses nothing
COUNT = 8  # of each kind, in the table
_TENANTS = 4
_KINDS = ("nothing", "look", "manage", "manage")
_CROWD = pathlib.Path(__file__).resolve().parent / "crowd.py"
MEMORY = 96 << 20  # the untaken answers of all users together, and half as much again
LOG = 64 << 10  # what vgpud itself may say about so many of them


def rights(users, tenants):
    """Arguments of vgpud: one in four may do nothing, one may look, two are of a tenant and manage its VFs."""
    words = [f"--tenant=crowd-{number}.{limit}" for number in range(tenants) for limit in ("vfs=2", "vram=64MiB", "host_memory=64MiB")]
    for number in range(users):
        kind = _KINDS[number % len(_KINDS)]
        words.append(f"--user={FIRST + number}.may={kind}")
        if kind == "manage":
            words.append(f"--user={FIRST + number}.tenant=crowd-{number // 2 % tenants}")
    return [*words, f"--user={POLITE}.may=look"]


ARGUMENTS = tuple(rights(COUNT, _TENANTS))


def needs_root():
    if os.geteuid() != 0:
        raise NotHere("being many users needs root")


def resident(vgpud):
    """Memory of vgpud now, in bytes."""
    for line in pathlib.Path(f"/proc/{vgpud.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError("vgpud has no memory: it has ended")


def open_to_all(vgpud):
    os.chmod(vgpud.runtime_dir, 0o755)
    os.chmod(os.path.join(vgpud.runtime_dir, "control.sock"), 0o666)


@contextlib.contextmanager
def crowd(vgpud, users, abuses, pace=0.25, processes=1):
    """Users who abuse it while the body runs: {what came of it: how often}, filled in afterwards."""
    needs_root()
    open_to_all(vgpud)
    counts = {}
    each = -(-users // processes)
    with contextlib.ExitStack() as stack:
        running = []
        for first in range(0, users, each):
            command = [sys.executable, _CROWD, os.path.join(vgpud.runtime_dir, "control.sock"), "--abuses", ",".join(abuses),
                       "--users", f"{FIRST + first}:{min(each, users - first)}", "--pace", str(pace)]
            # Sessions of their own, as users' logins are: the kernel shares processors between sessions, and root's is another one.
            running.append(stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                                                start_new_session=True)))
            stack.callback(running[-1].kill)
        yield counts
        for one in running:
            one.stdin.close()
        for one in running:
            for what, times in json.loads(one.stdout.read() or "{}").items():
                counts[what] = counts.get(what, 0) + times
            assert one.wait() == 0, "the crowd itself has ended with an error"


def _clean_up(bed, files):
    """What they made, also what is made only now, until vgpud has as many descriptors as before; what stays is found later."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        left = [name for name in bed.vgpud.names() if name[:1] in "cqs" and name[1:2].isdigit()]
        for name in left:
            with contextlib.suppress(daemon.ToolError):
                bed.vgpud.destroy(name)
        if not left and bed.files() <= files:
            return
        time.sleep(0.05)


def _attack(*abuses, pace=0.02):
    def attack(bed, end):
        memory, log, files = resident(bed.vgpud), len(bed.log_text()), bed.files()
        with crowd(bed.vgpud, COUNT, abuses, pace) as counts:
            answers = 0
            while time.monotonic() < end or answers < 5:
                bed.vgpud.ctl("list")  # as root would: vgpuctl gives up after 10 s
                answers += 1
        assert sum(times for what, times in counts.items() if what.endswith(": connected")) > COUNT, f"nobody came through: {counts}"
        grown = resident(bed.vgpud) - memory
        assert grown < MEMORY, f"vgpud has {grown >> 20} MiB more"
        written = len(bed.log_text()) - log
        assert written < LOG, f"the log has {written} bytes more"
        _clean_up(bed, files)
    return attack


_KEPT = "places for each user, and some for root alone"
ATTACKS = [
    (f"user.{name}", about, stopped_by, _attack(*abuses, pace=pace), {"seconds": 3.0, "answer": 10.0})
    for name, about, stopped_by, abuses, pace in [
        ("idle-control", "users hold connections to the control socket without a request", _KEPT, ["idle"], 0.02),
        ("trickle", "users send their requests byte by byte", _KEPT, ["trickle"], 0.02),
        ("bodies", "users hold the largest bodies there may be, but for a byte", _KEPT, ["bodies"], 0.02),
        ("knock", "users connect and leave as fast as they can", "all who come are looked at, then there is a pause", ["knock"], 0.0),
        ("hammer", "users ask without end", "requests per second of each user", ["hammer"], 0.02),
        ("deaf", "users ask for reports and traces and take nothing", "pages, and untaken bytes of each user", ["deaf"], 0.02),
        ("queue", "users of tenants fill the waiting room", "places for each tenant", ["queue"], 0.02),
        ("churn", "users of tenants make and destroy VFs without end", "new VFs per second of each tenant", ["churn"], 0.02),
        ("log", "users ask for what could be written into the log", "nothing that users ask for is", ["shout"], 0.02),
        ("everything", "users do all of that at once", "all of that", list(ABUSES), 0.1),
    ]]
