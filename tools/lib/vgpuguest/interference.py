# SPDX-License-Identifier: Apache-2.0
"""What the host's other work took from the soft GPU: the soft GPU runs on the CPU, so a host that gives its executors no core, or a
slower one, slows it down, while the VF's time on the GPU goes on. Read from the kernel's own account of how long each thread waited
for a core, and from how long a fixed piece of work takes."""
import pathlib
import statistics
import threading
import time


def _executors(vgpud_pid):
    """{process id: VF name} of the executors of a vgpud."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        if parent == vgpud_pid and words[0].endswith(b"vgpud-exec") and b"--vf" in words:
            found[int(entry.name)] = words[words.index(b"--vf") + 1].decode()
    return found


def waited_for_a_core(vgpud_pid):
    """{VF name: ns that the threads of its executors were ready to run and had no core, since their start}."""
    waited = {}
    for pid, vf in _executors(vgpud_pid).items():
        for thread in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                waited[vf] = waited.get(vf, 0) + int(thread.read_text().split()[1])
            except (OSError, IndexError, ValueError):
                continue  # it ended, or this kernel keeps no such account
    return waited


def _stolen_ticks():
    """Clock ticks that a hypervisor took from all cores of this machine since it started."""
    words = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(words[8]) if len(words) > 8 else 0


class SpeedProbe:
    """Measures how fast this machine's cores are, now and then: other machines and threads that share a core make it slower without
    any thread waiting. Takes about 2 % of one core, from start() to stop()."""
    _PAUSE = 0.05  # seconds between samples
    _LOOPS = 20_000

    def __init__(self):
        self._samples = []  # (time, seconds of processor time for the piece of work, stolen ticks)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def _run(self):
        while not self._end.wait(self._PAUSE):
            before = time.thread_time()
            for _ in range(self._LOOPS):
                pass
            self._samples.append((time.monotonic(), time.thread_time() - before, _stolen_ticks()))

    def cost(self, begin, end):
        """Median seconds of processor time of the piece of work between two times; 0 where there was no sample."""
        costs = [cost for at, cost, _ in self._samples if begin <= at <= end]
        return statistics.median(costs) if costs else 0.0

    def stolen(self, begin, end):
        """The part of that time that a hypervisor took from this machine's cores, of one core."""
        ticks = [stolen for at, _, stolen in self._samples if begin <= at <= end]
        return (ticks[-1] - ticks[0]) / 100 / (end - begin) if ticks else 0.0
