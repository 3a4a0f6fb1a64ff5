# SPDX-License-Identifier: Apache-2.0
"""What there is of a daemon on the host, counted before and after something, so that nothing is left behind unseen."""
import collections
import os
import pathlib
import time

import bed

SETTLES_IN_S = 20


def children(root):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == root:
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def counts(vgpud):
    """What there is of a daemon."""
    pid = vgpud.process.pid
    fds, threads = collections.Counter(), collections.Counter()
    for comm in pathlib.Path(f"/proc/{pid}/task").glob("*/comm"):
        threads["threads: " + comm.read_text(encoding="utf-8").strip()] += 1
    # These come when as many descriptors are closed at once, eight at most, and stay.
    if threads.pop("threads: vgpu-closer", 0) > 8:
        raise AssertionError("there are more closers than there may be")
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(fd)
        except OSError:
            continue
        fds["fds: " + (target.split(":")[0] if not target.startswith("/") else "files")] += 1
    return {"processes": len(children(pid)), **threads, **fds,
            "files": sorted(str(path.relative_to(vgpud.runtime_dir)) for path in pathlib.Path(vgpud.runtime_dir).rglob("*")
                            if not path.name.startswith("usage.db") and "guests" not in path.parts),  # of our own QEMUs
            "groups": sorted(bed.groups(vgpud.runtime_dir)), "vfs": vgpud.names()}


def check_the_same(vgpud, before):
    """What is counted becomes the same again soon; an AssertionError names what does not."""
    deadline = time.monotonic() + SETTLES_IN_S
    after = counts(vgpud)
    while after != before and time.monotonic() < deadline:
        time.sleep(0.1)
        after = counts(vgpud)
    others = [f"{what}: {before.get(what)} before, {after.get(what)} after" for what in sorted(set(before) | set(after))
              if before.get(what) != after.get(what)]
    if others:
        raise AssertionError("; ".join(others))
