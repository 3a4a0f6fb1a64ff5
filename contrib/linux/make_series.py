#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a patch series for the Linux kernel of the guest driver: drivers/misc/vgpu, its user space headers, documentation, MAINTAINERS.

usage: make_series.py --tree LINUX --output DIRECTORY --author 'NAME <ADDRESS>'

LINUX is a kernel's source, or as much of it as the series changes (TOUCHED, below); it is only read. The texts are in texts/: subject,
description, then lines "files PATH ..." that say what belongs to the patch. `git am` applies the result.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
SHIM = HERE.parents[1] / "guest-driver-shim"
TEXTS = HERE / "texts"
DRIVER, UAPI = "drivers/misc/vgpu", "include/uapi/linux"
IOCTL_NUMBERS = "Documentation/userspace-api/ioctl/ioctl-number.rst"
TOUCHED = ("MAINTAINERS", "drivers/misc/Kconfig", "drivers/misc/Makefile", IOCTL_NUMBERS)
WIDTH = 100
# From here on vgpu_abi.h is about what programs and executors write into channels, which the kernel never reads.
END_OF_KERNEL_ABI = "/* One event slot;"
MAINTAINERS = """\
VGPUD VIRTUAL FUNCTION (GUEST)
M:\t{author}
S:\tMaintained
F:\tDocumentation/ABI/testing/sysfs-class-vgpu
F:\tdrivers/misc/vgpu/
F:\tinclude/uapi/linux/vgpu_abi.h
F:\tinclude/uapi/linux/vgpu_ioctl.h
F:\tinclude/uapi/linux/vgpu_status.h

"""


def wrapped(line):
    """A line of a header as lines that are not too long: a comment's words below each other, a comment behind code above it, a macro in parts."""
    line = re.sub(" -{9,}", " ----", line)
    if len(line.expandtabs(8)) <= WIDTH:
        return [line]
    if line.startswith(" * "):
        return textwrap.wrap(line[3:], WIDTH, initial_indent=" * ", subsequent_indent=" * ")
    if "/*" not in line:
        head, _, body = line.removesuffix("\\").partition(") " if line.startswith("#define") else "\t")
        first = [f"{head}) \\"] if line.startswith("#define") else []
        parts = textwrap.wrap(body, WIDTH - 12)
        return [*first, *(f"\t{part} \\" for part in parts[:-1]), f"\t{parts[-1]}" + (" \\" if line.endswith("\\") else "")]
    code, _, comment = line.partition("/*")
    indent = "\t" * (len(line) - len(line.lstrip("\t")))
    words = textwrap.wrap(comment.removesuffix("*/").strip(), WIDTH - 16)
    above = [f"{indent}/* {words[0]} */"] if len(words) == 1 else [f"{indent}/*", *(f"{indent} * {part}" for part in words), f"{indent} */"]
    return [*above, *([code.rstrip()] if code.strip() else [])]


def joined(lines):
    """Comments behind code that go on in the next line, in one line: wrapped() puts them where there is room."""
    out = []
    for line in lines:
        if out and "/*" in out[-1] and "*/" not in out[-1] and not out[-1].lstrip().startswith("/*") and line.lstrip().startswith("*"):
            out[-1] += " " + line.lstrip().removeprefix("*").strip() if not line.strip() == "*/" else " */"
        else:
            out.append(line)
    return out


def reflowed(text):
    """Paragraphs of block comments that have a line which is too long, anew."""
    def again(paragraph):
        lines = paragraph[0].splitlines()
        if max(map(len, lines)) <= WIDTH:
            return paragraph[0]
        words = " ".join(line[3:] for line in lines)
        return textwrap.fill(words, WIDTH, initial_indent=" * ", subsequent_indent=" * ") + "\n"
    return re.sub(r"(^ \* \S.*\n)+", again, text, flags=re.M)


def header(name):
    """A header of user space as the kernel has it."""
    text = (SHIM / "include" / "uapi" / name).read_text()
    if name == "vgpu_abi.h":
        kept, found, _ = text.partition(END_OF_KERNEL_ABI)
        if not found:
            raise SystemExit(f"make_series.py: {name} has no {END_OF_KERNEL_ABI!r}: say anew where the kernel's part ends")
        text = kept.rstrip() + "\n\n#endif\n"
    text = re.sub(r'#include "(vgpu_\w+\.h)"', r"#include <linux/\1>", text)
    text = "\n".join(part for line in joined(reflowed(text).split("\n")) for part in wrapped(line))
    # An assertion of a struct's size is no part of its declaration.
    return re.sub(r"^};\n(?=VGPU_ABI)", "};\n\n", text, flags=re.M)


def source(name):
    """A source of the module as the kernel has it: of one version, with its headers where the kernel has them."""
    text = (SHIM / "kmod" / name).read_text()
    text = text.replace('#include "vgpu_compat.h"\n', "")
    return re.sub(r"#include <uapi/(vgpu_\w+\.h)>", r"#include <linux/\1>", text)


def makefile():
    objects = re.search(r"^vgpu-y := (.*)$", (SHIM / "kmod" / "Kbuild").read_text(), re.M).group(1)
    lines = textwrap.wrap(objects, 70, break_on_hyphens=False)
    return "# SPDX-License-Identifier: GPL-2.0-only\nobj-$(CONFIG_VGPU) := vgpu.o\nvgpu-y := " + " \\\n\t".join(lines) + "\n"


def inserted(text, line, is_before, what):
    """`line` before the first line that is_before() says yes to."""
    lines = text.splitlines(keepends=True)
    at = next((i for i, old in enumerate(lines) if is_before(old)), None)
    if at is None:
        raise SystemExit(f"make_series.py: there is no place for the driver in {what}")
    return "".join([*lines[:at], line, *lines[at:]])


def ioctl_numbers(text):
    row = "0xBD  01-08  linux/vgpu_ioctl.h                                     vgpud virtual functions\n"
    after = re.compile(r"0x([0-9A-F]{2})  ")
    return inserted(text, row, lambda old: bool(match := after.match(old)) and int(match[1], 16) > 0xBD, IOCTL_NUMBERS)


def maintainers(text, author):
    title = re.compile(r"[0-9A-Z].*[A-Z]")
    entry = MAINTAINERS.format(author=author)
    body = text.find("\n3C59X")  # the list begins with it
    head = text[:body + 1] if body >= 0 else ""
    return head + inserted(text[len(head):], entry,
                           lambda old: bool(title.match(old)) and old[1:2] != ":" and old > entry, "MAINTAINERS")


def contents(tree, author):
    """{path: text} of all that the series makes or changes."""
    files = {f"{UAPI}/{name}": header(name) for name in ("vgpu_abi.h", "vgpu_ioctl.h", "vgpu_status.h")}
    for path in sorted((SHIM / "kmod").glob("*.[ch]")):
        if path.name != "vgpu_compat.h":
            files[f"{DRIVER}/{path.name}"] = source(path.name)
    files[f"{DRIVER}/Kconfig"] = (SHIM / "kmod" / "Kconfig").read_text()
    files[f"{DRIVER}/Makefile"] = makefile()
    files["Documentation/ABI/testing/sysfs-class-vgpu"] = (TEXTS / "sysfs-class-vgpu").read_text()
    old = {name: (tree / name).read_text() for name in TOUCHED}
    files["drivers/misc/Kconfig"] = inserted(old["drivers/misc/Kconfig"], f'source "{DRIVER}/Kconfig"\n',
                                             lambda line: line == "endmenu\n", "drivers/misc/Kconfig")
    files["drivers/misc/Makefile"] = old["drivers/misc/Makefile"] + "obj-$(CONFIG_VGPU)\t\t+= vgpu/\n"
    files[IOCTL_NUMBERS] = ioctl_numbers(old[IOCTL_NUMBERS])
    files["MAINTAINERS"] = maintainers(old["MAINTAINERS"], author)
    return files


def patch_texts():
    """[(message, paths)], in order."""
    patches = []
    for file in sorted(TEXTS.glob("000[1-9]-*.txt")):
        lines = file.read_text().splitlines()
        patches.append(("\n".join(line for line in lines if not line.startswith("files ")).strip(),
                        [path for line in lines if line.startswith("files ") for path in line.split()[1:]]))
    return patches


def main():
    parser = argparse.ArgumentParser(prog="make_series.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", required=True, type=pathlib.Path)
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--author", required=True)
    options = parser.parse_args()
    who = re.fullmatch(r"(.+) <(\S+@\S+)>", options.author)
    if not who:
        raise SystemExit(f"make_series.py: --author {options.author!r} is not 'NAME <ADDRESS>'")
    files, patches = contents(options.tree, options.author), patch_texts()
    placed = [path for _, paths in patches for path in paths]
    if sorted(placed) != sorted(files):
        raise SystemExit(f"make_series.py: texts/ and sources differ: {sorted(set(placed) ^ set(files))}")
    with tempfile.TemporaryDirectory() as scratch:
        def git(*arguments):
            subprocess.run(["git", "-C", scratch, "-c", f"user.name={who[1]}", "-c", f"user.email={who[2]}", "-c", "commit.gpgsign=false",
                            *arguments], check=True, stdout=subprocess.DEVNULL)

        def write(path, text):
            (target := pathlib.Path(scratch, path)).parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        git("init", "-q")
        for name in TOUCHED:
            write(name, (options.tree / name).read_text())
        git("add", "-A")
        git("commit", "-q", "-m", "base")
        for message, paths in patches:
            for path in paths:
                write(path, files[path])
            git("add", "-A")
            git("commit", "-q", "-s", "-m", message)
        options.output.mkdir(parents=True, exist_ok=True)
        git("format-patch", "-q", f"-{len(patches)}", "--subject-prefix=RFC PATCH", "--cover-letter", "-o", str(options.output.resolve()))
    subject, _, text = (TEXTS / "0000-cover-letter.txt").read_text().partition("\n")
    letter = options.output / "0000-cover-letter.patch"
    letter.write_text(letter.read_text().replace("*** SUBJECT HERE ***", subject).replace("*** BLURB HERE ***", text.strip()))
    print("\n".join(str(path) for path in sorted(options.output.glob("*.patch"))))
    return 0


sys.exit(main())
