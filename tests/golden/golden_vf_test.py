#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The golden tests through the whole chain: driver API, channel, executor, soft GPU."""
import glob
import os
import sys

import harness
from vgpuguest import daemon


def test():
    build = sys.argv[1]
    files = sorted(glob.glob(os.path.join(build, "*.golden")))
    harness.check(files, f"golden files in {build}")
    # Some forms need the highest compute capability that there is.
    with daemon.private_daemon([("a", {})], ["--soft-gpu-capability", "12.1"]) as vgpud:
        harness.run_direct(vgpud.show("a"), [os.path.join(build, "golden_cuda"), "--all", *files])


harness.main(test, needs_guest=False)
