#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prolog, epilog and node-start of integrations/slurm as Slurm calls them, without Slurm: a real vgpud, and the variables that Slurm sets.
Needs PYTHONPATH=tools/lib."""
import json
import os
import stat
import subprocess
import sys
import tempfile

from vgpuguest import daemon, paths

SCRIPTS = paths.REPO / "integrations" / "slurm"
UID = 65534


class Scripts:
    def __init__(self, vgpud, directory):
        self.vgpud, self.directory = vgpud, directory
        self.settings = os.path.join(directory, "slurm.env")

    def run(self, name, *arguments, settings="accounting=none", **variables):
        with open(self.settings, "w", encoding="utf-8") as file:
            file.write(f"VGPUCTL='{paths.VGPUCTL}'\n{settings}\n")
        environment = {"VGPUD_SLURM_ENV": self.settings, "VGPUD_RUNTIME_DIR": self.vgpud.runtime_dir, "SLURMD_NODENAME": "n1", **variables}
        return subprocess.run([SCRIPTS / name, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60)

    def prolog(self, job, gpus, **more):
        return self.run("prolog", SLURM_JOB_ID=str(job), SLURM_JOB_UID=str(UID), SLURM_JOB_GPUS=gpus, **more)

    def epilog(self, job, **more):
        return self.run("epilog", SLURM_JOB_ID=str(job), SLURM_JOB_UID=str(UID), **more)


def passes(done):
    assert done.returncode == 0 and done.stdout == "", done
    return done.stderr


def refused(done, reason):
    assert done.returncode != 0 and reason in done.stderr, (reason, done)


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
    assert "its 2 VFs had the GPU of n1 for 0.000 s" in said, said
    assert passes(scripts.epilog(7)) == "", "the second time there is nothing to say"
    assert vgpud.names() == ["other"], vgpud.names()
    vgpud.destroy("other")


def left_overs_go(scripts, vgpud):
    """A number that Slurm gives to a job is nobody else's: after a crash of the node an epilog has not run."""
    passes(scripts.prolog(8, "1,2", SPANK_VGPU_VRAM="64MiB"))
    passes(scripts.prolog(9, "2", SPANK_VGPU_VRAM="64MiB"))
    assert vgpud.names() == ["slurm-8-1", "slurm-9-2"], vgpud.names()
    passes(scripts.run("node-start", "2", os.path.join(scripts.directory, "dev")))
    assert vgpud.names() == [], vgpud.names()
    for number in (0, 1):
        status = os.stat(os.path.join(scripts.directory, "dev", f"vf{number}"))
        assert stat.S_ISCHR(status.st_mode) and os.minor(status.st_rdev) == number, status


def wrong_wishes(scripts, vgpud):
    """All of these can come from a user. Nothing is made of them, and nothing of them is run."""
    mark = os.path.join(scripts.directory, "mark")
    for variables, reason in (
            ({"SPANK_VGPU_WEIGHT": "many"}, "none of 1 to 10000"),
            ({"SPANK_VGPU_WEIGHT": "999999999999999999999"}, "none of 1 to 10000"),
            ({"SPANK_VGPU_WEIGHT": "0"}, "could not be made"),
            ({"SPANK_VGPU_WEIGHT": f"$(touch {mark})"}, "no value"),
            ({"SPANK_VGPU_PROFILE": f"x`touch {mark}`"}, "no value"),
            ({"SPANK_VGPU_PROFILE": "--dry-run"}, "no value"),
            ({"SPANK_VGPU_PROFILE": "1/9"}, "could not be made"),
            ({"SPANK_VGPU_VRAM": "1 GiB; touch " + mark}, "no value"),
            ({"SPANK_VGPU_SLICE": "5\nms"}, "no value"),
            ({"SPANK_VGPU_SLICE": "5y"}, "could not be made")):
        refused(scripts.prolog(11, "0,1", **variables), reason)
        assert vgpud.names() == [] and not os.path.exists(mark), (variables, vgpud.names())
    refused(scripts.prolog("11 12", "0"), "no job number")
    refused(scripts.prolog(11, "0,x", SPANK_VGPU_VRAM="64MiB"), "no job number")
    assert vgpud.names() == [], "what was made before is ended"
    said = passes(scripts.prolog(11, "0", settings="max_weight=250", SPANK_VGPU_WEIGHT="9000", SPANK_VGPU_VRAM="64MiB"))
    assert "has the weight 250" in said and vgpud.show("slurm-11-0")["weight"] == 250, said
    # The second of two does not fit any more: the first is not left behind.
    refused(scripts.prolog(12, "1,2", SPANK_VGPU_PROFILE="1/2"), "slurm-12-2 could not be made")
    assert vgpud.names() == ["slurm-11-0"], vgpud.names()
    passes(scripts.epilog(11))


def without_gpus(scripts, vgpud):
    passes(scripts.prolog(13, ""))
    assert vgpud.names() == []


def without_vgpud(directory):
    class Nowhere:
        runtime_dir = os.path.join(directory, "nowhere")
    scripts = Scripts(Nowhere, directory)
    impatient = {"settings": "seconds_to_wait=1"}
    refused(scripts.prolog(14, "0", **impatient), "could not be asked")
    assert "nothing to end" in passes(scripts.epilog(14, **impatient))
    refused(scripts.run("node-start", "1", os.path.join(directory, "dev"), **impatient), "start it before slurmd")


def gres_conf(vgpud):
    said = subprocess.run([paths.VGPUCTL, "--runtime-dir", vgpud.runtime_dir, "slurm", "gres.conf", "--profile", "1/2"],
                          capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.splitlines()[1:] == ["AutoDetect=off", "Name=gpu Type=vgpud File=/run/vgpud-slurm/vf[0-1]"], said
    assert json.loads(json.dumps(vgpud.ctl("slurm", "gres.conf"))) == {"name": "gpu", "type": "vgpud", "count": 1}
    no_such = subprocess.run([paths.VGPUCTL, "--runtime-dir", vgpud.runtime_dir, "slurm", "gres.conf", "--profile", "1/3"],
                             capture_output=True, text=True, timeout=60)
    assert no_such.returncode == 4 and "vgpuctl profiles" in no_such.stderr, no_such


def main():
    if os.geteuid() != 0:
        print("slurmd runs prologs as root, and this is not root")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        config = os.path.join(directory, "vgpud.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write('[gpu]\nsoft_gpu_vram = "512MiB"\n')
        with daemon.private_daemon((), ["--config", config]) as vgpud:
            scripts = Scripts(vgpud, directory)
            comes_and_goes(scripts, vgpud)
            left_overs_go(scripts, vgpud)
            wrong_wishes(scripts, vgpud)
            without_gpus(scripts, vgpud)
            gres_conf(vgpud)
        without_vgpud(directory)
    print("slurm scripts: ok")
    return 0


sys.exit(main())
