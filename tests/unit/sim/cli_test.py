#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu-sim as people call it: tables, JSON, a trace, exit codes.

usage: cli_test.py VGPU_SIM SCENARIOS
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SIM, SCENARIOS = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*args):
    return subprocess.run([SIM, *map(str, args)], capture_output=True, text=True, timeout=60)


def test_all_policies_are_compared():
    result = run(SCENARIOS / "eight-developers.toml", "--policy", "all", "--duration", "5s")
    assert result.returncode == 0, result.stderr
    for name in ("strict", "reserve", "relaxed", "dev8", "UTILISATION", "OVERRUN-MAX"):
        assert name in result.stdout, name


def test_json_has_the_names_of_the_control_api():
    result = run(SCENARIOS / "hostile.toml", "-o", "json", "--duration", "2s", "--seed", "5")
    answer = json.loads(result.stdout)
    assert answer["seed"] == 5
    policy = answer["policies"][0]
    assert policy["run_ns_total"] + policy["switch_ns_total"] + policy["idle_ns_total"] == policy["wall_ns"]
    assert policy["vfs"][0]["received_ns"] > 0


def test_no_two_events_of_a_row_and_no_two_worlds_overlap(folder):
    path = folder / "trace.json"
    result = run(SCENARIOS / "hostile.toml", "--duration", "3s", "--trace", path, "--trace-last", "1s")
    assert result.returncode == 0, result.stderr
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    assert len(events) > 500
    events.sort(key=lambda e: e["ts"])
    assert events[0]["ts"] >= 0 and events[-1]["ts"] <= 1e6
    for before, after in zip(events, events[1:]):
        assert before["ts"] + before["dur"] <= after["ts"] + 0.0005, (before, after)
    assert len({e["tid"] for e in events}) == 9  # eight VFs and the switches


def test_wrong_use_is_one_line_and_exit_code_2(folder):
    wrong = folder / "wrong.toml"
    wrong.write_text('[[vf]]\nname = "a"\nweight = 0\n')
    for args, says in (
        ((wrong,), "wrong.toml:3:10: vf a: weight = 0: must be a whole number from 1 to 10000"),
        ((folder / "none.toml",), "none.toml"),
        ((SCENARIOS / "hostile.toml", "--policy", "fair"), "fair"),
        ((SCENARIOS / "hostile.toml", "--duration", "soon"), "soon"),
        ((SCENARIOS / "hostile.toml", "--policy", "all", "--trace", folder / "t.json"), "--trace"),
    ):
        result = run(*args)
        assert result.returncode == 2, (args, result)
        assert says in result.stderr and result.stderr.count("\n") == 1, result.stderr
        assert result.stdout == ""


def test_a_trace_that_cannot_be_written_is_exit_code_1(folder):
    result = run(SCENARIOS / "hostile.toml", "--duration", "1s", "--trace", folder / "no" / "t.json")
    assert result.returncode == 1 and "t.json" in result.stderr, result


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        test_all_policies_are_compared()
        test_json_has_the_names_of_the_control_api()
        test_no_two_events_of_a_row_and_no_two_worlds_overlap(folder)
        test_wrong_use_is_one_line_and_exit_code_2(folder)
        test_a_trace_that_cannot_be_written_is_exit_code_1(folder)


main()
