#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the house small enough to walk through: source files per folder, lines per file and per function, functions and lines per
class (over all its files), and knots: files of a room that all need each other, directly or around corners (a file and its
header are one).

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
MOST_CLASS_FUNCTIONS = 35  # beside those of one line in the class, like accessors
MOST_CLASS_LINES = 400  # of these functions
SOURCES = (".h", ".cc", ".c", ".py", ".sh")
# Classes that are larger still, with the reason. One that is not any more is an error, too.
LARGE_CLASSES = {
    "gpu/ptx/Parser": "one function for each production of PTX's grammar",
}
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


COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
CLASS = re.compile(r"(?<!enum )\b(class|struct)\s+(?:\[\[\w+\]\]\s*)?(\w+)\s*(?:final\s*)?(?::[^;{()]*)?\{")
MACRO = re.compile(r"\b[A-Z][A-Z_]+\([^()]*\)")
TEMPLATE_ARGUMENTS = re.compile(r"<[^<>]*>")
OF_CLASS = re.compile(r"\b(\w+(?:::\w+)*)::(?:~?\w+|operator[^(]*)\(")


def close_of(text, at):
    """Where the { before `at` is closed."""
    depth = 1
    while depth and at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at - 1


def is_function(head):
    """Is this declaration, up to its ; or {, one of a function that somebody wrote?"""
    head = MACRO.sub("", head)
    while (shorter := TEMPLATE_ARGUMENTS.sub("", head)) != head:
        head = shorter
    before, _, after = head.partition("(")
    words = before.split()
    return (bool(after) and not after.startswith("*") and bool(words) and ("=" not in before or "operator" in before)
            and words[0] not in ("using", "friend", "static_assert", "typedef", "enum") and not before.rstrip().endswith(")")
            and not re.search(r"= *(default|delete)\b", head))


def declared(text, inside=""):
    """(class, its functions, lines of those in it) of what `text`, which has no comments, declares, nested classes as well."""
    at = 0
    while match := CLASS.search(text, at):
        begin, end = match.end(), close_of(text, match.end())
        name, body = f"{inside}{match[2]}", text[begin:end]
        yield from declared(body, name + "::")
        functions, lines, head, here = 0, 0, "", 0
        while here < len(body):
            if body[here] == "{":
                end_of_block = close_of(body, here + 1)
                block = body[here:end_of_block].count("\n")
                if is_function(head) and not CLASS.search(head + "{") and (block or "virtual " in head):
                    functions, lines = functions + 1, lines + block + 1
                here, head = end_of_block, ""
            elif body[here] == ";":
                functions += is_function(head)
                head = ""
            else:
                head = re.sub(r"\b(public|private|protected):$", "", head + body[here])
            here += 1
        yield name, functions, lines
        at = end


def classes(root, files):
    """{(folder, class): [functions, lines]} of the product."""
    sums = collections.defaultdict(lambda: [0, 0])
    for path in files:
        if path.suffix not in (".h", ".cc") or str(path).startswith(("tests/", "bench/")):
            continue
        folder, text = path.parent.as_posix() + "/", (root / path).read_text(errors="replace")
        for name, count, lines in declared(COMMENT_OR_TEXT.sub(lambda cut: "\n" * cut[0].count("\n"), text)):
            sums[folder, name][0] += count
            sums[folder, name][1] += lines
        for _, lines, head in c_functions(text.splitlines()):
            if match := OF_CLASS.search(head):
                sums[folder, match[1]][1] += lines
    return sums


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
    found = classes(root, files)
    for (folder, name), (count, lines) in found.items():
        if (count > MOST_CLASS_FUNCTIONS or lines > MOST_CLASS_LINES) and folder + name not in LARGE_CLASSES:
            yield (f"{folder}{name}: {count} functions and {lines} lines, {MOST_CLASS_FUNCTIONS} and {MOST_CLASS_LINES} are the most "
                   "of a class: give each of its ideas a class of its own")
    for large in LARGE_CLASSES:
        count, lines = found.get((large[:large.rindex("/") + 1], large[large.rindex("/") + 1:]), (0, 0))
        if count <= MOST_CLASS_FUNCTIONS and lines <= MOST_CLASS_LINES:
            yield f"{large}: {count} functions and {lines} lines are not too many: take it out of LARGE_CLASSES"
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
