# SPDX-License-Identifier: Apache-2.0
"""Parts that measure VFs of a vgpud on the driver."""
import contextlib
import time

from . import driver, vgpud
from .driver import NotMeasured, built, rows
from .part import MIB, ratio
from .parts_native import copies, load_rate, need_rounds

RUNGS = ("gate", "blocks", "safepoints")
SLICES_US = (1000, 2000, 6000, 20000)
VRAM = 512 * MIB


def load(told, kind, rounds=None):
    return [built("tools", "gpucheck", "gpu_load"), kind, "--rounds", str(rounds or told.rounds), "--seconds", "100000"]


@contextlib.contextmanager
def loads(daemon, commands):
    """{VF name: program} that run; `commands`: {VF name: (socket, command)}. All of them compute when this begins."""
    programs = {name: daemon.start(socket, command) for name, (socket, command) in commands.items()}
    try:
        for name, program in programs.items():
            if not program.await_line("LOAD ready", 60):
                driver.check(program, program.code)
                raise NotMeasured(f"the load of {name} did not begin: {program.text(3)}")
        yield programs
    finally:
        for program in programs.values():
            program.stop()


def rate_between(program, begin, end):
    """Kernels per second, from lines that came in that time."""
    points = [(at, driver.fields(line)) for at, line in program.lines if line.startswith("LOAD ms=") and begin <= at <= end]
    if len(points) < 2:
        return 0.0
    (_, first), (_, last) = points[0], points[-1]
    return 1000 * (last["units"] - first["units"]) / (last["ms"] - first["ms"]) if last["ms"] > first["ms"] else 0.0


def settled(told, daemon, programs, seconds):
    """(ns, counters before, after, {name: kernels per second}) of a stretch in which all run."""
    time.sleep(told.seconds(0.5))
    begin = time.monotonic()
    elapsed, before, after = vgpud.watch(daemon, told.seconds(seconds))
    end = time.monotonic()
    return elapsed, before, after, {name: rate_between(program, begin, end) for name, program in programs.items()}


def measure_rungs(told, result):
    need_rounds(told)
    tried = result.table("Tried at start", "rung", "works", "what was seen")
    table = result.table("From the end of a slice until the VF is off the GPU", "rung", "load", "p50 us", "p99 us", "max us", "times",
                         "share of the load", "share of its neighbour")
    listed = False
    for rung in RUNGS:
        try:
            with vgpud.running(told.native, ["--cuda-rung", rung]) as daemon:
                device = daemon.gpu()["device"]
                if rung == RUNGS[-1] or not listed:
                    tried.rows = [(row["name"], "yes" if row["works"] else "no", row["what"]) for row in device["rungs"]]
                if device["taken_away_by"].split("+")[0] != rung:
                    result.lacks(f"rung {rung}", next(row["what"] for row in device["rungs"] if row["name"] == rung))
                    continue
                a, b = (daemon.create(name, VRAM) for name in "ab")
                for kind, rounds in (("honest", 5 * told.rounds), ("huge", told.rounds), ("endless", told.rounds)):
                    if kind == "endless" and rung != "safepoints":
                        continue
                    try:
                        row_of_rung(told, daemon, table, rung, kind, {"a": (a, load(told, kind, rounds)), "b": (b, load(told, "honest"))})
                    except NotMeasured as why:
                        result.lacks(f"rung {rung}, load {kind}", why)
        except NotMeasured as why:
            result.lacks(f"rung {rung}", why)


def row_of_rung(told, daemon, table, rung, kind, commands):
    with loads(daemon, commands) as programs:
        _, before, after, _ = settled(told, daemon, programs, 4)
        if programs["a"].code is not None:
            raise NotMeasured(f"the load has ended: {programs['a'].text(2)}")
        drain = vgpud.percentiles(before["a"], after["a"], "drain_ns_buckets")
        received = {name: after[name]["received_ns"] - before[name]["received_ns"] for name in "ab"}
        whole = sum(received.values())
        table.row(rung, kind, drain.get("p50_us"), drain.get("p99_us"), drain.get("max_us"), drain["count"], ratio(received["a"], whole),
                  ratio(received["b"], whole))


def native_pair(told):
    """Kernels per second of two programs that share the GPU by the driver's own time slices."""
    programs = [driver.Program(load(told, "honest"), told.native.environment()) for _ in range(2)]
    try:
        for program in programs:
            if not program.await_line("LOAD ready", 60):
                driver.check(program, program.code, native=True)
                raise NotMeasured(f"a load did not begin: {program.text(3)}")
        time.sleep(told.seconds(0.5))
        begin = time.monotonic()
        time.sleep(told.seconds(3))
        return [rate_between(program, begin, time.monotonic()) for program in programs]
    finally:
        for program in programs:
            program.stop()


def measure_slices(told, result):
    need_rounds(told)
    table = result.table("Two VFs that compute, beside one alone", "who shares", "slice ms", "kernels/s of each", "sum / one alone",
                         "lost in a switch, us")
    native_alone = load_rate(told, "honest", told.native.environment(), told.seconds(2), native=True)
    table.row("nobody: the driver alone", "", round(native_alone, 1), 1, "")
    try:
        rates = native_pair(told)
        table.row("the driver's own time slices", "", " ".join(f"{rate:.1f}" for rate in rates), ratio(sum(rates), native_alone), "")
    except NotMeasured as why:
        result.lacks("the driver's own time slices", why)
    for slice_us in SLICES_US:
        with vgpud.running(told.native, ["--base-slice-us", str(slice_us)]) as daemon:
            a, b = (daemon.create(name, VRAM) for name in "ab")
            alone = load_rate(told, "honest", driver.vf_environment(a), told.seconds(1.5))
            if slice_us == SLICES_US[0]:
                table.row("one VF", "", round(alone, 1), ratio(alone, native_alone), "")
            try:
                with loads(daemon, {"a": (a, load(told, "honest")), "b": (b, load(told, "honest"))}) as programs:
                    elapsed, before, after, rates = settled(told, daemon, programs, 3)
            except NotMeasured as why:
                result.lacks(f"slices of {slice_us / 1000:g} ms", why)
                continue
            switches = sum(after[name]["slices"] - before[name]["slices"] for name in "ab")
            lost = elapsed - sum(after[name]["received_ns"] - before[name]["received_ns"] for name in "ab")
            table.row("VFs, " + daemon.gpu()["device"]["taken_away_by"], slice_us / 1000, " ".join(f"{rate:.1f}" for rate in rates.values()),
                      ratio(sum(rates.values()), alone), round(lost / switches / 1000, 1) if switches else None)


def measure_fairness(told, result):
    need_rounds(told)
    table = result.table("Fairness: one VF with the load, the others honest, equal weights", "VFs", "load", "Jain (metered)", "worst share off, points",
                         "the load's share", "honest kernels/s, least", "had work, least part of the time", "the load's program")
    with vgpud.running(told.native, ["--base-slice-us", "6000"]) as daemon:
        sockets = {f"vf{n}": daemon.create(f"vf{n}", VRAM) for n in range(max(told.vfs))}
        for count in told.vfs:
            for kind in told.kinds:
                if told.left() < 15:
                    result.lacks(f"{count} VFs, {kind}", "no time was left")
                    continue
                names = list(sockets)[:count]
                commands = {name: (sockets[name], load(told, kind if name == names[0] else "honest")) for name in names}
                try:
                    with loads(daemon, commands) as programs:
                        elapsed, before, after, rates = settled(told, daemon, programs, 1.5)
                        became = "computes" if programs[names[0]].code is None else f"ended with {programs[names[0]].code}: {programs[names[0]].text(1)}"
                except NotMeasured as why:
                    result.lacks(f"{count} VFs, {kind}", why)
                    continue
                received = [after[name]["received_ns"] - before[name]["received_ns"] for name in names]
                whole = sum(received)
                worst = max(abs(100 * part / whole - 100 / count) for part in received) if whole else None
                table.row(count, kind, round(vgpud.jain(received), 5), round(worst, 2) if worst is not None else None, ratio(received[0], whole),
                          round(min(rates[name] for name in names[1:]), 1),
                          ratio(min(after[name]["runnable_ns"] - before[name]["runnable_ns"] for name in names), elapsed), became)


def measure_copies(told, result):
    native = told.facts.get("copies") or copies(told, told.native.environment(), native=True)[0]
    with vgpud.running(told.native) as daemon:
        found, _ = copies(told, driver.vf_environment(daemon.create("a", 2048 * MIB)))
    table = result.table("Launches and copies of a VF that is alone", "what", "VF", "driver itself", "unit", "VF / driver")
    for what, row in found.items():
        key, unit, by = ("p50_us", "us", 1) if "p50_us" in row else ("bytes_per_s", "GB/s", 1e9)
        table.row(what, round(row[key] / by, 2), round(native[what][key] / by, 2), unit, ratio(row[key], native[what][key]))


def digest_of(told, kind, environment, native=False):
    launches = max(20, int(400 * told.scale))
    program = driver.run([built("tools", "gpucheck", "gpu_load"), kind, "--rounds", str(told.rounds), "--launches", str(launches)],
                         environment, 120, native)
    return rows(program, "DIGEST")[0]["digest"]


def measure_digests(told, result):
    need_rounds(told)
    table = result.table("The same launches on the driver itself and on a VF beside one that computes", "load", "driver", "VF", "equal")
    with vgpud.running(told.native, ["--base-slice-us", "1000"]) as daemon:
        a, b = (daemon.create(name, VRAM) for name in "ab")
        with loads(daemon, {"b": (b, load(told, "honest"))}):
            for kind in told.kinds:
                if kind == "endless":
                    continue
                try:
                    expected = digest_of(told, kind, told.native.environment(), native=True)
                    got = digest_of(told, kind, driver.vf_environment(a))
                except NotMeasured as why:
                    result.lacks(f"digest of {kind}", why)
                    continue
                table.row(kind, expected, got, "yes" if got == expected else "NO")
                if got != expected:
                    result.fails(f"{kind} computes something else on a VF")
