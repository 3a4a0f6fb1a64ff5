# SPDX-License-Identifier: Apache-2.0
"""What is expected to stop each attack. The attacks themselves: exec_calls.cc, exec_world.cc, adversary_vf.cc, guests.py, askers.py,
users.py."""
import dataclasses
import re
from typing import Callable, Optional

import askers
import bed
import guests
import users


@dataclasses.dataclass
class Attack:
    name: str
    about: str
    stopped_by: str  # what the report says
    pattern: Optional[str] = None  # what the log has to say for that
    forbidden: str = r"attack: .*ALLOWED"  # and must not
    check: Optional[Callable] = None  # (shown VF, its statistics) -> complaint or None
    run: Optional[Callable] = None  # of guests and clients; executors and vgpud-vf have theirs in C++
    again: bool = True  # a new executor takes the place of one that ended
    crowd: int = 1  # executors at the same time
    answer: float = 1.0  # seconds that vgpud may take to answer meanwhile
    needs: str = ""  # a protection without which it would harm this host
    call: bool = False  # one system call: many of these share a measurement
    seconds: float = 2.0
    until: bool = False  # or until the log has the pattern

    @property
    def actor(self):
        return self.name.split(".")[0]


# Attacks by system calls that the jail answers instead of ending the process; the others end it.
_REFUSED = {"open-shadow": "EACCES", "open-proc-mem": "EACCES", "clone3": "ENOSYS",
            "dumpable": "EINVAL", "subreaper": "EINVAL"}
_KILLED = (r"(?s)(?=.*the executor tried [\w ]+, which no executor has to)(?=.*executor ended by signal 9)"
           r"|executor ended by signal 31")
# The call itself may succeed: what comes of it is judged.
_MAY_SUCCEED = r"(?!)"
_HANG = r"executor pid=\d+ did not leave the GPU"


def _bounded(value, least=0, most=None):
    def check(shown, stats):
        if not least <= value(shown, stats) <= (most if most is not None else value(shown, stats)):
            return f"{value(shown, stats)} is not within {least} and {most}"
        return None
    return check


def _vram(shown, _):
    if not 0 <= shown["vram_used_bytes"] <= shown["vram_bytes"]:
        return f"{shown['vram_used_bytes']} bytes of VRAM in use"
    return None


def _failed(shown, _):
    return None if shown["state"] == "failed" else f"the VF is {shown['state']}"


# name: what the report says, and fields of Attack
_EXECUTOR = {
    "grant-write": ("the page is mapped from a read-only descriptor", {"pattern": r"refused with EACCES(?s:.*)executor ended by signal 11"}),
    "slot-scribble": ("states are checked and counted, other VFs' figures are elsewhere", {}),
    "false-slots": ("only slots of executors that vgpud started count", {}),
    "bell-storm": ("the bell is muted", {"check": lambda _, s: None if s["bell_muted"] else "the bell was not muted"}),
    "futex-sleepers": ("who sleeps on the bell takes no ring away", {}),
    "never-leaves": ("killed after the preempt timeout, parked after three", {"pattern": _HANG}),
    "sleeps-on-gpu": ("killed after the preempt timeout: it slept", {"pattern": _HANG + r".*it slept"}),
    "stops-on-gpu": ("killed after the preempt timeout", {"pattern": _HANG}),
    "late-computing": ("the overrun is debt and repaid", {"check": lambda _, s: None if s["overrun_ns_total"] else "no overrun"}),
    "late-asleep": ("the overrun is debt and repaid", {"check": lambda _, s: None if s["overrun_ns_total"] else "no overrun"}),
    "fidget": ("switches cost its own turns", {}),
    "runs-ungranted": ("out of turn: counted; computing is held to its weight", {}),
    "computes-idle": ("the control group of its VF", {}),
    "scheduler-cpu": ("the jail: killed at sched_setaffinity", {"pattern": _KILLED}),
    "thread-storm": ("vgpud counts its threads: killed; before that pids.max or RLIMIT_NPROC",
                     {"pattern": r"threads, none needs more than|one more: refused with EAGAIN", "forbidden": r"one more: ALLOWED"}),
    "fork-storm": ("the jail: killed at clone", {"pattern": _KILLED}),
    "barrier-storm": ("only its own CPU time", {"forbidden": _MAY_SUCCEED}),
    "memory-bomb": ("memory.max of its VF", {"pattern": r"executor ended by signal 9|refused with ENOMEM", "seconds": 40, "until": True, "again": False}),
    "memory-crowd": ("memory.max of its VF: the kernel ends those that have most", {"pattern": r"(?s)(executor ended by signal 9.*){2}", "crowd": 32, "seconds": 60, "until": True, "again": False, "needs": "cgroup-memory"}),
    "descriptors": ("RLIMIT_NOFILE", {"pattern": r"refused with EMFILE"}),
    "log-flood": ("read at 50 lines per second, the rest dropped",
                  {"check": lambda v, _: None if v["server"]["log_lines_dropped"] > 100 else "nothing was dropped"}),
    "log-repeat": ("lines alike are counted and stand there once", {"pattern": r"the same line \d+ times more"}),
    "log-forgery": ("vgpud puts the origin before each line and escapes the rest",
                    {"forbidden": r"(?m)^vgpud: (error: vf=good: parked|forged)|[\x00-\x09\x0b-\x1f\x7f]",
                     "pattern": r"vf=bad pid=\d+: vgpud: error: vf=good: parked after forgery"}),
    "vram-lies": ("checked against what the VF has", {"check": _vram}),
    "vram-deaf": ("killed: it reads no answers", {"check": _vram}),
    "link-flood": ("vgpud-vf reads 20000 messages per second", {}),
    "link-garbage": ("its link is closed", {"pattern": r"executor sent an unknown message", "forbidden": _MAY_SUCCEED}),
    "link-descriptors": ("the kernel refuses them, or they are closed elsewhere", {}),
    "client-descriptor": ("it can give away only what it has", {}),
    "map-beyond": ("vgpud-vf judges the mmap: killed", {"pattern": _KILLED}),
    "map-elsewhere": ("vgpud-vf judges the mmap: killed", {"pattern": _KILLED}),
    "map-twice": ("vgpud-vf judges the mmap: killed", {"pattern": _KILLED, "forbidden": r"again: ALLOWED"}),
    "map-outside": ("the jail: killed at mmap", {"pattern": _KILLED}),
    "map-grow": ("the jail refuses mremap in the window", {"pattern": r"refused with ENOMEM", "forbidden": r"of it: ALLOWED"}),
    "map-keep": ("vgpud-vf saw no munmap: killed", {"pattern": r"executor ended by signal 9", "forbidden": r"that it is unmapped: ALLOWED"}),
    "unmap-beyond": ("vgpud-vf judges the munmap: killed", {"pattern": _KILLED, "forbidden": r"more let go: ALLOWED"}),
    "unmap-early": ("vgpud-vf does not know yet that the munmap is over: killed",
                    {"pattern": r"executor ended by signal 9", "forbidden": r"that was sure: ALLOWED"}),
    "map-by-worker": ("the jail of those threads: killed at mmap", {"pattern": _KILLED, "forbidden": r"another thread: ALLOWED"}),
    "read-file": ("the jail: killed at pread", {"pattern": _KILLED, "forbidden": r"file: ALLOWED"}),
    "send-file": ("the descriptor has gone when the call returns, or the kernel refuses it",
                  {"forbidden": r"process: ALLOWED", "pattern": r"process: refused with|tried"}),
    "exit-at-once": ("faults and opens have budgets", {"pattern": r"executor ended by exit 1"}),
}
_VF_KILLED = r"vgpud-vf pid=\d+ tried ([\w ]+), which it never has to|vgpud-vf ended \(signal 31\)"
_BROKE = r"vgpud-vf broke the link protocol"
_NO_DESCRIPTORS = r"descriptors on the link: refused|" + _BROKE
_VF = {
    "executor-storm": ("vgpud starts executors at the rate of the budget", {"seconds": 4, "pattern": r"attack: \d+ executors in 3 s"}),
    "generation-back": ("the VF is lost, alone", {}),
    "usage-lies": ("the VF is lost, alone", {"pattern": _BROKE, "check": _failed}),
    "quotas-unasked": ("the VF is lost, alone", {"pattern": _BROKE, "check": _failed}),
    "channel-lies": ("the VF is lost, alone", {"pattern": _BROKE, "check": _failed}),
    "hello-twice": ("the VF is lost, alone", {}),
    "watched-twice": ("the kernel refuses the descriptor (Linux 6.16), else the VF is lost, alone", {"pattern": _NO_DESCRIPTORS}),
    "link-flood": ("read at the rate of the budget", {}),
    "link-garbage": ("the VF is lost, alone", {"pattern": _BROKE, "check": _failed, "forbidden": _MAY_SUCCEED}),
    "link-descriptors": ("the kernel refuses them (Linux 6.16), else the VF is lost, alone", {"pattern": _NO_DESCRIPTORS}),
    "deaf": ("the watchdog: the VF is lost, alone", {"pattern": r"vgpud-vf does not answer", "check": _failed, "seconds": 4}),
    "forged-pongs": ("the VF is lost, alone", {"pattern": _BROKE, "check": _failed}),
    "slot-scribble": ("slots without an executor of vgpud's do not count", {}),
    "grant-write": ("the page is mapped from a read-only descriptor", {"pattern": r"vgpud-vf ended \(signal 11\)", "check": _failed}),
    "computes": ("the control group of its VF", {}),
    "log-flood": _EXECUTOR["log-flood"],
    "log-repeat": _EXECUTOR["log-repeat"],
    "open": ("refused with EACCES", {"pattern": r"refused with EACCES"}),
}


def _executor(name, about, calls):
    full = f"executor.{name}"
    if name in calls:
        refused = _REFUSED.get(name)
        return Attack(full, about, f"refused with {refused}" if refused else "", call=True,
                      pattern=rf"refused with {refused}" if refused else _KILLED)
    text, fields = _EXECUTOR[name]
    return Attack(full, about, text, **fields)


def attacks():
    rows = []
    exec_rows = {name.removeprefix("executor."): about for name, about in bed.listed("executor").items()}
    calls = set(exec_rows) - set(_EXECUTOR)
    rows += [_executor(name, about, calls) for name, about in exec_rows.items()]
    for name, about in bed.listed("vf").items():
        text, fields = _VF.get(name.removeprefix("vf."), ("", {"pattern": _VF_KILLED, "check": _failed}))
        rows.append(Attack(name, about, text, **fields))
    rows += [Attack(name, about, text, run=run, **fields) for name, about, text, run, fields in guests.ATTACKS + askers.ATTACKS + users.ATTACKS]
    return rows


def tried(log):
    """What the log says stopped a system call."""
    found = re.search(r"tried ([\w ]+), which", log)
    return f"killed at {found[1]}" if found else "killed (SIGSYS)" if "signal 31" in log else ""
