#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks, without running anything, whether what a mutex guards is used under it: clang reads the annotations of
base/locks/mutex.h in every source file of the folders below, and no file there has another kind of mutex.

usage: check_locks.py REPO_ROOT BUILD_DIR [FILE...]   FILE: only these; exit 0 clean, 1 with a line per place
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

FOLDERS = ["guest-driver-shim/libcuda/", "guest-driver-shim/libnvidia-ml/", "gpu/exec/", "gpu/soft/"]
# Mutexes of another kind: which, and why.
OTHERS = {
    "gpu/soft/ops/op_table.cc": {"once_flag": "guards a static array that is filled once and never changes again"},
}
FOREIGN = re.compile(
    r"\bstd::((?:recursive_|shared_|timed_|recursive_timed_|shared_timed_)?mutex|condition_variable(?:_any)?"
    r"|lock_guard|unique_lock|scoped_lock|shared_lock|once_flag)\b|\b(pthread_(?:mutex|cond|rwlock|spin)[a-z_]*)\b")
ANALYSIS = ["-Wno-everything", "-Wthread-safety", "-Werror=thread-safety"]


# What is guarded, and who says that it has a mutex or wants one.
GUARDED = re.compile(r"(\w+)(?:\[\w*\])?\s+GUARDED_BY\(")
SAYING = re.compile(r"(\w+)\([^;{}]*?\)(?: const)?(?: override)?\s+(?:REQUIRES|EXCLUDES|ACQUIRE|RELEASE)\w*\(")
LOCKING = {"Mutex", "SharedMutex", "MutexLock", "ReaderLock", "WriterLock", "CondVar"}


def files_of(root):
    return [file for folder in FOLDERS for file in sorted((root / folder).rglob("*")) if file.suffix in (".cc", ".h")]


def words_that_matter(root):
    """Of a source that has none of them, clang could say nothing: there are many, and it would take minutes."""
    words = set(LOCKING)
    for file in files_of(root):
        words |= {name for pattern in (GUARDED, SAYING) for name in pattern.findall(file.read_text())}
    return re.compile(r"\b(?:" + "|".join(sorted(words)) + r")\b")


def sources_of(build, root, only):
    """The sources to look at, once each, with the flags that they are built with."""
    matter = words_that_matter(root)
    wanted = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), root)
        if not path.startswith(tuple(FOLDERS)) or not path.endswith(".cc") or path in wanted:
            continue
        if path in only if only else matter.search((root / path).read_text()):
            wanted[path] = entry
    return wanted


def clang_arguments(entry):
    """The include paths, definitions and instruction sets of the real compilation."""
    keep = []
    words = iter(shlex.split(entry["command"]))
    for word in words:
        if word in ("-I", "-isystem", "-D"):
            keep += [word, next(words)]
        elif word.startswith(("-I", "-isystem", "-D", "-std=", "-march=", "-m")):
            keep.append(word)
    return ["clang++", "-fsyntax-only", *keep, *ANALYSIS, entry["file"]]


def look(path, entry):
    done = subprocess.run(clang_arguments(entry), cwd=entry["directory"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return []
    places = [line for line in done.stderr.splitlines() if re.search(r": (fatal )?error: ", line)]
    return [re.sub(r"^(\.\./)+", "", line) for line in places] or [f"{path}: clang++ ended with {done.returncode}: {done.stderr[-400:]}"]


def foreign_mutexes(root):
    """Mutexes that nobody checks."""
    for file in files_of(root):
        path = str(file.relative_to(root))
        for number, line in enumerate(file.read_text().splitlines(), 1):
            for found in FOREIGN.finditer(line.split("//")[0]):
                name = found[1] or found[2]
                if name not in OTHERS.get(path, {}):
                    yield (f"{path}:{number}: {name} is not checked: use the mutexes of base/locks/mutex.h, "
                           "or say in tools/check_locks.py why not")


def main():
    root, build, only = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
    wanted = sources_of(build, root, only)
    missing = [] if only else [folder for folder in FOLDERS if not any(path.startswith(folder) for path in wanted)]
    wrong = [f"{folder}: no source in {build}/compile_commands.json that has a mutex: is it built elsewhere now?" for folder in missing]
    wrong += foreign_mutexes(root)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for places in pool.map(lambda each: look(*each), wanted.items()):
            wrong += places
    wrong = list(dict.fromkeys(wrong))
    print("\n".join(wrong) or f"{len(wanted)} files: what mutexes guard is used under them")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
