#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prolog, epilog, sweep and node-start of integrations/slurm as Slurm calls them, without Slurm: a real vgpud, and the variables that Slurm sets.
Needs PYTHONPATH=tools/lib."""
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time

from scripts import SCRIPTS, UID, USUAL, Scripts, finish, go_on, passes, refused, start_late, step_of, run
from vgpuguest import daemon, paths


def comes_and_goes(scripts, vgpud):
    for _ in range(2):  # a prolog that was cut off runs again
        passes(scripts.prolog(7, "0,3", SPANK_VGPU_WEIGHT="300", SPANK_VGPU_VRAM="64MiB", SPANK_VGPU_SLICE="4ms"))
        assert vgpud.names() == ["slurm-7-0", "slurm-7-3"], vgpud.names()
    for name in vgpud.names():
        vf = vgpud.show(name)
        assert (vf["weight"], vf["vram_bytes"], vf["slice_us"], vf["transient"]) == (300, 64 << 20, 4000, False), vf
        for socket in (vf["vfio_user_socket"], vf["channel_socket"]):
            status = os.stat(socket)
            assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (UID, 0o600), (socket, status)
    vgpud.create("other", vram="64MiB")
    said = passes(scripts.epilog(7))
    assert "its VFs had the GPU of n1 for 0.000 s" in said and scripts.files() == [], (said, scripts.files())
    assert passes(scripts.epilog(7)) == "", "the second time there is nothing to say"
    assert vgpud.names() == ["other"], vgpud.names()
    vgpud.destroy("other")


def left_overs_go(scripts, vgpud):
    """A number that Slurm gives to a job is nobody else's: after a crash of the node an epilog has not run."""
    passes(scripts.prolog(8, "1,2", SPANK_VGPU_VRAM="64MiB"))
    passes(scripts.prolog(9, "2", SPANK_VGPU_VRAM="64MiB"))
    assert vgpud.names() == ["slurm-8-1", "slurm-9-2"], vgpud.names()
    start = ("node-start", "2", os.path.join(scripts.directory, "dev"))
    scripts.squeue_says(status=1)
    assert "nothing is ended" in passes(scripts.run(*start)) and len(vgpud.names()) == 2, vgpud.names()
    scripts.squeue_says(7, 9, 98)  # job 9 goes on without slurmd
    passes(scripts.run(*start))
    assert vgpud.names() == ["slurm-9-2"], vgpud.names()
    scripts.squeue_says()
    with step_of(scripts, 9):
        scripts.sweep(3)
        assert vgpud.names() == ["slurm-9-2"], "Slurm has forgotten it, and it runs"
    scripts.sweep()
    assert vgpud.names() == ["slurm-9-2"], "its program may be just about to begin"
    scripts.squeue_says(9)
    scripts.sweep()
    scripts.squeue_says()
    scripts.sweep()
    assert vgpud.names() == ["slurm-9-2"], "it was there in between"
    scripts.sweep()
    assert vgpud.names() == [] and scripts.files() == [], (vgpud.names(), scripts.files())
    for number in (0, 1):
        status = os.stat(os.path.join(scripts.directory, "dev", f"vf{number}"))
        assert stat.S_ISCHR(status.st_mode) and os.minor(status.st_rdev) == number, status


def late_ones_do_nothing(scripts, vgpud):
    """A prolog or epilog that slurmd left behind when it was killed belongs to a run of the job that is over, and runs on beside the next one."""
    room = {"SPANK_VGPU_VRAM": "64MiB"}
    passes(scripts.prolog(30, "0", **room))
    late = start_late(scripts, 30, "epilog")
    passes(scripts.epilog(30))
    passes(scripts.prolog(30, "0", **room))
    uuid = vgpud.show("slurm-30-0")["uuid"]
    said = passes(go_on(late))
    assert "began later: nothing is ended" in said and vgpud.show("slurm-30-0")["uuid"] == uuid, said
    passes(scripts.epilog(30))
    late = start_late(scripts, 30, "prolog", SLURM_JOB_GPUS="1", **room)
    passes(scripts.epilog(30))
    said = passes(go_on(late))
    assert "began later: nothing is made" in said and vgpud.names() == [], (said, vgpud.names())
    # Slurm has given the number to another job since.
    late = start_late(scripts, 30, "prolog", SLURM_JOB_GPUS="0,1", **room)
    passes(scripts.prolog(34, "1", **room))
    uuid = vgpud.show("slurm-34-1")["uuid"]
    said = passes(go_on(late))
    assert "began later: nothing is made" in said and vgpud.names() == ["slurm-34-1"] and vgpud.show("slurm-34-1")["uuid"] == uuid, said
    passes(scripts.epilog(34))
    passes(scripts.epilog(30))
    # The job was gone when sweep looked, and is there again when it acts.
    passes(scripts.prolog(30, "0", **room))
    before = scripts.last_run(30).removeprefix("made ")
    passes(scripts.epilog(30))
    passes(scripts.prolog(30, "0", **room))
    passes(scripts.run("epilog", SLURM_JOB_ID="30", VGPUD_SLURM_RUN=before))
    assert vgpud.names() == ["slurm-30-0"] and scripts.last_run(30).startswith("made "), (vgpud.names(), scripts.last_run(30))
    passes(scripts.run("epilog", SLURM_JOB_ID="30", VGPUD_SLURM_RUN=scripts.last_run(30).removeprefix("made ")))
    assert vgpud.names() == [] and scripts.files() == [], (vgpud.names(), scripts.files())


def forgotten_ones_run_on(scripts, vgpud):
    """A slurmctld that was killed gives the numbers of a job that it forgot to others, or starts it once more beside itself."""
    room = {"SPANK_VGPU_VRAM": "64MiB"}
    passes(scripts.prolog(31, "0,1", **room))
    uuid = vgpud.show("slurm-31-0")["uuid"]
    with step_of(scripts, 31) as step:
        passes(scripts.prolog(31, "0,1", **room))
        assert vgpud.show("slurm-31-0")["uuid"] == uuid, "its program keeps its VF"
        other = scripts.start("prolog", SLURM_JOB_ID="32", SLURM_JOB_UID=str(UID), SLURM_JOB_GPUS="1", settings="seconds_to_wait=120", **room)
        assert "waits for job 31, which Slurm has forgotten and which still has slurm-31-1" in other.stderr.readline()
        assert vgpud.names() == ["slurm-31-0", "slurm-31-1"], vgpud.names()
        step.kill()
        step.wait()
        passes(finish(other))
    assert scripts.last_run(31).startswith("lost ") and scripts.last_run(32).startswith("made "), "a step of 31 would have its prolog run"
    assert sorted(vgpud.names()) == ["slurm-31-0", "slurm-32-1"], vgpud.names()
    with step_of(scripts, 31):  # it does not end: the number is the other's all the same
        passes(scripts.prolog(33, "0", settings="seconds_to_wait=20", **room))
    assert sorted(vgpud.names()) == ["slurm-32-1", "slurm-33-0"], vgpud.names()
    for job in (31, 32, 33):
        passes(scripts.epilog(job))
    assert vgpud.names() == [] and scripts.files() == [], (vgpud.names(), scripts.files())


def accounts_are_kept(scripts, vgpud):
    """An account that Slurm does not take is not lost, and not counted twice."""
    account = "accounting=comment"
    scripts.install("sacct", "exit 1")
    passes(scripts.prolog(15, "0", SPANK_VGPU_VRAM="64MiB"))
    assert "sweep tries again" in passes(scripts.epilog(15, settings=account))
    assert vgpud.names() == [] and scripts.files() == ["15.telling"], (vgpud.names(), scripts.files())
    passes(scripts.prolog(15, "0", SPANK_VGPU_VRAM="64MiB"))
    with open(os.path.join(scripts.spool, "15.telling"), "a", encoding="utf-8") as file:
        file.write("of-an-earlier-run 1499600000\ncut-off")
    passes(scripts.epilog(15, settings=account))
    assert scripts.files() == ["15.ended", "15.telling"], "what may have been told already is not told with more in it"
    scripts.squeue_says(99)
    said = scripts.sweep(2)
    assert "its VFs had the GPU of n1 for 1.500 s" in said and scripts.files() == [], (said, scripts.files())


class Record:
    """What Slurm has of a job, of each run the comment: sacctmgr changes that of the last one."""

    def __init__(self, scripts):
        self.scripts, self.path = scripts, os.path.join(scripts.directory, "record")
        scripts.install("sacct", f"cat {self.path}")
        scripts.install("sacctmgr", f'for last; do :; done; sed -i "\\$s|.*|${{last#admincomment=}}|" {self.path}')

    def write(self, *comments):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("".join(f"{comment}\n" for comment in comments))

    def read(self):
        """The comments without the part that tells runs apart, which must not be there twice."""
        with open(self.path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        runs = re.findall(r"/([0-9a-f]{8})", " ".join(lines))
        assert len(runs) == len(set(runs)), lines
        return [re.sub(r"(?<=0\.000)/[0-9a-f]{8}\b", "", line) for line in lines]

    def check(self, comments, files):
        assert (self.read(), self.scripts.files()) == (comments, files), (comments, files, self.read(), self.scripts.files())


def accounts_are_looked_at_again(scripts, vgpud):
    """Another node of the job may have overwritten what was written."""
    record, account = Record(scripts), {"settings": "accounting=comment"}
    scripts.squeue_says()
    record.write("mine")
    passes(scripts.prolog(16, "0", SPANK_VGPU_VRAM="64MiB"))
    passes(scripts.epilog(16, **account))
    record.check(["mine vgpu_seconds:n1=0.000"], ["16.told"])
    record.write("mine vgpu_seconds:n2=0.000")
    passes(scripts.run("sweep", **account))
    passes(scripts.run("sweep", **account))
    record.check(["mine vgpu_seconds:n2=0.000 vgpu_seconds:n1=0.000"], ["16.told"])
    passes(scripts.run("sweep", **account))
    record.check(["mine vgpu_seconds:n2=0.000 vgpu_seconds:n1=0.000"], [])
    assert vgpud.names() == [], vgpud.names()


def accounts_of_runs(scripts, vgpud):
    """Runs of a job that was queued again: each is there once, also when they used as much, and an epilog that was cut off before it could
    forget what it told."""
    record, account = Record(scripts), {"settings": "accounting=comment"}
    record.write("")
    for comments in (["vgpu_seconds:n1=0.000"], ["vgpu_seconds:n1=0.000", "vgpu_seconds:n1=0.000"]):
        passes(scripts.prolog(18, "0", SPANK_VGPU_VRAM="64MiB"))
        uuid = vgpud.show("slurm-18-0")["uuid"]
        passes(scripts.epilog(18, **account))
        record.check(comments, ["18.told"])
        with open(os.path.join(scripts.spool, "18.telling"), "w", encoding="utf-8") as file:
            file.write(f"{uuid} 4000\n")
        passes(scripts.epilog(18, **account))
        record.check(comments, [])
        with open(record.path, "a", encoding="utf-8") as file:
            file.write("\n")  # queued again: a run without a comment


def ended_by_slurmd(scripts, vgpud):
    """A job is cancelled while its prolog runs: no reason to drain the node, and the epilog finds what there is."""
    scripts.install("slow", f"""case "$*" in *"create slurm-17-1"*) echo > {scripts.directory}/reached; exec sleep 600 ;; esac
exec {paths.VGPUCTL} "$@\"""")
    with open(scripts.settings, "w", encoding="utf-8") as file:
        file.write(f"VGPUCTL={scripts.programs}/slow\nspool={scripts.spool}\nseconds_to_wait=120\n{USUAL}\n")
    environment = {"PATH": "/usr/bin:/bin", "VGPUD_SLURM_ENV": scripts.settings, "VGPUD_RUNTIME_DIR": vgpud.runtime_dir, "SLURMD_NODENAME": "n1",
                   "SLURM_JOB_ID": "17", "SLURM_JOB_UID": str(UID), "SLURM_JOB_GPUS": "0,1", "SPANK_VGPU_VRAM": "64MiB"}
    prolog = subprocess.Popen([SCRIPTS / "prolog"], env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              process_group=0)
    while not os.path.exists(f"{scripts.directory}/reached"):
        assert prolog.poll() is None
        time.sleep(0.01)
    os.killpg(prolog.pid, signal.SIGTERM)
    assert prolog.wait(60) == 0 and scripts.files() == ["17.refused", "17.run"], (prolog.returncode, scripts.files())
    passes(scripts.epilog(17))
    assert vgpud.names() == [] and scripts.files() == [], (vgpud.names(), scripts.files())


def ends_slowly(scripts, vgpud):
    """A VF whose processes take their time is being destroyed already when the epilog asks again: it waits, and does not drain the node."""
    scripts.install("slow", f"""case "$*" in *destroy*) rm {scripts.directory}/ending 2>/dev/null && echo "being destroyed already" >&2 && exit 5 ;; esac
exec {paths.VGPUCTL} "$@\"""")
    slow = f"accounting=none\nVGPUCTL={scripts.programs}/slow\nseconds_to_wait=60"
    ending = os.path.join(scripts.directory, "ending")
    passes(scripts.prolog(27, "0", SPANK_VGPU_VRAM="64MiB"))
    with open(ending, "w", encoding="utf-8"):
        pass
    passes(scripts.epilog(27, settings=slow))
    assert vgpud.names() == [] and scripts.files() == [] and not os.path.exists(ending), (vgpud.names(), scripts.files())
    passes(scripts.prolog(28, "0", SPANK_VGPU_VRAM="64MiB"))
    scripts.install("slow", f"""case "$*" in *destroy*) exit 5 ;; esac
exec {paths.VGPUCTL} "$@\"""")
    stays = scripts.epilog(28, settings=slow.replace("60", "2"))
    assert stays.returncode == 1 and "could not be destroyed" in stays.stderr, stays
    passes(scripts.epilog(28))
    assert vgpud.names() == [] and scripts.files() == [], (vgpud.names(), scripts.files())


def numbers_of_slurmctld(scripts, vgpud):
    """A slurmctld that has just started names no VFs to prologs, only to tasks: then it is asked."""
    scripts.install("scontrol", """
[ "$1 $2 $3" = "-d show job" ] || { [ "$1 $2" = "show hostnames" ] && echo "$3" | sed 's/n\\[1,4\\]/n1 n4/' | tr ' ' '\\n'; exit; }
[ "$4" != 20 ] || exec cat <<END
JobId=20 JobName=x
   JOB_GRES=gpu:vgpud:5
     Nodes=n[1,4] CPU_IDs=0-1 Mem=0 GRES=gpu:vgpud:2(IDX:1,3)
     Nodes=n2 CPU_IDs=0-1 Mem=0 GRES=gpu:vgpud:1(IDX:0)
   MinCPUsNode=2
END
[ "$4" != 21 ] || { echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1; }
[ "$4" != 22 ] || { rm __DIR__/away 2>/dev/null && exit 1; exec echo "     Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:vgpud:1(IDX:2)"; }
[ "$4" != 24 ] || { rm __DIR__/away 2>/dev/null && exec echo "   JobState=PENDING"; exec echo "     Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:other:1(IDX:0),gpu:vgpud:1(IDX:3)"; }
[ "$4" != 25 ] || exec echo "   JobState=PENDING"
[ "$4" != 13 ] || exec echo "     Nodes=n1 CPU_IDs=0-1 Mem=0 GRES="
echo "slurm_load_jobs error: Invalid job id specified" >&2
exit 1""".replace("__DIR__", scripts.directory))
    passes(scripts.prolog(20, "", SPANK_VGPU_VRAM="64MiB"))
    assert vgpud.names() == ["slurm-20-1", "slurm-20-3"], vgpud.names()
    passes(scripts.epilog(20))
    assert passes(scripts.prolog(13, "")) == "", "a job without VFs"
    for job in (21, 23):  # it is away, it has no such job
        assert "slurmctld can't be asked" in passes(scripts.prolog(job, "", settings="seconds_to_wait=2")), job
    assert scripts.last_run(13).startswith("made ")
    for job, vf in ((22, "slurm-22-2"), (24, "slurm-24-3")):
        with open(os.path.join(scripts.directory, "away"), "w", encoding="utf-8"):
            pass
        passes(scripts.prolog(job, "", SPANK_VGPU_VRAM="64MiB"))
        assert vgpud.names() == [vf], "it was away for a moment, or had forgotten the job"
        passes(scripts.epilog(job))
    passes(scripts.prolog(25, "", settings="seconds_to_wait=2"))
    assert vgpud.names() == [] and scripts.last_run(25).startswith("began "), "a step would have its prolog run"
    for job in (13, 21, 23, 25):
        passes(scripts.epilog(job))
    assert scripts.files() == [], scripts.files()


def without_vgpud(_scripts, _vgpud):
    with tempfile.TemporaryDirectory() as directory:
        class Nowhere:
            runtime_dir = os.path.join(directory, "nowhere")
        fails_without_vgpud(Scripts(Nowhere, directory))


def fails_without_vgpud(scripts):
    impatient = {"settings": "seconds_to_wait=1"}
    refused(scripts.prolog(14, "0", **impatient), "could not be asked")
    assert "nothing to end" in passes(scripts.epilog(14, **impatient))
    refused(scripts.run("node-start", "1", os.path.join(scripts.directory, "dev"), **impatient), "start it before slurmd")


def gres_conf(_scripts, vgpud):
    said = subprocess.run([paths.VGPUCTL, "--runtime-dir", vgpud.runtime_dir, "slurm", "gres.conf", "--profile", "1/2"],
                          capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.splitlines()[1:] == ["AutoDetect=off", "Name=gpu Type=vgpud File=/run/vgpud-slurm/vf[0-1]"], said
    assert json.loads(json.dumps(vgpud.ctl("slurm", "gres.conf"))) == {"name": "gpu", "type": "vgpud", "count": 1}
    # The host memory that goes with this VRAM is enough for one.
    for limit, count in (("vram=256MiB", 1), ("vfs=3", 3), ("host_memory=320MiB", 1), ("weight=1000", 4)):
        with daemon.private_daemon((), ["--soft-gpu-vram", "512MiB", f"--tenant=slurm.{limit}"]) as other:
            assert other.ctl("slurm", "gres.conf", "--profile", "1/4")["count"] == count, "as many as jobs may have"
    no_such = subprocess.run([paths.VGPUCTL, "--runtime-dir", vgpud.runtime_dir, "slurm", "gres.conf", "--profile", "1/3"],
                             capture_output=True, text=True, timeout=60)
    assert no_such.returncode == 4 and "vgpuctl profiles" in no_such.stderr, no_such


status = run([comes_and_goes, left_overs_go, late_ones_do_nothing, forgotten_ones_run_on, accounts_are_kept, accounts_are_looked_at_again,
              accounts_of_runs, ended_by_slurmd, ends_slowly, numbers_of_slurmctld, gres_conf, without_vgpud])
print("slurm scripts: done")
sys.exit(status)
