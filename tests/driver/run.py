#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guest driver against what an ordinary user of a guest, an administrator, a dying and a lying host can do to it.

Each group of tests runs in one guest. The last line says how many passed. Exit status: 0 all, 1 not all, 77 no guest can run here.
"""
import argparse
import os
import pathlib
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "vm"), str(HERE.parents[1] / "tools" / "lib")]
import bed  # noqa: E402
import groups  # noqa: E402
import races  # noqa: E402
from vgpuguest import paths, process  # noqa: E402


def run_group(group, options, results):
    print(f"# {group.name}: {group.about}", flush=True)
    wanted = [test for test in group.tests if not options.test or test.__name__ in options.test]
    try:
        with bed.bed(options.kernel, group.setup, options.programs, options.module) as made:
            for test in wanted:
                began = time.monotonic()
                failure = run_test(test, made)
                report(results, f"{group.name}/{test.__name__}", failure, time.monotonic() - began)
                if made.guest.qemu.poll() is not None:
                    raise paths.ToolError("the guest ended")
    except (paths.ToolError, OSError, TimeoutError, RuntimeError) as error:
        report(results, f"{group.name}/guest", str(error), 0)


def run_test(test, made):
    """Why it failed, or None. A report on the guest's console is a failure, whatever the test says."""
    made.console.new_text()
    failure = None
    try:
        test(made)
    except Exception as error:  # pylint: disable=broad-except
        failure = str(error) if isinstance(error, (AssertionError, TimeoutError)) else traceback.format_exc()
        failure = failure or type(error).__name__
    reports = made.console.reports(getattr(test, "allowed", None))[:3]
    if failure:
        failure += f"\nvgpud says:\n{process.tail(made.vgpud.log, 12)}\nin the guest:\n{made.whats_up()}"
    if reports:
        failure = "\n".join([*([failure] if failure else []), "the kernel reports:", *reports])
    return failure


def report(results, name, failure, seconds):
    results.append((name, failure))
    print(f"{'not ok' if failure else 'ok'} {len(results)} - {name} ({seconds:.0f} s)", flush=True)
    for line in (failure or "").splitlines():
        print(f"  # {line}", flush=True)


def main(arguments):
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__)
    parser.add_argument("--kernel", default=paths.KERNEL_SUITES[0], help="guest kernel: a directory of .cache/kernel")
    parser.add_argument("--module", metavar="FILE", help="another vgpu.ko than the kernel's own")
    parser.add_argument("--programs", metavar="DIR", default=paths.BUILD / "tests" / "driver", help="the built test programs")
    parser.add_argument("--group", action="append", metavar="NAME", help="only this group (more than once: these)")
    parser.add_argument("--test", action="append", metavar="NAME", help="only this test")
    parser.add_argument("--rounds", type=int, default=races.ROUNDS, help="how often each of group races is tried")
    parser.add_argument("--quick", action="store_true", help="the short tests only, in one guest")
    parser.add_argument("--list", action="store_true", help="says what there is")
    options = parser.parse_args(arguments)
    races.ROUNDS = options.rounds
    chosen = [group for group in ((groups.QUICK,) if options.quick else groups.GROUPS) if
              (not options.group or group.name in options.group) and
              (not options.test or any(test.__name__ in options.test for test in group.tests))]
    if options.list:
        for group in chosen:
            print(f"{group.name}: {group.about}")
            for test in group.tests:
                print(f"    {test.__name__}: {(test.__doc__ or '').splitlines()[0]}")
        return 0
    if not os.path.exists(paths.QEMU):
        print("SKIPPED: no QEMU >= 10.1 here; tools/setup fetches it")
        return 77
    if not (paths.kernel_dir(options.kernel) / "initrd.img").exists():
        print(f"SKIPPED: no guest kernel {options.kernel} here; tools/test-kernel {options.kernel} makes it")
        return 77
    results = []
    print("TAP version 13")
    for group in chosen:
        run_group(group, options, results)
    failed = sum(failure is not None for _, failure in results)
    print(f"1..{len(results)}\n# {len(results) - failed} passed, {failed} failed")
    return 1 if failed or not results else 0


process.run_tool("run.py", main)
