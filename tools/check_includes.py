#!/usr/bin/env python3
"""Keeps the arrows between rooms honest: which folder may include which (docs/ARCHITECTURE.md, "Rooms").

usage: check_includes.py [REPO_ROOT]   exit 0 clean, 1 with one line per violation
"""
import pathlib
import re
import sys

# First matching prefix wins. Every room may include itself.
ROOMS = [
    ("guest-driver-shim/include/uapi/", []),
    ("guest-driver-shim/", ["guest-driver-shim/include/uapi/"]),
    ("base/", []),
    ("sched/", ["base/"]),
    ("vfio/", ["base/", "guest-driver-shim/include/uapi/"]),
    ("gpu/soft/", ["base/", "guest-driver-shim/include/uapi/", "gpu/gpu.h"]),
    ("gpu/", ["base/", "guest-driver-shim/include/uapi/"]),
    ("vgpud/", ["base/", "sched/"]),
    ("tools/vgpuctl/", ["base/", "vgpud/control"]),
]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def room_of(path):
    for prefix, allowed in ROOMS:
        if path.startswith(prefix):
            return prefix, allowed
    return None, None


def violations(root):
    for source in sorted(root.rglob("*")):
        if source.suffix not in (".h", ".cc", ".c", ".cpp", ".inc"):
            continue
        path = source.relative_to(root).as_posix()
        if path.startswith((".", "build")):
            continue
        prefix, allowed = room_of(path)
        if prefix is None:
            continue
        for number, line in enumerate(source.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1)
            if not (root / target).exists():
                if (source.parent / target).exists() and "kmod" not in path and "uapi" not in path:
                    yield f'{path}:{number}: "{target}" is relative; include from the repository root'
                continue
            if not target.startswith((prefix, *allowed)):
                yield f'{path}:{number}: {prefix} must not include "{target}"'


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(violations(root))
    print("\n".join(found) or "includes are clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
