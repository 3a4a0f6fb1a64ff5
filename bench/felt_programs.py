# SPDX-License-Identifier: Apache-2.0
"""Programs for benches of shares: bench/felt_probe with its words, and the endless kernel of the tests."""
import time

from vgpuguest.paths import BUILD, ToolError, cuda_command

FELT = str(BUILD / "bench/felt_probe")


def figure(run, *words):
    """What felt_probe prints at its end. `run`: starts a command, as DirectProgram of a VF does."""
    program = run([FELT, *map(str, words)])
    try:
        if program.wait(60) != 0:
            raise ToolError(f"felt_probe failed\n{program.text()}")
    finally:
        program.stop()
    return float(program.lines[-1][1])


def loops_per_us(run):
    """How often a kernel goes round its loop in a microsecond."""
    return figure(run, "calibrate")


def command(loops, kernel_us, think_us=0, burst=1):
    """(command of a program for the next hour, the line that it prints when it has begun): it launches `burst` kernels, waits for them and
    thinks; or launches one that never ends, with None for its length."""
    if kernel_us is None:
        return cuda_command("endless"), "endless: started"
    return [FELT, str(max(1, round(loops * kernel_us))), str(think_us), "3600", str(burst)], "started"


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
    return [(_count(program, end) - _count(program, begin)) * 1e9 / (end - begin) for program in programs]


def _count(program, at_ns):
    """Between two of its lines "at NS COUNT" interpolated; one that waits for its turn prints none."""
    told = [tuple(map(int, line.split()[1:])) for _, line in program.lines if line.startswith("at ")]
    before = max(entry for entry in told if entry[0] <= at_ns)
    after = min((entry for entry in told if entry[0] > at_ns), default=None)
    if after is None:
        return before[1]
    return before[1] + (after[1] - before[1]) * (at_ns - before[0]) / (after[0] - before[0])
