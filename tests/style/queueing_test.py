#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The numbers of docs/queueing.md and of the table in docs/memory.md are those of the sources.

usage: queueing_test.py REPO_ROOT
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
BACKLOG = "guest-driver-shim/libcuda/channel/backlog.h"
ABI = "guest-driver-shim/include/uapi/vgpu_abi.h"


def number(path, name):
    """What a constant is set to, as `name = 4096;` or `#define name 4096u`."""
    found = re.search(rf"\b{name}(?: =)? (\d+)u?\b", (ROOT / path).read_text())
    assert found, f"{path} has no {name} any more: where is it now?"
    return int(found[1])


def main():
    streams = number("gpu/exec/channel/streams.h", "kMaxStreams")
    slots, for_turns = number(ABI, "VGPU_EVENT_SLOTS"), number("guest-driver-shim/libcuda/driver/event_slots.h", "kForTurns")
    most, shared, times = (number(BACKLOG, name) for name in ("kMost", "kShared", "kTimesFree"))
    assert most < number("gpu/exec/channel/stream_work.cc", "kMaxQueued"), "calls find no place in the executor's queue"
    lanes = number("guest-driver-shim/libcuda/graph/lanes.cc", "kMostLanes")
    wanted = {
        "docs/queueing.md": [f"(a graph has {lanes - 1} at most) | {streams - 2} |", f"| {most} of a process |",
                             f"some {shared * times // (times + 1) // 1000 * 1000}; fewer",
                             f"| {slots - for_turns} of a process |"],
        "docs/memory.md": [f"| {streams}; 65536; 65536.", f"| {slots}, of fixed size"],
    }
    missing = [f"{page} does not say {text!r}" for page, texts in wanted.items() for text in texts if text not in (ROOT / page).read_text()]
    print("\n".join(missing) or "the numbers of docs/queueing.md and docs/memory.md are those of the sources")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
