#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpud --soft-gpu-capability: what programs see of it, which code of theirs runs, what is refused."""
import subprocess
import sys

import harness
from vgpuguest import daemon, paths

TOOL = str(paths.REPO / "tools" / "run-direct")
# The __CUDA_ARCH__ that is chosen of 750, 800, 900 and 1200.
OFFERED = {"7.5": 750, "8.0": 800, "8.6": 800, "8.9": 800, "9.0": 900, "10.0": 900, "12.0": 1200, "12.1": 1200}


def run(capability, *program):
    words = ["--capability", capability] if capability else []
    return subprocess.run([TOOL, *words, "--", *program], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)


def check_refusals():
    refused = subprocess.run([paths.VGPUD, "--soft-gpu-capability", "6.1"], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=20)
    harness.check(refused.returncode == 2 and ", ".join(OFFERED) in refused.stderr, f"6.1: {refused}")
    refused = subprocess.run([TOOL, "--capability", "9.0", "--runtime-dir", "/nowhere", "--", "/bin/true"],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    harness.check(refused.returncode == 1 and "--capability" in refused.stderr, f"a named daemon: {refused}")


def test():
    every, later, cluster, tensormap, wgmma, tcgen05 = sys.argv[1:]
    check_refusals()
    for capability, arch in OFFERED.items():
        with daemon.private_daemon((), ["--soft-gpu-capability", capability]) as vgpud:
            shown = vgpud.ctl("gpu")["compute_capability"]
        harness.check(shown == capability, f"vgpuctl gpu shows {shown}, not {capability}")
        ran = run(capability, every, *capability.split("."), str(arch))
        harness.check(ran.returncode == 0 and "PASSED" in ran.stdout, f"{capability}: {ran}")
    ran = run(None, every, "7", "5", "750")
    harness.check(ran.returncode == 0, f"the default: {ran}")
    ran = run("9.0", later, "9", "0", "900")
    harness.check(ran.returncode == 0, f"code for 9.0 on 9.0: {ran}")
    for capability in ("9.0", "10.0", "12.1"):
        ran = run(capability, cluster)
        harness.check(ran.returncode == 0 and "PASSED" in ran.stdout, f"clusters on {capability}: {ran}")
        ran = run(capability, tensormap)
        harness.check(ran.returncode == 0 and "PASSED" in ran.stdout, f"tensor maps on {capability}: {ran}")
    ran = run("9.0", wgmma)
    harness.check(ran.returncode == 0 and "PASSED" in ran.stdout, f"code for 9.0a on 9.0: {ran}")
    ran = run("10.0", wgmma)
    harness.check(ran.returncode != 0 and "cudaErrorNoKernelImageForDevice" in ran.stdout, f"code for 9.0a on 10.0: {ran}")
    ran = run("10.0", tcgen05)
    harness.check(ran.returncode == 0 and "PASSED" in ran.stdout, f"code for 10.0a on 10.0: {ran}")
    ran = run("12.0", tcgen05)
    harness.check(ran.returncode != 0 and "cudaErrorNoKernelImageForDevice" in ran.stdout, f"code for 10.0a on 12.0: {ran}")
    ran = run("8.9", later, "8", "9", "900")
    harness.check(ran.returncode != 0 and "cudaErrorNoKernelImageForDevice" in ran.stdout, f"code for 9.0 on 8.9: {ran}")


harness.main(test, needs_guest=False)
