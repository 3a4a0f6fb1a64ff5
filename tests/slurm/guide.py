#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the blocks of docs/slurm.md one after the other in one shell, as they stand there, from the root of the tree. Whatever they start is
ended, also when one of them fails."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys

import cluster

SKIPPED = 77
ALLOWED_SECONDS = 300


def main():
    why = cluster.missing()
    if why:
        print(f"SKIPPED: {why}")
        return SKIPPED
    page = (cluster.REPO / "docs" / "slurm.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert blocks, "no block to run: is this the right page?"
    script = "\n".join(blocks).replace("build/", f"{cluster.paths.BUILD}/").replace(f"$PWD/{cluster.paths.BUILD}", str(cluster.paths.BUILD))
    directory = f"/tmp/vgpu-guide-{os.getpid()}"
    # mktemp -d is the one place that the page does not name.
    script = script.replace("$(mktemp -d)", directory)
    os.mkdir(directory)
    guide = cluster.Cluster(directory, 0)
    environment = {"PATH": os.environ["PATH"] + ":/usr/sbin", "HOME": "/root", "SLURM_CONF": f"{directory}/slurm.conf"}
    try:
        done = subprocess.run(["bash", "-e", "-c", script], cwd=cluster.REPO, env=environment, stdin=subprocess.DEVNULL, text=True,
                              timeout=ALLOWED_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        print(done.stdout)
        assert done.returncode == 0, f"a block of docs/slurm.md failed with {done.returncode}"
        assert len(re.findall(r"^\S+ +slurm-\d+-\d+ ", done.stdout, re.MULTILINE)) >= 3, "the report has the VFs of all jobs"
        assert "job 4 has no VFs: a VF of a job here may have the memory of profile 1/4" in done.stdout, "what is refused is said"
        units = [int(each) for each in re.findall(r"meter: PASSED units=(\d+)", done.stdout)]
        assert len(units) == 2 and units[0] > 1.5 * units[1], f"the heavier job did {units}"
        left = guide.processes()
        assert not left and not os.path.exists(directory), f"left over: {left}"
    finally:
        for pid, _ in guide.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(directory, ignore_errors=True)
    print("docs/slurm.md: ok")
    return 0


sys.exit(main())
