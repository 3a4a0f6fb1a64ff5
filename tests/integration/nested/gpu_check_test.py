#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/gpu-check: the bundle is made, says what it needs where there is no GPU, measures on a driver that is our own (nested), and ends
with what it has when the driver has an error. What it measures means nothing here; that it is measured and written does.

usage: gpu_check_test.py
"""
import json
import os
import subprocess
import sys
import tarfile
import threading

import harness
from vgpuguest import daemon, paths, process

CHECK = paths.REPO / "tools" / "gpu-check"
XID = "6,1,2,-;NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.\n"
KILLED = "6,1,2,-;NVRM: Xid (PCI:0000:65:00): 45, pid=1, Ch 00000008\n"
SHORT = ["--scale", "0.05", "--kernel-us", "4000", "--kinds", "honest,endless", "--vfs", "2"]


def unpacked(directory):
    file = os.path.join(directory, "bundle.tar.gz")
    made = subprocess.run([CHECK, file], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    harness.check(made.returncode == 0, f"the bundle is made: {made.stdout}{made.stderr}")
    place = os.path.join(directory, "a folder", "elsewhere")  # anywhere
    with tarfile.open(file) as archive:
        archive.extractall(place)
    return os.path.join(place, "gpu-check")


def run(bundle, *options, seconds=120):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("VGPU", "PYTHON", "LD_"))}
    return subprocess.run([os.path.join(bundle, "run"), *options], capture_output=True, text=True, timeout=seconds, cwd="/",
                          stdin=subprocess.DEVNULL, env=environment)


def report(out):
    with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
        return json.load(file)


def check_contained(bundle):
    """Everything that its programs need but glibc is in it."""
    for name in ("vgpud/vgpud", "vfio/vgpud-vf", "gpu/vgpud-exec", "tools/gpucheck/gpu_probe"):
        said = subprocess.run(["ldd", os.path.join(bundle, "build", name)], capture_output=True, text=True, check=True).stdout
        outside = [line.split()[0] for line in said.splitlines() if "=>" in line and bundle not in os.path.normpath(line.split("=>")[1].strip())]
        foreign = [library for library in outside if not library.startswith(("libc.", "libm.", "libdl.", "libpthread.", "librt."))]
        harness.check(not foreign, f"{name} needs glibc only: {said}")


def check_no_gpu(bundle, out):
    if os.path.exists("/dev/nvidiactl"):
        return
    ended = run(bundle, "--out", out)
    harness.check(ended.returncode == 3 and "no CUDA driver" in ended.stderr, f"without a GPU the status is 3: {ended.returncode} {ended.stderr}")
    harness.check("It needs:" in ended.stderr and "glibc 2." in ended.stderr, "and it says what it needs")
    harness.check(not os.path.exists(out), "and there is no report")
    wrong = run(bundle, "--parts", "native,nothing")
    harness.check(wrong.returncode == 2 and "no part nothing" in wrong.stderr, f"a part that there is not: {wrong.stderr}")


def check_measures(bundle, out, driver):
    ended = run(bundle, *driver, *SHORT, "--parts", "native,rungs,digests,fairness,probe", "--out", out, seconds=200)
    harness.check(ended.returncode == 0, f"it ends well ({ended.returncode}): {ended.stdout}{ended.stderr}")
    found = report(out)
    parts = {part["name"]: part for part in found["parts"]}
    for name, part in parts.items():
        harness.check(part["status"] == "measured" and any(table["rows"] for table in part["tables"]), f"{name} is measured: {part}")
    rungs = {row["rung"] for row in parts["rungs"]["tables"][1]["rows"]}
    harness.check(rungs == {"gate", "blocks", "safepoints"}, f"each rung has latencies: {parts['rungs']['tables']}")
    verdicts = {row["id"]: row["verdict"] for row in parts["probe"]["tables"][0]["rows"]}
    harness.check(verdicts["E9"] == "pass" and verdicts["E16"] == "recorded" and verdicts["E4"] == "not measured",
                  f"experiments without the driver's own controls: {verdicts}")
    harness.check(any(why.startswith("E12") for why in parts["probe"]["not_measured"]), "what is not measured is said")
    harness.check({row["part"] for row in found["left_out"]} == {"What a switch costs", "Launches and copies on a VF", "CUDA tests",
                                                                "NVIDIA's libraries", "Golden instructions", "PyTorch"}, "and what was left out")
    with open(os.path.join(out, "report.md"), encoding="utf-8") as file:
        text = file.read()
    harness.check("## Not measured" in text and "nested, no GPU of NVIDIA's" in text, "the report for people says so, too")


def check_driver_error(bundle, directory, driver):
    """An Xid ends the run; one of a killed process does not."""
    log, out = os.path.join(directory, "kmsg"), os.path.join(directory, "ended")
    with open(log, "w", encoding="utf-8"):
        pass

    def fall():
        with open(log, "a", encoding="utf-8") as file:
            file.write(XID)
    # When the first part is done: its report is there.
    watching = threading.Event()

    def watch():
        while not watching.wait(0.05):
            if os.path.exists(os.path.join(out, "report.json")):
                fall()
                return
    threading.Thread(target=watch, daemon=True).start()
    with open(log, "a", encoding="utf-8") as file:
        file.write(KILLED)
    ended = run(bundle, *driver, *SHORT, "--parts", "native,fairness,slices", "--kernel-log", log, "--out", out)
    watching.set()
    found = report(out)
    harness.check(ended.returncode == 4 and "Xid" in ended.stderr, f"the status is 4: {ended.returncode} {ended.stderr}")
    harness.check("79" in found["ended_early"] and found["parts"][0]["status"] == "measured", f"with what it had: {found}")
    harness.check(any("run had ended" in row["why"] for row in found["left_out"]), f"the rest is said to be missing: {found['left_out']}")


def test():
    with process.scratch_dir("vgpu-") as directory:
        bundle = unpacked(directory)
        check_contained(bundle)
        check_no_gpu(bundle, os.path.join(directory, "none"))
        with daemon.private_daemon([("hardware", {"vram": "4GiB"})], ["--soft-gpu-capability", "9.0"]) as inner:
            driver = ["--driver-library", str(paths.SHIM), "--driver-channel", inner.show("hardware")["channel_socket"]]
            check_measures(bundle, os.path.join(directory, "report"), driver)
            check_driver_error(bundle, directory, driver)


harness.main(test, needs_guest=False)
