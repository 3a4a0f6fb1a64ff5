#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu-sim fleet as people call it: a table, JSON, a trace, what is refused.

usage: cli_test.py VGPU_SIM
"""
import json
import pathlib
import subprocess
import sys
import tempfile

HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
POLICIES = ["whole", "pack", "spread", "quota", "night"]


def run(*args):
    return subprocess.run([sys.argv[1], "fleet", *map(str, args)], capture_output=True, text=True, timeout=60)


def test_table_has_a_row_per_policy():
    result = run("--jobs", 2000, "--gpus", 40)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    rows = [line.split()[:2] for line in result.stdout.splitlines()[1:]]
    assert rows == [[engine, policy] for engine in ("slurm", "kubernetes") for policy in POLICIES], rows


def test_json_is_the_same_for_the_same_seed_only():
    first, again, other = (run("--jobs", 2000, "--gpus", 40, "--json", "--seed", seed).stdout for seed in (1, 1, 2))
    assert first == again != other
    answer = json.loads(first)
    assert [row["policy"] for row in answer["policies"]] == POLICIES * 2
    for row in answer["policies"]:
        assert row["jobs"] + row["refused"] == 2000, row
        assert 0 < row["used"] <= row["held"] <= 1 and 0 < row["hours_per_day"] <= 24, row
        assert row["wait_p50_s"] <= row["wait_p95_s"] <= row["wait_p99_s"] <= row["wait_max_s"], row


def test_a_thousand_gpus_and_a_hundred_thousand_jobs():
    result = run("--jobs", 100000, "--gpus", 1000, "--json")
    whole, pack = json.loads(result.stdout)["policies"][:2]
    assert whole["jobs"] == pack["jobs"] == 100000
    assert pack["jobs_per_day"] > whole["jobs_per_day"] and pack["used"] > whole["used"]


def test_a_trace_is_played(folder):
    trace = folder / "trace.csv"
    trace.write_text(HEAD + "a,1,1,1,500,,LS,Running,0,100,0\nb,1,1,1,500,,BE,Running,0,100,0\n"
                     "c,1,1,16,1000,,LS,Running,0,100,0\nd,1,1,0,0,,LS,Running,0,100,0\n")
    result = run("--trace", trace, "--gpus", 8, "--engine", "slurm", "--policy", "pack", "--json")
    assert result.returncode == 0, result.stderr
    (row,) = json.loads(result.stdout)["policies"]
    assert (row["jobs"], row["refused"], row["held"]) == (2, 1, 0.125), row
    assert "slurm pack: refused: c of LS: asks for 16 GPUs of one host, the largest has 8" in result.stderr
    assert "left out: 1 lines without a GPU, 0 that never started" in result.stderr


def test_wrong_use_is_said_and_exit_code_2(folder):
    wrong = folder / "wrong.csv"
    wrong.write_text(HEAD + "a,1,1,many,500,,LS,Running,0,100,0\n")
    for args, says in (
        ((), "--trace FILE or --jobs N"),
        (("--trace", wrong), f"{wrong}:2:7: num_gpu must be a whole number"),
        (("--trace", folder / "none.csv"), "none.csv"),
        (("--trace", wrong, "--jobs", 1), "--trace"),
        (("--trace", wrong, "--seed", 1), "--jobs"),
        (("--jobs", 0), "--jobs"),
        (("--jobs", 1, "--gpus", 100001), "--gpus"),
        (("--jobs", 1, "--gpus-per-host", 65), "--gpus-per-host"),
        (("--jobs", 1, "--vfs-per-gpu", 0), "--vfs-per-gpu"),
        (("--jobs", 1, "--night", "8-8"), "--night 8-8"),
        (("--jobs", 1, "--night", "8-25"), "--night 8-25"),
        (("--jobs", 1, "--night", "8-9x"), "--night 8-9x"),
        (("--jobs", 1, "--policy", "fair"), "fair"),
        (("--jobs", 1, "--developers", 60, "--services", 41), "--developers"),
        (("--jobs", 1, "--from", 700000), "--from"),
    ):
        result = run(*args)
        assert result.returncode == 2 and result.stdout == "", (args, result)
        assert says in result.stderr, (args, result.stderr)


def main():
    test_table_has_a_row_per_policy()
    test_json_is_the_same_for_the_same_seed_only()
    test_a_thousand_gpus_and_a_hundred_thousand_jobs()
    with tempfile.TemporaryDirectory() as name:
        test_a_trace_is_played(pathlib.Path(name))
        test_wrong_use_is_said_and_exit_code_2(pathlib.Path(name))


main()
