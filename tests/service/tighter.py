#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What becomes of vgpud.service when it may do less: for each setting that `systemd-analyze security` asks for, the figure, and
what vgpud says or can't do any more. For those who want to make the unit tighter; nothing here passes or fails.

usage: tighter.py [NAME...]   of the rows of SETTINGS
"""
import json
import re
import sys
import tempfile

import harness  # noqa: F401  (where the tools are)
import host
from vgpuguest.paths import ToolError

NAMESPACES = ("user", "pid", "net", "mnt", "ipc", "uts")
SETTINGS = {
    "as it is": "",
    "no RTC": "DeviceAllow=\nProtectClock=no\nSystemCallFilter=~@clock",
    "hidden processes": "ProtectProc=invisible",
    "processes that can be traced": "ProtectProc=ptraceable",
    "only processes in /proc": "ProcSubset=pid",
    "no realtime": "RestrictRealtime=yes",
    "no choice of priorities": "CapabilityBoundingSet=~CAP_SYS_NICE",
    "no signals to others": "CapabilityBoundingSet=~CAP_KILL",
    "own users": "PrivateUsers=identity",
    "no resources": "SystemCallFilter=~@resources",
    "no privileged calls": "SystemCallFilter=~@privileged",
    "no mounts": "SystemCallFilter=~@mount",
    "no groups of its own": "Delegate=no",
    **{f"no {kind} namespaces": "RestrictNamespaces=\nRestrictNamespaces=" + " ".join(each for each in NAMESPACES if each != kind)
       for kind in NAMESPACES},
    "an ordinary user": "User=vgpud\nGroup=vgpu\nAmbientCapabilities=CAP_KILL CAP_SETGID CAP_SETUID CAP_SYS_NICE",
    "a root of its own": "RootDirectory=/srv/root\nMountAPIVFS=yes\nBindReadOnlyPaths=/usr /lib /lib64 /etc /run/systemd/journal\n"
                         "BindPaths=/run/vgpud",
}
USER = "useradd --system --no-create-home vgpud; mkdir -p /srv/root"
PROGRAM = """import ctypes, json, os, subprocess, sys
shown = json.loads(subprocess.run(["vgpuctl", "show", "a", "-o", "json"], capture_output=True).stdout)
os.environ["VGPU_CHANNEL"] = shown["channel_socket"]
cuda = ctypes.CDLL(sys.argv[1])
context, device = ctypes.c_void_p(), ctypes.c_int()
print([cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)])
"""


def try_out(machine, lines):
    """The figure, and what is worse than it was."""
    machine.shell("systemctl stop vgpud.service vgpud.socket; rm -rf /var/lib/vgpud /run/vgpud; systemd-tmpfiles --create vgpud.conf", 90)
    machine.do(f"mkdir -p /etc/systemd/system/vgpud.service.d && echo '[Service]\n{lines}' > /etc/systemd/system/vgpud.service.d/tighter.conf && "
               "systemctl daemon-reload && systemctl reset-failed; journalctl --rotate --vacuum-time=1s > /dev/null 2>&1")
    figure = machine.do("systemd-analyze security vgpud.service --no-pager | tail -1 | tr -cd '0-9. '").split()[-1]
    code, _ = machine.shell("systemctl start vgpud.socket && timeout 60 systemctl start vgpud.service", 90)
    worse = [] if code == 0 else ["does not start"]
    if code == 0:
        code, said = machine.shell("vgpuctl --timeout 30 create a --vram 64MiB && vgpuctl gpu -o json > /tmp/gpu && "
                                   "python3 /srv/program.py $(find /usr -name libcuda.so.1)", 90)
        worse += [] if code == 0 and "[0, 0, 0]" in said else [f"a program: {said.strip()[-200:]}"]
        code, said = machine.shell("cat /tmp/gpu")
        worse += [row["name"] for row in json.loads(said or "{}").get("protections", []) if not row["in_force"]]
        _, classes = machine.shell("ps -eLo cls,comm | grep sched-gpu")
        worse += [] if "FF" in classes else ["the scheduler's thread has no realtime"]
    _, warned = machine.shell("journalctl -u vgpud -p warning -o cat --no-pager | sort | uniq -c | sort -rn | head -5")
    return figure, worse, [line.strip()[:160] for line in warned.splitlines()]


def main():
    wanted = sys.argv[1:] or list(SETTINGS)
    with host.booted() as machine:
        machine.wait_until_up()
        machine.do(USER)
        with machine.channel() as channel:
            with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
                program.write(PROGRAM)
                program.flush()
                channel.put(program.name, "/srv/program.py", 0o755)
        for name in wanted:
            try:
                figure, worse, warned = try_out(machine, SETTINGS[name])
                print(f"{figure:>4}  {name}: {'; '.join(worse) or 'works'}", *warned, sep="\n        ", flush=True)
            except (AssertionError, ToolError, TimeoutError) as error:
                print(f"   ?  {name}:", re.sub(r"\s+", " ", str(error))[:300], flush=True)


if host.missing():
    print(f"skipped: {host.missing()}")
    sys.exit(77)
main()
