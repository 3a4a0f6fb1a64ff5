# SPDX-License-Identifier: Apache-2.0
"""What people watch GPUs with, unmodified, on libnvidia-ml.so.1: pynvml, gpustat, nvitop, nvtop."""
import functools
import json
import re

from applib.application import Application, Check, Failed, Root

_SECONDS = 120
_MIB = 48
_ROOT = Root("monitors", "trixie", ("python3-pynvml", "gpustat", "nvitop", "nvtop", "python3-minimal"),
             {"libnvidia-ml1": "libnvidia-ml.so.1"}, gib=1)


def _said(place, *command):
    """What the command says while a process has a context with memory."""
    ran = place.must(["python3", "/opt/inside/nvml_hold.py", _MIB, *command], timeout=_SECONDS, environment={"TERM": "xterm"})
    return ran.out


def _expect(condition, what, said):
    if not condition:
        raise Failed(f"{what}: {said.strip()[-600:]}")


def _pynvml(place):
    said = _said(place, "python3", "/opt/inside/pynvml_checks.py")
    found = json.loads(said)
    _expect(found["count"] == 1 and found["name"] == "vgpud soft GPU", "one device, by its name", said)
    _expect(re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", found["uuid"]), "a UUID", said)
    _expect(found["total"] == found["sum"] == found["second_total"] == 2 << 30, "2 GiB in both structs", said)
    _expect(found["used"] >= _MIB << 20, "what the process has is in use", said)
    _expect(len(found["parents"]) == 1 and found["parents"][0] >= _MIB << 20, "the process is listed with its memory", said)
    _expect(found["cuda"] == 13000 and found["capability"][0] >= 7, "versions", said)
    _expect(found["temperature"] is None and found["power"] is None, "what is not known is not supported", said)
    return f"{found['name']}, {found['used'] >> 20} of {found['total'] >> 20} MiB, {found['bus']}"


def _gpustat(place):
    said = _said(place, "gpustat", "--no-color", "--show-pid", "--show-cmd", "--no-header")
    found = re.search(r"\[0\] vgpud soft GPU\s*\|.*\|\s*(\d+) / +2048 MB \|.*python3", said)
    _expect(found and int(found[1]) >= _MIB, "a line of the VF with its memory and the process", said)
    return said.strip()


def _nvitop(place):
    said = _said(place, "nvitop", "-1", "--no-unicode")
    _expect("vgpud soft GPU" in said and "2048MiB" in said, "the VF with its memory", said)
    _expect(re.search(rf"{_MIB}\.00MiB .*python3 /opt", said), "the process", said)  # cut off where the table ends
    return "table with the VF and the process"


def _nvtop(place):
    said = _said(place, "nvtop", "--snapshot")
    found = json.loads(said)
    _expect(len(found) == 1 and found[0]["device_name"] == "vgpud soft GPU", "one device", said)
    return said.strip()


def checks(place):
    for name, run in (("pynvml", _pynvml), ("gpustat", _gpustat), ("nvitop", _nvitop), ("nvtop", _nvtop)):
        yield Check(name, functools.partial(run, place))


APPLICATION = Application(name="monitors", title="GPU monitors", root=_ROOT, version_of="nvtop", checks=checks)
