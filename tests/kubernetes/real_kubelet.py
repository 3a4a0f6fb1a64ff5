#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpud-kubernetes under a real kubelet, API server and scheduler, with containerd (node.py): pods of two profiles share one soft GPU and run
plain CUDA programs, with the weights that their annotations say; plugin, kubelet and vgpud go away under them and come back, and what is too much
is refused in words. The first time it
builds Kubernetes (build-kubernetes). Exit status 77: it can't be done here.

usage: real_kubelet.py [--keep]
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

import node as nodes
from node import bed, paths, process

sys.path.insert(0, str(nodes.REPO / "tests" / "slurm"))
import share_watch  # noqa: E402

SKIPPED = 77
QUARTER, EIGHTH = "vgpud.dev/quarter", "vgpud.dev/eighth"
COUNTS = {QUARTER: 2, EIGHTH: 3}
CONFIG = f"""\
[resource."{QUARTER}"]
profile = "1/4"
count = {COUNTS[QUARTER]}
weight = 300
max_weight = 400

[resource."{EIGHTH}"]
profile = "1/8"
count = {COUNTS[EIGHTH]}
weight = 100
"""
PATIENCE_US = 1000000   # beside all that starts here an executor may wait for a processor when it is to leave the GPU
LARGEST_ERROR = 3.0     # points of the GPU
LEAST_SECONDS = 1.0     # of the GPU, beside the other


def check(condition, what):
    if not condition:
        raise AssertionError(what)
    print(f"ok: {what}", flush=True)


class Plugin:
    def __init__(self, node, vgpud):
        self.log = node.path("log/plugin")
        self.words = [paths.BUILD / "integrations/kubernetes/vgpud-kubernetes", "--config", node.path("kubernetes.toml"), "--runtime-dir",
                      vgpud.runtime_dir, "--library", str(paths.SHIM), "--deliver", "mounts", "--api-server", node.url(), "--api-token-file",
                      node.path("token"), "--api-ca-file", node.certificate(), "--node-name", nodes.NAME, "--api-period-ms", "500"]
        self.child = None

    def start(self):
        self.child = process.spawn(self.words, self.log)

    def kill(self):
        self.child.kill()
        self.child.wait()


def offered(node):
    for resource, count in COUNTS.items():
        bed.wait_until(lambda: node.allocatable(resource) == count, f"the node has {count} of {resource}", 60)
    check(True, f"the node offers {COUNTS}")


def labelled(node):
    ours = {"vgpud.dev/gpu.count": "1", "vgpud.dev/gpu.product": "soft", "vgpud.dev/policy": "strict", "vgpud.dev/quarter.profile": "1-4",
            "vgpud.dev/quarter.count": str(COUNTS[QUARTER])}
    bed.wait_until(lambda: ours.items() <= node.described()["metadata"]["labels"].items(), "the node has our labels", 60)
    node.run("chooser", {QUARTER: 1}, "vectoradd", choose={"vgpud.dev/gpu.product": "soft"})
    ended_well(node, "chooser")
    node.run("other", {QUARTER: 1}, "vectoradd", choose={"vgpud.dev/gpu.product": "other"})
    bed.wait_until(lambda: node.why_unscheduled("other"), "the scheduler says something", 60)
    check("node(s) didn't match" in node.why_unscheduled("other"), f"a pod chooses by labels: {node.why_unscheduled('other')}")
    for name in ("chooser", "other"):
        node.delete(name)


def weighed(node, vgpud):
    """A running pod's weight, changed through the API."""
    (_, vf) = meters(node, vgpud, 15)
    for said, weight in (("50", 50), ("9999", 400), (None, 300)):
        node.annotate("large", {"vgpud.dev/weight": said})
        bed.wait_until(lambda: vgpud.show(vf)["weight"] == weight, f"{vf} has the weight {weight}", 30)
    node.annotate("large", {"vgpud.dev/weight": "100"})
    bed.wait_until(lambda: vgpud.show(vf)["weight"] == 100, f"{vf} has the weight 100", 30)
    check(node.pod("large")["status"]["phase"] == "Running", "the weight of a running pod follows its annotation, up to max_weight")
    ended_well(node, "large", "small")
    for name in ("large", "small"):
        node.delete(name)
    bed.wait_until(lambda: vgpud.show(vf)["weight"] == 300, f"{vf} has its usual weight again", 30)


def meters(node, vgpud, seconds):
    """Two pods that compute all the time, of a profile each, after both have begun."""
    node.run("large", {QUARTER: 1}, "meter", "--seconds", str(seconds))
    node.run("small", {EIGHTH: 1}, "meter", "--seconds", str(seconds))
    for name in ("large", "small"):
        node.wait_for(name, "Running")
    bed.wait_until(lambda: len(running(vgpud)) == 2, "both programs compute", 60)
    return running(vgpud)


def running(vgpud):
    """Names of VFs that programs are using."""
    return sorted(name for name in vgpud.names() if vgpud.show(name)["executors"] > 0)


def ended_well(node, *names):
    for name in names:
        pod = node.wait_for(name, "Succeeded", "Failed")
        restarts = [each["restartCount"] for each in pod["status"].get("containerStatuses", [])]
        said = node.output(name)
        check(pod["status"]["phase"] == "Succeeded" and restarts == [0] and "PASSED" in said, f"{name}: {said.strip().splitlines()[-1:]}")


def programs_run(node, vgpud):
    """Each profile by a plain CUDA program of its own, and what they use of vgpud."""
    before = vgpud.stats()[1]
    node.run("vectors", {QUARTER: 1}, "vectoradd")
    node.run("matrices", {EIGHTH: 1}, "matmul")
    ended_well(node, "vectors", "matrices")
    after = vgpud.stats()[1]
    used = {name.rsplit("-", 1)[0] for name in after if after[name]["kernels"] > before[name]["kernels"]}
    check(used == {"k8s-quarter", "k8s-eighth"}, f"each ran on a VF of its profile: {used}")
    for name in ("vectors", "matrices"):
        node.delete(name)


def watched_shares(node, vgpud):
    """{VF: points off its weight's share} of two pods that compute, from the intervals in which both had work all the time."""
    meters(node, vgpud, 15)
    watch = share_watch.Watch({nodes.NAME: vgpud})
    try:
        ended_well(node, "large", "small")
    finally:
        watch.stop()
    for name in ("large", "small"):
        node.delete(name)
    check(not watch.problem, f"the counters could be read {watch.problem or ''}")
    return {vf: round(error, 2) for (_, vf), error in watch.errors(LEAST_SECONDS).items()}


def share(node, vgpud):
    # Beside much other work there may be no such interval.
    errors = next(filter(None, (watched_shares(node, vgpud) for _ in range(4))), {})
    check(len(errors) == 2 and all(abs(error) <= LARGEST_ERROR for error in errors.values()),
          f"two pods share the GPU as their weights 100:300 say, but for {errors} points")


def things_go_away(node, vgpud, plugin):
    used = meters(node, vgpud, 40)
    uuids = {name: vgpud.show(name)["uuid"] for name in vgpud.names()}
    plugin.kill()
    plugin.start()
    offered(node)
    vgpud.kill()
    bed.wait_until(lambda: node.allocatable(QUARTER) == 0, "without vgpud kubelet has nothing to give", 60)
    vgpud.start()
    offered(node)
    node.kill("kubelet")
    node.start_kubelet()
    bed.wait_until(lambda: "is registered with kubelet" in pathlib.Path(plugin.log).read_text().rsplit("k8s-", 1)[-1], "registered", 60)
    offered(node)
    vgpud.kill()
    vgpud.start()
    check({name: vgpud.show(name)["uuid"] for name in vgpud.names()} == uuids and running(vgpud) == used,
          "plugin, kubelet and vgpud were killed and are back, and the programs still compute on the same VFs")
    ended_well(node, "large", "small")
    for name in ("large", "small"):
        node.delete(name)
    node.run("after", {QUARTER: COUNTS[QUARTER]}, "vectoradd")
    ended_well(node, "after")
    node.delete("after")


def too_much(node):
    node.run("greedy", {QUARTER: 5}, "vectoradd")
    bed.wait_until(lambda: node.why_unscheduled("greedy"), "the scheduler says something", 60)
    said = node.why_unscheduled("greedy")
    check(f"Insufficient {QUARTER}" in said, f"the scheduler says why it waits: {said}")
    node.delete("greedy")
    node.run("forced", {EIGHTH: 4}, "vectoradd", node=nodes.NAME)
    status = node.wait_for("forced", "Failed")["status"]
    check(EIGHTH in status["message"] and str(COUNTS[EIGHTH]) in status["message"],
          f"kubelet says why it does not take it: {status['reason']}: {status['message']}")
    node.delete("forced")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="keep the directory, with its logs")
    options = parser.parse_args()
    why = nodes.missing()
    if why:
        print(f"SKIPPED: {why}")
        return SKIPPED
    built = subprocess.run([pathlib.Path(__file__).with_name("build-kubernetes")], check=False).returncode
    if built != 0:
        return built
    nodes.own_namespaces()
    process.unwind_on_signals()
    directory = f"/tmp/vgpu-kubelet-{os.urandom(4).hex()}"
    os.mkdir(directory)
    node = nodes.Node(directory, paths.need(paths.LAUNCHER, "vgpu-launch"))
    try:
        with bed.supervised(["--preempt-timeout-us", str(PATIENCE_US)]) as vgpud:
            try:
                node.start()
                print("ok: the node is ready", flush=True)
                node.write("kubernetes.toml", CONFIG)
                plugin = Plugin(node, vgpud)
                plugin.start()
                offered(node)
                labelled(node)
                programs_run(node, vgpud)
                share(node, vgpud)
                weighed(node, vgpud)
                things_go_away(node, vgpud, plugin)
                too_much(node)
            except BaseException:
                print(f"{node.logs()}vgpud's log:\n{vgpud.text()[-3000:]}", flush=True)
                raise
            finally:
                node.stop()
    finally:
        if not options.keep:
            shutil.rmtree(directory, ignore_errors=True)
    print("PASS")
    return 0


sys.exit(main())
