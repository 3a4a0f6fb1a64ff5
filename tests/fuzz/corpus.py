#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds inputs to the corpus of a fuzz target, which is the archive corpus/TARGET.tar. `--only` leaves out what was in it."""
import argparse
import io
import pathlib
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent


def read(archive):
    """{name: bytes} of an archive; {} when there is none yet."""
    if not archive.exists():
        return {}
    with tarfile.open(archive) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def write(archive, inputs):
    """The same inputs make the same bytes: no times, no owners, names in order."""
    with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(inputs):
            member = tarfile.TarInfo(name)
            member.size = len(inputs[name])
            tar.addfile(member, io.BytesIO(inputs[name]))


def unpack(archive, directory):
    """Writes the inputs of an archive, and nothing else, to `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    inputs = read(archive)
    for path in directory.iterdir():
        if path.name not in inputs:
            path.unlink()
    for name, data in inputs.items():
        (directory / pathlib.PurePath(name).name).write_bytes(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=pathlib.Path, metavar="TARGET", help="a fuzz target, or the path of an archive")
    parser.add_argument("inputs", type=pathlib.Path, nargs="+", help="files, or directories of files")
    parser.add_argument("--only", action="store_true", help="the archive holds these inputs alone, as after libFuzzer's -merge=1")
    options = parser.parse_args()
    archive = options.archive if options.archive.suffix == ".tar" else HERE / "corpus" / f"{options.archive}.tar"
    inputs = {} if options.only else read(archive)
    for path in options.inputs:
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            inputs[file.name] = file.read_bytes()
    archive.parent.mkdir(exist_ok=True)
    write(archive, inputs)
    print(f"{archive}: {len(inputs)} inputs")


if __name__ == "__main__":
    sys.exit(main())
