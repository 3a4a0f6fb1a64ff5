# SPDX-License-Identifier: Apache-2.0
"""A Debian system of its own, in a directory, in which packages come and go.

It is made once for each release and list of needs, from the machine's own Debian archive, and kept in .cache/packages; a test
works on a copy.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "tests" / "service"), str(REPO / "tools" / "lib")]

import host  # noqa: E402

# python3 runs the CUDA program of the test, the headers are those that vgpu.ko is built for.
PACKAGES = ("dkms", "systemd", "pkgconf", "gcc", "libc6-dev", "python3-minimal", "libpython3-stdlib", "linux-headers-cloud-amd64")
NAMES = ("vgpud", "vgpuctl", "libcuda1-vgpud", "vgpud-dev", "vgpud-guest-dkms")
APT = host.APT
# What other packages' tools write while packages come and go: apt, dpkg, depmod, caches and logs.
OF_OTHERS = re.compile(r"^\./(var/(lib/(dpkg|apt|ucf)|log|cache|tmp)|run|tmp|proc|sys|dev|root|packages|srv)(/|$)"
                       r"|^\./usr/lib/modules/[^/]+/modules\.|^\./etc/((group|gshadow|passwd|shadow)-|ld\.so\.cache$|\.pwd\.lock$)")


def this_release():
    return re.search(r"VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text())[1]


def packed(suite, debs):
    """The system with all that the packages need but without them, so that nothing has to be fetched later."""
    return host.make_system(suite, (*PACKAGES, *host.needs(debs)), REPO / ".cache/packages" / suite / "bed", "apt")


def next_version(debs, directory):
    """The same packages once more, one version higher."""
    made = []
    for deb in debs:
        tree = pathlib.Path(directory, deb.stem)
        host.run("dpkg-deb", "-R", deb, tree)
        control = tree / "DEBIAN/control"
        text = control.read_text()
        version = re.search(r"^Version: (.*)$", text, re.MULTILINE)[1]
        text = text.replace(f"Version: {version}\n", f"Version: {version}+next\n").replace(f"(= {version})", f"(= {version}+next)")
        control.write_text(text)
        made.append(pathlib.Path(directory, f"{deb.stem}+next.deb"))
        host.run("dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, made[-1])
        shutil.rmtree(tree)
    return made


def find_debs(directory):
    debs = [deb for deb in sorted(pathlib.Path(directory).glob("*.deb")) if deb.name.split("_")[0] in NAMES]
    names = {deb.name.split("_")[0] for deb in debs}
    if names != set(NAMES):
        raise FileNotFoundError(f"{directory} has {sorted(names)}, not {sorted(NAMES)}: tools/make-packages makes them")
    return debs


class Bed:
    """The caller has namespaces of its own for mounts and processes."""

    def __init__(self, directory, suite, debs):
        self.root = pathlib.Path(directory, "root")
        self.root.mkdir()
        host.run("tar", "-C", self.root, "-xf", packed(suite, debs), "--exclude=./dev/*")
        host.run("mount", "-t", "proc", "proc", self.root / "proc")
        host.run("mount", "--rbind", "/dev", self.root / "dev")
        (self.root / "packages").mkdir()
        # No service of the machine's is started: there is no systemd in here.
        (self.root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (self.root / "usr/sbin/policy-rc.d").chmod(0o755)

    def take(self, debs):
        """The packages as this system sees them."""
        for deb in debs:
            shutil.copy(deb, self.root / "packages")
        return [f"/packages/{deb.name}" for deb in debs]

    def command(self, *words):
        return ["chroot", str(self.root), "env", "-i", "PATH=" + host.PATH, "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1",
                *map(str, words)]

    def do(self, *words):
        return host.run(*self.command(*words))

    def sh(self, line):
        return self.do("sh", "-c", line)

    def start(self, *words, stdin=subprocess.DEVNULL, log):
        """A program that goes on; what it says is in the file `log` of this machine."""
        with open(log, "ab") as out:
            return subprocess.Popen(self.command(*words), stdin=stdin, stdout=out, stderr=out)

    def files(self):
        """Everything that packages should leave as it was: mode, owner, group, and of settings what is in them."""
        found = {}
        for directory, names, others in os.walk(self.root):
            for name in names + others:
                path = "./" + os.path.relpath(os.path.join(directory, name), self.root)
                if not OF_OTHERS.match(path):
                    st = os.lstat(os.path.join(directory, name))
                    found[path] = (st.st_mode, st.st_uid, st.st_gid, self._setting(path))
            names[:] = [name for name in names if name not in ("proc", "dev", "sys") or directory != str(self.root)]
        return found

    def _setting(self, path):
        """Of a file in /etc that is not about people (`people`)."""
        full = self.root / path
        if not path.startswith("./etc/") or not full.is_file() or full.is_symlink() or re.search(r"/g?(shadow|group)$|/passwd$", path):
            return ""
        return hashlib.sha256(full.read_bytes()).hexdigest()

    def people(self):
        return {line.split(":")[0] for file in ("passwd", "group") for line in (self.root / "etc" / file).read_text().splitlines()}

    def units(self):
        """Those of vgpud that systemd would know, with what is enabled."""
        said = self.sh("systemctl --root=/ list-unit-files --no-legend --no-pager 'vgpud*' || true")
        return {line.split()[0]: line.split()[1] for line in said.splitlines() if line.strip()}

    def processes(self):
        """Numbers and programs of what runs in it."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if os.readlink(entry / "root") == str(self.root):
                        found[int(entry.name)] = os.readlink(entry / "exe")
                except OSError:
                    pass
        return found
