#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the arrows between rooms honest: which folder may include which, and no folders that need
each other, directly or around corners. tools/check_pages.py compares the tables of docs/ARCHITECTURE.md and docs/internals.md with this one.

usage: check_includes.py [REPO_ROOT]                      exit 0 clean, 1 with one line per violation
       check_includes.py --picture FOLDER [REPO_ROOT]     what the folders in FOLDER include of each other, highest first
       check_includes.py --dot FOLDER [REPO_ROOT]         the same for Graphviz
"""
import argparse
import collections
import pathlib
import re
import sys

# The rooms of the soft GPU, low to high: each may include itself and those before it.
SOFT_ROOMS = ["number", "state", "code", "memory", "texture", "run", "ops", "convert", "matrix", "tensor", "calls", "decode"]


def soft_rows():
    low = ["base/", "base/locks/", "guest-driver-shim/include/uapi/", "gpu/capability/", "gpu/gpu.h", "gpu/generated/", "gpu/ptx/"]
    for count, room in enumerate(SOFT_ROOMS):
        yield f"gpu/soft/{room}/", low + [f"gpu/soft/{below}/" for below in SOFT_ROOMS[:count]]
    yield "gpu/soft/", low + [f"gpu/soft/{room}/" for room in SOFT_ROOMS]


# The rooms of vgpud-vf, low to high, as above.
VFIO_ROOMS = ["memory", "wire", "channel", "device"]


def vfio_rows():
    low = ["base/", "base/jail/", "guest-driver-shim/include/uapi/"]
    for count, room in enumerate(VFIO_ROOMS):
        yield f"vfio/{room}/", low + [f"vfio/{below}/" for below in VFIO_ROOMS[:count]]
    yield "vfio/", low + [f"vfio/{room}/" for room in VFIO_ROOMS]


# The rooms of vgpud, low to high, and what each includes of the rest. Each may include the model.
VGPUD_ROOMS = [
    ("model", [], ["sched/"]),
    ("host", [], ["base/jail/"]),
    ("service", [], []),
    ("json", [], ["sched/"]),
    ("calendar", [], ["sched/"]),
    ("tenants", ["host"], ["sched/"]),
    ("placement", ["host"], []),
    ("events", [], ["sched/"]),
    ("state", ["host"], []),
    ("containers", ["host"], []),
    ("keep", ["host"], ["base/jail/"]),
    ("device", ["host"], ["base/jail/", "gpu/channels/"]),
    ("gpu", ["host"], ["gpu/channels/", "sched/"]),
    ("history", ["gpu", "host", "tenants"], ["sched/"]),
    ("vf", ["device", "events", "gpu", "host", "keep", "tenants"], ["base/jail/", "sched/"]),
    ("config", ["calendar", "device", "gpu", "placement", "service", "tenants"], ["sched/"]),
    ("registry", ["config", "events", "gpu", "history", "host", "json", "placement", "state", "tenants", "vf"], ["base/jail/", "sched/"]),
    ("live", ["calendar", "config", "host", "registry", "state"], ["sched/"]),
    ("control", ["events", "history", "host", "json", "live", "registry", "tenants"], ["sched/"]),
]


# What clients agree on with vgpud.
FOR_CLIENTS = ["vgpud/containers/cdi.h", "vgpud/host/let_in.h", "vgpud/model/api.h", "vgpud/model/knobs.h", "vgpud/model/nearest.h"]


def vgpud_rows():
    for room, below, others in VGPUD_ROOMS:
        yield f"vgpud/{room}/", ["base/", "vgpud/model/", *others, *(f"vgpud/{each}/" for each in below)]
    # Composition: it builds them all.
    yield "vgpud/", ["base/", "gpu/channels/", *(f"vgpud/{room}/" for room, _, _ in VGPUD_ROOMS)]


def rooms(*prefixes):
    """All rooms of the product that lie in `prefixes`."""
    return [room for room, _ in PRODUCT if room.startswith(prefixes)]


# First matching prefix wins. Every room may include itself; a room inside of another is one of its own.
PRODUCT = [
    ("guest-driver-shim/include/uapi/", []),
    ("guest-driver-shim/libcuda/channel/", ["base/locks/", "guest-driver-shim/include/uapi/", "guest-driver-shim/libcuda/generated/cuda_api.h"]),
    ("guest-driver-shim/libcuda/driver/", ["base/locks/", "guest-driver-shim/include/uapi/", "guest-driver-shim/libcuda/channel/",
                                           "guest-driver-shim/libcuda/generated/", "guest-driver-shim/libcuda/api.h"]),
    ("guest-driver-shim/libcuda/graph/", ["base/locks/", "guest-driver-shim/include/uapi/", "guest-driver-shim/libcuda/channel/",
                                          "guest-driver-shim/libcuda/driver/", "guest-driver-shim/libcuda/generated/",
                                          "guest-driver-shim/libcuda/api.h"]),
    ("guest-driver-shim/libcuda/module/", ["base/locks/", "guest-driver-shim/include/uapi/", "guest-driver-shim/libcuda/channel/",
                                           "guest-driver-shim/libcuda/driver/", "guest-driver-shim/libcuda/generated/",
                                           "guest-driver-shim/libcuda/api.h"]),
    ("guest-driver-shim/libcuda/launch/", ["base/locks/", "guest-driver-shim/include/uapi/", "guest-driver-shim/libcuda/channel/",
                                           "guest-driver-shim/libcuda/driver/", "guest-driver-shim/libcuda/generated/",
                                           "guest-driver-shim/libcuda/graph/", "guest-driver-shim/libcuda/module/",
                                           "guest-driver-shim/libcuda/api.h"]),
    ("guest-driver-shim/libcuda/generated/", ["guest-driver-shim/libcuda/proc_table.h", "guest-driver-shim/libcuda/channel/"]),
    ("guest-driver-shim/libnvidia-ml/", ["base/locks/", "guest-driver-shim/include/uapi/", "guest-driver-shim/libcuda/channel/channel_list.h", "guest-driver-shim/libcuda/channel/vf_status.h", "guest-driver-shim/libcuda/driver/version.h",
                                        "guest-driver-shim/libcuda/channel/os.h", "guest-driver-shim/libcuda/channel/pci_address.h",
                                         "guest-driver-shim/libcuda/channel/uuid_text.h"]),
    ("guest-driver-shim/kmod/", ["guest-driver-shim/include/uapi/"]),
    ("guest-driver-shim/libcuda/api/", ["base/locks/", "guest-driver-shim/include/uapi/", "guest-driver-shim/libcuda/channel/",
                                   "guest-driver-shim/libcuda/driver/", "guest-driver-shim/libcuda/generated/",
                                   "guest-driver-shim/libcuda/graph/", "guest-driver-shim/libcuda/module/",
                                   "guest-driver-shim/libcuda/launch/", "guest-driver-shim/libcuda/api.h", "guest-driver-shim/libcuda/proc_table.h"]),
    ("guest-driver-shim/libcuda/", ["guest-driver-shim/libcuda/channel/", "guest-driver-shim/libcuda/generated/cuda_api.h"]),
    ("base/jail/", ["base/"]),
    ("base/locks/", []),
    ("base/", ["base/locks/"]),
    ("sched/", ["base/"]),
    *vfio_rows(),
    *soft_rows(),
    ("gpu/generated/", []),
    ("gpu/capability/", ["gpu/gpu.h", "guest-driver-shim/include/uapi/"]),
    ("gpu/ptx/", ["base/", "gpu/gpu.h", "gpu/generated/", "guest-driver-shim/include/uapi/"]),
    ("gpu/rewrite/", ["base/", "gpu/gpu.h", "gpu/generated/", "gpu/ptx/"]),
    ("gpu/exec/channel/", ["base/", "gpu/capability/", "gpu/exec/memory/", "gpu/gpu.h", "guest-driver-shim/include/uapi/"]),
    ("gpu/exec/ops/", ["base/", "gpu/capability/", "gpu/exec/channel/", "gpu/exec/memory/", "gpu/generated/", "gpu/gpu.h", "gpu/texture.h",
                       "guest-driver-shim/include/uapi/"]),
    ("gpu/exec/drill/", ["base/", "gpu/capability/", "gpu/gpu.h"]),
    ("gpu/exec/memory/", ["base/", "base/jail/", "base/locks/", "gpu/gpu.h", "gpu/generated/", "guest-driver-shim/include/uapi/"]),
    ("gpu/channels/", ["base/"]),
    ("gpu/cuda/arrays/", ["base/", "gpu/gpu.h", "gpu/texture.h", "gpu/generated/", "gpu/cuda/card.h", "gpu/cuda/driver_api.h",
                          "gpu/cuda/lanes.h", "gpu/cuda/memory/ranges.h"]),
    ("gpu/cuda/driver/", ["base/"]),
    ("gpu/cuda/memory/", ["base/", "gpu/capability/", "gpu/gpu.h", "gpu/generated/", "gpu/cuda/card.h", "gpu/cuda/driver_api.h",
                          "gpu/cuda/lanes.h", "guest-driver-shim/include/uapi/"]),
    ("gpu/cuda/", ["base/", "gpu/channels/", "gpu/cuda/arrays/", "gpu/cuda/driver/", "gpu/cuda/memory/", "gpu/capability/", "gpu/gpu.h", "gpu/ptx/", "gpu/rewrite/", "gpu/texture.h", "gpu/generated/", "guest-driver-shim/include/uapi/"]),
    ("gpu/", ["base/", "base/jail/", "base/locks/", "gpu/capability/", "gpu/channels/", "gpu/soft/", "gpu/cuda/", "gpu/exec/channel/", "gpu/exec/drill/", "gpu/exec/memory/", "gpu/exec/ops/", "gpu/generated/", "guest-driver-shim/include/uapi/"]),
    *vgpud_rows(),
    ("tools/gpucheck/", ["base/", "gpu/channels/", "gpu/cuda/driver_calls.h"]),
    ("tools/libvirt/", ["base/", "vgpud/model/api.h"]),
    ("tools/vgpuctl/line/", ["base/", "tools/vgpuctl/", *FOR_CLIENTS]),
    ("tools/vgpuctl/domain/", ["base/", "tools/libvirt/", "tools/vgpuctl/", *FOR_CLIENTS]),
    ("tools/vgpuctl/see/", ["base/", "tools/libvirt/", "tools/vgpuctl/", "tools/vgpuctl/domain/host_facts.h", *FOR_CLIENTS]),
    ("tools/vgpuctl/lists/", ["base/", "tools/vgpuctl/", *FOR_CLIENTS]),
    ("tools/vgpuctl/", ["base/", *FOR_CLIENTS]),
    ("integrations/slurm/", []),
    ("integrations/kubernetes/", ["base/", "tools/vgpuctl/", "tools/vgpuctl/domain/vf_access.h", "vgpud/containers/cdi.h", "vgpud/model/api.h",
                                   "vgpud/state/state_files.h"]),
    ("integrations/kubevirt/", ["base/", "tools/libvirt/"]),
    ("tools/sim/fleet/", ["base/", "sched/", "tools/sim/", "tools/vgpuctl/"]),
    ("tools/sim/", ["base/", "sched/", "tools/sim/fleet/", "tools/vgpuctl/"]),
]


def test_rows():
    """A test sees the rooms that it tests and what is below them; what tests share lies in rooms of their own, seen by tests only."""
    uapi = "guest-driver-shim/include/uapi/"
    soft = ["base/", *rooms("gpu/ptx/", "gpu/soft/"), "gpu/capability/", "gpu/gpu.h", "gpu/generated/", uapi]
    soft_rig, exec_fakes = "tests/unit/soft/rig/", "tests/unit/exec/fakes/"
    yield "tests/unit/base/", rooms("base/")
    yield "tests/unit/sched/", ["base/", "sched/"]
    yield "tests/unit/sim/", ["base/", "sched/", *rooms("tools/sim/")]
    yield "tests/unit/libvirt/", ["base/", "tools/libvirt/"]
    yield soft_rig, soft
    yield "tests/unit/soft/", [*soft, soft_rig]
    yield "tests/unit/rewrite/", [*soft, "gpu/rewrite/", soft_rig, "tests/unit/soft/state/soft_works.h"]
    yield "tests/golden/", [*soft, soft_rig]
    yield exec_fakes, ["base/", *rooms("gpu/"), uapi]
    yield "tests/unit/exec/", ["base/", *rooms("gpu/"), uapi, exec_fakes]
    yield "tests/unit/vfio/", [*rooms("base/", "vfio/"), uapi]
    yield "tests/unit/vgpud/", [*rooms("base/", "sched/", "vgpud/"), "gpu/channels/", "tests/unit/channels/rm_model.h", "tools/vgpuctl/", "tools/vgpuctl/see/"]
    yield "tests/unit/shim/", [uapi, "gpu/cuda/driver_calls.h", *rooms("guest-driver-shim/libcuda/channel/", "guest-driver-shim/libcuda/generated/")]
    yield "tests/kubernetes/", ["base/", *rooms("integrations/"), "tools/libvirt/"]
    # The version is in both libraries.
    yield "tests/unit/nvml/", [uapi, "guest-driver-shim/libnvidia-ml/", "guest-driver-shim/libcuda/driver/version.h"]
    yield "tests/integration/", ["base/", "tools/vgpuctl/", uapi, "guest-driver-shim/libcuda/generated/", exec_fakes,
                                 "guest-driver-shim/libnvidia-ml/generated/nvml_api.h",
                                 "tests/unit/shim/fake_vf_connection.h"]
    yield "tests/fuzz/", [*rooms("base/", "gpu/", "sched/", "vfio/", "vgpud/"), uapi, soft_rig, "tests/unit/vgpud/control/control_bed.h"]
    # What takes a process's place sees no more of it than that process does.
    yield "tests/adversary/", [*rooms("base/"), "gpu/"]
    # Guest programs: CUDA and nothing of ours. The launcher runs them without a CUDA toolkit.
    yield "tests/cuda/launcher/", ["tests/cuda/", "gpu/cuda/driver_calls.h"]
    yield "tests/cuda/", []
    yield "tests/driver/", [uapi]
    yield "bench/", [*rooms("base/", "gpu/", "sched/", "vfio/"), uapi]


ROOMS = [*PRODUCT, *((room, [*allowed, "tests/scratch_dir.h"]) for room, allowed in test_rows())]
# Also built outside of this tree, where the root is another.
BUILT_ELSEWHERE = re.compile("kmod|uapi|^tests/(driver|cuda)/")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
SOURCES = (".h", ".cc", ".c", ".cpp", ".inc")
# Contracts: headers that lie beside their users and are included from below. Each counts as a folder of its own.
CONTRACTS = {"gpu/gpu.h", "gpu/texture.h", "gpu/cuda/card.h", "gpu/cuda/driver_api.h",
             "gpu/cuda/driver_calls.h", "gpu/cuda/kernel_length.h", "gpu/cuda/lanes.h", "guest-driver-shim/libcuda/api.h",
             "guest-driver-shim/libcuda/generated/cuda_api.h", "guest-driver-shim/libcuda/proc_table.h",
             "guest-driver-shim/libnvidia-ml/not_supported.h", "tests/integration/shim_fixture.h"}
# Folders that need each other still, with the reason. An entry that is no cycle any more is an error, too.
CYCLES = {
    frozenset({"sched/", "sched/account/"}): "the accounts are a part of the scheduler's values",
    frozenset({"tools/sim/", "tools/sim/fleet/"}): "one program: main.cc calls the fleet, which uses the simulator's values",
}


def room_of(path):
    for prefix, allowed in ROOMS:
        if path.startswith(prefix):
            return prefix, allowed
    return None, None


def may_include(prefix, allowed, target):
    if target.startswith(tuple(each for each in allowed if not each.endswith("/"))):
        return True
    return room_of(target)[0] in (prefix, *allowed)


def includes(root):
    """(file, line number, included text) of each quoted include of the tree."""
    for source in sorted(root.rglob("*")):
        path = source.relative_to(root).as_posix()
        if source.suffix not in SOURCES or path.startswith((".", "build")):
            continue
        for number, line in enumerate(source.read_text(errors="replace").splitlines(), 1):
            if match := INCLUDE.match(line):
                yield source, path, number, match.group(1)


def violations(root):
    for source, path, number, target in includes(root):
        prefix, allowed = room_of(path)
        if prefix is None:
            continue
        if not (root / target).exists():
            if (source.parent / target).exists() and not BUILT_ELSEWHERE.search(path):
                yield f'{path}:{number}: "{target}" is relative; include from the repository root'
            continue
        if not may_include(prefix, allowed, target):
            yield f'{path}:{number}: {prefix} must not include "{target}"'


def folder_of(path):
    return path if path in CONTRACTS else path.rpartition("/")[0] + "/"


def folders(root):
    """{folder: {folder that it includes: one include as an example}}"""
    arrows = collections.defaultdict(dict)
    for _, path, _, target in includes(root):
        here, there = folder_of(path), folder_of(target)
        if here != there and (root / target).exists():
            arrows[here].setdefault(there, f'{path} includes "{target}"')
    return arrows


def knots(arrows):
    """Sets of nodes each of which reaches all others (Tarjan), larger than one."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in arrows.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            knot = set()
            while not knot or node not in knot:
                knot.add(stack.pop())
            on_stack.difference_update(knot)
            if len(knot) > 1:
                found.append(knot)
    for node in list(arrows):
        if node not in index:
            visit(node)
    return found


def cycles(arrows):
    found = [frozenset(knot) for knot in knots(arrows)]
    for knot in found:
        if knot in CYCLES:
            continue
        examples = [example for here in sorted(knot) for there, example in sorted(arrows[here].items()) if there in knot]
        yield f"{' '.join(sorted(knot))} need each other: {'; '.join(examples)}"
    for knot in CYCLES:
        if knot not in found and any(folder in arrows for folder in knot):
            yield f"{' '.join(sorted(knot))} do not need each other any more: take them out of CYCLES"


def table_cycles():
    """The table must not allow what the sources must not do."""
    allowed = {prefix: {room for room in may if room.endswith("/")} for prefix, may in PRODUCT}
    for knot in knots(allowed):
        if frozenset(knot) not in CYCLES:
            yield f"the table lets {' '.join(sorted(knot))} include each other"


def inside(arrows, folder):
    """The arrows between `folder` itself and the folders in it."""
    return {here: {there: example for there, example in there_all.items() if there.startswith(folder)}
            for here, there_all in arrows.items() if here.startswith(folder)}


def floors(arrows):
    """{node: length of the longest way down}; a node of a cycle counts with those that it reaches for the first time."""
    heights = {}

    def height(node, above):
        if node not in heights:
            below = [height(other, above | {node}) for other in arrows.get(node, ()) if other not in above]
            heights[node] = 1 + max(below, default=0)
        return heights[node]
    for node in {*arrows, *(there for all_there in arrows.values() for there in all_there)}:
        height(node, frozenset())
    return heights


def picture(arrows, folder):
    heights = floors(arrows)
    up = 0
    for node in sorted(heights, key=lambda each: (-heights[each], each)):
        marked = []
        for there in sorted(arrows.get(node, ()), key=lambda each: (-heights[each], each)):
            rises = heights[there] >= heights[node]
            up += rises
            marked.append(("^" if rises else "") + (there.removeprefix(folder) or folder))
        yield f"{heights[node]:>2}  {node.removeprefix(folder) or folder:<12} {'-> ' + ' '.join(marked) if marked else ''}".rstrip()
    yield f"{len(heights)} folders, {max(heights.values(), default=0)} floors, {sum(map(len, arrows.values()))} arrows, {up} of them up"


def dot(arrows, folder):
    heights = floors(arrows)
    yield "digraph {"
    yield "  node [shape=box];"
    for floor in sorted(set(heights.values())):
        yield "  {rank=same; " + " ".join(f'"{node}";' for node in sorted(heights) if heights[node] == floor) + "}"
    for node in sorted(arrows):
        for there in sorted(arrows[node]):
            yield f'  "{node}" -> "{there}"' + (" [color=red]" if heights[there] >= heights[node] else "") + ";"
    yield "}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", nargs="?", default=".")
    parser.add_argument("--picture", metavar="FOLDER")
    parser.add_argument("--dot", metavar="FOLDER")
    arguments = parser.parse_args()
    root = pathlib.Path(arguments.root).resolve()
    arrows = folders(root)
    if folder := arguments.picture or arguments.dot:
        print("\n".join((picture if arguments.picture else dot)(inside(arrows, folder), folder)))
        return 0
    found = [*violations(root), *cycles(arrows), *table_cycles()]
    print("\n".join(found) or "includes are clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
