# SPDX-License-Identifier: Apache-2.0
"""What the host's other work took from the soft GPU. The soft GPU and its programs run on the CPU: on a host that gives them no core, or
a slower one, they do less, while their time on the GPU goes on. Read from the kernel's account of how long each thread was ready
and had no core, from what programs that are not ours used of the cores, and from how long a fixed piece of work takes."""
import dataclasses
import os
import pathlib
import statistics
import threading
import time

# Parts of the time. Up to here, shares that are off are vgpud's own doing.
WAITED_LIMIT = 0.05
OTHERS_LIMIT = 0.05
STOLEN_LIMIT = 0.05
UNEVEN_LIMIT = 0.05


@dataclasses.dataclass
class Interference:
    waited: float  # the longest that one of our threads was ready and had no core, as a part of the time
    others: float  # cores that other programs used
    stolen: float  # cores that a hypervisor took
    uneven: float = 0.0  # how much faster the cores were at one time than at another

    def busy(self):
        """Did the host's other work, or its cores, change what our programs get done?"""
        return (self.waited > WAITED_LIMIT and self.others > OTHERS_LIMIT) or self.stolen > STOLEN_LIMIT or self.uneven > UNEVEN_LIMIT

    def __str__(self):
        return (f"other programs used {self.others:.1f} cores, ours waited up to {100 * self.waited:.0f}% of the time for one; "
                f"{100 * self.stolen:.0f}% of a core was taken by a hypervisor; cores were up to {100 * self.uneven:.0f}% faster at "
                "one time than at another")


def worst(several):
    """The most of each, of a list of them."""
    return Interference(*map(max, zip(*map(dataclasses.astuple, several))))


def _processes():
    """{process id: (parent's id, clock ticks used by it and by its children that have ended)}."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue  # it ended
        found[int(entry.name)] = (int(words[1]), sum(int(word) for word in words[11:15]))
    return found


def _ours(processes):
    """The process ids of this process and all that come from it."""
    children = {}
    for pid, (parent, _) in processes.items():
        children.setdefault(parent, []).append(pid)
    found = [os.getpid()]
    for pid in found:
        found += children.get(pid, [])
    return found


def _waited(pids):
    """{(process id, thread): ns that it was ready to run and had no core}; empty on kernels that keep no such account."""
    waited = {}
    for pid in pids:
        for thread in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                waited[pid, thread.parent.name] = int(thread.read_text().split()[1])
            except (OSError, IndexError, ValueError):
                continue
    return waited


def _machine_ticks():
    """(clock ticks that all cores computed, that a hypervisor took from them), since this machine started."""
    words = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _, _, irq, softirq, stolen = (words + [0] * 8)[:8]
    return user + nice + system + irq + softirq, stolen


class Window:
    """From its making on: what the host's other work took."""

    def __init__(self):
        self._before = self._snapshot()

    @staticmethod
    def _snapshot():
        processes = _processes()
        ours = _ours(processes)
        used = sum(processes[pid][1] for pid in ours if pid in processes)
        return time.monotonic(), used, *_machine_ticks(), _waited(ours)

    def so_far(self):
        (begin, used, computed, stolen, waited), now = self._before, self._snapshot()
        seconds = max(now[0] - begin, 1e-3)
        ticks = os.sysconf("SC_CLK_TCK") * seconds
        longest = max((ns - waited[thread] for thread, ns in now[4].items() if thread in waited), default=0)
        return Interference(longest / 1e9 / seconds, max(0.0, (now[2] - computed) - (now[1] - used)) / ticks,
                            (now[3] - stolen) / ticks)


class SpeedProbe:
    """Measures how fast this machine's cores are, now and then: other machines and threads that share a core make it slower without
    any thread waiting. Takes about 2 % of one core, from start() to stop()."""
    _PAUSE = 0.05  # seconds between samples
    _LOOPS = 20_000

    def __init__(self):
        self._samples = []  # (time, seconds of processor time for the piece of work)
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
            self._samples.append((time.monotonic(), time.thread_time() - before))

    def uneven(self, windows):
        """How much faster the cores were in one of these (begin, end) than in another."""
        costs = [statistics.median(costs) for begin, end in windows
                 if (costs := [cost for at, cost in self._samples if begin <= at <= end])]
        return max(costs) / min(costs) - 1 if costs else 0.0
