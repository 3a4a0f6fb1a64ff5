# SPDX-License-Identifier: Apache-2.0
"""The guest's image with further files on top: a second cpio archive behind the first, whose files win."""
import os


def _entry(number, path, mode, data):
    name = path.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return header + b"\0" * (-len(header) % 4) + data + b"\0" * (-len(data) % 4)


def image_with(image, files, path):
    """Writes `image` followed by `files` ({path in the guest: file of this host}, all executable) to `path`."""
    directories = sorted({parent for name in files for parent in _parents(name)})
    with open(image, "rb") as source, open(path, "wb") as out:
        data = source.read()
        out.write(data + b"\0" * (-len(data) % 4))
        number = 1
        for directory in directories:
            out.write(_entry(number, directory, 0o040755, b""))
            number += 1
        for name, source_path in sorted(files.items()):
            with open(source_path, "rb") as file:
                out.write(_entry(number, name.lstrip("/"), 0o100755, file.read()))
            number += 1
        out.write(_entry(0, "TRAILER!!!", 0, b""))


def _parents(name):
    parent = os.path.dirname(name.lstrip("/"))
    while parent:
        yield parent
        parent = os.path.dirname(parent)
