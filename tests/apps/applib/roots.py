# SPDX-License-Identifier: Apache-2.0
"""Root directories with an application in them, made of Debian packages by mmdebstrap. Which mirror is used is what this
machine's apt says (tools/lib/archive.sh)."""
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile

from vgpuguest.paths import CACHE, REPO

from .application import Skipped

_FORMAT = 1  # of roots: a higher one makes them all anew
_SECTIONS = "main contrib non-free non-free-firmware"
_SUITE_OF_MMDEBSTRAP = "bookworm"
_BUILD_SECONDS = 1100
# What mmdebstrap mounts in the root ends with it, however it ends.
_OWN_MOUNTS = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child")
_NOT_NEEDED = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")


def _archive(command):
    """Runs a command line with the functions of tools/lib/archive.sh; its output."""
    script = f"set -euo pipefail; cache={shlex.quote(str(CACHE))}; . {shlex.quote(str(REPO / 'tools/lib/archive.sh'))}; {command}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise Skipped(f"the archive does not answer: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout.strip()


def _mmdebstrap(cache):
    """The program, this machine's or the archive's."""
    if found := shutil.which("mmdebstrap"):
        return found
    directory = cache / "mmdebstrap"
    program = directory / "usr" / "bin" / "mmdebstrap"
    if not program.exists():
        debs = cache / "mmdebstrap-deb"
        _archive(f"archive_update; archive_fetch {_SUITE_OF_MMDEBSTRAP} {shlex.quote(str(debs))} mmdebstrap")
        for deb in debs.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", deb, directory], check=True)
    return str(program)


def _empty_packages(empty, directory):
    """An archive of packages that have nothing in them, for apt; what to write into sources.list for it."""
    paragraphs = []
    for name, provides in sorted(empty.items()):
        control = (f"Package: {name}\nVersion: 9999:1\nArchitecture: amd64\nMaintainer: nobody <nobody@localhost>\n"
                   + (f"Provides: {provides}\n" if provides else "") + "Description: stands for a package left out\n")
        tree = directory / name
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN" / "control").write_text(control)
        deb = directory / f"{name}.deb"
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree, deb], check=True, capture_output=True)
        shutil.rmtree(tree)
        paragraphs.append(control + f"Filename: ./{deb.name}\nSize: {deb.stat().st_size}\n"
                          f"SHA256: {hashlib.sha256(deb.read_bytes()).hexdigest()}\n")
    (directory / "Packages").write_text("\n".join(paragraphs))
    directory.chmod(0o755)
    return f"deb [trusted=yes] copy:{directory} ./"


def _command(wanted, root, uri, empty_source, program):
    keyring = next((path for path in ("/usr/share/keyrings/debian-archive-keyring.gpg",
                                      "/usr/share/keyrings/debian-archive-keyring.pgp") if os.path.exists(path)), None)
    signed = f"signed-by={keyring}" if keyring else ""
    return [*_OWN_MOUNTS, program, "--mode=root", "--variant=apt", "--format=directory", f"--include={','.join(wanted.packages)}",
            "--aptopt=Acquire::Check-Valid-Until \"false\"", "--aptopt=Acquire::Retries \"3\"",
            *[f"--dpkgopt=path-exclude={pattern}" for pattern in (*_NOT_NEEDED, *wanted.without)],
            wanted.suite, str(root), f"deb [{signed}] {uri} {wanted.suite} {_SECTIONS}", empty_source]


def _key(wanted):
    words = repr((_FORMAT, wanted.suite, wanted.packages, sorted(wanted.empty.items()), wanted.without))
    return hashlib.sha256(words.encode()).hexdigest()[:10]


def directory_of(wanted, cache):
    """The directory of a Root, made where it is not there yet. Raises Skipped with the reason where that cannot be."""
    home = pathlib.Path(cache) / f"{wanted.name}-{_key(wanted)}"
    root = home / "root"
    if (home / "done").exists():
        return root
    if os.geteuid() != 0:
        raise Skipped("making a root needs root on this machine")
    home.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(home).free / (1 << 30)
    if free < wanted.gib:
        raise Skipped(f"{wanted.gib:g} GiB of disk are needed for the root, {free:.1f} are free below {cache}")
    uri = _archive("archive_uri")
    if not uri:
        raise Skipped("apt on this machine names no Debian archive")
    shutil.rmtree(root, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="vgpu-empty-") as directory:
        source = _empty_packages(wanted.empty, pathlib.Path(directory))
        program = _mmdebstrap(pathlib.Path(cache))
        command = _command(wanted, root, uri, source, program)
        # mmdebstrap looks for its helpers along PATH.
        environment = dict(os.environ, PATH=f"{os.environ['PATH']}:{os.path.dirname(program)}:/usr/sbin:/sbin")
        with open(home / "log", "w", encoding="utf-8") as log:
            try:
                code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                      timeout=_BUILD_SECONDS).returncode
            except subprocess.TimeoutExpired as late:
                raise Skipped(f"the archive's packages did not make a root within {_BUILD_SECONDS} s ({home / 'log'}); try again "
                              "when this machine is less busy") from late
    if code != 0:
        reasons = [line for line in (home / "log").read_text(errors="replace").splitlines() if line.startswith("E:")]
        raise Skipped(f"the archive's packages do not make a root ({home / 'log'}): {'; '.join(reasons)[:300]}")
    for leftover in ("var/cache/apt/archives", "var/lib/apt/lists"):
        shutil.rmtree(root / leftover, ignore_errors=True)
    (home / "done").write_text(" ".join(command[1:]) + "\n")
    return root


def version(root, package):
    query = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Version}", package]
    return subprocess.run(query, capture_output=True, text=True).stdout.strip() or "?"
