#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that README.md and the pages in PAGES show, as they stand there.

usage: readme_test.py REPO_ROOT BUILD_ROOT [--vm]

Every line of every ```sh block must be run by a test. Blocks are run whole, by bash -e in the repository root, with `build/`
standing for BUILD_ROOT. Lines that boot a virtual machine run only with --vm, the others only without.
tools/demo and tools/test are what continuous integration and suite vm run; here they must exist and be executable.
"""
import os
import pathlib
import re
import subprocess
import sys

ELSEWHERE = {"tools/demo", "tools/test"}
PAGES = ("README.md", "docs/calendar.md", "docs/configuration.md", "docs/containers.md", "docs/fleet-simulation.md", "docs/gpu-check.md", "docs/gpus.md", "docs/libvirt.md",
         "docs/observability.md", "docs/queueing.md", "docs/scheduling.md", "docs/tenants.md", "docs/vgpuctl.md")


def blocks(readme):
    return re.findall(r"^```sh\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)


def main():
    root, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    vm = "--vm" in sys.argv[3:]
    ran = 0
    # Not built with sanitizers, which a bundle for other machines can't have.
    needs = {"docs/gpu-check.md": "tools/gpucheck/gpu_load", "docs/queueing.md": "tests/cuda/flood"}
    pages = [page for page in PAGES if page not in needs or (build / needs[page]).exists()]
    for page, block in ((page, block) for page in pages for block in blocks((root / page).read_text())):
        lines = [line for line in block.splitlines() if line]
        for line in [line for line in lines if line in ELSEWHERE]:
            assert os.access(root / line, os.X_OK), f"{line} of {page} is not an executable file"
            lines.remove(line)
        lines = [line for line in lines if ("run-in-guest" in line) == vm]
        if not lines:
            continue
        script = "\n".join(lines).replace("build/", f"{build}/")
        print(f"--- running\n{script}", flush=True)
        environment = dict(os.environ, VGPUD_BUILD_DIR=str(build))
        environment.pop("VGPUD_RUNTIME_DIR", None)
        # The trap ends what a block leaves in the background when one of its lines fails.
        script = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + script
        result = subprocess.run(["bash", "-ec", script], cwd=root, env=environment, timeout=240, text=True,
                                stdin=subprocess.DEVNULL)
        assert result.returncode == 0, f"{page}: a block failed with {result.returncode}:\n{script}"
        ran += 1
    assert ran > 0, "no runnable block: is the test reading the right files?"
    print(f"{ran} blocks ran")


if __name__ == "__main__":
    main()
