#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what a reviewer should not have to: formatting, file hygiene, machine paths.

usage: check_style.py [REPO_ROOT]   exit 0 clean, 1 with one line per finding
"""
import pathlib
import re
import shutil
import subprocess
import sys

FORMATTED = (".h", ".cc")
# Kernel style (guest-driver-shim/kmod, uapi) and generated files are not clang-format's.
NOT_FORMATTED = ("guest-driver-shim/kmod/", "tests/driver/", "guest-driver-shim/include/uapi/", "guest-driver-shim/libcuda/generated/",
                 "guest-driver-shim/libnvidia-ml/generated/", "gpu/generated/")
# The paths of one developer's machine, and hosts of package archives: neither belongs in a file that others use.
FORBIDDEN = re.compile(r"/(?:root|work|farm)/|https?://[a-z0-9.-]*(?:debian\.org/debian|npmjs)")

# The namespace of each folder and of what is inside it; the first row that fits. What base and sched have is everybody's.
NAMESPACES = (
    ("guest-driver-shim/libcuda/", "vgpud::cuda"), ("guest-driver-shim/libnvidia-ml/", "vgpud::nvml"), ("gpu/exec", "vgpud::exec"),
    ("gpu/generated/", "vgpud::cuda_enum"), ("gpu/ptx/", "vgpud::ptx"), ("gpu/rewrite/", "vgpud::rewrite"), ("gpu/soft/soft_gpu.cc", "vgpud"), ("gpu/soft/", "vgpud::soft"),
    ("gpu/cuda/", "vgpud::driver"), ("gpu/channels/", "vgpud::rm"), ("vfio/", "vgpud::vfio"),
    ("vgpud/model/", "vgpud::(daemon|control)"), ("vgpud/", "vgpud::daemon"), ("tools/", "vgpud::tools"),
    ("integrations/kubernetes/", "vgpud::kubernetes"), ("integrations/kubevirt/", "vgpud::kubevirt"), ("bench/", "vgpud::bench"),
    ("base/", "vgpud"), ("sched/", "vgpud|ws_proof"), ("gpu/", "vgpud"),
)
# GCC does not destroy what a braced list or `new` has made already when TRY returns in the middle of it.
LEAKS = re.compile(r"\w\{[^;{}]*,\s*TRY\(|\{TRY\([^;{}]*TRY\(|\bnew [\w:]+\([^;{}]*TRY\(")
NAMESPACE = re.compile(r"^namespace (\w[\w:]*) \{", re.MULTILINE)


def wrong_namespaces(name, text):
    """Namespaces at the outermost level that are not the folder's."""
    row = next((row for row in NAMESPACES if name.startswith(row[0])), None)
    if row is None or not name.endswith(FORMATTED):
        return []
    within = re.compile(rf"({row[1]})(::|$)")
    found = [space for space in NAMESPACE.findall(text) if space.startswith("vgpud") and not within.match(space)]
    return [f"{name}: namespace {space}; here it is {row[1]}" for space in found]


def tracked(root):
    listing = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=True).stdout
    return [name for name in listing.decode().split("\0") if name]


def find_formatter():
    """clang-format 14, that of Debian 12: each version formats a little differently."""
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path and " 14." in subprocess.run([path, "--version"], capture_output=True, text=True).stdout:
            return path
    return None


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    if not (root / ".git").exists():
        print("not a git checkout: nothing to compare with")
        return 77
    found = []
    to_format = []
    for name in tracked(root):
        path = root / name
        if name.startswith("tests/fuzz/corpus/"):
            continue
        if not path.is_file() or path.is_symlink():
            continue
        data = path.read_bytes()
        if b"\0" in data[:4096]:
            continue
        text = data.decode(errors="replace")
        if text and not text.endswith("\n"):
            found.append(f"{name}: no newline at the end")
        if name != "tools/check_style.py" and not name.startswith("docs/measurements/"):
            for number, line in enumerate(text.splitlines(), 1):
                if FORBIDDEN.search(line):
                    found.append(f"{name}:{number}: names a machine or an archive host: {line.strip()[:80]}")
        found += wrong_namespaces(name, text)
        if name.endswith((".cc", ".h")):
            found += [f"{name}:{text.count(chr(10), 0, hit.start()) + 1}: TRY inside a braced list or after new leaks what stands before it: "
                      f"give it a variable" for hit in LEAKS.finditer(text)]
        if name.endswith(FORMATTED) and not name.startswith(NOT_FORMATTED):
            to_format.append(name)
    formatter = find_formatter()
    if formatter:
        result = subprocess.run([formatter, "--dry-run", "-Werror", *to_format], cwd=root, capture_output=True, text=True)
        wrong = sorted({line.split(":")[0] for line in result.stderr.splitlines() if "error:" in line})
        found += [f"{name}: not formatted (run: clang-format -i {name})" for name in wrong]
    else:
        print("clang-format 14 is not here: formatting was not checked")
    print("\n".join(found) or "style is clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
