# SPDX-License-Identifier: Apache-2.0
"""Attacks of those who ask for VFs: users of a tenant, with vgpuctl, and jobs of Slurm, with the options that they can give. Whatever is made
although it is more than a limit says is an attack that was not stopped."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from bed import NotHere
from vgpuguest import paths

TENANT_USER = 61235
JOB_USER = 61236
_SCRIPTS = paths.REPO / "integrations" / "slurm"
_OTHER = 4242  # a job that is over
_JOB = 4243
_SMALL = ("--vram", "16MiB", "--host-memory", "16MiB")
# Of vgpud, for the attacks here.
ARGUMENTS = ("--tenant=theirs.vfs=2", "--tenant=theirs.vram=64MiB", "--tenant=theirs.weight=300", "--tenant=theirs.priority=1",
             "--tenant=theirs.guarantee_each=none", f"--user={TENANT_USER}.may=manage", f"--user={TENANT_USER}.tenant=theirs",
             "--profile=heavy.vram=16MiB", "--profile=heavy.weight=10000", "--profile=first.vram=16MiB", "--profile=first.priority=3",
             "--profile=stuffed.vram=16MiB", "--profile=stuffed.host_memory=1TiB", "--profile=quarter.vram=32MiB")


def _needs_root():
    if os.geteuid() != 0:
        raise NotHere("being somebody else, or slurmd, needs root")


# ---- a user of a tenant ----

def _ask(bed, *words):
    """vgpuctl's exit status."""
    return subprocess.run([paths.VGPUCTL, "--runtime-dir", bed.vgpud.runtime_dir, "--timeout", "10", *words], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60, check=False, user=TENANT_USER, group=TENANT_USER, extra_groups=[]).returncode


@contextlib.contextmanager
def _own_vf(bed):
    """As the tenant's user, who has one VF."""
    _needs_root()
    os.chmod(bed.vgpud.runtime_dir, 0o755)
    os.chmod(os.path.join(bed.vgpud.runtime_dir, "control.sock"), 0o666)
    assert _ask(bed, "create", "own", *_SMALL) == 0, "what the tenant may have"
    try:
        yield
    finally:
        for name in bed.vgpud.names():
            if name.startswith("own"):
                bed.vgpud.destroy(name)


def _not_at(doors, *wish):
    """Asks for it at each of the doors; none may be open."""
    words = {"create": ("create", "own-2"), "set": ("set", "own"), "apply": ("apply",)}

    def attack(bed, _end):
        with _own_vf(bed):
            for door in doors:
                given = ("own:" + ",".join(f"{wish[at][2:]}={wish[at + 1]}" for at in range(0, len(wish), 2)),) if door == "apply" else wish
                small = _SMALL if door == "create" and wish[0] in ("--slice", "--weight", "--priority", "--group") else ()
                for how in ((), ("--dry-run",), ("--queue",)) if door == "create" else ((), ("--dry-run",)):
                    assert _ask(bed, *words[door], *small, *given, *how) != 0, f"{door} {given} {how}: ALLOWED"
    return attack


def too_many(bed, _end):
    with _own_vf(bed):
        made = sum(_ask(bed, "create", f"own-{number}", *_SMALL) == 0 for number in range(8))
        assert made == 1, f"{made} more VFs: ALLOWED"


_ALL = ("create", "set", "apply")


# ---- a job ----

@contextlib.contextmanager
def _node(bed, settings):
    """prolog(job, **wishes) as slurmd runs it on a node: why the job was refused, or nothing."""
    _needs_root()
    with tempfile.TemporaryDirectory() as directory:
        config, spool = pathlib.Path(directory, "slurm.env"), pathlib.Path(directory, "spool")
        config.write_text(f"VGPUCTL='{paths.VGPUCTL}'\nspool='{spool}'\naccounting=none\n{settings}\n")

        def run(script, job, **more):
            return subprocess.run([_SCRIPTS / script], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False, env={
                "PATH": "/usr/bin:/bin", "VGPUD_SLURM_ENV": str(config), "VGPUD_RUNTIME_DIR": bed.vgpud.runtime_dir, "SLURMD_NODENAME": "n1",
                "SLURM_JOB_ID": str(job), "SLURM_JOB_UID": str(JOB_USER), "SLURM_JOB_GPUS": "0", **more})

        def prolog(job, **wishes):
            done = run("prolog", job, **{f"SPANK_VGPU_{key.upper()}": value for key, value in wishes.items()})
            assert done.returncode == 0, f"the node is drained: {done.stderr}"
            assert "waits for job" not in done.stderr, f"somebody is waited for: {done.stderr}"
            refused = spool / f"{job}.refused"
            return refused.read_text() if refused.exists() else ""
        try:
            yield prolog
        finally:
            for job in (_OTHER, _JOB):
                run("epilog", job)


def _refused(settings, **wish):
    def attack(bed, _end):
        with _node(bed, settings) as prolog:
            why = prolog(_JOB, **wish)
            assert why and f"slurm-{_JOB}-0" not in bed.vgpud.names(), f"{wish} with {settings or 'nothing set'!r}: ALLOWED"
    return attack


def heavy_weight(bed, _end):
    with _node(bed, "") as prolog:
        prolog(_JOB, weight="10000")
        weight = bed.vgpud.show(f"slurm-{_JOB}-0")["weight"]
        assert weight <= 1000, f"weight {weight}: ALLOWED"


def beyond_tenant(bed, _end):
    """A site that allows its jobs everything but what their tenant may not have."""
    for wish in ({"slice": "1s"}, {"profile": "heavy"}, {"profile": "first"}, {"profile": "stuffed"}, {"weight": "301"}):
        _refused("tenant=theirs\ndefault_profile=quarter\nprofiles='quarter heavy first stuffed'\nmax_weight=10000\nmax_slice_us=1000000",
                 **wish)(bed, _end)


def fake_slurmstepd(bed, _end):
    """A user's process has the name of the step of a job that is over; the next job would wait for it, or lose its number."""
    with _node(bed, "default_profile=quarter\nseconds_to_wait=60") as prolog, tempfile.TemporaryDirectory() as public:
        os.chmod(public, 0o755)
        copy = shutil.copy2("/usr/bin/sleep", os.path.join(public, "slurmstepd"))
        for program in ("/usr/bin/sleep", copy):
            prolog(_OTHER)
            fake = subprocess.Popen([f"slurmstepd: [{_OTHER}.batch]", "600"], executable=program, user=JOB_USER)
            try:
                prolog(_JOB)
                seen = bed.vgpud.names()
                assert f"slurm-{_JOB}-0" in seen and f"slurm-{_OTHER}-0" not in seen and fake.poll() is None, f"{seen}"
            finally:
                fake.kill()
                fake.wait()


ATTACKS = [
    ("tenant.host-memory", "a terabyte of host memory, by option and by profile", "a quota that goes with VRAM",
     _not_at(("create",), "--vram", "16MiB", "--host-memory", "1TiB"), {}),
    ("tenant.host-memory-profile", "a profile with a terabyte of host memory", "the quota counts the VF that results",
     _not_at(("create",), "--profile", "stuffed"), {}),
    ("tenant.vram", "more VRAM than the tenant has", "its quota", _not_at(("create",), "--vram", "65MiB"), {}),
    ("tenant.vfs", "more VFs than the tenant has", "its quota", too_many, {}),
    ("tenant.slice", "a slice of a second", "no slices where weights are limited", _not_at(_ALL, "--slice", "1s"), {}),
    ("tenant.group", "a group, whose turn is its own", "no groups where weights are limited", _not_at(_ALL, "--group", "0"), {}),
    ("tenant.weight", "more weight than the tenant has", "its quota", _not_at(_ALL, "--weight", "301"), {}),
    ("tenant.priority", "a class before all others", "its quota", _not_at(_ALL, "--priority", "3"), {}),
    ("tenant.profile", "a profile of the administrator's with weight 10000", "the quota counts the VF that results",
     _not_at(("create",), "--profile", "heavy"), {}),
    ("job.slice", "--vgpu-slice=1s on a node as shipped", "jobs may ask for no slice", _refused("", slice="1s"), {}),
    ("job.profile", "--vgpu-profile of a profile for others", "the list of profiles for jobs", _refused("default_profile=quarter", profile="heavy"), {}),
    ("job.profile-unset", "--vgpu-profile on a node as shipped", "the list of profiles for jobs, which is empty", _refused("", profile="first"), {}),
    ("job.vram", "--vgpu-vram on a node as shipped", "no memory without default_profile", _refused("", vram="900MiB"), {}),
    ("job.vram-more", "--vgpu-vram of more than the default profile has", "the VF that results is looked at",
     _refused("default_profile=quarter", vram="33MiB"), {}),
    ("job.weight", "--vgpu-weight=10000", "max_weight", heavy_weight, {}),
    ("job.tenant", "whatever the site's script allows and the tenant of jobs does not", "vgpud, for the tenant of jobs", beyond_tenant, {}),
    ("job.fake-slurmstepd", "a process with the name of another job's step", "only root's slurmstepd is believed", fake_slurmstepd, {}),
]
