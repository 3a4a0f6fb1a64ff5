#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets, each from its corpus, and says what they did and found.

Exit status: 0 nothing was found, 1 there is a finding, 2 a target did not build, 77 there is no clang with libFuzzer.
"""
import argparse
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from corpus import unpack  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MAX_BYTES = {"ptx_fuzz": 4096, "rewrite_fuzz": 4096, "fatbin_fuzz": 4096, "launch_fuzz": 1024, "ring_fuzz": 2048}
# An input that takes longer, or more memory, is a finding.
INPUT_SECONDS = 10
INPUT_MIB = 1024


def find_clang():
    for name in ("clang++", "clang++-14", "clang++-19", "clang++-16"):
        if shutil.which(name):
            return name
    return None


def run(command, **options):
    return subprocess.run([str(word) for word in command], **options)


def build(directory, targets):
    """True, False (broken) or None (this machine has no libFuzzer)."""
    clang = find_clang()
    if clang is None:
        return None
    if not (directory / "build.ninja").exists():
        ccache = "ccache " if shutil.which("ccache") else ""
        env = {**os.environ, "CXX": ccache + clang, "CC": ccache + clang.replace("++", "")}
        command = ["meson", "setup", directory, ROOT, "--buildtype=plain"]
        if run(command, env=env, stdout=subprocess.DEVNULL).returncode != 0:
            return False
    names = run(["ninja", "-C", directory, "-t", "targets", "all"], capture_output=True, text=True).stdout
    if "tests/fuzz/ptx_fuzz:" not in names:
        return None
    return run(["ninja", "-C", directory, *(f"tests/fuzz/{name}" for name in targets)]).returncode == 0


def parse(log):
    """Executions, coverage and executions per second, as libFuzzer says them."""
    done = re.findall(r"stat::number_of_executed_units:\s+(\d+)", log) or re.findall(r"#(\d+)\s+DONE", log)
    speed = re.findall(r"stat::average_exec_per_sec:\s+(\d+)", log)
    coverage = re.findall(r"cov: (\d+) ft: (\d+)", log)
    return (int(done[-1]) if done else 0, int(coverage[-1][0]) if coverage else 0,
            int(coverage[-1][1]) if coverage else 0, int(speed[-1]) if speed else 0)


def fuzz(directory, name, seconds, replay):
    corpus = directory / "corpus" / name
    findings = directory / "findings"
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(exist_ok=True)
    before = set(findings.glob(f"{name}-*"))
    seeds = directory / "seeds" / name
    unpack(HERE / "corpus" / f"{name}.tar", seeds)
    command = [directory / "tests/fuzz" / name, "-print_final_stats=1", f"-timeout={6 * INPUT_SECONDS}",
               f"-report_slow_units={INPUT_SECONDS}", f"-rss_limit_mb={INPUT_MIB}", f"-artifact_prefix={findings}/{name}-",
               f"-max_len={MAX_BYTES.get(name, 4096)}"]
    words = HERE / name.replace("_fuzz", ".dict")
    if words.exists():
        command.append(f"-dict={words}")
    if replay:
        command += ["-runs=0", seeds]
    else:
        command += [f"-max_total_time={seconds}", corpus, seeds]
    # A crash is reported by the target itself; no core files.
    result = run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    (directory / f"{name}.log").write_text(result.stderr)
    new = sorted(set(findings.glob(f"{name}-*")) - before)
    status = result.returncode
    if new and all(only_waited(directory, name, path) for path in new):
        for path in new:
            path.unlink()
        status, new = 0, []
    return status, parse(result.stderr), new, result.stderr


def only_waited(directory, name, path):
    """libFuzzer's clock is the wall's: an input that is quick by itself did not find a free processor."""
    if not path.name.startswith((f"{name}-timeout-", f"{name}-slow-unit-")):
        return False
    before = processor_seconds()
    alone = run([directory / "tests/fuzz" / name, f"-timeout={20 * INPUT_SECONDS}", path], stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
    return alone.returncode == 0 and processor_seconds() - before < INPUT_SECONDS


def processor_seconds():
    """That the children which have ended used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# Seconds of one target before the next one's turn, where each is to have so much processor time. Each turn reads the corpus again.
ROUND = 900


def campaign(directory, targets, options):
    """Runs the targets in turn; True when there is a finding."""
    each = options.cpu_minutes * 60
    seconds = ROUND if each else max(1, round(options.minutes * 60 / len(targets)))
    targets = list(targets)
    spent, done, found = dict.fromkeys(targets, 0.0), dict.fromkeys(targets, 0), False
    print(f"{'target':<14}{'executions':>12}{'per second':>12}{'edges':>8}{'features':>10}{'cpu min':>9}  findings")
    while targets:
        for name in list(targets):
            before = processor_seconds()
            status, (executions, edges, features, speed), new, log = fuzz(directory, name, seconds, options.replay)
            spent[name] += processor_seconds() - before
            done[name] += executions
            words = ", ".join(path.name for path in new) or ("none" if status == 0 else f"exit status {status}")
            print(f"{name:<14}{done[name]:>12}{speed:>12}{edges:>8}{features:>10}{spent[name] / 60:>9.1f}  {words}", flush=True)
            if status != 0 or new:
                found = True
                targets.remove(name)
                print("\n".join(log.splitlines()[-60:]))
        targets = [name for name in targets if spent[name] < each]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="of all targets together (default 10)")
    parser.add_argument("--cpu-minutes", type=float, default=0, metavar="N",
                        help="instead: in turns of fifteen minutes until each target has had N minutes of processor time")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-fuzz", help="directory to build in")
    parser.add_argument("--replay", action="store_true", help="only run what is in the corpora, once")
    parser.add_argument("targets", nargs="*", help="default: all")
    options = parser.parse_args()
    known = sorted(path.stem for path in HERE.glob("*_fuzz.cc"))
    targets = options.targets or known
    if unknown := set(targets) - set(known):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    directory = options.build.resolve()
    built = build(directory, targets)
    if built is None:
        print("fuzz: no clang with libFuzzer here (Debian: clang, libclang-rt-*-dev): nothing was run")
        return 77
    if not built:
        print("fuzz: the targets don't build")
        return 2
    return 1 if campaign(directory, targets, options) else 0


if __name__ == "__main__":
    sys.exit(main())
