#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The patch series that contrib/linux makes of the guest driver applies, leaves what it says, and is clean for checkpatch --strict where that is found:
VGPUD_CHECKPATCH, or that of a kernel's source or headers below /usr/src."""
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
AUTHOR = "A Contributor <contributor@example.org>"
# As much of a kernel's source as the series changes.
TREE = {
    "MAINTAINERS": "List of maintainers\n\n3C59X NETWORK DRIVER\nS:\tOdd Fixes\n\nVGA_SWITCHEROO\nS:\tMaintained\n\nVIA RHINE NETWORK DRIVER\nS:\tMaintained\n",
    "drivers/misc/Kconfig": 'menu "Misc devices"\n\nsource "drivers/misc/uacce/Kconfig"\nendmenu\n',
    "drivers/misc/Makefile": "obj-$(CONFIG_UACCE)\t\t+= uacce/\n",
    "Documentation/userspace-api/ioctl/ioctl-number.rst":
        "0xB8  01-02  uapi/misc/mrvl_cn10k_dpi.h                              Marvell\n0xC0  00-0F  linux/usb/iowarrior.h\n",
}


def run(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"not ok: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def code(text):
    """A source without comments, layout, and the names of headers."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|#include[^\n]*|\\\n", "", text, flags=re.S)
    return "".join(text.split())


def check_sources(tree):
    kmod = ROOT / "guest-driver-shim" / "kmod"
    for path in sorted(kmod.glob("*.[ch]")):
        if path.name != "vgpu_compat.h":
            assert code((tree / "drivers/misc/vgpu" / path.name).read_text()) == code(path.read_text()), path.name
    for name in ("vgpu_abi.h", "vgpu_ioctl.h", "vgpu_status.h"):
        made, ours = (code(text.read_text()).removesuffix("#endif") for text in
                      (tree / "include/uapi/linux" / name, ROOT / "guest-driver-shim/include/uapi" / name))
        assert made and ours.startswith(made), f"{name} says something else than ours"
    entries = (tree / "MAINTAINERS").read_text()
    assert entries.index("VGA_SWITCHEROO") < entries.index("VGPUD VIRTUAL") < entries.index("VIA RHINE"), entries
    numbers = (tree / "Documentation/userspace-api/ioctl/ioctl-number.rst").read_text().splitlines()
    assert [line[:4] for line in numbers] == ["0xB8", "0xBD", "0xC0"], numbers
    assert "vgpu/Kconfig" in (tree / "drivers/misc/Kconfig").read_text() and "+= vgpu/" in (tree / "drivers/misc/Makefile").read_text()


def check_style(patches):
    found = [path for path in (os.environ.get("VGPUD_CHECKPATCH"), *sorted(glob.glob("/usr/src/linux*/scripts/checkpatch.pl"))) if path]
    if not found:
        print("# no checkpatch.pl here: the style of the patches is not checked")
        return
    for patch in patches:
        # The last patch adds the entry in MAINTAINERS for the files of all.
        run("perl", found[0], "--no-tree", "--strict", "--terse", "--ignore", "FILE_PATH_CHANGES", patch)
    print(f"# {found[0]} finds nothing")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        tree, out = pathlib.Path(scratch, "linux"), pathlib.Path(scratch, "series")
        git = ("git", "-C", tree, "-c", "user.name=base", "-c", "user.email=base@example.org", "-c", "commit.gpgsign=false")
        for name, text in TREE.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
        run("git", "init", "-q", tree)
        run(*git, "add", "-A")
        run(*git, "commit", "-q", "-m", "base")
        run(sys.executable, "-B", ROOT / "contrib/linux/make_series.py", "--tree", tree, "--output", out, "--author", AUTHOR)
        letter, *patches = sorted(out.glob("*.patch"))
        assert "***" not in letter.read_text() and len(patches) >= 4, "the cover letter has its text"
        run(*git, "am", "-q", *patches)
        authors = run(*git, "log", "--format=%an <%ae>%n%(trailers:key=Signed-off-by,valueonly)", f"-{len(patches)}").split("\n")
        assert set(filter(None, authors)) == {AUTHOR}, authors
        check_sources(tree)
        check_style(patches)
    print("ok: the series applies and says what the sources say")


main()
