# SPDX-License-Identifier: Apache-2.0
"""root: as root; user: as an ordinary user; bare: as one whose host gives no user namespaces."""
import ctypes
import os
import sys

NAMES = ("own", "root", "user", "bare")
_ENTERED = "VGPUD_ADVERSARY_RUNG"
_USER = 64321
_CLONE_NEWUSER = 0x10000000


def _again():
    os.environ["HOME"] = "/tmp"
    # The interpreter of the one who started this may be in a home that nobody else may enter.
    python = sys.executable if os.access(sys.executable, os.X_OK) else "/usr/bin/python3"
    os.execv(python, [python, *sys.argv])


def _become_user():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_USER, _USER, _USER)
        os.setresuid(_USER, _USER, _USER)


def _without_user_namespaces():
    """In a user namespace of our own, with root and our user in it, the limit on more of them is ours. In a new process; the
    first one waits for it."""
    ready, mapped = os.pipe(), os.pipe()
    child = os.fork()
    if child != 0:
        os.read(ready[0], 1)
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{child}/{name}", "w", encoding="ascii") as file:
                file.write(f"0 0 1\n{_USER} {_USER} 1\n")
        os.write(mapped[1], b"x")
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    _become_user()
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    os.write(ready[1], b"x")
    os.read(mapped[0], 1)
    with open("/proc/sys/user/max_user_namespaces", "w", encoding="ascii") as file:
        file.write("0")


def enter(rung):
    """Starts this program again on that rung, unless it is there."""
    if rung == "own" or os.environ.get(_ENTERED) == rung:
        return
    if os.geteuid() != 0:
        sys.exit(f"run.py: --rung {rung} needs root")
    os.environ[_ENTERED] = rung
    if rung == "bare":
        _without_user_namespaces()
    elif rung == "user":
        _become_user()
    if rung != "root":
        _again()
