#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What jobs of Slurm may ask for, and what comes of it: a real vgpud, and the variables that Slurm sets. Needs PYTHONPATH=tools/lib."""
import os
import subprocess
import sys
import tempfile

from scripts import TENANT_UID, UID, passes, process_called, refused, slurmstepd_in, run
from vgpuguest import paths
from vgpuguest.paths import ToolError


def wrong_wishes(scripts, vgpud):
    """All of these can come from a user. Nothing is made of them, nothing of them is run, and the node is not drained for them: the job's
    tasks will be told."""
    mark = os.path.join(scripts.directory, "mark")
    reasons = os.path.join(scripts.spool, "11.refused")
    for variables, reason in (
            ({"SPANK_VGPU_WEIGHT": "many"}, "none of 1 to 10000"),
            ({"SPANK_VGPU_WEIGHT": "999999999999999999999"}, "none of 1 to 10000"),
            ({"SPANK_VGPU_WEIGHT": "0"}, "weight"),
            ({"SPANK_VGPU_WEIGHT": f"$(touch {mark})"}, "--vgpu-weight"),
            ({"SPANK_VGPU_PROFILE": f"x`touch {mark}`"}, "--vgpu-profile"),
            ({"SPANK_VGPU_PROFILE": "--dry-run"}, "--vgpu-profile"),
            ({"SPANK_VGPU_PROFILE": "1/9"}, "1/9"),
            ({"SPANK_VGPU_PROFILE": "1/1", "settings": "default_profile=1/2\nprofiles='1/1 1/2'"}, "may have the memory of profile 1/2"),
            ({"SPANK_VGPU_VRAM": "257MiB", "settings": "default_profile=1/2"}, "may have the memory of profile 1/2"),
            ({"SPANK_VGPU_VRAM": "1 GiB; touch " + mark}, "--vgpu-vram"),
            ({"SPANK_VGPU_SLICE": "5\nms"}, "--vgpu-slice"),
            ({"SPANK_VGPU_SLICE": "5y"}, "5y"),
            # The second of two does not fit any more: the first is not left behind.
            ({"SPANK_VGPU_VRAM": "300MiB"}, "tenant slurm may have 512MiB vram together")):
        said = passes(scripts.prolog(11, "0,1", **variables))
        with open(reasons, encoding="utf-8") as file:
            written = file.read()
        assert reason in written and reason in said and written.count("\n") == 1, (reason, written, said)
        assert vgpud.names() == [] and not os.path.exists(mark), (variables, vgpud.names())
    # What is wrong with the node is not the job's fault.
    refused(scripts.prolog(11, "0", settings="default_profile=1/3"), "no profile 1/3")
    refused(scripts.prolog(12, "1,2", settings="default_profile=1/1"), "slurm-12-2 could not be made")
    refused(scripts.prolog("11 12", "0"), "no job number")
    refused(scripts.prolog(11, "0,x", SPANK_VGPU_VRAM="64MiB"), "no numbers of VFs")
    assert vgpud.names() == [], "what was made before is ended"
    said = passes(scripts.prolog(11, "0", settings="max_weight=250", SPANK_VGPU_WEIGHT="9000", SPANK_VGPU_VRAM="64MiB"))
    assert "has the weight 250" in said and vgpud.show("slurm-11-0")["weight"] == 250, said
    assert not os.path.exists(reasons), "a job that was refused and now is not"
    passes(scripts.epilog(11))
    passes(scripts.epilog(12))
    assert vgpud.names() == [] and scripts.files() == [], (vgpud.names(), scripts.files())


def safe_as_shipped(scripts, vgpud):
    """What a job may wish where a site has said little, or nothing. The node is not drained for a wish."""
    nothing, quarter = "default_profile=\nmax_slice_us=", "default_profile=1/4\nmax_slice_us="
    most = quarter + "\nmax_slice_us=4000\nmax_weight=300\nprofiles='1/4 1/8 heavy'"
    for settings, wish, reason in (
            (nothing, {"SLICE": "1s"}, "--vgpu-slice is not for jobs here"),
            (nothing, {"VRAM": "1MiB"}, "--vgpu-vram is not for jobs here"),
            (nothing, {"PROFILE": "1/8"}, "--vgpu-profile '1/8' is not for jobs here"),
            (quarter, {"SLICE": "100us"}, "--vgpu-slice is not for jobs here"),
            (quarter, {"PROFILE": "1/8"}, "allows 1/4"),
            (quarter, {"PROFILE": "heavy"}, "allows 1/4"),
            (quarter, {"PROFILE": "1"}, "is not for jobs here"),
            (quarter, {"PROFILE": "."}, "is not for jobs here"),
            (quarter, {"VRAM": "129MiB"}, "may have the memory of profile 1/4"),
            (most, {"SLICE": "4001us"}, "max_slice_us"),
            (most, {"PROFILE": "heavy"}, "max_weight"),
            (most, {"PROFILE": "1/8", "VRAM": "200MiB"}, "may have the memory of profile 1/4"),
            (most, {"PROFILE": "1/2"}, "allows 1/4 1/8 heavy")):
        said = passes(scripts.prolog(40, "0", settings=settings, **{f"SPANK_VGPU_{key}": value for key, value in wish.items()}))
        with open(os.path.join(scripts.spool, "40.refused"), encoding="utf-8") as file:
            assert reason in file.read() and reason in said, (settings, wish, reason, said)
        assert vgpud.names() == [], (wish, vgpud.names())
    for settings, wish, gets in (
            (quarter, {"WEIGHT": "9000"}, ("weight", 1000)),
            (quarter, {"PROFILE": "1/4"}, ("vram_bytes", 128 << 20)),
            (quarter, {"VRAM": "64MiB"}, ("vram_bytes", 64 << 20)),
            (most, {"SLICE": "4ms"}, ("slice_us", 4000)),
            (most, {"PROFILE": "heavy", "WEIGHT": "9000"}, ("weight", 300))):
        passes(scripts.prolog(40, "0", settings=settings, **{f"SPANK_VGPU_{key}": value for key, value in wish.items()}))
        assert vgpud.show("slurm-40-0")[gets[0]] == gets[1], (settings, wish, vgpud.show("slurm-40-0"))
        passes(scripts.epilog(40))


def jobs_are_a_tenant(scripts, vgpud):
    """vgpud itself refuses what is more than its tenant of jobs may have, whatever the scripts allow."""
    tenant = "tenant=jobs\ndefault_profile=1/4\nmax_slice_us=1000000\nmax_weight=10000\nprofiles='1/1 1/4 heavy'"
    passes(scripts.prolog(41, "0", settings=tenant, SPANK_VGPU_PROFILE="1/4"))
    assert vgpud.show("slurm-41-0")["tenant"] == "jobs", vgpud.show("slurm-41-0")
    for wish, reason in (({"SLICE": "1ms"}, "slice_us is not for VFs of tenant jobs"), ({"WEIGHT": "401"}, "weight_each"),
                         ({"PROFILE": "heavy"}, "weight_each"), ({"PROFILE": "1/4", "VRAM": "129MiB"}, "vram_each")):
        said = passes(scripts.prolog(42, "1", settings=tenant, **{f"SPANK_VGPU_{key}": value for key, value in wish.items()}))
        assert reason in said and vgpud.names() == ["slurm-41-0"], (wish, said, vgpud.names())
    passes(scripts.epilog(41))
    passes(scripts.epilog(42))
    refused(scripts.prolog(43, "0", settings="tenant=nobodys"), 'no tenant "nobodys"')
    passes(scripts.epilog(43))
    assert vgpud.names() == [], vgpud.names()


def names_prove_nothing(scripts, vgpud):
    """Anybody may call a process like Slurm's: no job waits for it, and no VF stays for it."""
    with tempfile.TemporaryDirectory() as public:
        os.chmod(public, 0o755)
        for user, program in ((UID, "/usr/bin/sleep"), (UID, slurmstepd_in(public)), (None, "/usr/bin/sleep")):
            passes(scripts.prolog(44, "0", SPANK_VGPU_VRAM="64MiB"))
            with process_called(44, program, user):
                said = passes(scripts.prolog(45, "0", settings="seconds_to_wait=120", SPANK_VGPU_VRAM="64MiB"))
            assert "waits for job" not in said and vgpud.names() == ["slurm-45-0"], (user, program, said, vgpud.names())
            passes(scripts.epilog(44))
            passes(scripts.epilog(45))


def bounded_without_being_configured(scripts, vgpud):
    """Whatever the scripts let through, vgpud makes no VF of a job that is more than jobs may have, though nothing of its configuration says so."""
    generous = "default_profile=1/4\nmax_slice_us=100000000\nmax_weight=10000\nprofiles='1/1 1/4 night first hungry'"
    for wish, reason in (({"SLICE": "21ms"}, "slice_us 21ms is more than VFs of tenant slurm may have, 20ms each"),
                         ({"WEIGHT": "1001"}, "weight 1001 is more than VFs of tenant slurm may have, 1000 each"),
                         ({"PROFILE": "night"}, "weight 5000 is more than VFs of tenant slurm may have"),
                         ({"PROFILE": "first"}, "priority 3 is more than VFs of tenant slurm may have, 1 each"),
                         ({"PROFILE": "hungry"}, "host_memory together")):
        said = passes(scripts.prolog(46, "0", settings=generous, **{f"SPANK_VGPU_{key}": value for key, value in wish.items()}))
        assert reason in said and vgpud.names() == [], (wish, said, vgpud.names())
    passes(scripts.prolog(46, "0", settings=generous, SPANK_VGPU_SLICE="20ms", SPANK_VGPU_WEIGHT="1000"))
    assert vgpud.show("slurm-46-0")["tenant"] == "slurm", vgpud.show("slurm-46-0")
    (row,) = (row for row in vgpud.request("GET", "/v1/tenants")["tenants"] if row["name"] == "slurm")
    together = set(row) - {"name", "quota", "share"}
    assert len(together) >= 11 and together <= set(row["quota"]), (together, row["quota"])
    # Set from outside, too, until the configuration says more.
    for change in (("--weight", "1001"), ("--slice", "21ms"), ("--priority", "2")):
        assert as_user(vgpud, None, "set", "slurm-46-0", *change)[0] == 5, change
    passes(scripts.epilog(46))


def as_user(vgpud, user, *words):
    """(exit status, standard error) of vgpuctl, run by that user, or by root."""
    who = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
    done = subprocess.run([paths.VGPUCTL, "--runtime-dir", vgpud.runtime_dir, *words], capture_output=True, text=True, timeout=60, **who)
    return done.returncode, done.stderr


def names_are_the_doors_own(scripts, vgpud):
    """No user of a tenant can have the name that a job's VF will have, or what a job has; who could all the same is in nobody's way."""
    os.chmod(vgpud.runtime_dir, 0o755)
    os.chmod(os.path.join(vgpud.runtime_dir, "control.sock"), 0o666)
    assert as_user(vgpud, TENANT_UID, "create", "mine", "--vram", "16MiB")[0] == 0, "a name of his own"
    for name, whose in (("slurm-50-0", "jobs of Slurm"), ("slurm-x", "jobs of Slurm"), ("k8s-quarter-0", "Kubernetes")):
        for words in (("create", name, "--vram", "16MiB"), ("create", name, "--vram", "16MiB", "--queue"), ("create", name, "--tenant", "jobs")):
            status, said = as_user(vgpud, TENANT_UID, *words)
            assert status == 5 and f"are for {whose}" in said, (words, status, said)
    status, said = as_user(vgpud, TENANT_UID, "create", "other", "--tenant", "slurm")
    assert status == 5 and "but those of tenant jobs" in said, said
    passes(scripts.prolog(50, "0", SPANK_VGPU_VRAM="64MiB"))
    for words in (("destroy", "slurm-50-0"), ("set", "slurm-50-0", "--weight", "1"), ("pause", "slurm-50-0"), ("reset", "slurm-50-0")):
        assert as_user(vgpud, TENANT_UID, *words)[0] == 5, words
    domain = {"domain": "guest-a", "domain_uuid": "43979400-ac7a-42f1-b64e-09e640ed9d0d"}
    try:
        vgpud.request("POST", "/v1/vfs/slurm-50-0/domain", domain)
        raise AssertionError("a domain has a job's VF")
    except ToolError as refusal:
        assert "can't be a domain's" in str(refusal), refusal
    # One that root made by hand has limits as the job's would have, and is not the job's.
    assert as_user(vgpud, None, "create", "slurm-51-1", "--vram", "16MiB", "--weight", "2000")[0] == 5
    assert as_user(vgpud, None, "create", "slurm-51-1", "--vram", "16MiB")[0] == 0
    uuid = vgpud.show("slurm-51-1")["uuid"]
    passes(scripts.prolog(51, "1", SPANK_VGPU_VRAM="64MiB"))
    made = vgpud.show("slurm-51-1")
    assert made["uuid"] != uuid and made["vram_bytes"] == 64 << 20, made
    passes(scripts.epilog(50))
    passes(scripts.epilog(51))
    assert vgpud.names() == ["mine"], vgpud.names()
    vgpud.destroy("mine")


status = run([wrong_wishes, safe_as_shipped, jobs_are_a_tenant, bounded_without_being_configured, names_prove_nothing, names_are_the_doors_own])
print("wishes of jobs: done")
sys.exit(status)
