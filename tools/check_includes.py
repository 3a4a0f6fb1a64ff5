#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the arrows between rooms honest: which folder may include which (docs/ARCHITECTURE.md, "Rooms").

usage: check_includes.py [REPO_ROOT]   exit 0 clean, 1 with one line per violation
"""
import pathlib
import re
import sys

# The rooms of the soft GPU, low to high: each may include itself and those before it.
SOFT_ROOMS = ["number", "state", "code", "memory", "texture", "run", "ops", "convert", "matrix", "tensor", "calls", "decode"]


def soft_rows():
    low = ["base/", "base/locks/", "guest-driver-shim/include/uapi/", "gpu/gpu.h", "gpu/generated/", "gpu/ptx/"]
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


def rooms(*prefixes):
    """All rooms of the product that lie in `prefixes`."""
    return [room for room, _ in PRODUCT if room.startswith(prefixes)]


# First matching prefix wins. Every room may include itself; a room inside of another is one of its own.
PRODUCT = [
    ("guest-driver-shim/include/uapi/", []),
    ("guest-driver-shim/libcuda/channel/", ["base/locks/", "guest-driver-shim/include/uapi/", "guest-driver-shim/libcuda/generated/"]),
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
    ("guest-driver-shim/libcuda/generated/", ["guest-driver-shim/", "guest-driver-shim/libcuda/channel/"]),
    ("guest-driver-shim/libnvidia-ml/", ["base/locks/", "guest-driver-shim/include/uapi/", "guest-driver-shim/libcuda/channel/channel_list.h",
                                        "guest-driver-shim/libcuda/channel/os.h", "guest-driver-shim/libcuda/channel/pci_address.h",
                                         "guest-driver-shim/libcuda/channel/uuid_text.h"]),
    ("guest-driver-shim/", ["base/locks/", "guest-driver-shim/include/uapi/", "guest-driver-shim/libcuda/channel/",
                            "guest-driver-shim/libcuda/driver/", "guest-driver-shim/libcuda/generated/",
                            "guest-driver-shim/libcuda/graph/", "guest-driver-shim/libcuda/module/",
                            "guest-driver-shim/libcuda/launch/"]),
    ("base/jail/", ["base/"]),
    ("base/locks/", []),
    ("base/", ["base/locks/"]),
    ("sched/", ["base/"]),
    *vfio_rows(),
    *soft_rows(),
    ("gpu/generated/", []),
    ("gpu/ptx/", ["base/", "gpu/gpu.h", "gpu/generated/", "guest-driver-shim/include/uapi/"]),
    ("gpu/rewrite/", ["base/", "gpu/gpu.h", "gpu/generated/", "gpu/ptx/"]),
    ("gpu/exec/memory/", ["base/", "base/jail/", "base/locks/", "gpu/gpu.h", "gpu/generated/", "guest-driver-shim/include/uapi/"]),
    ("gpu/channels/", ["base/"]),
    ("gpu/cuda/arrays/", ["base/", "gpu/gpu.h", "gpu/texture.h", "gpu/generated/", "gpu/cuda/card.h", "gpu/cuda/driver_api.h",
                          "gpu/cuda/lanes.h", "gpu/cuda/memory/ranges.h"]),
    ("gpu/cuda/memory/", ["base/", "gpu/evictable.h", "gpu/gpu.h", "gpu/generated/", "gpu/cuda/card.h", "gpu/cuda/driver_api.h",
                          "gpu/cuda/lanes.h", "guest-driver-shim/include/uapi/"]),
    ("gpu/cuda/", ["base/", "gpu/channels/", "gpu/cuda/arrays/", "gpu/cuda/memory/", "gpu/evictable.h", "gpu/gpu.h", "gpu/ptx/", "gpu/rewrite/", "gpu/texture.h", "gpu/generated/", "guest-driver-shim/include/uapi/"]),
    ("gpu/", ["base/", "base/jail/", "base/locks/", "gpu/channels/", "gpu/soft/", "gpu/cuda/", "gpu/exec/memory/", "gpu/generated/", "guest-driver-shim/include/uapi/"]),
    ("vgpud/host/", ["base/", "base/jail/"]),
    ("vgpud/gpu/", ["base/", "gpu/channels/", "sched/", "vgpud/host/"]),
    ("vgpud/service/", ["base/"]),
    ("vgpud/device/", ["base/", "gpu/channels/", "vgpud/host/"]),
    ("vgpud/state/", ["base/", "vgpud/host/"]),
    ("vgpud/keep/", ["base/", "base/jail/", "vgpud/host/"]),
    ("vgpud/history/", ["base/", "sched/", "vgpud/gpu/", "vgpud/host/"]),
    ("vgpud/placement/", ["base/", "vgpud/control/nearest.h", "vgpud/host/"]),
    ("vgpud/tenants/", ["base/", "sched/", "vgpud/control/api.h", "vgpud/control/nearest.h"]),
    ("vgpud/limits/", ["base/", "base/jail/", "sched/", "vgpud/", "vgpud/host/", "vgpud/state/", "vgpud/tenants/"]),
    ("vgpud/calendar/", ["base/", "sched/", "vgpud/", "vgpud/host/", "vgpud/state/", "vgpud/tenants/", "vgpud/control/api.h",
                         "vgpud/control/nearest.h"]),
    # What clients agree on with vgpud stands in control/api.h, the lowest of all.
    ("vgpud/control/", ["base/", "sched/", "vgpud/", "vgpud/device/", "vgpud/gpu/", "vgpud/history/", "vgpud/host/", "vgpud/placement/",
                        "vgpud/service/", "vgpud/state/", "vgpud/tenants/", "vgpud/calendar/"]),
    ("vgpud/flags/", ["base/", "sched/", "vgpud/", "vgpud/calendar/", "vgpud/device/", "vgpud/gpu/", "vgpud/placement/", "vgpud/tenants/", "vgpud/control/api.h",
                      "vgpud/control/nearest.h"]),
    ("vgpud/", ["base/", "base/jail/", "gpu/channels/", "sched/", "vgpud/gpu/", "vgpud/history/", "vgpud/host/", "vgpud/control/api.h",
                "vgpud/control/control.h", "vgpud/control/json.h", "vgpud/control/nearest.h", "vgpud/flags/flags.h", "vgpud/flags/kept_settings.h", "vgpud/flags/read_config.h",
                "vgpud/device/", "vgpud/placement/", "vgpud/service/", "vgpud/state/", "vgpud/keep/",
                "vgpud/tenants/", "vgpud/calendar/"]),
    ("tools/gpucheck/", ["base/", "gpu/channels/"]),
    ("tools/libvirt/", ["base/", "vgpud/control/api.h"]),
    ("tools/vgpuctl/domain/", ["base/", "tools/libvirt/", "tools/vgpuctl/", "vgpud/control/"]),
    ("tools/vgpuctl/", ["base/", "vgpud/control/"]),
    ("integrations/kubernetes/", ["base/", "tools/vgpuctl/", "tools/vgpuctl/domain/vf_access.h", "vgpud/control/api.h",
                                   "vgpud/state/state_files.h"]),
    ("integrations/kubevirt/", ["base/", "tools/libvirt/"]),
    ("tools/sim/fleet/", ["base/", "sched/", "tools/sim/", "tools/vgpuctl/"]),
    ("tools/sim/", ["base/", "sched/", "tools/sim/fleet/", "tools/vgpuctl/"]),
]


def test_rows():
    """A test sees the rooms that it tests and what is below them; what tests share lies in rooms of their own, seen by tests only."""
    uapi = "guest-driver-shim/include/uapi/"
    soft = ["base/", *rooms("gpu/ptx/", "gpu/soft/"), "gpu/gpu.h", "gpu/generated/", uapi]
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
    yield "tests/unit/vgpud/", [*rooms("base/", "sched/", "vgpud/"), "gpu/channels/", "tests/unit/channels/rm_model.h", "tools/vgpuctl/"]
    yield "tests/unit/shim/", [uapi, *rooms("guest-driver-shim/libcuda/channel/", "guest-driver-shim/libcuda/generated/")]
    yield "tests/kubernetes/", ["base/", *rooms("integrations/"), "tools/libvirt/"]
    yield "tests/unit/nvml/", [uapi, "guest-driver-shim/libnvidia-ml/"]
    yield "tests/integration/", ["base/", "tools/vgpuctl/", uapi, "guest-driver-shim/libcuda/generated/", exec_fakes,
                                 "guest-driver-shim/libnvidia-ml/generated/nvml_api.h",
                                 "tests/unit/shim/fake_vf_connection.h"]
    yield "tests/fuzz/", [*rooms("base/", "gpu/", "vfio/"), uapi, soft_rig]
    # What takes a process's place sees no more of it than that process does.
    yield "tests/adversary/", [*rooms("base/"), "gpu/"]
    # Guest programs: CUDA and nothing of ours.
    yield "tests/cuda/", []
    yield "tests/driver/", [uapi]
    yield "bench/", [*rooms("base/", "gpu/", "sched/", "vfio/"), uapi]


ROOMS = [*PRODUCT, *test_rows()]
# Also built outside of this tree, where the root is another.
BUILT_ELSEWHERE = re.compile("kmod|uapi|^tests/(driver|cuda)/")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def room_of(path):
    for prefix, allowed in ROOMS:
        if path.startswith(prefix):
            return prefix, allowed
    return None, None


def may_include(prefix, allowed, target):
    if target.startswith(tuple(each for each in allowed if not each.endswith("/"))):
        return True
    return room_of(target)[0] in (prefix, *allowed)


def violations(root):
    for source in sorted(root.rglob("*")):
        if source.suffix not in (".h", ".cc", ".c", ".cpp", ".inc"):
            continue
        path = source.relative_to(root).as_posix()
        if path.startswith((".", "build")):
            continue
        prefix, allowed = room_of(path)
        if prefix is None:
            continue
        for number, line in enumerate(source.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1)
            if not (root / target).exists():
                if (source.parent / target).exists() and not BUILT_ELSEWHERE.search(path):
                    yield f'{path}:{number}: "{target}" is relative; include from the repository root'
                continue
            if not may_include(prefix, allowed, target):
                yield f'{path}:{number}: {prefix} must not include "{target}"'


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(violations(root))
    print("\n".join(found) or "includes are clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
