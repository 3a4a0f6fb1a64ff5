# SPDX-License-Identifier: Apache-2.0
"""Programs for benches of shares: bench/felt_probe with its words, and the endless kernel of the tests."""
import bisect
import time

from vgpuguest.paths import BUILD, ToolError, cuda_command
from vgpuguest.program import GuestProgram

FELT = str(BUILD / "bench/felt_probe")


def command(kernel_us, think_us=0, burst=1):
    """(command of a program for the next hour, the line that it prints when it has begun): it launches `burst` kernels, waits for them and
    thinks; or launches one that never ends, with None for its length."""
    if kernel_us is None:
        return cuda_command("endless"), "endless: started"
    return [FELT, str(kernel_us), str(think_us), "3600", str(burst)], "started"


def begun(programs, begins, patience):
    """Have all printed that they began, within the seconds of `patience`? ToolError if one ended before."""
    try:
        for program in programs:
            program.wait_for_line(begins, patience)
    except ToolError:
        if any(program.code is not None for program in programs):
            raise
        return False
    return True


def rates(programs, begins, seconds, patience):
    """Kernels per second of each over the same seconds, which begin when all have begun; None: not all began in time."""
    if not begun(programs, begins, patience):
        return None
    begin = time.monotonic_ns()
    time.sleep(seconds)
    end = time.monotonic_ns()
    return [rate(told_until(program, end), begin, end) for program in programs]


def told(program):
    """[(CLOCK_MONOTONIC of this machine in ns, kernels so far)] of the lines "at NS COUNT" that it has printed, in their order."""
    lines = [(arrival, line.split()) for arrival, line in list(program.lines) if line.startswith("at ")]
    # A guest has a clock of its own. Of all lines the quickest on its way tells best what lies between the clocks.
    apart = min(arrival * 1e9 - int(at) for arrival, (_, at, _) in lines) if isinstance(program, GuestProgram) else 0
    return [(int(at) + apart, int(count)) for _, (_, at, count) in lines]


def told_until(program, end):
    """What the program told, when it has told of a time after `end`, or of nothing more for a second."""
    while (counts := told(program))[-1][0] <= end:
        try:
            program.wait_for_line("at ", 1, sum(line.startswith("at ") for _, line in list(program.lines)) + 1)
        except ToolError:
            if program.code is not None:
                raise
            return counts
    return counts


def rate(counts, begin, end):
    """Kernels per second between two times, of what `told` returned."""
    return (_count(counts, end) - _count(counts, begin)) * 1e9 / (end - begin)


def _count(counts, at_ns):
    """Between two entries interpolated; a program that waits for its turn tells nothing."""
    i = bisect.bisect_right(counts, at_ns, key=lambda entry: entry[0])
    before, after = counts[i - 1], counts[i] if i < len(counts) else None
    if after is None:
        return before[1]
    return before[1] + (after[1] - before[1]) * (at_ns - before[0]) / (after[0] - before[0])
