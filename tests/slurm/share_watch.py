# SPDX-License-Identifier: Apache-2.0
"""How long each VF had the GPU beside others, and how long its weight promised."""
import threading

from vgpuguest.paths import ToolError

BUSY = 0.98  # of an interval: a VF with less work was not there all the time, and the interval tells nothing
STALLED = 0.005  # of an interval: the host kept a VF's processes from their processors longer, and the interval tells of the host


class Watch:
    """Reads the counters of all vgpuds all the time, in a thread of its own."""

    def __init__(self, vgpuds, every=0.25):
        self.vgpuds, self.every = vgpuds, every
        self.seconds = {}  # {(node, VF): [received, promised, of all]}
        self.readings, self.stalled, self.problem = 0, 0, None
        self._over = threading.Event()
        self._before = {}
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self):
        self._over.set()
        self._thread.join()

    def _run(self):
        try:
            self._read()
        except Exception as error:  # pylint: disable=broad-except
            self.problem = repr(error)

    def _read(self):
        while not self._over.wait(self.every):
            for node, vgpud in self.vgpuds.items():
                try:
                    answer = vgpud.request("GET", "/v1/stats")
                except (ToolError, OSError, ValueError):
                    self._before.pop(node, None)  # killed just now
                    continue
                self.readings += 1
                before = self._before.get(node)
                self._before[node] = now = (answer["now_ns"], answer["stall_ns_total"], {vf["name"]: vf for vf in answer["vfs"]})
                if before:
                    self._compare(node, before, now)

    def _compare(self, node, before, now):
        (then, stalls_before, old), (moment, stalls, vfs) = before, now
        length = moment - then
        if length <= 0 or set(old) != set(vfs):
            return
        if stalls - stalls_before > STALLED * length:
            self.stalled += 1
            return
        delta = {name: {key: vf[key] - old[name][key] for key in ("received_ns", "runnable_ns")} for name, vf in vfs.items()}
        if any(each["received_ns"] < 0 for each in delta.values()):
            return  # another VF of the same name
        working = [name for name, each in delta.items() if each["runnable_ns"] > 0]
        if len(working) < 2 or any(delta[name]["runnable_ns"] < BUSY * length for name in working) or \
                any(vfs[name]["weight"] != old[name]["weight"] for name in working):
            return
        received = sum(delta[name]["received_ns"] for name in working) / 1e9
        weights = sum(vfs[name]["weight"] for name in working)
        for name in working:
            sums = self.seconds.setdefault((node, name), [0, 0, 0])
            sums[0] += delta[name]["received_ns"] / 1e9
            sums[1] += received * vfs[name]["weight"] / weights
            sums[2] += received

    def errors(self, least):
        """{(node, VF): points} of those that were watched beside others for `least` seconds."""
        return {key: 100 * (received - promised) / total for key, (received, promised, total) in self.seconds.items() if total >= least}
