#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs real CUDA applications, unmodified from Debian's archive, on a VF of a private vgpud with one soft GPU.

Each application gets a root directory made of Debian packages (needs root, disk and the archive; else it is skipped and
said why). Roots are kept below --cache. docs/applications.md says what to expect.
"""
import argparse
import contextlib
import fnmatch
import glob
import os
import sys
import time

sys.dont_write_bytecode = True
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [_HERE, os.path.join(_HERE, "..", "..", "tools", "lib")]
import apps  # noqa: E402
from applib import guest, report, roots  # noqa: E402
from applib.application import Failed, Skipped  # noqa: E402
from applib.direct import Direct  # noqa: E402
from vgpuguest import daemon, paths, process, profile  # noqa: E402


PROFILE_ROWS = 60


def run_checks(checks, results):
    """Runs them in turn; each says one line."""
    for check in checks:
        start = time.monotonic()
        try:
            verdict, said = "PASS", check.run() or ""
        except Failed as failure:
            verdict, said = "FAIL", str(failure)
        except Skipped as why:
            verdict, said = "SKIP", str(why)
        results.add(check.name, verdict, time.monotonic() - start, said)


def toolkit_of(application, options):
    """Where the libraries of this machine's CUDA toolkit are, for an application that uses them; else ""."""
    if not application.toolkit:
        return ""
    if options.guest:
        raise Skipped("the CUDA toolkit of this machine is not in the virtual machine: run it without --guest")
    for home in filter(None, (os.environ.get("CUDA_HOME"), "/usr/local/cuda")):
        for directory in ("lib64", "lib"):
            if glob.glob(os.path.join(home, directory, "libcublas.so.*")):
                return os.path.realpath(os.path.join(home, directory))
    raise Skipped("no CUDA toolkit with libcublas here (CUDA_HOME, /usr/local/cuda)")


@contextlib.contextmanager
def place_of(application, options, root, work):
    """The application's root on a VF of a vgpud of its own."""
    arguments = ["--soft-gpu-capability", options.capability] if options.capability else []
    if options.profile:
        os.environ["VGPUD_SOFT_PROFILE"] = "1"
    memory = {"vram": application.vram, **({"host-memory": application.host_memory} if application.host_memory else {})}
    names = ["apps", *(f"apps-{number}" for number in range(1, application.vfs))]
    with daemon.private_daemon([(name, memory) for name in names], [*arguments, *application.daemon]) as vgpud:
        vf = vgpud.show("apps")

        def gpu_seconds():
            return vgpud.ctl("stats")["run_ns_total"] / 1e9

        if not options.guest:
            yield Direct(root, gpu_seconds, [vgpud.show(name) for name in names], vgpud.runtime_dir, work, toolkit_of(application, options))
        else:
            with guest.booted(root, gpu_seconds, vf, vgpud.runtime_dir, work) as place:
                yield place
        if options.profile:
            process.stop(vgpud.process)  # what executors have said is in the log when vgpud has ended
            print(*profile.table(profile.rows_of(vgpud.log), PROFILE_ROWS), sep="\n", flush=True)


def run_application(application, options, results):
    cache = os.path.abspath(options.cache)
    toolkit_of(application, options)
    root = str(roots.directory_of(application.root, cache))
    results.begin(f"{application.title} {roots.version(root, application.version_of)} ({application.root.suite}), capability "
                  f"{options.capability or 'of the build'}, {'in a guest' if options.guest else 'direct'}")
    work = os.path.join(cache, "work", application.name)
    os.makedirs(work, exist_ok=True)
    with place_of(application, options, root, work) as place:
        place.patience = options.patience
        checks = [check for check in application.checks(place)
                  if not options.only or any(fnmatch.fnmatch(check.name, pattern) for pattern in options.only)]
        if not checks:
            raise Skipped(f"no check of {application.name} fits --only {' '.join(options.only)}")
        for check in checks:
            if check.batch is not None:
                check.batch.want(check.name)
        run_checks(checks, results)
        results.missed(place.missed)


def main(arguments):
    parser = argparse.ArgumentParser(prog="tests/apps/run.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("applications", nargs="*", metavar="APPLICATION", help=f"some of: {', '.join(apps.NAMES)}; default: all")
    parser.add_argument("--cache", default=str(paths.CACHE / "apps"), metavar="DIR", help="where roots are kept (%(default)s)")
    parser.add_argument("--capability", metavar="X.Y", help="compute capability that the soft GPU has")
    parser.add_argument("--guest", action="store_true", help="run in a virtual machine instead of directly on the VF")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="only the checks of these names, like 'tokens *'")
    parser.add_argument("--patience", type=int, default=60, metavar="SECONDS",
                        help="for each operation of llama.cpp's own test (%(default)s)")
    parser.add_argument("--profile", action="store_true",
                        help="say which forms of PTX instructions took the soft GPU's time (docs/profile-mode.md)")
    parser.add_argument("--make-roots", action="store_true", help="make the roots and end")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.applications) - set(apps.NAMES))
    if unknown:
        parser.error(f"no application {', '.join(unknown)}; there are {', '.join(apps.NAMES)}")
    results = report.Report()
    for name in options.applications or apps.NAMES:
        application = apps.load(name)
        try:
            if options.make_roots:
                start = time.monotonic()
                print(f"{name}: {roots.directory_of(application.root, options.cache)}, {time.monotonic() - start:.0f} s", flush=True)
            else:
                run_application(application, options, results)
        except Skipped as why:
            results.all(application.title, "SKIP", str(why))
        except Failed as failure:
            results.all(application.title, "FAIL", str(failure))
    return results.end()


process.run_tool("tests/apps/run.py", main)
