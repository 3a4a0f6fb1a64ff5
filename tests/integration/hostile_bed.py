# SPDX-License-Identifier: Apache-2.0
"""Two VFs of one soft GPU, a meter in each, and the accounts that must be right after the abuse of one of them."""
import contextlib
import os
import re
import time

import harness
from vgpuguest import daemon, process, shares
from vgpuguest.program import DirectProgram

# Of the time in which the neighbour had the GPU or waited for somebody else's turn. It is entitled to half. What a busy machine
# takes (switches, stalls, the meter's own steps between kernels) belongs to nobody and is not counted.
LEAST_SHARE = 0.45
_METER_SECONDS = 600


class Bed:
    """The daemon, the abused VF "bad" and its neighbour "good"."""

    def __init__(self, vgpud):
        self.vgpud = vgpud
        self.bad, self.good = vgpud.show("bad"), vgpud.show("good")
        self.daemon_pid = vgpud.process.pid
        # Before anything ran; the smallest, for the question above still had a connection perhaps.
        self.at_rest = min((self.descriptors() for _ in range(20)), key=lambda all_: sum(all_.values()))

    def log(self):
        with open(self.vgpud.log, errors="replace") as file:
            return file.read()

    def executors(self):
        return harness.children_of(self.daemon_pid, "vgpud-exec")

    def servers(self):
        return harness.children_of(self.daemon_pid, "vgpud-vf")

    def descriptors(self):
        """{process: open file descriptors} of vgpud and every vgpud-vf."""
        return {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in [self.daemon_pid, *self.servers()]}

    def open_files(self):
        files = []
        for pid in [self.daemon_pid, *self.servers()]:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    files.append(f"{pid} {fd} {os.readlink(f'/proc/{pid}/fd/{fd}')}")
        return "\n".join(files)

    def run_in(self, vf, name="vectoradd"):
        harness.run_direct(vf, harness.command(name))

    def check_empty(self):
        """Nothing of anybody is left, and no descriptor has been lost."""
        harness.wait_until(lambda: all(self.vgpud.show(name)["executors"] == 0 for name in ("bad", "good")),
                           "no executor is left in the accounts")
        harness.wait_until(lambda: not self.executors(), "no executor process is left")
        harness.wait_until(lambda: all(self.vgpud.show(name)["vram_used_bytes"] == 0 for name in ("bad", "good")),
                           "no device memory is in use")
        harness.wait_until(lambda: self.descriptors() == self.at_rest,
                           f"descriptors of vgpud and vgpud-vf are as before: {self.at_rest}",
                           seen=lambda: f"they are {self.descriptors()}:\n{self.open_files()}")
        for vf in (self.bad, self.good):
            harness.check(self.vgpud.show(vf["name"])["state"] == "ready", f"{vf['name']} is ready")
            self.run_in(vf)

    def executor_deaths(self):
        """Executors that ended in a way that only a bug or somebody's kill explains."""
        return re.findall(r".*executor ended by signal.*", self.log())


@contextlib.contextmanager
def bed():
    with daemon.private_daemon([(name, {"vram": "256MiB", "slice": "2ms"}) for name in ("bad", "good")]) as vgpud:
        try:
            yield Bed(vgpud)
        except BaseException:
            print(f"the log of vgpud ends with\n{process.tail(vgpud.log, 40)}")
            raise


def _check_share(first, last):
    felt = {part: last[f"active_{part}_ns"] - first[f"active_{part}_ns"]
            for part in ("gpu", "others", "held", "thinking", "switching", "stalled")}
    share = felt["gpu"] / (felt["gpu"] + felt["others"] + felt["held"])
    harness.check(share >= LEAST_SHARE, f"the neighbour kept its share of the GPU: {share:.3f}; its time went {felt}")


@contextlib.contextmanager
def unaffected(bed_, bystander=True):
    """While the body abuses VF "bad", the meter in "good" keeps its share and every result stays correct; so does the
    bystander, another program in the abused VF, which also keeps that VF busy."""
    meters = [DirectProgram(vf, [*harness.command("meter")[:-1], str(_METER_SECONDS)])
              for vf in ([bed_.good, bed_.bad] if bystander else [bed_.good])]
    try:
        for meter in meters:
            meter.wait_for_line("METER", 60)
        first = bed_.vgpud.stats()[1]
        yield
        for meter in meters:
            harness.check(meter.code is None, f"the meter runs on\n{meter.text()}{process.tail(bed_.vgpud.log, 40)}")
            meter.wait_for_line("METER", 30, count=len(meter.lines) + 3)
        last = bed_.vgpud.stats()[1]
        for meter in meters:
            harness.check(meter.code is None and shares.meter_is_clean(meter.lines),
                          f"the meter runs on and all it has counted is right\n{meter.text()}")
        _check_share(first["good"], last["good"])
    finally:
        for meter in meters:
            meter.stop()
    bed_.check_empty()


def within(seconds, what):
    """A context that fails when its body takes longer: for hangs, never a measure of speed."""
    @contextlib.contextmanager
    def limit():
        start = time.monotonic()
        yield
        harness.check(time.monotonic() - start < seconds, f"{what} within {seconds} s")
    return limit()
