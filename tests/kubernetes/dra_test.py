#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpud-kubernetes as a DRA driver, with a real vgpud, a small honest kubelet (dra_kubelet.cc) and a small honest API server (api.py): it registers,
offers devices in slices, prepares claims as they say and gives VFs back, both as often as it is asked; what it gives runs a CUDA program; driver,
vgpud and API server go away and come back; wrong claims change nothing.

usage: dra_test.py PLUGIN KUBELET [--wrong COUNT] [--seed N]      Needs PYTHONPATH=tools/lib
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tools" / "lib"))
sys.path.insert(0, str(REPO / "tests" / "restart"))

import api  # noqa: E402
import bed  # noqa: E402
import inside  # noqa: E402
from vgpuguest import paths, process  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

CONFIG = """\
[resource."vgpud.dev/claims"]
profile = "1/8"
count = 4
weight = 300
max_weight = 500
max_slice_us = 4000
dra = true
tenant = "pods"

[resource."vgpud.dev/plain"]
profile = "1/8"
count = 1
dra = true
"""
# Of vgpud, for whatever the plugin makes for claims; a class may be heavier than its claims.
LIMITS = ("weight_each=3000", "slice_us=3500", "priority=1")
VFS = [f"k8s-claims-{number}" for number in range(4)]
PLAIN = "k8s-plain-0"
PATIENCE = 60
MOST_MIB_MORE = 12  # of buffers that gRPC keeps for as many requests as it takes at once
UID = "d2f9c1aa-0000-4000-8000-00000000000{}"


def check(condition, what):
    if not condition:
        raise AssertionError(what)
    print(f"ok: {what}", flush=True)


def documented():
    """What docs/kubernetes.md has about claims: the configuration, the class and the claim."""
    page = (REPO / "docs" / "kubernetes.md").read_text()
    section = page.split("\n## The newer way: claims\n")[1].split("\n## ")[0]
    config, a_class, claim = re.findall(r"^```text\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return config, yaml.safe_load(a_class), next(yaml.safe_load_all(claim))


def resident_mib(pid):
    """Memory of a process."""
    return int(pathlib.Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


class Bed:
    def __init__(self, options, directory, vgpud, cluster):
        self.directory, self.vgpud, self.cluster, self.programs = directory, vgpud, cluster, options
        self.log = os.path.join(directory, "plugin.log")
        for name in ("plugins", "registry", "kubelet"):
            os.mkdir(os.path.join(directory, name))
        self.configure(CONFIG)
        pathlib.Path(directory, "token").write_text(api.TOKEN)
        self.words = [options.plugin, "--config", f"{directory}/kubernetes.toml", "--runtime-dir", vgpud.runtime_dir, "--kubelet-dir", f"{directory}/kubelet",
                      "--cdi-file", f"{directory}/vgpud.json", "--library", str(paths.SHIM), "--period-ms", "100", "--plugins-dir", f"{directory}/plugins",
                      "--plugins-registry", f"{directory}/registry"]
        self.of_cluster = ["--api-server", cluster.url, "--api-token-file", f"{directory}/token", "--api-period-ms", "100", "--node-name", api.NODE]
        self.plugin = None
        self.kubelet = subprocess.Popen([options.kubelet, f"{directory}/registry"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def configure(self, text):
        with open(os.path.join(self.directory, "new.toml"), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(file.name, os.path.join(self.directory, "kubernetes.toml"))

    def start(self):
        self.plugin = process.spawn([*self.words, *self.of_cluster], self.log)

    def kill(self):
        self.plugin.kill()
        self.plugin.wait()

    def text(self):
        return pathlib.Path(self.log).read_text(errors="replace")

    def ask(self, *words):
        self.kubelet.stdin.write(" ".join(words) + "\n")
        self.kubelet.stdin.flush()
        return json.loads(self.kubelet.stdout.readline())

    def claims(self, *words):
        answer = self.ask(*words)
        if "claims" not in answer:
            raise AssertionError(f"{words}: {answer}")
        return answer["claims"]

    def find(self):
        """The plugin that kubelet finds, as soon as there is one."""
        found = []
        bed.wait_until(lambda: found.extend(self.ask("look")["found"]) or found, "a plugin registers", PATIENCE)
        return found

    def prepare(self, *names, version="v1", uid=None):
        """{claim: answer}. The claims are the API server's."""
        answers = self.claims("prepare", version, *(word for name in names for word in (uid or self.uid(name), "team", name)))
        return {name: answers[uid or self.uid(name)] for name in names}

    def unprepare(self, *names, version="v1"):
        answers = self.claims("unprepare", version, *(word for name in names for word in (self.uid(name), "team", name)))
        return [answers[self.uid(name)]["error"] for name in names]

    def uid(self, name):
        return self.cluster.claims[f"team/{name}"]["metadata"]["uid"]

    def devices(self):
        """{name: device} that are described for containers."""
        path = pathlib.Path(self.directory, "vgpud-claims.json")
        spec = json.loads(path.read_text()) if path.exists() else {"devices": [], "kind": ""}
        return {f"{spec['kind']}={device['name']}": (spec, device) for device in spec["devices"]}

    def run(self, cdi):
        """A CUDA program as a container with these devices has it, but without a container. How many VFs it has."""
        envs, mounts = {}, []
        for name in cdi:
            spec, device = self.devices()[name]
            for edits in (spec["containerEdits"], device["containerEdits"]):
                envs.update(each.split("=", 1) for each in edits.get("env", []))
                mounts += [(each["hostPath"], each["containerPath"]) for each in edits.get("mounts", [])]
        with inside.environment(envs, mounts) as environment:
            done = subprocess.run([str(paths.need(paths.LAUNCHER, "vgpu-launch")), "vectoradd"], env=environment, capture_output=True,
                                  text=True, timeout=120, check=False)
            check(done.returncode == 0, f"a CUDA program runs with {cdi}: {done.stdout}{done.stderr}")
            return inside.channels(environment)

    def uuids(self):
        return {name: self.vgpud.show(name)["uuid"] for name in self.vgpud.names()}

    def wait_for_devices(self, names):
        bed.wait_until(lambda: sorted(self.cluster.devices() or {}) == sorted(names), f"the slices have {names}", PATIENCE)


def needs_an_api_server(box):
    done = subprocess.run(box.words, capture_output=True, text=True, timeout=60, check=False,
                          env={key: value for key, value in os.environ.items() if not key.startswith("KUBERNETES_")})
    check(done.returncode == 1 and "say where it is (--api-server)" in done.stderr, f"without an API server it says what is missing: {done.stderr}")


def registers(box):
    box.start()
    (found,) = box.find()
    check(found["taken"] and found["type"] == "DRAPlugin" and found["name"] == "vgpud.dev", f"kubelet finds the driver: {found}")
    check(found["versions"] == ["v1.DRAPlugin", "v1beta1.DRAPlugin"] and found["path"].endswith("/vgpud.dev-reg.sock"), "in both versions")
    check(box.ask("refuse") == {"code": 0}, "it can be told that it is not taken")
    bed.wait_until(lambda: "kubelet does not take vgpud.dev: not\\nthis one" in box.text(), "and says so", PATIENCE)


def offers(box):
    box.wait_for_devices([*VFS, PLAIN])
    device = box.cluster.devices()[VFS[1]]
    check(device["capacity"] == {"memory": {"value": "1Gi"}}, f"with their memory: {device}")
    check(device["attributes"] == {"resource": {"string": "claims"}, "profile": {"string": "1/8"}, "product": {"string": "soft"},
                                   "gpu": {"string": box.vgpud.show(VFS[1])["gpu"]}, "computeCapability": {"version": "7.5.0"}, "numaNode": {"int": 0}}, "and what they are")
    changes, looks = box.cluster.changes, box.cluster.looks
    bed.wait_until(lambda: box.cluster.looks > looks + 5, "it looks again", PATIENCE)
    check(box.cluster.changes == changes and not box.cluster.problems, f"and changes nothing then: {box.cluster.problems}")
    with box.cluster.lock:
        (slice_,) = box.cluster.slices.values()
        slice_["spec"]["devices"].pop()
    box.wait_for_devices([*VFS, PLAIN])
    check(not list(pathlib.Path(box.directory, "kubelet").glob("*.sock")), "there is no device plugin for them")


def prepares(box):
    box.cluster.claim("one", UID.format(1), [("gpu", VFS[1])], ("FromClass", [], {"weight": 2000, "slice": "3ms"}),
                      ("FromClaim", ["gpu"], {"apiVersion": "vgpud.dev/v1", "kind": "VfParameters", "weight": 250, "vram": "64Mi"}))
    before = box.uuids()
    answer = box.prepare("one")["one"]
    cdi = f"vgpud.dev/claim={UID.format(1)}-gpu"
    check(answer == {"devices": [{"requests": ["gpu"], "pool": api.NODE, "device": VFS[1], "cdi": [cdi]}], "error": ""}, f"a claim is prepared: {answer}")
    vf = box.vgpud.show(VFS[1])
    check((vf["weight"], vf["slice_us"], vf["vram_bytes"]) == (250, 3000, 64 << 20) and vf["uuid"] != before[VFS[1]], f"its VF is new, and as it says: {vf}")
    check(vf["tenant"] == "pods" and box.vgpud.show(PLAIN)["tenant"] == "kubernetes", "of the tenant of its resource, else of the one that is built in")
    check(box.run([cdi]) == 1, "with one VF")
    used = [name for name, each in box.vgpud.stats()[1].items() if each["kernels"]]
    check(used == [VFS[1]], f"and on no other: {used}")
    for version in ("v1", "v1beta1"):
        check(box.prepare("one", version=version)["one"] == answer and box.vgpud.show(VFS[1])["uuid"] == vf["uuid"], f"a second time it is as it was ({version})")


def prepares_several(box):
    box.cluster.claim("many", UID.format(2), [("two", VFS[2]), ("two", VFS[0]), ("other", PLAIN)])
    answer = box.prepare("many")["many"]
    of_two, of_other = f"vgpud.dev/claim={UID.format(2)}-two", f"vgpud.dev/claim={UID.format(2)}-other"
    check([device["cdi"] for device in answer["devices"]] == [[of_two], [], [of_other]], f"a request's VFs are one device of containers: {answer}")
    check(box.run([of_two]) == 2 and box.run([of_other]) == 1, "with all of them")
    check(box.run([of_two, of_other]) == 3, "and a container may have the devices of both requests")
    check(box.vgpud.show(VFS[2])["weight"] == 300, "they have the weight of the resource")


def refuses(box):
    free, name = VFS[3], "wrong"
    result, uid = [("gpu", free)], UID.format(3)
    of_claim = lambda parameters: [("FromClaim", [], parameters)]  # noqa: E731
    before, files = box.uuids(), box.devices()
    for words, results, configs in (
            ("belongs to the claim team/one still", [("gpu", VFS[1])], []),
            ("offers no k8s-claims-9 any more", [("gpu", "k8s-claims-9")], []),
            ("no name of a VF", [("gpu", "../etc")], []),
            ("allocated twice", result * 2, []),
            ("no device of vgpud.dev is allocated", [], []),
            ("501 is more than 500", result, of_claim({"weight": 501})),
            ("is more than 4ms", result, of_claim({"slice": "5ms"})),
            ("more than the 1GiB", result, of_claim({"vram": "2Gi"})),
            ("may not ask for a weight", [("gpu", PLAIN)], of_claim({"weight": 5})),
            ("no parameter", result, of_claim({"user": 0})),
            ("weight: a number of 1 to 10000", result, of_claim({"weight": "many"})),
            ("parameters are no object", result, of_claim([1]))):
        if results == [("gpu", PLAIN)]:
            check(box.unprepare("many") == [""], "a claim gives its VFs back")
            bed.wait_until(lambda: set(box.uuids()) == set(before), "they are made again", PATIENCE)
            before, files = box.uuids(), box.devices()
        box.cluster.claim(name, uid, results, *configs)
        answer = box.prepare(name)[name]
        check(words in answer["error"] and answer["devices"] == [], f"refused: {answer['error']}")
    answer = box.prepare("one", uid="another-uid")["one"]
    check("is another claim now" in answer["error"], f"refused: {answer['error']}")
    answer = box.claims("prepare", "v1", UID.format(8), "team", "nowhere")[UID.format(8)]
    check("404" in answer["error"], f"refused: {answer['error']}")
    box.cluster.claim(name, uid, result)
    with box.cluster.lock:
        box.cluster.claims[f"team/{name}"]["status"]["allocation"]["devices"]["results"][0]["pool"] = "node-2"
    both = box.prepare(name, "one")
    check("of the pool" in both[name]["error"] and not both["one"]["error"], "one claim does not stop another")
    check(box.uuids() == before and box.devices() == files, "and nothing has changed")


def limits_of_vgpud(box):
    """What class and claim come to is vgpud's to judge, also where the plugin has nothing against it."""
    name, free = "heavy", VFS[3]
    for words, configs in (("slice_us 4ms is more than VFs of tenant pods may have", [("FromClaim", [], {"slice": "4ms"})]),
                           ("weight 3001 is more than VFs of tenant pods may have", [("FromClass", [], {"weight": 3001})])):
        box.cluster.claim(name, UID.format(4), [("gpu", free)], *configs)
        answer = box.prepare(name)[name]
        check(words in answer["error"] and answer["devices"] == [], f"refused by vgpud: {answer['error']}")
        bed.wait_until(lambda: free in box.vgpud.names(), "the next one gets the VF as it was", PATIENCE)


def driver_comes_back(box):
    before = box.uuids()
    for _ in range(2):
        box.kill()
        box.start()
        check(box.find()[0]["taken"], "a driver that was killed registers again")
        check(not box.prepare("one")["one"]["error"] and box.uuids() == before, "a claim has the same VF then")
    path = pathlib.Path(box.directory, "plugins", "vgpud.dev", "claims", f"{UID.format(1)}.claim")
    box.kill()
    path.write_text(path.read_text().replace('"made":true', '"made":false'))
    path.with_name(f"{UID.format(4)}.claim").write_text('{"version":1,')
    box.start()
    box.find()
    check(not box.prepare("one")["one"]["error"] and box.vgpud.show(VFS[1])["uuid"] != before[VFS[1]], "one that was interrupted makes its VF anew")
    check(f"{UID.format(4)}.claim is left out" in box.text(), "a damaged file is said")
    path.with_name(f"{UID.format(4)}.claim").unlink()
    box.run([f"vgpud.dev/claim={UID.format(1)}-gpu"])


def vgpud_comes_back(box):
    box.cluster.claim("late", UID.format(5), [("gpu", VFS[3])])
    uuid = box.vgpud.show(VFS[1])["uuid"]
    box.vgpud.kill()
    bed.wait_until(lambda: box.cluster.devices() == {}, "without vgpud nothing is offered", PATIENCE)
    check(box.prepare("late")["late"]["error"] != "" and box.unprepare("one")[0] != "", "nor prepared, nor given back")
    box.vgpud.start()
    box.wait_for_devices([*VFS, PLAIN])
    check(box.vgpud.show(VFS[1])["uuid"] == uuid and not box.prepare("late")["late"]["error"], "it is back, and claims have their VFs")
    box.vgpud.destroy(VFS[1])
    bed.wait_until(lambda: VFS[1] in box.vgpud.names() and box.vgpud.show(VFS[1])["weight"] == 250, "a VF that somebody destroyed is made again as its claim says", PATIENCE)
    check(not box.prepare("one")["one"]["error"], "and its claim is prepared")


def api_server_comes_back(box):
    box.cluster.claim("later", UID.format(6), [("gpu", PLAIN)])
    claim = box.cluster.claims.pop("team/later")
    check("404" in box.claims("prepare", "v1", UID.format(6), "team", "later")[UID.format(6)]["error"], "a claim that can't be read is not prepared")
    check(not box.prepare("one")["one"]["error"], "one that is known is")
    box.cluster.claims["team/later"] = claim
    check(not box.prepare("later")["later"]["error"], "and the other as soon as it can be read")
    check(box.unprepare("later") == [""], "and given back")


def reconfigures(box):
    uuid = box.vgpud.show(VFS[1])["uuid"]
    box.configure('[resource."vgpud.dev/plain"]\nprofile = "1/8"\ncount = 1\ndra = true\n')
    bed.wait_until(lambda: sorted(box.vgpud.names()) == [VFS[1], VFS[3], PLAIN], "VFs that no claim has are ended", PATIENCE)
    box.wait_for_devices([PLAIN])
    check(box.vgpud.show(VFS[1])["uuid"] == uuid and not box.prepare("one")["one"]["error"], "those of claims stay")
    check(box.unprepare("late") == [""] and VFS[3] not in box.vgpud.names(), "until they are given back")
    box.configure(CONFIG)
    box.wait_for_devices([*VFS, PLAIN])


def gives_back(box):
    uuid = box.vgpud.show(VFS[1])["uuid"]
    for version in ("v1", "v1beta1"):
        check(box.unprepare("one", "one", version=version) == ["", ""], f"a claim is given back, as often as one likes ({version})")
    bed.wait_until(lambda: VFS[1] in box.vgpud.names() and box.vgpud.show(VFS[1])["weight"] == 300, "its VF is as it was", PATIENCE)
    check(box.vgpud.show(VFS[1])["uuid"] != uuid and box.devices() == {}, "and another one")
    check(not pathlib.Path(box.directory, "vgpud-claims.json").exists() and not os.listdir(f"{box.directory}/plugins/vgpud.dev/claims"), "nothing is left of it")
    uuid = box.vgpud.show(VFS[3])["uuid"]
    check(box.claims("unprepare", "v1", "..", "..", "..") == {"..": {"error": ""}} and box.vgpud.show(VFS[3])["uuid"] == uuid, "one that never was is fine")


def as_documented(box):
    if yaml is None:
        print("skipped: the page's blocks (no python3-yaml)")
        return
    config, a_class, claim = documented()
    check(a_class == yaml.safe_load((REPO / "integrations" / "kubernetes" / "deviceclass.yaml").read_text()), "the page's class is the one that there is")
    box.configure(config)
    bed.wait_until(lambda: (box.cluster.devices() or {}).get(VFS[0], {}).get("capacity") == {"memory": {"value": "2Gi"}}, "its configuration is taken", PATIENCE)
    (each,) = claim["spec"]["devices"]["config"]
    (request,) = claim["spec"]["devices"]["requests"]
    box.cluster.claim(claim["metadata"]["name"], UID.format(7), [(request["name"], VFS[0])], ("FromClaim", each["requests"], each["opaque"]["parameters"]))
    answer = box.prepare(claim["metadata"]["name"])[claim["metadata"]["name"]]
    vf = box.vgpud.show(VFS[0])
    check(not answer["error"] and (vf["weight"], vf["slice_us"], vf["vram_bytes"]) == (300, 2000, 512 << 20), f"and its claim: {answer} {vf}")
    check(box.unprepare(claim["metadata"]["name"]) == [""], "and given back")


def wrong_requests(box, count, seed):
    before, files = box.uuids(), os.listdir(f"{box.directory}/plugins/vgpud.dev/claims")
    pid = box.plugin.pid
    box.ask("garbage", "200", "1")  # its connections, threads and buffers are there
    opened, memory, begin = bed.open_files(pid), resident_mib(pid), time.monotonic()
    answers = box.ask("garbage", str(count), str(seed))["garbage"]
    after = resident_mib(pid)
    print(f"{count} wrong requests in {time.monotonic() - begin:.1f} s: {answers}; memory {memory:.1f} MiB, then {after:.1f} MiB")
    check("-1" not in answers and "given" not in answers and sum(answers.values()) == count, "each was answered, none got a VF")
    check(set(answers) > {"0", "12"}, "with words of gRPC")
    bed.wait_until(lambda: box.plugin.poll() is None and bed.open_files(pid) <= opened, f"no file stays open beyond the {opened} of before", PATIENCE)
    check(after < memory + MOST_MIB_MORE, "and hardly any memory")
    check(box.uuids() == before and os.listdir(f"{box.directory}/plugins/vgpud.dev/claims") == files, "VFs and claims are the same")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plugin")
    parser.add_argument("kubelet")
    parser.add_argument("--wrong", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with process.scratch_dir("vgpu-dra-") as directory, bed.supervised(["--numa-node", "0", *(f"--tenant=pods.{limit}" for limit in LIMITS)]) as vgpud, contextlib.ExitStack() as stack:
        cluster = api.Api()
        stack.callback(cluster.stop)
        box = Bed(options, directory, vgpud, cluster)
        stack.callback(box.kubelet.kill)
        needs_an_api_server(box)
        stack.callback(lambda: box.plugin and process.stop(box.plugin))
        try:
            registers(box)
            offers(box)
            prepares(box)
            prepares_several(box)
            refuses(box)
            limits_of_vgpud(box)
            wrong_requests(box, options.wrong, options.seed)
            driver_comes_back(box)
            vgpud_comes_back(box)
            api_server_comes_back(box)
            reconfigures(box)
            gives_back(box)
            as_documented(box)
            process.stop(box.plugin)
            check(box.plugin.returncode == 0, "the driver ends in peace")
            check(not list(pathlib.Path(directory).glob("**/*.sock")), "and leaves no socket")
        except BaseException:
            print(f"the plugin's log:\n{box.text()[-5000:]}\nvgpud's log:\n{vgpud.text()[-2000:]}")
            raise
    print("kubernetes claims: ok")


main()
