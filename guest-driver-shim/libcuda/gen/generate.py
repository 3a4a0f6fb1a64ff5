#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the checked-in tables of libcuda.so.1 from an installed CUDA toolkit.

Reads cuda.h, cudaGL.h, cudaEGL.h, cudaVDPAU.h and the headers of their typedefs with libclang, and the export list of
stubs/libcuda.so, and writes generated/* and docs/cuda-coverage.md. Only interface facts are written: names, numbers,
types, layouts.

  generate.py [--cuda DIR]                       write into this tree
  generate.py --check ROOT [--cuda DIR]          compare with the tree at ROOT: exit 0 same, 1 different, 77 no toolkit
"""

import argparse
import ctypes
import filecmp
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LIBCUDA = Path(__file__).resolve().parent.parent
ERROR_TEXTS = LIBCUDA / "gen/error_texts.txt"
WARNING = ("// SPDX-License-Identifier: Apache-2.0\n"
           "// Made by guest-driver-shim/libcuda/gen/generate.py from the CUDA toolkit's headers. Do not edit.\n")
TYPEDEF_HEADERS = ["cudaTypedefs.h", "cudaProfilerTypedefs.h", "cudaGLTypedefs.h", "cudaEGLTypedefs.h",
                   "cudaVDPAUTypedefs.h"]
# Drivers export what these declare, the toolkit's stub does not.
INTEROP_HEADERS = ["cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"]
# The types of other people's headers that they name, so that those need not be installed.
FOREIGN_HEADERS = {
    "GL/gl.h": "typedef unsigned int GLuint, GLenum;\n",
    "EGL/egl.h": "typedef int EGLint;\n",
    "EGL/eglext.h": "typedef void *EGLImageKHR, *EGLStreamKHR, *EGLSyncKHR;\n",
    "vdpau/vdpau.h": "typedef unsigned int VdpDevice, VdpVideoSurface, VdpOutputSurface;\n"
                     "typedef int VdpGetProcAddress(unsigned int, unsigned int, void **);\n",
}
ENUMS = [
    "cudaError_enum", "CUdevice_attribute_enum", "CUfunction_attribute_enum", "CUpointer_attribute_enum",
    "CUstream_flags_enum", "CUevent_flags_enum", "CUctx_flags_enum", "CUmemorytype_enum", "CUlimit_enum",
    "CUlibraryOption_enum", "CUlaunchAttributeID_enum", "CUmoduleLoadingMode_enum", "CUcomputemode_enum",
    "CUevent_record_flags_enum", "CUevent_wait_flags_enum", "CUdriverProcAddress_flags_enum",
    "CUdriverProcAddressQueryResult_enum", "CUstreamCaptureStatus_enum", "CUoccupancy_flags_enum",
    "CUshared_carveout_enum", "CUdevice_P2PAttribute_enum", "CUfunc_cache_enum", "CUsharedconfig_enum",
    "CUmemLocationType_enum", "CUmemAllocationType_enum", "CUmemAccess_flags_enum", "CUmemPool_attribute_enum",
    "CUjitInputType_enum", "CUjit_option_enum", "CUstreamCaptureMode_enum", "CUgraphNodeType_enum",
    "CUgraphInstantiate_flags_enum", "CUgraphMem_attribute_enum", "CUgraphExecUpdateResult_enum",
    "CUstreamUpdateCaptureDependencies_flags_enum", "CUarray_format_enum", "CUaddress_mode_enum", "CUfilter_mode_enum", "CUresourcetype_enum",
    "CUresourceViewFormat_enum", "CUmemAttach_flags_enum", "CUmem_advise_enum", "CUmem_range_attribute_enum", "CUfunctionLoadingState_enum",
    "CUgraphInstantiateResult_enum", "CUgraphChildGraphNodeOwnership_enum", "CUgraphConditionalNodeType_enum", "CUgraphDebugDot_flags_enum",
]
STRUCTS = [
    "CUuuid_st", "CUDA_MEMCPY2D_st", "CUDA_MEMCPY3D_st", "CUdevprop_st", "CUlaunchConfig_st", "CUctxCreateParams_st",
    "CUmemLocation_st", "CUmemAccessDesc_st", "CUmemAllocationProp_st", "CUmemPoolProps_st", "CUDA_KERNEL_NODE_PARAMS_v2_st",
    "CUDA_MEMSET_NODE_PARAMS_st", "CUDA_HOST_NODE_PARAMS_st", "CUDA_MEM_ALLOC_NODE_PARAMS_v1_st",
    "CUDA_ARRAY_DESCRIPTOR_st", "CUDA_ARRAY3D_DESCRIPTOR_st", "CUDA_ARRAY_MEMORY_REQUIREMENTS_st",
    "CUDA_RESOURCE_DESC_st", "CUDA_TEXTURE_DESC_st", "CUgraphExecUpdateResultInfo_st", "CUDA_RESOURCE_VIEW_DESC_st",
    "CUgraphEdgeData_st", "CUDA_KERNEL_NODE_PARAMS_st", "CUDA_KERNEL_NODE_PARAMS_v3_st", "CUDA_MEMCPY_NODE_PARAMS_st",
    "CUDA_MEMSET_NODE_PARAMS_v2_st", "CUDA_HOST_NODE_PARAMS_v2_st", "CUDA_CHILD_GRAPH_NODE_PARAMS_st",
    "CUDA_EVENT_RECORD_NODE_PARAMS_st", "CUDA_EVENT_WAIT_NODE_PARAMS_st", "CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st",
    "CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st", "CUDA_MEM_ALLOC_NODE_PARAMS_v2_st", "CUDA_MEM_FREE_NODE_PARAMS_st",
    "CUDA_BATCH_MEM_OP_NODE_PARAMS_v2_st", "CUDA_CONDITIONAL_NODE_PARAMS", "CUgraphNodeParams_st",
    "CUDA_GRAPH_INSTANTIATE_PARAMS_st", "CUeglFrame_st",
]
# For vgpud's own use of the library (driver/imported_memory.h).
OWN_EXPORTS = ["vgpuDescribeHostMemory"]
HANDLE_TYPES = {
    "CUcontext": "CUctx_st", "CUmodule": "CUmod_st", "CUfunction": "CUfunc_st", "CUlibrary": "CUlib_st",
    "CUkernel": "CUkern_st", "CUevent": "CUevent_st", "CUstream": "CUstream_st",
    "CUmemoryPool": "CUmemPoolHandle_st", "CUlinkState": "CUlinkState_st", "CUgraph": "CUgraph_st", "CUuserObject": "CUuserObject_st",
    "CUgraphNode": "CUgraphNode_st", "CUgraphExec": "CUgraphExec_st",
    "CUarray": "CUarray_st", "CUmipmappedArray": "CUmipmappedArray_st", "CUgraphicsResource": "CUgraphicsResource_st",
    "CUeglStreamConnection": "CUeglStreamConnection_st", "CUgreenCtx": "CUgreenCtx_st",
}
MACROS = [
    "CU_MEMHOSTALLOC_PORTABLE", "CU_MEMHOSTALLOC_DEVICEMAP", "CU_MEMHOSTALLOC_WRITECOMBINED",
    "CU_MEMHOSTREGISTER_PORTABLE", "CU_MEMHOSTREGISTER_DEVICEMAP", "CU_MEMHOSTREGISTER_IOMEMORY",
    "CU_MEMHOSTREGISTER_READ_ONLY",
    "CUDA_ARRAY3D_LAYERED", "CUDA_ARRAY3D_SURFACE_LDST", "CUDA_ARRAY3D_CUBEMAP", "CUDA_ARRAY3D_TEXTURE_GATHER",
    "CUDA_ARRAY3D_COLOR_ATTACHMENT", "CU_TRSF_READ_AS_INTEGER", "CU_TRSF_NORMALIZED_COORDINATES", "CU_TRSF_SRGB",
    "CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION", "CU_TRSF_SEAMLESS_CUBEMAP", "CU_GRAPH_COND_ASSIGN_DEFAULT",
]


def toolkit_exports(cuda):
    stub = next(p for p in [cuda / "lib64/stubs/libcuda.so", cuda / "targets/x86_64-linux/lib/stubs/libcuda.so",
                            cuda / "lib/stubs/libcuda.so"] if p.exists())
    text = subprocess.run(["nm", "-D", "--defined-only", str(stub)], check=True, capture_output=True, text=True).stdout
    return sorted(line.split()[2] for line in text.splitlines() if line.split()[2].startswith("cu"))


def parse_headers(cuda):
    """One unit of cuda.h and those for graphics."""
    import clang.cindex as clang
    with tempfile.TemporaryDirectory() as foreign:
        for name, text in FOREIGN_HEADERS.items():
            (Path(foreign) / name).parent.mkdir(exist_ok=True)
            (Path(foreign) / name).write_text(text)
        main = Path(foreign) / "all.h"
        main.write_text("#include <cuda.h>\n#include <vdpau/vdpau.h>\n"
                        + "".join(f"#include <{name}>\n" for name in INTEROP_HEADERS))
        unit = clang.Index.create().parse(
            str(main), args=["-x", "c", "-D__CUDA_API_VERSION_INTERNAL", f"-I{foreign}", f"-I{cuda}/include"],
            options=clang.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    fatal = [str(d) for d in unit.diagnostics if d.severity >= clang.Diagnostic.Error]
    if fatal:
        sys.exit("generate.py: cannot read the toolkit's headers: " + fatal[0])
    return unit, clang.CursorKind


def interop_exports(unit, kinds):
    """What the headers for graphics declare; cuWGLGetDevice is Windows'."""
    return {c.spelling for c in unit.cursor.get_children()
            if c.kind == kinds.FUNCTION_DECL and Path(c.location.file.name).name in INTEROP_HEADERS} - {"cuWGLGetDevice"}


def proc_rows(cuda, exports):
    """(name, per-thread twin?, version, exported symbol): the n-th version of a name is its n-th suffix."""
    versions = {}
    for header in TYPEDEF_HEADERS:
        text = (cuda / "include" / header).read_text()
        for m in re.finditer(r"\(CUDAAPI \*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", text):
            versions.setdefault((m.group(1), m.group(3) or ""), set()).add(int(m.group(2)))
    known, rows = set(exports), []
    for (name, twin), found in sorted(versions.items()):
        symbols = [s for s in [name + twin] + [f"{name}_v{n}{twin}" for n in range(2, 9)] if s in known]
        if symbols and len(symbols) != len(found):
            sys.exit(f"generate.py: {name}{twin} has versions {sorted(found)} but exports {symbols}")
        rows += [(name, bool(twin), v, s) for v, s in zip(sorted(found), symbols)]
    missing = known - {r[3] for r in rows}
    if missing:
        sys.exit(f"generate.py: exports without a version: {sorted(missing)}")
    return sorted(rows)


def plain_type(text):
    # Enumerations travel as int; CUdevResourceType is the one that has no tag.
    return re.sub(r"\benum \w+|\bCUdevResourceType\b", "int", text)


def struct_fields(node_type, kinds, indent):
    """Members as C++; a struct or union without a name is written where it stands."""
    out = []
    for f in node_type.get_fields():
        text = plain_type(f.type.get_canonical().spelling)
        array = re.match(r"(.*?)\s*(\[\d+\])$", text)
        if "(unnamed" in text or "(anonymous" in text:
            declaration = f.type.get_declaration()
            word = "union" if declaration.kind == kinds.UNION_DECL else "struct"
            out += [f"{indent}{word} {{\n", *struct_fields(f.type, kinds, indent + "  "), f"{indent}}} {f.spelling}".rstrip() + ";\n"]
        elif array:
            out.append(f"{indent}{array[1]} {f.spelling}{array[2]};\n")
        elif "(*)" in text:
            out.append(f"{indent}{text.replace('(*)', '(*' + f.spelling + ')')};\n")
        else:
            out.append(f"{indent}{text} {f.spelling};\n")
    return out


def api_header(unit, kinds, exports):
    out = [WARNING, "#pragma once\n#include <cstddef>\n#include <cstdint>\n"]
    out.append("using CUresult = int;\nusing CUdevice = int;\nusing CUdeviceptr = unsigned long long;\n")
    top = list(unit.cursor.get_children())
    defined = lambda kind, name: next(c for c in top if c.kind == kind and c.spelling == name and c.is_definition())
    out += [f"struct {s};\nusing {n} = {s}*;\n" for n, s in sorted(HANDLE_TYPES.items())]
    out.append("\nenum : int {\n")
    seen = set()
    for name in ENUMS:
        out.append(f"  // {name}\n")
        for e in defined(kinds.ENUM_DECL, name).get_children():
            if e.kind == kinds.ENUM_CONSTANT_DECL and e.spelling not in seen:
                seen.add(e.spelling)
                value = e.enum_value if e.enum_value < 2**31 else e.enum_value - 2**32
                out.append(f"  {e.spelling} = {value},\n")
    out.append("};\n")
    for c in top:
        if c.kind == kinds.MACRO_DEFINITION and c.spelling in MACROS:
            out.append(f"inline constexpr unsigned {c.spelling} = {list(c.get_tokens())[1].spelling};\n")
    out.append("\nstruct CUlaunchAttribute_st;\n")
    for name in STRUCTS:
        node = defined(kinds.STRUCT_DECL, name)
        out.append(f"struct {name} {{\n")
        out += struct_fields(node.type, kinds, "  ")
        out.append(f"}};\nstatic_assert(sizeof({name}) == {node.type.get_size()});\n")
    attribute = defined(kinds.STRUCT_DECL, "CUlaunchAttribute_st")
    fields = {f.spelling: f for f in attribute.type.get_fields()}
    value_at = attribute.type.get_offset("value") // 8
    out.append("struct CUlaunchAttribute_st {\n  int id;\n")
    out.append(f"  char pad[{value_at - 4}];\n  alignas(8) unsigned char value[{fields['value'].type.get_size()}];\n}};\n")
    out.append(f"static_assert(sizeof(CUlaunchAttribute_st) == {attribute.type.get_size()});\n")
    out.append('\nextern "C" {\n')
    known = set(exports)
    functions = [(c.spelling, [plain_type(a.type.get_canonical().spelling) for a in c.get_arguments()])
                 for c in sorted((c for c in top if c.kind == kinds.FUNCTION_DECL and c.spelling in known), key=lambda c: c.spelling)]
    functions += [("cuProfilerInitialize", ["const char *", "const char *", "int"]), ("cuProfilerStart", []), ("cuProfilerStop", [])]
    out += [f"CUresult {name}({', '.join(parameters)});\n" for name, parameters in functions]
    out.append("}\n\n// P(name, n) of each parameter of a function (api.h).\n")
    for name, parameters in functions:
        out.append(f"#define CU_EACH_{name}(P) {', '.join(f'P({name}, {n})' for n in range(len(parameters)))}".rstrip() + "\n")
    return "".join(out)


# Enumerations that the host's side speaks too.
HOST_ENUMS = ["cudaError_enum", "CUdevice_attribute_enum", "CUarray_format_enum"]


def host_enums(unit, kinds):
    out = [WARNING, "// What guests and hosts call by number.\n#pragma once\n\n#include <cstdint>\n\nnamespace vgpud::cuda_enum {\n"]
    for name in HOST_ENUMS:
        node = next(c for c in unit.cursor.get_children()
                    if c.kind == kinds.ENUM_DECL and c.spelling == name and c.is_definition())
        rows = [(e.spelling, e.enum_value) for e in node.get_children() if e.kind == kinds.ENUM_CONSTANT_DECL]
        out.append(f"\n// {name}\nenum : uint32_t {{\n" + "".join(f"  {n} = {v},\n" for n, v in rows) + "};\n")
    out.append("\n}  // namespace vgpud::cuda_enum\n")
    return "".join(out)


def error_rows(unit, kinds):
    """[(number, name)] of cudaError_enum; the first name counts."""
    node = next(c for c in unit.cursor.get_children()
                if c.kind == kinds.ENUM_DECL and c.spelling == "cudaError_enum" and c.is_definition())
    rows = {}
    for e in node.get_children():
        if e.kind == kinds.ENUM_CONSTANT_DECL:
            rows.setdefault(e.enum_value, e.spelling)
    return sorted(rows.items())


def error_texts():
    """{name: (text, does the runtime have the same?)} of error_texts.txt."""
    rows = re.findall(r"^([=-]) (\w+): (.+)$", ERROR_TEXTS.read_text(), re.M)
    return {name: (text, mark == "=") for mark, name, text in rows}


def error_table(unit, kinds):
    rows, texts = error_rows(unit, kinds), error_texts()
    if {n for _, n in rows} != set(texts):
        sys.exit(f"generate.py: errors of cuda.h and of error_texts.txt differ: {sorted({n for _, n in rows} ^ set(texts))}")
    return WARNING + "".join(f'{{{v}, "{n}", "{texts[n][0]}"}},\n' for v, n in rows)


def other_texts(cuda, unit, kinds):
    """Errors whose text is not what the toolkit's runtime says of the same number."""
    runtime = ctypes.CDLL(str(next((cuda / "lib64").glob("libcudart.so.*"))))
    runtime.cudaGetErrorString.restype = ctypes.c_char_p
    texts = error_texts()
    return [name for number, name in error_rows(unit, kinds)
            if texts[name][1] and runtime.cudaGetErrorString(number).decode() != texts[name][0]]


def stubs(exports):
    out = [WARNING]
    out.append("// Every export answers CUDA_ERROR_NOT_SUPPORTED until a hand-written strong definition replaces the weak one.\n")
    out.append('#include "guest-driver-shim/libcuda/channel/trace.h"\n\n')
    out.append("#define STUB(index, name)                                                        \\\n")
    out.append('  extern "C" __attribute__((weak, visibility("default"))) int name() { \\\n')
    out.append("    return vgpud::cuda::NotSupported(index, #name);                               \\\n  }\n\n")
    out += [f"STUB({i}, {s})\n" for i, s in enumerate(exports)]
    return "".join(out)


def proc_table(rows):
    symbols = sorted({r[3] for r in rows})
    out = [WARNING, '#include "guest-driver-shim/libcuda/proc_table.h"\n\n', 'extern "C" {\n']
    out += [f"int {s}();\n" for s in symbols]
    out.append("}\n\nnamespace vgpud::cuda {\n\nconst ProcRow kProcTable[] = {\n")
    cast = "reinterpret_cast<void*>"
    out += [f'    {{"{n}", {v}, {"true" if t else "false"}, {cast}(&{s})}},\n' for n, t, v, s in rows]
    out.append("};\nconst unsigned kProcRows = sizeof kProcTable / sizeof kProcTable[0];\n\n}  // namespace vgpud::cuda\n")
    return "".join(out)


def implemented():
    names = set()
    for source in sorted(LIBCUDA.rglob("*.cc")):
        text = source.read_text()
        names |= set(re.findall(r"^CU_API\((cu\w+)\)", text, re.M))
        for a, b in re.findall(r"^CU_TWINS\((cu\w+),\s*(cu\w+)", text, re.M):
            names |= {a, b}
    return names


def refused():
    """{symbol: error} of interop.cc."""
    text = (LIBCUDA / "api/interop.cc").read_text()
    return dict(re.findall(r"^CU_REFUSES\((cu\w+),.*?(CUDA_ERROR_\w+)\)$", text, re.M | re.S))


def coverage(exports, rows):
    done, refusals = implemented(), refused()
    unknown = (done | set(refusals)) - set(exports)
    if unknown:
        sys.exit(f"generate.py: implemented but not in the toolkit: {sorted(unknown)}")
    functions = {}
    for name, _, _, symbol in rows:
        functions.setdefault(name, []).append(symbol)
    full = [n for n, s in functions.items() if any(x in done for x in s)]
    out = ["# CUDA driver API coverage\n\n"]
    out.append("Made by `guest-driver-shim/libcuda/gen/generate.py`; do not edit.\n\n")
    out.append(f"`libcuda.so.1` exports all {len(exports)} symbols of the CUDA 13.0 driver API. "
               f"{len(done)} symbols ({len(full)} of {len(functions)} functions) are implemented; the others answer "
               "`CUDA_ERROR_NOT_SUPPORTED` (801). The first call of each says so on standard error; `VGPU_TRACE=0` silences that, "
               "`VGPU_TRACE=1` prints every such call and the sums at exit.\n\n")
    out.append("## Implemented\n\n| function | symbols |\n|---|---|\n")
    for name in sorted(full):
        out.append(f"| {name} | {', '.join(x for x in functions[name] if x in done)} |\n")
    out.append("\n## Refused\n\nA virtual function draws nothing: OpenGL, EGL and VDPAU cannot share anything with it. Their calls are exported, "
               "because programs do not load without them, and answer as a device does that another one draws for.\n\n"
               "| answer | symbols |\n|---|---|\n")
    for error in sorted(set(refusals.values())):
        out.append(f"| `{error}` | {', '.join(sorted(n for n, e in refusals.items() if e == error))} |\n")
    out.append("\n## NOT_SUPPORTED\n\n")
    out.append(", ".join(sorted(set(exports) - done - set(refusals))) + "\n")
    return "".join(out)


def generate(cuda, out):
    unit, kinds = parse_headers(cuda)
    exports = sorted({*toolkit_exports(cuda), *interop_exports(unit, kinds)})
    rows = proc_rows(cuda, exports)
    (out / "generated").mkdir(parents=True, exist_ok=True)
    files = {
        "generated/cuda_api.h": api_header(unit, kinds, exports),
        "generated/error_table.inc": error_table(unit, kinds),
        "generated/stubs.cc": stubs(exports),
        "generated/proc_table.cc": proc_table(rows),
        "generated/libcuda.map": "{\n  global:\n" + "".join(f"    {s};\n" for s in [*exports, *OWN_EXPORTS])
                                 + "  local: *;\n};\n",
        "generated/exports.txt": "".join(s + "\n" for s in exports),
        "cuda-coverage.md": coverage(exports, rows),
        "cuda_enums.h": host_enums(unit, kinds),
    }
    for name, text in files.items():
        (out / name).write_text(text)
    return files


# Of what lies elsewhere than beside this program.
PLACES = {"cuda-coverage.md": "docs", "cuda_enums.h": "gpu/generated"}


def find_toolkit(given):
    for place in [given, os.environ.get("CUDA_HOME"), "/usr/local/cuda"]:
        if place and (Path(place) / "include/cudaTypedefs.h").exists():
            return Path(place)
    return None


def check(cuda, root):
    try:
        import clang.cindex  # noqa: F401
    except ImportError:
        print("SKIP: python3-clang is not installed")
        return 77
    if cuda is None:
        print("SKIP: no CUDA toolkit (CUDA_HOME, /usr/local/cuda)")
        return 77
    version = re.search(r"#define CUDA_VERSION (\d+)", (cuda / "include/cuda.h").read_text())[1]
    if version != "13000":
        print(f"SKIP: the tables are those of CUDA 13.0, this toolkit is {version}")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        made = generate(cuda, Path(scratch))
        stale = [n for n in made if not filecmp.cmp(
            Path(scratch) / n, root / PLACES.get(n, "guest-driver-shim/libcuda") / n, shallow=False)]
    for name in stale:
        print(f"{name} differs from what the toolkit's headers say: run generate.py")
    wrong = other_texts(cuda, *parse_headers(cuda))
    for name in wrong:
        print(f"error_texts.txt has another text for {name} than the toolkit's runtime")
    return 1 if stale or wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuda")
    parser.add_argument("--root", type=Path, default=LIBCUDA.parent.parent, help="the tree to write into")
    parser.add_argument("--check", type=Path, metavar="ROOT")
    args = parser.parse_args()
    cuda = find_toolkit(args.cuda)
    if args.check:
        sys.exit(check(cuda, args.check))
    if cuda is None:
        sys.exit("generate.py: no CUDA toolkit: pass --cuda DIR or set CUDA_HOME")
    files = generate(cuda, args.root / "guest-driver-shim/libcuda")
    for name, place in PLACES.items():
        (args.root / place).mkdir(exist_ok=True)
        os.replace(args.root / "guest-driver-shim/libcuda" / name, args.root / place / name)
    print(f"wrote {len(files)} files")


if __name__ == "__main__":
    main()
