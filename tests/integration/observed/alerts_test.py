#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""integrations/prometheus: every metric, label and window in the alerts and on the dashboard is one that vgpud exports; the alerts come when
they should and not otherwise, where promtool is installed (Debian: prometheus). Needs PYTHONPATH=tools/lib:tests/vm."""
import json
import re
import shutil
import subprocess

from harness import check
from vgpuguest import daemon, paths

FOLDER = paths.REPO / "integrations" / "prometheus"
# Of Prometheus itself and of targets.
NOT_OURS = {"up", "instance", "job", "le"}


def expressions():
    """[(where, expression)]"""
    rules = (FOLDER / "vgpud.rules.yml").read_text()
    found = [("rules", each) for each in re.findall(r"^ +expr: (.*)$", rules, re.MULTILINE)]
    dashboard = json.loads((FOLDER / "dashboard.json").read_text())
    ids = [panel["id"] for panel in dashboard["panels"]]
    check(len(set(ids)) == len(ids) and dashboard["schemaVersion"] and dashboard["uid"], "the dashboard has its parts")
    return found + [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel["targets"]]


def exported():
    """{metric: labels} of a vgpud with a VF."""
    with daemon.private_daemon([("a", {"vram": "64MiB"})]) as vgpud:
        done = subprocess.run([paths.VGPUCTL, "--runtime-dir", vgpud.runtime_dir, "metrics"], capture_output=True, text=True, check=True,
                              timeout=60)
    metrics = {}
    for name in re.findall(r"^# TYPE (\w+) histogram", done.stdout, re.MULTILINE):
        metrics[name + "_bucket"] = {"gpu", "le", "vf"}
    for name in re.findall(r"^# TYPE (\w+) (?:gauge|counter)", done.stdout, re.MULTILINE):
        metrics[name] = set(re.findall(r'(\w+)="', " ".join(re.findall(rf"^{name}(\{{.*\}})", done.stdout, re.MULTILINE))))
    check(len(metrics) > 40, f"vgpud exports {len(metrics)} metrics")
    return metrics, done.stdout


def check_of_one_gpu(text):
    """Samples have the label gpu also where there is one GPU: a second one leaves their series as they are."""
    for line in text.splitlines():
        if line.startswith(("vgpud_vf_", "vgpud_gpu_", "vgpud_scheduler_", "vgpud_history_", "vgpud_trace_")):
            assert '{gpu="soft0"' in line, line
    for name in ("vgpud_build_info{version=", 'vgpud_gpu_info{gpu="soft0",kind="soft",policy=', 'vgpud_gpu_vram_promised_bytes{gpu="soft0"} 67108864',
                 'vgpud_gpu_vram_used_bytes{gpu="soft0"} 0', 'vgpud_vf_kernel_faults_total{gpu="soft0",vf="a",error="700"} 0'):
        check("\n" + name in text, f"{name} is there")


def main():
    metrics, text = exported()
    check_of_one_gpu(text)
    used = set()
    for where, expression in expressions():
        names = re.findall(r"\b(?:vgpud_\w+|up)\b", expression)
        assert names, f"{where}: {expression}: no metric in it"
        for name, selector in re.findall(r"\b(vgpud_\w+)(\{[^}]*\})?", expression):
            assert name in metrics, f"{where}: {name} is none of vgpud's"
            labels = set(re.findall(r"(\w+) *(?:=~|!~|!=|=)", selector)) - NOT_OURS
            # share errors have no value, and so no labels, before there are two VFs with work
            known = metrics[name] or {"gpu", "vf", "window"}
            assert labels <= known, f"{where}: {name} has no labels {labels - known}"
            used.add(name)
    check(len(used) > 10, f"{len(used)} of them are used, and all of those are there")
    promtool = shutil.which("promtool")
    if promtool is None:
        print("the alerts themselves: skipped, no promtool (apt-get install prometheus)")
        return
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=120, check=False)
    check(done.returncode == 0 and not done.stderr.strip(), f"promtool check metrics: {done.stdout}{done.stderr}")
    for words in (["check", "rules", "vgpud.rules.yml"], ["test", "rules", "vgpud_test.yml"]):
        done = subprocess.run([promtool, *words], cwd=FOLDER, capture_output=True, text=True, timeout=120, check=False)
        check(done.returncode == 0, f"promtool {' '.join(words)}: {done.stdout}{done.stderr}")


main()
