#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""debian/ and what `meson install` installs say the same: each file goes into one package, each package asks for what the build
needs. Making the packages is tools/make-packages; trying them is packages_test.py.

usage: files_test.py BUILD_ROOT
"""
import fnmatch
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

REPO = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = REPO / "debian"
KMOD = REPO / "guest-driver-shim/kmod"
# Packages are configured without them.
NOT_BUILT = ("usr/lib/*/slurm/*", "usr/bin/vgpud-kubernetes", "usr/bin/vgpud-kubevirt")
# Of what tools/setup installs: for tests, guests, kernels and what packages are configured without.
NOT_FOR_PACKAGES = {"libgrpc++-dev", "libprotobuf-dev", "libcurl4-openssl-dev", "libgtest-dev", "libgmock-dev", "librapidcheck-dev", "libbenchmark-dev", "libelf-dev", "libssl-dev"}
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")


def lines(path):
    return [line.split() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]


def matches(path, pattern):
    """As dh_install: a directory is all that is in it, and `*` ends at a slash."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) >= len(wanted) and all(fnmatch.fnmatchcase(part, each) for part, each in zip(parts, wanted))


def installed(build):
    """What goes below DESTDIR, as if the prefix were /usr."""
    said = json.loads(subprocess.run(["meson", "introspect", "--installed", "--buildoptions", build], capture_output=True,
                                     check=True, text=True).stdout)
    options = {option["name"]: option["value"] for option in said["buildoptions"]}
    found = set()
    for path in said["installed"].values():
        path = str(pathlib.PurePosixPath("usr", pathlib.PurePosixPath(path).relative_to(options["prefix"])))
        # Meson doesn't fold the programs' directory beside bin.
        path = path.replace("usr/bin/../", "usr/")
        library = "usr/" + options["libdir"] + "/"
        found.add("usr/lib/machine/" + path.removeprefix(library) if path.startswith(library) else path)
    return found


def check_that_each_file_has_one_package(build):
    files = {path for path in installed(build) if not any(fnmatch.fnmatchcase(path, each) for each in NOT_BUILT)}
    places = {}
    for listing in [*DEBIAN.glob("*.install"), DEBIAN / "not-installed"]:
        for pattern, *_ in lines(listing):
            if pattern.startswith("debian/"):
                assert (REPO / pattern).is_file(), f"{listing.name}: {pattern} is not there"
                continue
            taken = {path for path in files if matches(path, pattern) or matches(pattern, path)}
            assert taken, f"{listing.name}: meson install has nothing at {pattern}"
            for path in taken:
                places.setdefault(path, set()).add(listing.name)
    assert set(places) == files, f"in no package: {sorted(files - set(places))}"
    twice = {path: where for path, where in places.items() if len(where) > 1}
    assert not twice, f"in two packages: {twice}"
    print(f"{len(files)} installed paths, each in one package")


def check_that_no_name_is_nvidias(build):
    libraries = [path for path in installed(build) if re.search(r"/lib(cuda|nvidia-ml)\.so", path)]
    assert libraries and all("/vgpud/" in path for path in libraries), libraries


def check_what_the_build_needs():
    needed = set(re.findall(r"\blib[a-z0-9+-]+-dev\b|\bnlohmann-json3-dev\b", (REPO / "tools/lib/packages.sh").read_text()))
    asked = re.search(r"^Build-Depends:(.*?)^\S", (DEBIAN / "control").read_text(), re.DOTALL | re.MULTILINE)[1]
    missing = {name for name in needed - NOT_FOR_PACKAGES if not re.search(rf"^ {re.escape(name)}\b", asked, re.MULTILINE)}
    assert needed and not missing, f"debian/control does not ask for {missing}"


def check_versions():
    version = re.search(r"version: '([^']+)'", (REPO / "meson.build").read_text())[1]
    first = (DEBIAN / "changelog").read_text().splitlines()[0]
    assert re.match(rf"vgpud \({re.escape(version)}[^)]*\) ", first), f"debian/changelog begins with {first}, meson.build has {version}"
    newest = re.search(r"^## ([0-9.]+)", (REPO / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert newest == version, f"CHANGELOG.md begins with {newest}, meson.build has {version}"
    driver = re.search(r'^PACKAGE_VERSION="(.*)"', (KMOD / "dkms.conf").read_text(), re.MULTILINE)[1]
    assert f"vgpu-{driver}" in (REPO / "docs/guest-driver.md").read_text(), f"docs/guest-driver.md installs another driver than {driver}"


def check_scripts():
    scripts = [path for path in DEBIAN.iterdir() if path.suffix[1:] in SCRIPTS]
    assert scripts
    for path in scripts:
        text = path.read_text()
        assert "set -e" in text and "#DEBHELPER#" in text, path
        subprocess.run(["sh", "-n", path], check=True)
    packages = set(re.findall(r"^Package: (.*)$", (DEBIAN / "control").read_text(), re.MULTILINE))
    for path in DEBIAN.iterdir():
        name = path.name.rsplit(".", 1)[0]
        assert path.suffix not in (".install", ".manpages", ".lintian-overrides") or name in packages, f"{path.name}: no package {name}"


def check_overrides():
    """Each has its reason above it."""
    for path in [*DEBIAN.glob("*.lintian-overrides"), *DEBIAN.glob("source/lintian-overrides")]:
        before = ""
        for line in path.read_text().splitlines():
            assert line.startswith("#") or before.startswith("#") or before.split(":")[1:2] == line.split(":")[1:2], f"{path}: {line}: why?"
            before = line if line.strip() else ""


def make_package(directory, fields):
    """An empty one with these fields of debian/control."""
    root = directory / fields["Package"]
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", root, directory], check=True, stdout=subprocess.DEVNULL)
    return str(next(directory.glob(f"{fields['Package']}_*.deb")))


def check_what_stands_for_nvidias():
    """apt takes our libraries for NVIDIA's where a package asks for these, as Debian's python3-pynvml, which gpustat and nvitop need, does."""
    if not all(map(shutil.which, ("apt-get", "dpkg-deb"))):
        print("what our libraries stand for: skipped, no apt")
        return
    stanza = re.search(r"^Package: libcuda1-vgpud\n(.*?)^Description:", (DEBIAN / "control").read_text(), re.DOTALL | re.MULTILINE)[1]
    provides = re.search(r"^Provides: (.*)$", stanza, re.MULTILINE)
    common = {"Version": "0", "Architecture": "all", "Maintainer": "vgpud", "Description": "empty"}
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        ours = make_package(directory, {"Package": "stands-for-libcuda1-vgpud", **({"Provides": provides[1]} if provides else {}), **common})
        for number, wanted in enumerate(("libnvidia-ml1 | libnvidia-ml.so.1", "libnvidia-ml1", "libcuda1", "libcuda.so.1")):
            theirs = make_package(directory, {"Package": f"wants-nvidia-{number}", "Depends": wanted, **common})
            done = subprocess.run(["apt-get", "install", "--simulate", "--no-download", ours, theirs], capture_output=True, text=True, check=False,
                                  timeout=120, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"})
            assert done.returncode == 0 and f"Inst wants-nvidia-{number}" in done.stdout, f"a package that depends on {wanted}: {done.stdout}{done.stderr}"
            assert done.stdout.count("Inst ") == 2, f"nothing of NVIDIA's comes with it: {done.stdout}"
    print("packages that depend on NVIDIA's libraries install next to ours")


check_that_each_file_has_one_package(sys.argv[1])
check_that_no_name_is_nvidias(sys.argv[1])
check_what_the_build_needs()
check_versions()
check_scripts()
check_overrides()
check_what_stands_for_nvidias()
