#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the checked-in tables of libnvidia-ml.so.1 from an nvml.h.

Reads it with libclang, and writes generated/* and docs/nvml-coverage.md. Only interface facts are written: names, numbers,
types, layouts. The nvml.h is that of Debian's libnvidia-ml-dev 12.4.127 (trixie, non-free).

  nvml_tables.py --header FILE                write into this tree
  nvml_tables.py --check ROOT                 compare with the tree at ROOT: exit 0 same, 1 different, 77 no such nvml.h
                                              (looked for in $NVML_HEADER and /usr/include)
"""
import argparse
import filecmp
import os
import re
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
ROOM = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOM.parent / "libcuda/gen"))
from generate import plain_type, struct_fields  # noqa: E402

VERSION = "12.4.127"
WARNING = ("// SPDX-License-Identifier: Apache-2.0\n"
           f"// Made by guest-driver-shim/libnvidia-ml/gen/nvml_tables.py from nvml.h {VERSION}. Do not edit.\n")
ENUMS = ["nvmlReturn_enum", "nvmlBrandType_enum", "nvmlComputeMode_enum", "nvmlEnableState_enum", "nvmlGpuVirtualizationMode",
         "nvmlGpuP2PStatus_enum", "nvmlGpuP2PCapsIndex_enum", "nvmlGpuLevel_enum"]
STRUCTS = ["nvmlPciInfo_t", "nvmlPciInfoExt_v1_t", "nvmlMemory_t", "nvmlMemory_v2_t", "nvmlUtilization_t", "nvmlProcessInfo_v1_t",
           "nvmlProcessInfo_v2_t", "nvmlProcessUtilizationSample_t", "nvmlProcessUtilizationInfo_v1_t",
           "nvmlProcessesUtilizationInfo_v1_t", "nvmlFieldValue_t", "nvmlEventData_t"]
# Of structs that say their version in their first word: NVML_STRUCT_VERSION.
VERSIONED = {"nvmlPciInfoExt_v1": ("nvmlPciInfoExt_v1_t", 1), "nvmlMemory_v2": ("nvmlMemory_v2_t", 2),
             "nvmlProcessesUtilizationInfo_v1": ("nvmlProcessesUtilizationInfo_v1_t", 1)}
MACROS = ["NVML_INIT_FLAG_NO_GPUS", "NVML_INIT_FLAG_NO_ATTACH", "NVML_DEVICE_ARCH_UNKNOWN", "NVML_DEVICE_UUID_BUFFER_SIZE",
          "NVML_DEVICE_UUID_V2_BUFFER_SIZE", "NVML_DEVICE_NAME_BUFFER_SIZE", "NVML_DEVICE_NAME_V2_BUFFER_SIZE",
          "NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE", "NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE"]
# Not in the header; every driver's library exports it.
UNLISTED = ["nvmlInternalGetExportTable"]


def parse_header(header):
    import clang.cindex as clang
    unit = clang.Index.create().parse(str(header), args=["-x", "c", "-DNVML_NO_UNVERSIONED_FUNC_DEFS"],
                                      options=clang.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    fatal = [str(d) for d in unit.diagnostics if d.severity >= clang.Diagnostic.Error]
    if fatal:
        sys.exit("nvml_tables.py: cannot read the header: " + fatal[0])
    return list(unit.cursor.get_children()), clang.CursorKind


def functions(top, kinds):
    return {c.spelling: c for c in top if c.kind == kinds.FUNCTION_DECL and c.spelling.startswith("nvml")}


def type_name(clang_type):
    text = clang_type.get_canonical().spelling
    return re.sub(r"\bstruct ", "", plain_type(text))


def forward_declared(found):
    names = set()
    for function in found.values():
        for argument in function.get_arguments():
            names |= set(re.findall(r"\bnvml\w+", type_name(argument.type)))
    return sorted(names)


def tag_of(top, kinds, name):
    """The struct behind a typedef: (tag or the typedef's own name, its type)."""
    typedef = next(c for c in top if c.kind == kinds.TYPEDEF_DECL and c.spelling == name)
    node = typedef.underlying_typedef_type.get_canonical()
    return type_name(node), node


def api_header(top, kinds):
    found = functions(top, kinds)
    out = [WARNING, "#pragma once\n\n", "using nvmlReturn_t = int;\n"]
    tags = {name: tag_of(top, kinds, name) for name in STRUCTS}
    out += [f"struct {name};\n" for name in sorted({*forward_declared(found), *(tag for tag, _ in tags.values())})]
    out.append("using nvmlDevice_t = nvmlDevice_st*;\nusing nvmlEventSet_t = nvmlEventSet_st*;\n\nenum : int {\n")
    for name in ENUMS:
        out.append(f"  // {name}\n")
        node = next(c for c in top if c.kind == kinds.ENUM_DECL and c.spelling == name and c.is_definition())
        out += [f"  {e.spelling} = {e.enum_value},\n" for e in node.get_children() if e.kind == kinds.ENUM_CONSTANT_DECL]
    out.append("};\n")
    for c in top:
        if c.kind == kinds.MACRO_DEFINITION and c.spelling in MACROS:
            out.append(f"inline constexpr unsigned {c.spelling} = {list(c.get_tokens())[1].spelling};\n")
    out.append("\n")
    for name in STRUCTS:
        tag, node = tags[name]
        fields = [re.sub(r"\bstruct (nvml)", r"\1", line) for line in struct_fields(node, kinds, "  ")]
        # Another typedef of the same struct names its elements.
        fields = [re.sub(r"\bunion nvml", "nvml", line) for line in fields]
        out += [f"struct {tag} {{\n", *fields, f"}};\nstatic_assert(sizeof({tag}) == {node.get_size()});\n"]
        if tag != name:
            out.append(f"using {name} = {tag};\n")
    for name, (struct, version) in VERSIONED.items():
        out.append(f"inline constexpr unsigned {name} = sizeof({struct}) | {version}u << 24;\n")
    out.append('\nextern "C" {\n')
    for name, c in sorted(found.items()):
        args = ", ".join(type_name(a.type) for a in c.get_arguments())
        out.append(f"{'const char *' if name == 'nvmlErrorString' else 'nvmlReturn_t '}{name}({args});\n")
    out += [f"nvmlReturn_t {name}(const void **, const void *);\n" for name in UNLISTED]
    out.append("}\n")
    return "".join(out)


def union_of_value(top, kinds):
    """nvmlValue_t, which nvmlFieldValue_t ends with."""
    node = next(c for c in top if c.kind == kinds.UNION_DECL and c.spelling == "nvmlValue_st" and c.is_definition())
    return "union nvmlValue_st {\n" + "".join(struct_fields(node.type, kinds, "  ")) + "};\n"


def error_table(top, kinds):
    node = next(c for c in top if c.kind == kinds.ENUM_DECL and c.spelling == "nvmlReturn_enum" and c.is_definition())
    rows = [(e.enum_value, e.spelling) for e in node.get_children() if e.kind == kinds.ENUM_CONSTANT_DECL]
    text = lambda n: "success" if n == "NVML_SUCCESS" else n.replace("NVML_ERROR_", "").lower().replace("_", " ")
    return WARNING + "// The texts are the names in plain words.\n" + "".join(f'{{{v}, "{text(n)}"}},\n' for v, n in rows)


def stubs(exports):
    out = [WARNING, "// Every export answers NVML_ERROR_NOT_SUPPORTED until a hand-written strong definition replaces the weak one.\n",
           '#include "guest-driver-shim/libnvidia-ml/not_supported.h"\n\n',
           "#define STUB(name)                                                    \\\n",
           '  extern "C" __attribute__((weak, visibility("default"))) int name() { \\\n',
           "    return vgpud::nvml::NotSupported();                               \\\n  }\n\n"]
    return "".join(out + [f"STUB({name})\n" for name in exports])


def implemented():
    names = set()
    for source in sorted(ROOM.glob("*.cc")):
        names |= set(re.findall(r"^NVML_(?:API|TEXT)\((nvml\w+)\)", source.read_text(), re.M))
    return names


def coverage(exports):
    done = implemented()
    if done - set(exports):
        sys.exit(f"nvml_tables.py: implemented but not in the header: {sorted(done - set(exports))}")
    return ("# NVML coverage\n\nMade by `guest-driver-shim/libnvidia-ml/gen/nvml_tables.py`; do not edit.\n\n"
            f"`libnvidia-ml.so.1` exports all {len(exports)} names of NVML {VERSION}; {len(done)} are answered, the others say "
            "`NVML_ERROR_NOT_SUPPORTED` (3). What the figures mean: [nvml.md](nvml.md).\n\n## Answered\n\n"
            + ", ".join(sorted(done)) + "\n\n## NOT_SUPPORTED\n\n" + ", ".join(sorted(set(exports) - done)) + "\n")


def generate(header, out):
    top, kinds = parse_header(header)
    exports = sorted({*functions(top, kinds), *UNLISTED})
    api = api_header(top, kinds).replace("struct nvmlFieldValue_st {", union_of_value(top, kinds) + "struct nvmlFieldValue_st {", 1)
    files = {
        "generated/nvml_api.h": api,
        "generated/error_table.inc": error_table(top, kinds),
        "generated/stubs.cc": stubs(exports),
        "generated/libnvidia-ml.map": "{\n  global:\n" + "".join(f"    {name};\n" for name in exports) + "  local: *;\n};\n",
        "generated/exports.txt": "".join(name + "\n" for name in exports),
        "nvml-coverage.md": coverage(exports),
    }
    (out / "generated").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (out / name).write_text(text)
    return files


def is_pinned(header):
    """The header does not say which one it is: what only that one declares, and a later one more."""
    text = header.read_text(errors="replace")
    return "nvmlDeviceGetSramEccErrorStatus" in text and "nvmlDeviceGetPlatformInfo" not in text


def check(root):
    try:
        import clang.cindex  # noqa: F401
    except ImportError:
        print("SKIP: python3-clang is not installed")
        return 77
    header = Path(os.environ.get("NVML_HEADER") or "/usr/include/nvml.h")
    if not header.exists() or not is_pinned(header):
        print(f"SKIP: no nvml.h {VERSION} (NVML_HEADER, /usr/include: Debian's libnvidia-ml-dev)")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        made = generate(header, Path(scratch))
        stale = [name for name in made if not filecmp.cmp(
            Path(scratch) / name, root / ("docs" if name.endswith(".md") else "guest-driver-shim/libnvidia-ml") / name, shallow=False)]
    for name in stale:
        print(f"{name} differs from what the header says: run nvml_tables.py")
    return 1 if stale else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--header", type=Path)
    parser.add_argument("--check", type=Path, metavar="ROOT")
    args = parser.parse_args()
    if args.check:
        sys.exit(check(args.check))
    if args.header is None:
        sys.exit("nvml_tables.py: which header? --header FILE")
    files = generate(args.header, ROOM)
    os.replace(ROOM / "nvml-coverage.md", ROOM.parent.parent / "docs/nvml-coverage.md")
    print(f"wrote {len(files)} files")


if __name__ == "__main__":
    main()
