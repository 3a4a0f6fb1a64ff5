#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpuctl --host: what ssh is told to run there, by a stand-in for ssh that runs it in a shell here. Needs PYTHONPATH=tools/lib:tests/vm."""
import json
import os
import subprocess
import tempfile

from harness import check
from vgpuguest import daemon, paths


class Hosts:
    def __init__(self, directory):
        self.calls = os.path.join(directory, "calls")
        self.environment = {"PATH": f"{directory}:{paths.VGPUCTL.parent}:/usr/bin:/bin"}
        with open(os.path.join(directory, "ssh"), "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {self.calls}\n[ "$1 $2" = "-o BatchMode=yes" ] || exit 255\n'
                       'while [ "$1" = -o ]; do shift 2; done\n[ "$1" = -- ] || exit 255\nshift 2\nexec sh -c "$*"\n')
        os.chmod(file.name, 0o755)

    def ctl(self, *words):
        return subprocess.run([paths.VGPUCTL, *words], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, check=False)

    def called(self):
        with open(self.calls, encoding="utf-8") as file:
            return file.read()


def main():
    with tempfile.TemporaryDirectory() as directory, daemon.private_daemon([("a", {"vram": "64MiB"})]) as vgpud:
        hosts = Hosts(directory)
        here = ["--runtime-dir", vgpud.runtime_dir]
        for words in (["--host", "me@gpu-3"], ["--host=me@gpu-3"]):
            done = hosts.ctl(*words, *here, "list", "-o", "json")
            check(done.returncode == 0 and [vf["name"] for vf in json.loads(done.stdout)["vfs"]] == ["a"], f"{words}: {done.stderr}")
            check("-- me@gpu-3 vgpuctl '--runtime-dir'" in hosts.called() and "--host" not in hosts.called(), "as the same command there")
        hosts.ctl("--host", "gpu-3", "--timeout", "2.5", *here, "list")
        check("ConnectTimeout=3" in hosts.called() and "'--timeout' '2.5'" in hosts.called(), "a host that lets nobody in has its time, too")
        mark = os.path.join(directory, "mark")
        done = hosts.ctl("--host", "gpu-3", *here, "show", f"x'; touch {mark}; echo $(touch {mark}) '")
        check(done.returncode != 0 and not os.path.exists(mark), f"nothing in an argument is run there: {done.stderr}")
        check(hosts.ctl("--host", "gpu-3", *here, "show", "nobody").returncode == 4, "the exit code is the one there")
        before = hosts.called()
        for host in ("-oProxyCommand=x", "", "a b", "a;b", "$(x)"):
            done = hosts.ctl(f"--host={host}", *here, "list")
            check(done.returncode == 2, f"{host!r} is no host: {done.stderr}")
        check(hosts.called() == before, "and ssh did not hear of them")


main()
