#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the tests notice? Changes one token of a source at a time, builds, and runs the suites of its room. A change that no test
notices is a survivor: it needs a test, or a row in equal.txt that says why it changes nothing.

Works in a scratch copy of the committed tree. Exit status: 0 at least --least percent were noticed, 1 fewer, 2 the tree itself
does not build or fails its tests.

usage: run.py [--count N] [--seed S] [--room ROOM ...] [--under PATH] [--again FILE] [--least PERCENT] [--scratch DIRECTORY]
              [--copies N]
"""
import argparse
import concurrent.futures
import contextlib
import functools
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import mutants

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Where the sources of a room are, and the tests (meson's names) that are its own: first those that are quick to build and run. The
# others are built only for a change that these did not notice.
ROOMS = {
    "base": (["base"], (("base",),)),
    "sched": (["sched"], (("sched", "sched-properties"), ("sim", "trace"))),
    "vfio": (["vfio"], (("vfio",), ("vfio_blocking", "vfio_channels", "vfio_guard", "vfio_protocol"))),
    "exec": (["gpu/exec"], (("exec",), ("exec_process",))),
    "soft": (["gpu/soft"], (("soft_engine",), ("soft_front", "soft_golden"), ("soft_state",))),
    "vgpud": (["vgpud"], (("vgpud-unit",), ("vgpud", "vgpud-control", "vgpud-policy", "observability"))),
    "libcuda": (["guest-driver-shim/libcuda"], (("shim-core",), ("shim-library", "shim-api"))),
}
NOT_MUTATED = ("/generated/", "/gen/")
TEST_SECONDS = 120


def run(command, **options):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)


class Scratch:
    """A copy of the committed tree with a build of its own."""

    def __init__(self, directory):
        self.tree = pathlib.Path(directory) / "tree"
        self.build = pathlib.Path(directory) / "build"
        self.limits = {}     # tests: seconds
        self.unchanged = {}  # tests: what their programs are without a change
        if not self.tree.exists():
            run(["git", "-C", ROOT, "worktree", "prune"])
            made = run(["git", "-C", ROOT, "worktree", "add", "--detach", self.tree, "HEAD"])
            if made.returncode != 0:
                raise SystemExit(f"no scratch copy: {made.stderr}")
        if not (self.build / "build.ninja").exists():
            ccache = "ccache " if shutil.which("ccache") else ""
            env = {**os.environ, "CC": ccache + "gcc", "CXX": ccache + "g++"}
            # Without debug information a program is linked in a tenth of the time.
            if run(["meson", "setup", self.build, self.tree, "--buildtype=plain", "-Doptimization=1"], env=env).returncode != 0:
                raise SystemExit("the scratch copy can't be configured")

    def compiles(self, tests):
        """Builds what `tests` need."""
        return run(["ninja", "-C", self.build, *self.targets(tests)]).returncode == 0

    @functools.lru_cache
    def targets(self, tests):
        listed = json.loads(run(["meson", "introspect", self.build, "--tests"]).stdout)
        ids = {need for test in listed if test["name"] in tests for need in test["depends"]}
        known = json.loads(run(["meson", "introspect", self.build, "--targets"]).stdout)
        files = [file for target in known if target["id"] in ids for file in target["filename"]]
        return [os.path.relpath(file, self.build) for file in files]

    def prepare(self, rooms):
        """Builds and tests everything as it is; answers the tests that do not pass so, or None."""
        for tests in (stage for room in rooms for stage in ROOMS[room][1]):
            compiles = self.compiles(tests)
            begun = time.monotonic()
            if not compiles or not (self.passes(tests) or self.passes(tests)):
                return tests
            self.limits[tests] = 10 + 5 * (time.monotonic() - begun)
            self.unchanged[tests] = self.outputs(tests)
        return None

    @functools.lru_cache
    def libraries(self, tests):
        """Shared libraries of this build that the tests' programs, which are built, load."""
        known = json.loads(run(["meson", "introspect", self.build, "--targets"]).stdout)
        built = [pathlib.Path(file) for target in known if target["type"] == "shared library" for file in target["filename"]]
        needed = "".join(run(["readelf", "-d", self.build / target]).stdout for target in self.targets(tests))
        return [file for file in built if f"[{file.name}]" in needed]

    def outputs(self, tests):
        """What the tests' programs are now: a change that leaves them the same bytes is none."""
        digest = hashlib.sha256()
        for target in sorted([*(self.build / target for target in self.targets(tests)), *self.libraries(tests)]):
            digest.update(target.read_bytes())
        return digest.digest()

    def passes(self, tests):
        """Whether they pass, and soon: several times as long as without a change is a loop that has become endless."""
        limit = self.limits.get(tests, TEST_SECONDS * len(tests))
        try:
            return run(["meson", "test", "-C", self.build, "--no-rebuild", "--maxfail", "1", *tests],
                       env={**os.environ, "GTEST_FAIL_FAST": "1"}, timeout=limit).returncode == 0
        except subprocess.TimeoutExpired:
            self.kill_programs()
            return False

    def kill_programs(self):
        """Ends what the tests have left running: a change may make a loop endless, and who ends meson does not end its tests."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(process / "exe").startswith(f"{self.build}/"):
                    os.kill(int(process.name), signal.SIGKILL)


def sources(scratch, rooms):
    """[(room, path, text, site)] of everything that may be changed."""
    found = []
    for room in rooms:
        for folder in ROOMS[room][0]:
            for path in sorted((scratch.tree / folder).rglob("*")):
                name = path.relative_to(scratch.tree).as_posix()
                if path.suffix not in (".cc", ".h") or any(part in f"/{name}" for part in NOT_MUTATED):
                    continue
                text = path.read_text()
                found += [(room, path, text, site) for site in mutants.sites(text)]
    return found


def equal_rows():
    """{(file, line as it stands)} of changes known to change nothing."""
    rows = set()
    for line in (HERE / "equal.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            file, code, _ = (part.strip() for part in line.split("\t"))
            rows.add((file, code))
    return rows


def place(path, text, site):
    """Where a change is and what it is, as a run prints it, apart from the number of the line, which other changes move."""
    number, line = mutants.line_of(text, site[0])
    column = site[0] - text.rfind("\n", 0, site[0])
    return path, number, column, f"{site[1]} -> {site[2] or 'nothing'}  in: {line}"


def survivors(file):
    """{(path, column, change)} of an earlier run's output."""
    pattern = re.compile(r"survived +(\S+):\d+:(\d+)  (.*)")
    found = filter(None, map(pattern.match, pathlib.Path(file).read_text().splitlines()))
    return {(match[1], int(match[2]), match[3]) for match in found}


def try_one(scratch, stages, path, text, site):
    """noticed, survived, same (the programs are the same bytes) or invalid (it does not compile)."""
    path.write_text(mutants.mutate(text, site))
    verdict = "same"
    try:
        for tests in stages:
            if not scratch.compiles(tests):
                return "invalid"
            if scratch.outputs(tests) == scratch.unchanged[tests]:
                continue
            # Behind the unit suites come those with processes and clocks: what fails there is believed the second time.
            if not scratch.passes(tests) and (tests == stages[0] or not scratch.passes(tests)):
                return "noticed"
            verdict = "survived"
        return verdict
    finally:
        path.write_text(text)


class Campaign:
    """Tries changes in the order of the draw until enough of them are judged, one at a time in each copy."""

    def __init__(self, drawn, count, rooms):
        self.drawn = iter(drawn)
        self.left = count
        self.counts = {room: {"noticed": 0, "survived": 0} for room in rooms}
        self.equal = equal_rows()
        self.lock = threading.Lock()

    def work(self, scratch):
        while True:
            with self.lock:
                row = next(self.drawn, None) if self.left > 0 else None
            if row is None:
                return
            room, name, text, site = row
            self.record(room, name, text, site, try_one(scratch, ROOMS[room][1], scratch.tree / name, text, site))

    def record(self, room, name, text, site, verdict):
        if verdict in ("invalid", "same"):
            return
        _, number, column, change = place(name, text, site)
        with self.lock:
            if verdict == "survived" and (name, mutants.line_of(text, site[0])[1]) in self.equal:
                verdict = "equal"
            else:
                self.left -= 1
                self.counts[room][verdict] += 1
            print(f"{verdict:<9} {name}:{number}:{column}  {change}", flush=True)


def report(counts):
    """Prints what was noticed, room by room, and answers the percentage of all."""
    total = {verdict: sum(row[verdict] for row in counts.values()) for verdict in ("noticed", "survived")}
    for room, row in {**counts, "all": total}.items():
        tried = row["noticed"] + row["survived"]
        if tried:
            print(f"{room:<8} {row['noticed']:>4} of {tried:>4} noticed, {100 * row['noticed'] / tried:.0f} %")
    return 100 * total["noticed"] / max(1, sum(total.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--room", action="append", choices=sorted(ROOMS), help="default: all; may be given several times")
    parser.add_argument("--under", default="", help="only files whose names begin so, for example sched/wheel")
    parser.add_argument("--again", metavar="FILE", help="only the survivors in what an earlier run printed")
    parser.add_argument("--least", type=float, default=85.0, help="percent that must be noticed")
    parser.add_argument("--copies", type=int, default=1, help="so many scratch copies at work at the same time")
    parser.add_argument("--scratch", help="keep the copy here, for the next run (default: a temporary one)")
    options = parser.parse_args()
    rooms = options.room or sorted(ROOMS)
    with tempfile.TemporaryDirectory(prefix="mutation-") as temporary, \
            concurrent.futures.ThreadPoolExecutor(options.copies) as copies:
        directories = [pathlib.Path(options.scratch or temporary) / str(number) for number in range(options.copies)]
        scratch = [Scratch(directory) for directory in directories]
        # One after the other: a compiler cache makes the others quick.
        for failing in (copy.prepare(rooms) for copy in scratch):
            if failing:
                print(f"the tree as it is does not build or fails its tests: {', '.join(failing)}")
                return 2
        every = [(room, path.relative_to(scratch[0].tree).as_posix(), text, site) for room, path, text, site in
                 sources(scratch[0], rooms)]
        every = [row for row in every if row[1].startswith(options.under)]
        if options.again:
            wanted = survivors(options.again)
            every = [row for row in every if (row[1], *place(*row[1:])[2:]) in wanted]
            print(f"{len(every)} of {len(wanted)} survivors are still there")
        print(f"seed {options.seed}: {options.count} of {len(every)} changes", flush=True)
        # Each room has as many as its part of the code.
        random.Random(options.seed).shuffle(every)
        campaign = Campaign(every, options.count, rooms)
        list(copies.map(campaign.work, scratch))
        if not options.scratch:
            for copy in scratch:
                run(["git", "-C", ROOT, "worktree", "remove", "--force", copy.tree])
    return 0 if report(campaign.counts) >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
