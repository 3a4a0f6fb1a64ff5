#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which fields of CUDA's structs does libcuda.so.1 never look at? Such a field is a promise to the program that nobody keeps: it is used, or
refused where it is not zero, or unread_fields.txt says why it may be left alone.

  unread_fields.py [ROOT]      exit 0: the list is complete, and no row of it is out of date; 1: prints what is not

Fields are those of generated/cuda_api.h. One counts as looked at where a source that names its struct, or one that its struct is in, or includes
a header that does, has a member access with its name, or a structured binding."""
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[3]
LIBCUDA = ROOT / "guest-driver-shim/libcuda"


def structs():
    """({struct: [fields]}, {struct: those that have one in them}). Fields of structs without a name are by their own names."""
    found, inside, name = {}, {}, None
    for line in (LIBCUDA / "generated/cuda_api.h").read_text().splitlines():
        if begin := re.match(r"struct (\w+) \{$", line):
            name = begin[1]
            found[name] = []
        elif line == "};":
            name = None
        elif name and (field := re.match(r"\s+[\w: *]+?\W\**(\w+)(\[\d+\])?;$|\s+.*\(\*(\w+)\)\(.*;$", line)):
            found[name].append(field[1] or field[3])
            for type_name in re.findall(r"(?:struct )?(\w+_st|CUDA_\w+_PARAMS)\b", line):
                inside.setdefault(type_name, set()).add(name)
    return found, inside


def sources():
    """{path: text} without comments."""
    texts = {}
    for path in sorted([*LIBCUDA.rglob("*.cc"), *LIBCUDA.rglob("*.h")]):
        if "generated" not in path.parts:
            texts[path] = re.sub(r"//.*", "", path.read_text())
    return texts


def users(names, texts):
    """Texts of the files that name one of the structs, and of those that include one of them."""
    named = {path for path, text in texts.items() if re.search(rf"\b({'|'.join(names)})\b", text)}
    headers = {str(path.relative_to(ROOT)) for path in named if path.suffix == ".h"}
    return [text for path, text in texts.items() if path in named or any(f'"{header}"' in text for header in headers)]


def unread():
    texts = sources()
    all_fields, inside = structs()
    for struct, fields in all_fields.items():
        text = "\n".join(users({struct, *inside.get(struct, ())}, texts))
        for field in fields:
            if not re.search(rf"(\.|->|::){field}\b|\bauto\W*\[[^\]]*\b{field}\b[^\]]*\] =", text):
                yield f"{struct}.{field}"


def listed():
    rows = {}
    for line in (LIBCUDA / "gen/unread_fields.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            field, _, reason = line.partition(": ")
            rows[field] = reason
    return rows


def main():
    found, rows = set(unread()), {}
    known = {f"{struct}.{field}" for struct, fields in structs()[0].items() for field in fields}
    for row, reason in listed().items():  # STRUCT.* stands for all fields of it that nobody looks at
        rows.update({field: reason for field in found if field.startswith(row[:-1])} or {row: reason} if row.endswith("*") else {row: reason})
    problems = [f"{field}: nobody looks at it. Use it, refuse it where it is not zero, or say in unread_fields.txt why not" for field in sorted(found - set(rows))]
    problems += [f"{field}: unread_fields.txt has it, but it is {'looked at' if field in known else 'no field'}" for field in sorted(set(rows) - found)]
    problems += [f"{field}: without a reason" for field, reason in rows.items() if not reason]
    print(*sorted(problems), sep="\n", end="\n" if problems else "")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
