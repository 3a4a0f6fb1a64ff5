# SPDX-License-Identifier: Apache-2.0
"""Who got how much of the GPU: as the daemon metered it and as the programs counted it."""
import bisect
import re

_METER = re.compile(r"METER t_ms=(\d+) units=(\d+) (\w+)")


def meter_points(lines):
    """[(host time, units)] of a meter's output. The program's own clock is put on the host's by the line that
    travelled fastest, so that delays on the way do not count."""
    found = [(arrival, int(m[1]) / 1000.0, int(m[2])) for arrival, line in lines if (m := _METER.match(line))]
    if not found:
        return []
    offset = min(arrival - own for arrival, own, _ in found)
    return [(own + offset, units) for _, own, units in found]


def meter_is_clean(lines):
    """No report said that the work counter was off."""
    return all(m[3] == "ok" for _, line in lines if (m := _METER.match(line)))


def units_at(points, moment):
    """Units done at a host time, between two reports."""
    times = [time for time, _ in points]
    i = bisect.bisect_left(times, moment)
    if i == 0 or i == len(points):
        raise ValueError(f"the meter did not report around that time ({len(points)} reports)")
    (t0, u0), (t1, u1) = points[i - 1], points[i]
    return u0 + (u1 - u0) * (moment - t0) / (t1 - t0)


def units_between(points, begin, end):
    return units_at(points, end) - units_at(points, begin)


def metered(before, after):
    """{VF: share of the GPU time that was handed out}, from two snapshots of the daemon's counters."""
    received = {name: after[name]["received_ns"] - before[name]["received_ns"] for name in after}
    total = sum(received.values())
    return {name: received[name] / total if total else 0.0 for name in received}


def claimed(before, after):
    """{VF: the part of the time between two snapshots, as handed out in all, that it was entitled to and had work for}."""
    def grown(name, counter):
        return after[name][counter] - before[name][counter]
    handed_out = sum(grown(name, "received_ns") for name in after)
    return {name: (grown(name, "entitled_ns") - grown(name, "unclaimed_ns")) / handed_out if handed_out else 0.0 for name in after}


def entitled(weights):
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def percentile(before, after, percent):
    """The upper edge of the bucket that `percent` of the durations between two snapshots did not exceed; 0 if none."""
    counts = sorted((int(edge), count - before.get(edge, 0)) for edge, count in after.items())
    wanted = sum(count for _, count in counts) * percent / 100
    so_far = 0
    for edge, count in counts:
        so_far += count
        if count and so_far >= wanted:
            return edge
    return 0


def worst(before, after):
    """The upper edge of the highest bucket that was hit between two snapshots; 0 if none."""
    return percentile(before, after, 100)
