# SPDX-License-Identifier: Apache-2.0
"""Runs the scripts of integrations/slurm as Slurm does, without Slurm. Needs PYTHONPATH=tools/lib."""
import contextlib
import fcntl
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

from vgpuguest import daemon, paths

SCRIPTS = paths.REPO / "integrations" / "slurm"
UID = 65534
TENANT_UID = 61002
# What most tests do not look at: a job may have what there is.
USUAL = "default_profile=1/1\nmax_slice_us=10000"

CONFIGURATION = f'''[gpu]
soft_gpu_vram = "512MiB"
[profile.heavy]
vram = "16MiB"
weight = 900
[profile.night]
vram = "16MiB"
weight = 5000
[profile.first]
vram = "16MiB"
priority = 3
[profile.hungry]
vram = "16MiB"
host_memory = "1TiB"
[tenant.jobs]
vram_each = "128MiB"
weight_each = 400
[user.{TENANT_UID}]
may = "manage"
tenant = "jobs"
'''


class Scripts:
    def __init__(self, vgpud, directory):
        self.vgpud, self.directory = vgpud, directory
        self.settings = os.path.join(directory, "slurm.env")
        self.spool = os.path.join(directory, "spool")
        self.programs = os.path.join(directory, "programs")
        os.makedirs(self.programs, exist_ok=True)

    def start(self, name, *arguments, settings="accounting=none", **variables):
        """In a process group of its own, as slurmd does."""
        with open(self.settings, "w", encoding="utf-8") as file:
            file.write(f"VGPUCTL='{paths.VGPUCTL}'\nspool='{self.spool}'\n{USUAL}\n{settings}\n")
        environment = {"PATH": f"{self.programs}:/usr/bin:/bin", "VGPUD_SLURM_ENV": self.settings, "VGPUD_RUNTIME_DIR": self.vgpud.runtime_dir, "SLURMD_NODENAME": "n1", **variables}
        return subprocess.Popen([SCRIPTS / name, *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, process_group=0)

    def run(self, name, *arguments, **more):
        return finish(self.start(name, *arguments, **more))

    def prolog(self, job, gpus, **more):
        return self.run("prolog", SLURM_JOB_ID=str(job), SLURM_JOB_UID=str(UID), SLURM_JOB_GPUS=gpus, **more)

    def epilog(self, job, **more):
        return self.run("epilog", SLURM_JOB_ID=str(job), SLURM_JOB_UID=str(UID), **more)

    def install(self, name, text):
        """A program of Slurm's, instead of its own, which knows no such jobs."""
        path = os.path.join(self.programs, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)

    def squeue_says(self, *jobs, status=0):
        answers = "".join(f"echo {job}\n" for job in jobs)
        self.install("squeue", f'[ "$*" = "-h -w n1 -o %A" ] || exit 9\n{answers}exit {status}')

    def files(self):
        return sorted(set(os.listdir(self.spool)) - {"lock", "order", "why", "missing", "numbers"})

    def last_run(self, job):
        """Which prolog or epilog of the job began last, and "made" or "began"; "" when there is none."""
        try:
            with open(os.path.join(self.spool, f"{job}.run"), encoding="utf-8") as file:
                return file.read().strip()
        except FileNotFoundError:
            return ""

    def sweep(self, times=1):
        for _ in range(times):
            said = passes(self.run("sweep"))
        return said


def finish(script):
    out, err = script.communicate(timeout=60)
    return subprocess.CompletedProcess(script.args, script.returncode, out, err)


def processes_of(group):
    """(state, command line) of each process of a group."""
    found = []
    for path in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError), open(f"{path}/stat", encoding="utf-8", errors="replace") as stat_file, \
                open(f"{path}/cmdline", encoding="utf-8", errors="replace") as words:
            state, _, its_group = stat_file.read().rpartition(")")[2].split()[:3]
            if int(its_group) == group:
                found.append((state, words.read().replace("\0", " ")))
    return found


def start_late(scripts, job, name, **more):
    """A script that has begun and waits, for somebody else holds the lock, is stopped: it goes on when it is told to."""
    with open(os.path.join(scripts.spool, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        late = scripts.start(name, SLURM_JOB_ID=str(job), SLURM_JOB_UID=str(UID), **more)
        while not any(words.startswith("flock -w") for _, words in processes_of(late.pid)):
            assert late.poll() is None, late.communicate()
            time.sleep(0.01)
        os.killpg(late.pid, signal.SIGSTOP)
        # A process that is not stopped yet would be given the lock.
        while {state for state, _ in processes_of(late.pid)} != {"T"}:
            time.sleep(0.01)
    return late


def go_on(late):
    os.killpg(late.pid, signal.SIGCONT)
    return finish(late)


@contextlib.contextmanager
def process_called(job, program, user=None):
    """One that calls itself as what runs a job of Slurm's."""
    step = subprocess.Popen([f"slurmstepd: [{job}.batch]", "600"], executable=program, user=user)
    try:
        yield step
    finally:
        step.kill()
        step.wait()


def slurmstepd_in(directory):
    """A program of that name."""
    path = os.path.join(directory, "slurmstepd")
    if not os.path.exists(path):
        shutil.copy2("/usr/bin/sleep", path)
    return path


def step_of(scripts, job):
    """What says that a job runs here."""
    return process_called(job, slurmstepd_in(scripts.programs))


def passes(done):
    assert done.returncode == 0 and done.stdout == "", done
    return done.stderr


def refused(done, reason):
    assert done.returncode != 0 and reason in done.stderr, (reason, done)


def run(tests):
    """Calls each test with the scripts and a vgpud of its own. 77: this is not root, as slurmd is."""
    if os.geteuid() != 0:
        print("slurmd runs prologs as root, and this is not root")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        config = os.path.join(directory, "vgpud.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION)
        with daemon.private_daemon((), ["--config", config]) as vgpud:
            scripts = Scripts(vgpud, directory)
            for test in tests:
                test(scripts, vgpud)
    return 0
