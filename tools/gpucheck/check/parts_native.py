# SPDX-License-Identifier: Apache-2.0
"""Parts that use the driver itself, without vgpud."""
import glob
import json
import os

from . import driver
from .driver import Ended, NotMeasured, built, rows, run
from .part import MIB


def load_rate(told, kind, environment, seconds, native=False):
    """Kernels per second of a load that runs alone."""
    program = run([built("tools", "gpucheck", "gpu_load"), kind, "--rounds", str(told.rounds), "--seconds", str(seconds)], environment,
                  seconds + 60, native)
    last = rows(program, "LOAD")[-1]
    return 1000 * last["units"] / last["ms"]


def copies(told, environment, native=False):
    """{what: {...}} of gpu_copies."""
    # Through two executors pageable memory takes its time.
    mib = 8 if told.native.channel else max(1, int(256 * min(1.0, told.scale)))
    program = run([built("tools", "gpucheck", "gpu_copies"), "--mib", str(mib), "--seconds", str(told.seconds(0.4))], environment, 90, native)
    return {row["what"]: row for word in ("LATENCY", "BANDWIDTH") for row in rows(program, word)}, rows(program, "GPU")[0]


def measure_native(told, result):
    environment = told.native.environment()
    found, gpu = copies(told, environment, native=True)
    told.facts["copies"], told.facts["gpu"] = found, gpu
    table = result.table("The GPU", "what", "value")
    for what, value in gpu.items():
        table.row(what, f"{value / MIB:.0f} MiB" if what == "memory" else value)
    table = result.table("Launches and copies by the driver itself", "what", "p50 us", "p99 us", "GB/s")
    for what, row in found.items():
        if "p50_us" in row:
            table.row(what, row["p50_us"], row["p99_us"], "")
        else:
            table.row(what, "", "", round(row["bytes_per_s"] / 1e9, 2))
    calibrated = rows(run([built("tools", "gpucheck", "gpu_load"), "calibrate", "--us", str(told.facts.get("kernel_us", 200))], environment, 60,
                          native=True), "ROUNDS")[0]
    told.rounds = int(calibrated["rounds"])
    table = result.table("Loads alone on the driver itself", "load", "kernels/s")
    rates = told.facts.setdefault("rates", {})
    for kind in told.kinds:
        if kind == "endless":
            continue
        try:
            rates[kind] = load_rate(told, kind, environment, told.seconds(1), native=True)
            table.row(kind, round(rates[kind], 1))
        except NotMeasured as why:
            result.lacks(f"load {kind}", why)


def need_rounds(told):
    """Parts may be chosen without the one that finds this."""
    if told.rounds == 0:
        program = run([built("tools", "gpucheck", "gpu_load"), "calibrate", "--us", str(told.facts.get("kernel_us", 200))],
                      told.native.environment(), 60, native=True)
        told.rounds = int(rows(program, "ROUNDS")[0]["rounds"])


def measure_golden(told, result):
    files = sorted(glob.glob(built("tests", "golden", "*.golden")))
    if told.scale < 1:
        files = [file for file in files if os.path.basename(file) in ("integer.golden", "float.golden")]
    listed = os.path.join(told.out, "golden.json")
    limit = max(5, int(min(told.left() - 5, 100)))
    library = ["--library", told.native.library] if told.native.library else []
    program = driver.Program([built("tests", "golden", "golden_cuda"), *library, "--jobs", str(told.jobs), "--seconds", str(limit),
                              "--json", listed, *files], told.native.environment())
    code = program.wait(limit + 15)
    if code is None or code == 2:
        raise NotMeasured(program.text())
    with open(listed, encoding="utf-8") as file:
        found = json.load(file)
    table = result.table("Forms of instructions", "became", "forms")
    for became, count in sorted(found["counts"].items()):
        table.row(became, count)
    table = result.table("Differences, by form", "form", "what", "values wrong", "of", "first")
    for row in found["differences"]:
        table.row(row["form"], row["what"], row["values_wrong"], row["values"], row["text"].strip().split("\n")[0].strip())
    if found["counts"].get("not run"):
        result.lacks("golden", f"{found['counts']['not run']} forms have not run: the time was over, or a kernel faulted")
    fault = next((row for row in found["differences"] if row["what"] == "fault"), None)
    if fault:
        raise Ended(f"a CUDA error outside of a guest: {fault['text'].strip()}")


def measure_probe(told, result):
    program = driver.Program([built("tools", "gpucheck", "gpu_probe"), "--seconds", str(told.seconds(4))], told.native.environment())
    code = program.wait(max(10, min(told.left() - 5, 150)))
    table = result.table("Experiments", "id", "what", "verdict", "figures", "said")
    seen = set()
    for _, line in program.lines:
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        seen.add(row["id"])
        figures = ", ".join(f"{name} {value:g}" for name, value in row["figures"].items())
        table.row(row["id"], row["title"], row["verdict"], figures, row["said"])
        if row["verdict"] == "not measured":
            result.lacks(row["id"], row["said"])
    result.lacks("E12", "it changes a setting of the device for everybody; nvidia-smi compute-policy --set-timeslice 0 to 3, by hand, on a GPU of your own")
    if code is None:
        result.lacks("probe", f"it did not end in time; after {sorted(seen)}")
        return
    driver.check(program, code, native=True)
