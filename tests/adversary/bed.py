# SPDX-License-Identifier: Apache-2.0
"""A vgpud with the VFs "good", "peer" and "bad": a meter runs in the first two all the time, the third is attacked from."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import harness
from vgpuguest import daemon, paths, process, shares
from vgpuguest.program import DirectProgram

METER_SECONDS = 3600
BYSTANDERS = ("good", "peer")
ADVERSARIES = {"executor": ("vgpud-exec", "adversary-exec"), "vf": ("vgpud-vf", "adversary-vf")}
_PROGRAMS = {"vgpud-exec": ("gpu", "REAL_VGPUD_EXEC"), "vgpud-vf": ("vfio", "REAL_VGPUD_VF")}


class NotHere(Exception):
    """This host gives an attacker on this rung no way to try it: why."""


class Snapshot:
    """Counters at one moment."""

    def __init__(self, made):
        self.host = time.monotonic()
        self.now_ns, self.vfs = made.vgpud.stats()
        self.kernel_ns = made.kernel_ns("good")
        self.busy_ns, self.ours_ns = _busy_ns(), self._ours(made)
        self.vgpud_ns = cpu_ns(f"/proc/{made.vgpud.process.pid}/schedstat", made.vgpud.process.pid)

    def _ours(self, made):
        own = os.times()
        return (sum(vf["cpu_ns"] for vf in self.vfs.values()) + int(sum(own[:4]) * 1e9) +
                sum(cpu_ns("", pid) for pid in (made.vgpud.process.pid, *made.meter_pids)))


class Window:
    """What everybody had of the GPU between two snapshots, and what the meter of "good" counted."""

    def __init__(self, begin, end, units):
        self.vfs = end.vfs
        elapsed = end.now_ns - begin.now_ns

        def rate(key):
            return {name: (after[key] - begin.vfs[name][key]) / elapsed for name, after in end.vfs.items()
                    if name in begin.vfs}
        self.share = rate("received_ns")
        self.outside = rate("cpu_outside_turns_ns")
        self.vgpud = (end.vgpud_ns - begin.vgpud_ns) / elapsed
        # What programs of this host that have nothing to do with us used, in CPUs.
        self.others = max(0.0, (end.busy_ns - begin.busy_ns - end.ours_ns + begin.ours_ns) / elapsed)
        self.rate = units / (end.host - begin.host)
        # While the thread that runs its kernels had a CPU.
        self.pace = units / max(1, end.kernel_ns - begin.kernel_ns)


def cpu_ns(path, pid=None):
    """Processor time of a thread, or of all threads of a process."""
    if pid is None:
        return int(pathlib.Path(path).read_text().split()[0])
    total = 0
    for thread in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            total += cpu_ns(thread)
    return total


def _busy_ns():
    """Processor time of everybody on this host."""
    user, nice, system, _, _, irq, softirq = map(int, pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:8])
    return (user + nice + system + irq + softirq) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Bed:
    def __init__(self, vgpud, target):
        self.vgpud = vgpud
        self.target = target
        self.meters = {name: DirectProgram(vgpud.show(name), [*harness.command("meter")[:-1], str(METER_SECONDS)])
                       for name in BYSTANDERS}
        for meter in self.meters.values():
            meter.wait_for_line("METER", 60, count=5)
        self.meter_pids = harness.children_of(os.getpid(), "meter") or harness.children_of(os.getpid(), "vgpu-launch")
        self.bystanders = self.processes(BYSTANDERS)
        self.at_rest = self.files()

    def stop(self):
        for meter in self.meters.values():
            meter.stop()

    # ---- what there is ----

    def log_text(self):
        return pathlib.Path(self.vgpud.log).read_bytes().decode(errors="backslashreplace")

    def files(self):
        """Descriptors that vgpud has open."""
        return len(os.listdir(f"/proc/{self.vgpud.process.pid}/fd"))

    def protections(self):
        """Names of those that are in force."""
        return {row["name"] for row in self.vgpud.ctl("gpu")["protections"] if row["in_force"]}

    def open_files(self):
        found = []
        for fd in os.listdir(f"/proc/{self.vgpud.process.pid}/fd"):
            with contextlib.suppress(OSError):
                found.append(os.readlink(f"/proc/{self.vgpud.process.pid}/fd/{fd}"))
        return " ".join(sorted(found))

    def processes(self, vfs):
        """The processes of these VFs: {process id: its arguments}."""
        found = {}
        for pid in (*harness.children_of(self.vgpud.process.pid, "vgpud-exec"),
                    *harness.children_of(self.vgpud.process.pid, "vgpud-vf")):
            with contextlib.suppress(OSError, ValueError):
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
                name = words[words.index("--vf" if "--vf" in words else "--name") + 1]
                if name in vfs:
                    found[pid] = words
        return found

    # ---- what they get ----

    def kernel_ns(self, vf):
        """Processor time of the thread that runs the kernels of this VF."""
        for pid, words in self.processes((vf,)).items():
            for thread in pathlib.Path(f"/proc/{pid}/task").iterdir() if "--vf" in words else ():
                if (thread / "comm").read_text().strip() == "vgpu-gpu":
                    return cpu_ns(thread / "schedstat")
        return 0

    @contextlib.contextmanager
    def window(self):
        """Fills in what the bystanders got while the body ran: a list with one Window."""
        result = []
        begin = Snapshot(self)
        yield result
        end = Snapshot(self)
        meter = self.meters["good"]
        for _ in range(100):
            points = shares.meter_points(list(meter.lines))
            if points[-1][0] > end.host or meter.code is not None:
                break
            time.sleep(0.05)
        result.append(Window(begin, end, shares.units_between(points, begin.host, end.host)))

    def unnoticed(self):
        """What the others noticed: a list of complaints."""
        complaints = []
        if self.vgpud.process.poll() is not None:
            return [f"vgpud ended with {self.vgpud.process.returncode}"]
        now = self.processes(BYSTANDERS)
        if set(now) != set(self.bystanders):
            about = [line for line in self.log_text().splitlines() if "vf=good" in line or "vf=peer" in line]
            complaints.append(f"processes of others ended: {sorted(set(self.bystanders) - set(now))}: {' | '.join(about[-4:])}")
        for name, meter in self.meters.items():
            if meter.code is not None or not shares.meter_is_clean(list(meter.lines)):
                complaints.append(f"the meter in {name} ended or counted wrong")
            if self.vgpud.show(name)["state"] != "ready":
                complaints.append(f"{name} is {self.vgpud.show(name)['state']}")
        return complaints

    def remove_bad(self):
        """Destroys the VF; what it left behind."""
        with contextlib.suppress(daemon.ToolError):
            self.vgpud.destroy("bad")
        end = time.monotonic() + 10
        while time.monotonic() < end:
            left = self.processes(("bad",))
            files = self.files()
            if not left and files <= self.at_rest and "bad" not in self.vgpud.names():
                return []
            time.sleep(0.05)
        complaints = [f"left behind: {left}"] if left else []
        if files > self.at_rest:
            complaints.append(f"vgpud has {files} descriptors open, before {self.at_rest}: {self.open_files()}")
        return complaints


def _copy(directory, name):
    shutil.copy2(paths.BUILD / _PROGRAMS[name][0] / name, directory)
    os.chmod(directory / name, 0o755)


@contextlib.contextmanager
def libexec(actor):
    """A directory for VGPUD_LIBEXEC that the users of VFs may read: the real programs, or an adversary in place of one."""
    with process.scratch_dir("vgpu-adv-") as name:
        directory = pathlib.Path(name)
        os.chmod(directory, 0o755)
        real = directory / "real"
        real.mkdir(mode=0o755)
        os.chmod(real, 0o755)
        for program, (_, variable) in _PROGRAMS.items():
            _copy(real, program)
            os.environ[variable] = str(real / program)
            if ADVERSARIES.get(actor, ("",))[0] == program:
                shutil.copy2(paths.BUILD / "tests" / "adversary" / ADVERSARIES[actor][1], directory / program)
                os.chmod(directory / program, 0o755)
            else:
                os.symlink(real / program, directory / program)
        os.environ["VGPUD_LIBEXEC"] = str(directory)
        yield directory


def set_target(target, attack, vgpud):
    (target / "new").write_text(f"{attack} {vgpud.process.pid}\n")
    os.chmod(target / "new", 0o644)
    os.replace(target / "new", target / "target")


@contextlib.contextmanager
def bed(actor, arguments=()):
    with libexec(actor) as directory, daemon.private_daemon(
            [(name, {"vram": "64MiB", "slice": "2ms"}) for name in BYSTANDERS], arguments) as vgpud:
        try:
            made = Bed(vgpud, directory)
        except BaseException:
            print(process.tail(vgpud.log, 30))
            raise
        try:
            yield made
        finally:
            made.stop()


def listed(actor):
    """{name: about} of an adversary program's attacks."""
    program = paths.BUILD / "tests" / "adversary" / ADVERSARIES[actor][1]
    lines = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(line.split("\t") for line in lines)
