#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpud-kubernetes with a real vgpud and a small honest kubelet (kubelet.cc): it registers, offers, allocates and prefers as the published
interface says; what it gives runs a CUDA program; plugin, kubelet and vgpud go away and come back; wrong requests change nothing.

usage: plugin_test.py PLUGIN KUBELET [--wrong COUNT] [--seed N]      Needs PYTHONPATH=tools/lib
"""
import argparse
import contextlib
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tools" / "lib"))
sys.path.insert(0, str(REPO / "tests" / "restart"))

import api  # noqa: E402
import bed  # noqa: E402
import inside  # noqa: E402
from vgpuguest import paths, process  # noqa: E402

# Who is not root can give sockets to nobody else.
USER = os.getuid() or 107
CONFIG = f"""\
[resource."vgpud.dev/vf"]
profile = "1/8"
count = 4
weight = 300
max_weight = 500

[resource."vgpud.dev/shared"]
profile = "1/4"
count = 1
replicas = 3

[resource."vgpud.dev/vm"]
profile = "1/8"
count = 1
vm = true
user = {USER}
"""
VF, SHARED, VM = "vgpud.dev/vf", "vgpud.dev/shared", "vgpud.dev/vm"
VFS = [f"k8s-vf-{number}" for number in range(4)]
REPLICAS = [f"k8s-shared-0::{number}" for number in range(3)]
PATIENCE = 60
MOST_MIB_MORE = 12  # of buffers that gRPC keeps for as many requests as it takes at once


def check(condition, what):
    if not condition:
        raise AssertionError(what)
    print(f"ok: {what}", flush=True)


class Kubelet:
    def __init__(self, program, directory):
        self.child = subprocess.Popen([program, directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answers, self.events = queue.Queue(), queue.Queue()
        self.offers = {}  # {resource: {id: device}}
        threading.Thread(target=self._read, daemon=True).start()
        self.wait(lambda event: "serving" in event)

    def _read(self):
        for line in self.child.stdout:
            event = json.loads(line)
            if "devices" in event:
                self.offers[event["resource"]] = {device["id"]: device for device in event["devices"]}
            events = ("devices", "registered", "ended", "serving")
            (self.events if any(name in event for name in events) else self.answers).put(event)

    def wait(self, wanted):
        """The first event from now on that is `wanted`."""
        end = time.monotonic() + PATIENCE
        while True:
            event = self.events.get(timeout=max(0.01, end - time.monotonic()))
            if wanted(event):
                return event

    def wait_for_health(self, resource, health):
        """Until all devices of the resource have it."""
        bed.wait_until(lambda: self.offers.get(resource) and {each["health"] for each in self.offers[resource].values()} == {health},
                       f"{resource} is {health}", PATIENCE)

    def ask(self, *words):
        self.child.stdin.write(" ".join(words) + "\n")
        self.child.stdin.flush()
        return self.answers.get(timeout=3600)

    def stop(self, kill=False):
        if kill:
            self.child.kill()
        self.child.stdin.close()
        self.child.wait(PATIENCE)


class Plugin:
    def __init__(self, program, directory, vgpud, cluster):
        self.log = os.path.join(directory, "plugin.log")
        self.words = [program, "--config", os.path.join(directory, "kubernetes.toml"), "--runtime-dir", vgpud.runtime_dir, "--kubelet-dir",
                      directory, "--cdi-file", os.path.join(directory, "cdi.json"), "--library", str(paths.SHIM), "--period-ms", "100", "--api-server", cluster.url,
                      "--api-token-file", os.path.join(directory, "token"), "--api-period-ms", "100", "--node-name", api.NODE,
                      "--pod-resources", os.path.join(directory, "pod-resources.sock")]
        self.child = None

    def start(self, *more):
        self.child = process.spawn([*self.words, *more], self.log)

    def kill(self):
        self.child.kill()
        self.child.wait()

    def text(self):
        return pathlib.Path(self.log).read_text(errors="replace")


class Bed:
    def __init__(self, options, directory, vgpud, cluster):
        self.directory, self.vgpud, self.cluster = directory, vgpud, cluster
        self.programs = options
        self.plugin = Plugin(options.plugin, directory, vgpud, cluster)
        self.kubelet = None
        self.configure(CONFIG)
        self.write_token("an old one")

    def write_token(self, token):
        pathlib.Path(self.directory, "token").write_text(token + "\n")

    def configure(self, text):
        with open(os.path.join(self.directory, "new.toml"), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(file.name, os.path.join(self.directory, "kubernetes.toml"))

    def start_kubelet(self):
        """As kubelet does: sockets of plugins that are there are removed."""
        for path in pathlib.Path(self.directory).glob("*.sock"):
            path.unlink()
        self.kubelet = Kubelet(self.programs.kubelet, self.directory)

    def allocate(self, resource, *containers):
        answer = self.kubelet.ask("allocate", resource, *containers)
        if "containers" not in answer:
            raise AssertionError(f"{resource} {containers}: {answer}")
        return answer["containers"]

    def run(self, container):
        """As a container engine would give it to the container, but without one."""
        envs, mounts = dict(container["envs"]), [(host, there) for host, there, _ in container["mounts"]]
        spec = json.loads(pathlib.Path(self.directory, "cdi.json").read_text())
        for name in container["cdi"]:
            (device,) = [each for each in spec["devices"] if f"{spec['kind']}={each['name']}" == name]
            for edits in (spec["containerEdits"], device["containerEdits"]):
                envs.update(each.split("=", 1) for each in edits.get("env", []))
                mounts += [(each["hostPath"], each["containerPath"]) for each in edits.get("mounts", [])]
        command = [str(paths.need(paths.LAUNCHER, "vgpu-launch")), "vectoradd"]
        with inside.environment(envs, mounts) as environment:
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def offers(box):
    box.plugin.start()
    seen = [box.kubelet.wait(lambda event: "registered" in event) for _ in range(3)]
    check({(event["registered"], event["version"]) for event in seen} == {(each, "v1beta1") for each in (VF, SHARED, VM)}, "all resources are registered")
    for resource, ids in ((VF, VFS), (SHARED, REPLICAS)):
        box.kubelet.wait_for_health(resource, "Healthy")
        check(sorted(box.kubelet.offers[resource]) == ids, f"{resource} has the devices that it shall have")
    made = {name: box.vgpud.show(name) for name in box.vgpud.names()}
    check(sorted(made) == ["k8s-shared-0", *VFS, "k8s-vm-0"] and {made[name]["weight"] for name in VFS} == {300}, "vgpud has their VFs, as configured")
    nodes = {tuple(device["nodes"]) for device in box.kubelet.offers[VF].values()}
    check(nodes == {(0,)}, f"they are on the NUMA node of their GPU: {nodes}")


def allocates(box):
    first, second = box.allocate(VF, VFS[0], VFS[2])
    check(first["cdi"] == [f"vgpud.dev/vf={VFS[0]}"] and second["cdi"] == [f"vgpud.dev/vf={VFS[2]}"], "a VF is given by the name of its device")
    before = box.vgpud.stats()[1]
    for container in (first, second):
        done = box.run(container)
        check(done.returncode == 0, f"a CUDA program runs on it: {done.stdout}{done.stderr}")
    after = box.vgpud.stats()[1]
    used = [name for name in after if after[name]["kernels"] > before[name]["kernels"]]
    check(sorted(used) == [VFS[0], VFS[2]], f"and on no other: {used}")
    (several,) = box.allocate(VF, ",".join(VFS[:2]))
    check(sorted(several["cdi"]) == [f"vgpud.dev/vf={name}" for name in VFS[:2]] and several["envs"] == {} and several["mounts"] == [],
          f"two VFs of one container are two devices: {several}")
    check(box.run(several).returncode == 0, "and run programs")
    (shared,) = box.allocate(SHARED, ",".join(REPLICAS[:2]))
    check(shared["cdi"] == ["vgpud.dev/vf=k8s-shared-0"], "two replicas of one VF are one device")
    check(box.run(shared).returncode == 0, "and run programs, too")


def for_machines(box):
    vf = box.vgpud.show("k8s-vm-0")
    (given,) = box.allocate(VM, "k8s-vm-0")
    held_state = os.path.join(box.vgpud.runtime_dir, "vf", "held-state.vdi")
    check(given == {"cdi": [], "envs": {}, "mounts": [[vf["vfio_user_socket"], "/run/vgpud/vf/vm0.sock", False],
                                                      [held_state, "/run/vgpud/vf/held-state.vdi", True]]}, f"a machine gets the device: {given}")
    check(os.path.isfile(held_state) and {os.stat(vf[each]).st_uid for each in ("vfio_user_socket", "channel_socket")} == {USER},
          "and its user may open it")


def prefers(box):
    def preferred(*words):
        return box.kubelet.ask("prefer", *words).get("preferred")
    check(preferred(VF, "2", ",".join(VFS[1:])) == VFS[1:3], "the first ones are as good as any")
    check(preferred(VF, "2", ",".join(VFS), VFS[3]) == [VFS[3], VFS[0]], "the wanted one is among them")
    answer = box.kubelet.ask("prefer", VF, "4", ",".join(VFS[:2]))
    check("can't be chosen" in answer["error"], f"more than there are are refused in words: {answer}")


def refuses(box):
    for ids, code, words in (("k8s-vf-9", 5, "no device"), (f"{VFS[0]},{VFS[0]}", 3, "twice"), (REPLICAS[0], 5, "no device")):
        answer = box.kubelet.ask("allocate", VF, ids)
        check(answer.get("code") == code and words in answer["error"], f"{ids} is refused in words: {answer}")


def labels(box):
    bed.wait_until(lambda: "who are you?" in box.plugin.text(), "a token that is not taken is said", PATIENCE)
    check("vgpud.dev/gpu.count" not in box.cluster.labels, "and the node has no labels")
    box.write_token(api.TOKEN)
    bed.wait_until(lambda: "vgpud.dev/gpu.count" in box.cluster.labels, "the node gets labels with the new token", PATIENCE)
    wanted = {"vgpud.dev/gpu.count": "1", "vgpud.dev/gpu.product": "soft", "vgpud.dev/policy": "strict", "vgpud.dev/vf.count": "4",
              "vgpud.dev/vf.profile": "1-8", "vgpud.dev/vf.memory": "1024", "vgpud.dev/shared.replicas": "3", "other.dev/kept": "y"}
    check(wanted.items() <= box.cluster.labels.items() and "vgpud.dev/of-an-earlier" not in box.cluster.labels, f"the node has {box.cluster.labels}")


def has_weight(box, vf, weight):
    bed.wait_until(lambda: box.vgpud.show(vf)["weight"] == weight, f"{vf} has the weight {weight}", PATIENCE)


def weights(box):
    box.kubelet.ask("pod", VF, "team/pod", VFS[1])
    box.kubelet.ask("pod", SHARED, "team/other", REPLICAS[0])
    shared = box.vgpud.show("k8s-shared-0")["weight"]
    for said, weight in (("450", 450), ("10000", 500), ("-3", 300), ("7", 7), (None, 300), ("120", 120)):
        box.cluster.annotate("team/pod", said)
        box.cluster.annotate("team/other", said)
        has_weight(box, VFS[1], weight)
    check("pod team/pod: vgpud.dev/weight: not a number" in box.plugin.text(), "what is no weight is said")
    check(box.vgpud.show("k8s-shared-0")["weight"] == shared and box.vgpud.show(VFS[0])["weight"] == 300, "other VFs are left alone")
    box.kubelet.ask("pod", VF, "team/pod")
    has_weight(box, VFS[1], 300)
    patches = box.cluster.patches
    check(patches == 1, f"the node was changed once: {patches}")


def vgpud_comes_back(box):
    box.vgpud.kill()
    box.kubelet.wait_for_health(VF, "Unhealthy")
    answer = box.kubelet.ask("allocate", VF, VFS[0])
    check(answer.get("code") == 14, f"without vgpud nothing is allocated: {answer}")
    box.vgpud.start()
    box.kubelet.wait_for_health(VF, "Healthy")
    check(box.run(box.allocate(VF, VFS[1])[0]).returncode == 0, "vgpud is back, and programs run")
    box.vgpud.destroy(VFS[3])
    bed.wait_until(lambda: VFS[3] in box.vgpud.names(), "a VF that somebody destroyed is made again", PATIENCE)


def plugin_comes_back(box):
    uuids = {name: box.vgpud.show(name)["uuid"] for name in box.vgpud.names()}
    for _ in range(3):
        box.plugin.kill()
        box.kubelet.wait(lambda event: "ended" in event)
        box.plugin.start()
        box.kubelet.wait(lambda event: event.get("registered") == VF)
    box.kubelet.wait_for_health(VF, "Healthy")
    check({name: box.vgpud.show(name)["uuid"] for name in box.vgpud.names()} == uuids, "a plugin that was killed goes on with the same VFs")


def again(box, *more):
    """The plugin, started with further arguments."""
    box.plugin.kill()
    box.kubelet.wait(lambda event: "ended" in event)
    box.plugin.start(*more)
    box.kubelet.wait(lambda event: event.get("registered") == VF)
    box.kubelet.wait_for_health(VF, "Healthy")


def by_mounts(box):
    """A container engine without CDI: the same files as with it."""
    again(box, "--deliver", "mounts")
    (given,) = box.allocate(VF, ",".join(VFS[:2]))
    check(given["cdi"] == [] and given["envs"] == {"VGPU_CHANNEL": ",".join(f"/run/vgpud/{name}.sock" for name in VFS[:2])}, f"by mounts: {given}")
    spec = json.loads(pathlib.Path(box.directory, "cdi.json").read_text())
    libraries = sorted([mount["hostPath"], mount["containerPath"], True] for mount in spec["containerEdits"]["mounts"])
    check(len(libraries) == 6 and sorted(mount for mount in given["mounts"] if "/lib" in mount[1]) == libraries, f"all libraries under all names: {given}")
    before = {name: figures["kernels"] for name, figures in box.vgpud.stats()[1].items()}
    check(box.run(given).returncode == 0 and box.vgpud.stats()[1][VFS[0]]["kernels"] > before[VFS[0]], "and a program runs on them")
    again(box)


def is_a_tenant(box):
    """Whatever the plugin's file says, vgpud makes no VF that is more than its tenant may have."""
    check({box.vgpud.show(name)["tenant"] for name in box.vgpud.names()} == {"kubernetes"}, "pods are a tenant without being configured")
    box.configure(CONFIG.replace("weight = 300", "weight = 1001").replace("max_weight = 500", "max_weight = 2000"))
    bed.wait_until(lambda: "weight 1001 is more than VFs of tenant kubernetes may have, 1000 each" in box.plugin.text(), "which bounds its VFs", PATIENCE)
    box.configure(CONFIG.replace("count = 4", 'count = 4\ntenant = "two"'))
    bed.wait_until(lambda: "tenant two may have 2 vfs together" in box.plugin.text(), "as another one does that the file names", PATIENCE)
    check({name: box.vgpud.show(name)["tenant"] for name in box.vgpud.names() if name in VFS} == {name: "two" for name in VFS[:2]}, "to the number")
    box.configure(CONFIG.replace("count = 4", 'count = 4\ntenant = "nobodys"'))
    bed.wait_until(lambda: 'there is no tenant "nobodys"' in box.plugin.text(), "one that vgpud does not know has no VFs", PATIENCE)
    box.configure(CONFIG)
    bed.wait_until(lambda: len(box.vgpud.names()) == 6, "they come back with the file", PATIENCE)
    box.kubelet.wait_for_health(VF, "Healthy")


def kubelet_comes_back(box):
    for kill in (True, False):
        box.kubelet.stop(kill)
        box.start_kubelet()
        names = {box.kubelet.wait(lambda event: "registered" in event)["registered"] for _ in range(3)}
        check(names == {VF, SHARED, VM}, "a new kubelet is told of all")
    box.kubelet.wait_for_health(SHARED, "Healthy")
    check(box.run(box.allocate(SHARED, REPLICAS[2])[0]).returncode == 0, "and can allocate")


def reconfigures(box):
    box.configure(CONFIG.replace("count = 4", "count = two"))
    bed.wait_until(lambda: "the configuration stays as it was" in box.plugin.text(), "a wrong file is said to be wrong", PATIENCE)
    check(len(box.vgpud.names()) == 6 and box.cluster.labels["vgpud.dev/vf.count"] == "4", "and changes nothing")
    box.configure(CONFIG.split("\n\n", maxsplit=1)[0].replace("count = 4", "count = 2") + "\n")
    bed.wait_until(lambda: sorted(box.vgpud.names()) == VFS[:2], "VFs that are not wanted any more are ended", PATIENCE)
    bed.wait_until(lambda: sorted(box.kubelet.offers[VF]) == VFS[:2], "and not offered", PATIENCE)
    bed.wait_until(lambda: box.cluster.labels["vgpud.dev/vf.count"] == "2" and "vgpud.dev/shared.count" not in box.cluster.labels, "and labels say so", PATIENCE)
    box.configure(CONFIG)
    bed.wait_until(lambda: len(box.vgpud.names()) == 6, "they come back with the file", PATIENCE)
    box.kubelet.wait_for_health(VF, "Healthy")
    box.kubelet.wait_for_health(SHARED, "Healthy")


def resident_mib(pid):
    """Memory of a process."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def wrong_requests(box, count, seed):
    uuids = {name: box.vgpud.show(name)["uuid"] for name in box.vgpud.names()}
    pid = box.plugin.child.pid
    box.kubelet.ask("garbage", VF, "200", "1")  # its connections, threads and buffers are there
    files, before, begin = bed.open_files(pid), resident_mib(pid), time.monotonic()
    answers = box.kubelet.ask("garbage", VF, str(count), str(seed))["garbage"]
    after = resident_mib(pid)
    print(f"{count} wrong requests in {time.monotonic() - begin:.1f} s: {answers}; memory {before:.1f} MiB, then {after:.1f} MiB")
    check("-1" not in answers and "given" not in answers, "each was answered, none got a VF")
    check(sum(answers.values()) == count and set(answers) > {"3", "12"}, "with words of gRPC")
    bed.wait_until(lambda: box.plugin.child.poll() is None and bed.open_files(pid) <= files, f"no file stays open beyond the {files} of before", PATIENCE)
    check(after < before + MOST_MIB_MORE, "and hardly any memory")
    check({name: box.vgpud.show(name)["uuid"] for name in box.vgpud.names()} == uuids, "the VFs are the same")
    check(box.run(box.allocate(VF, VFS[0])[0]).returncode == 0, "and can be allocated")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plugin")
    parser.add_argument("kubelet")
    parser.add_argument("--wrong", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with process.scratch_dir("vgpu-k8s-") as directory, bed.supervised(["--numa-node", "0", "--tenant=two.vfs=2"]) as vgpud, contextlib.ExitStack() as stack:
        cluster = api.Api()
        stack.callback(cluster.stop)
        box = Bed(options, directory, vgpud, cluster)
        box.start_kubelet()
        stack.callback(lambda: box.kubelet.stop())
        stack.callback(lambda: process.stop(box.plugin.child))
        try:
            offers(box)
            labels(box)
            weights(box)
            allocates(box)
            for_machines(box)
            prefers(box)
            refuses(box)
            wrong_requests(box, options.wrong, options.seed)
            vgpud_comes_back(box)
            plugin_comes_back(box)
            by_mounts(box)
            is_a_tenant(box)
            kubelet_comes_back(box)
            reconfigures(box)
            process.stop(box.plugin.child)
            check(box.plugin.child.returncode == 0, "the plugin ends in peace")
            check(not list(pathlib.Path(directory).glob("vgpud-*.sock")), "and leaves no socket")
        except BaseException:
            print(f"the plugin's log:\n{box.plugin.text()[-4000:]}\nvgpud's log:\n{vgpud.text()[-3000:]}")
            raise
    print("kubernetes plugin: ok")


main()
