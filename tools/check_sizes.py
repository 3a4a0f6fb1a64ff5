#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the house small enough to walk through: source files per folder, lines per file and per function, and knots: files of a room
that all need each other, directly or around corners (a file and its header are one).

usage: check_sizes.py [REPO_ROOT]   exit 0 clean, 1 with one line per finding
"""
import ast
import collections
import pathlib
import re
import subprocess
import sys

from check_includes import INCLUDE, knots, room_of

MOST_FILES = 40
MOST_LINES = 500
MOST_FUNCTION_LINES = 80
MOST_IN_A_KNOT = 4
SOURCES = (".h", ".cc", ".c", ".py", ".sh")
# What is only ever appended to, as drivers and hosts of different age have to agree about it.
APPENDED = ("guest-driver-shim/include/uapi/vgpu_abi.h",)
GENERATED = ("guest-driver-shim/libcuda/generated/", "guest-driver-shim/libnvidia-ml/generated/", "gpu/generated/")


def sources(root):
    listing = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=True).stdout.decode()
    return [pathlib.PurePosixPath(name) for name in listing.split("\0")
            if name.endswith(SOURCES) and not name.startswith(GENERATED) and (root / name).is_file()]


# What opens a block that is no function.
NO_FUNCTION = re.compile(r"(typedef |template .*> )*(namespace|class|struct|enum|union|extern|INSTANTIATE_)|.*= ?(\{|\[)")


def c_functions(lines):
    """(first line, lines, head) of what the formatter lays out as a function: it ends at a } in the column where it began."""
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line or line[0] in " \t#/}{" or line.startswith(("public:", "private:", "protected:")):
            at += 1
            continue
        end = at
        while end + 1 < len(lines) and not lines[end].rstrip().endswith(("{", ";", "}")):
            end += 1
        head = " ".join(lines[at:end + 1])
        opens = lines[end].rstrip().endswith("{")
        if not opens or "(" not in head or NO_FUNCTION.match(head):
            at = end + 1
            continue
        close = next((n for n in range(end + 1, len(lines)) if lines[n].startswith("}")), end)
        yield at + 1, close - at + 1, head
        at = close + 1


def functions(path, text):
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.lineno, node.end_lineno - node.lineno + 1, node.name
    elif path.suffix in (".h", ".cc", ".c"):
        lines = text.splitlines()
        yield from c_functions(lines)
        in_class, members = False, []
        for line in lines:
            in_class = line.startswith(("class ", "struct ")) and line.endswith("{") or in_class and not line.startswith("}")
            members.append(line[2:] if in_class and line.startswith("  ") else "")
        yield from c_functions(members)


def component(path):
    return path.with_suffix("").as_posix()


def needs(root, files):
    """{component: components of its room that it includes}."""
    here = {component(path): room_of(path.as_posix())[0] for path in files if path.suffix in (".h", ".cc", ".c")}
    arrows = collections.defaultdict(set)
    for path in files:
        name = component(path)
        if name not in here:
            continue
        for line in (root / path).read_text(errors="replace").splitlines():
            if match := INCLUDE.match(line):
                other = component(pathlib.PurePosixPath(match[1]))
                if other != name and here.get(other) == here[name] is not None:
                    arrows[name].add(other)
    return arrows


def findings(root):
    files = sources(root)
    for folder, count in collections.Counter(path.parent.as_posix() for path in files).items():
        if count > MOST_FILES:
            yield f"{folder}/: {count} source files, {MOST_FILES} are the most: make rooms of it"
    for path in files:
        text = (root / path).read_text(errors="replace")
        if (lines := text.count("\n")) > MOST_LINES and str(path) not in APPENDED:
            yield f"{path}: {lines} lines, {MOST_LINES} are the most: cut it at its ideas"
        for line, length, head in functions(path, text):
            if length > MOST_FUNCTION_LINES:
                yield f"{path}:{line}: {length} lines, a function has {MOST_FUNCTION_LINES} at most: {head[:80]}"
    for knot in knots(needs(root, files)):
        room = room_of(min(knot))[0]
        if len(knot) > MOST_IN_A_KNOT:
            yield f"{room}: {len(knot)} files need each other, {MOST_IN_A_KNOT} may: {' '.join(sorted(knot))}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    if not (root / ".git").exists():
        print("not a git checkout: nothing to look at")
        return 77
    found = list(findings(root))
    print("\n".join(found) or "sizes are fine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
