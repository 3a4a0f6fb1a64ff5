#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Helm chart's templates, filled in as helm does (of its language there is here what they use: values, toYaml and indent), and what kubelet
and the plugin need of them: every option is one that vgpud-kubernetes has, every place a container names is mounted, and what the plugin asks
of the API server its account may. Also by helm itself, where it is installed.

usage: chart_test.py PLUGIN CHART"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:
    print("SKIPPED: no PyYAML (python3-yaml)")
    sys.exit(77)

RELEASE = {"Namespace": "kube-system"}


def lookup(path, values):
    value = {"Values": values, "Release": RELEASE}
    for part in path.strip(".").split("."):
        value = value[part]
    return value


def fill(match, values):
    path, *functions = [part.strip() for part in match[1].split("|")]
    value = lookup(path, values)
    for function in functions:
        if function == "toYaml":
            value = yaml.safe_dump(value, default_flow_style=False).strip()
        else:
            name, spaces = function.split()
            assert name == "indent", function
            value = "\n".join(" " * int(spaces) + line for line in str(value).rstrip("\n").splitlines())
    assert isinstance(value, (str, int)), (path, value)
    return str(value)


def rendered(chart, values):
    """{kind: object} of all templates."""
    objects = {}
    for path in sorted((chart / "templates").glob("*.yaml")):
        text = re.sub(r"\{\{-?\s*(.*?)\s*-?\}\}", lambda match: fill(match, values), path.read_text())
        for each in yaml.safe_load_all(text):
            assert each["kind"] not in objects, each["kind"]
            objects[each["kind"]] = each
    return objects


def check_plugin(objects, values, options):
    spec = objects["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    for word in container["args"]:
        name = word.split("=", 1)[0]
        assert name in options, f"vgpud-kubernetes has no {name}"
    places = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert sorted(places.values()) == sorted(volumes), (places, volumes)
    for place, name in places.items():
        if "hostPath" in volumes[name]:
            assert volumes[name]["hostPath"]["path"] == place, f"{place} must be the same on the node: others are told of it"
    for word in container["args"]:
        value = word.split("=", 1)[1]
        assert not value.startswith("/") or any(value == place or value.startswith(place + "/") for place in places), f"{word} is not mounted"
    # libnvidia-ml.so.1 lies next to the library that the option names: without their directory containers get no NVML.
    (library,) = [word.split("=", 1)[1] for word in container["args"] if word.startswith("--library=")]
    directory = library.rsplit("/", 1)[0]
    assert directory in places and volumes[places[directory]]["hostPath"]["type"] == "Directory", f"{directory} is not mounted as a whole"
    assert container["env"][0]["name"] == "NODE_NAME" and container["env"][0]["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"
    assert spec["serviceAccountName"] == objects["ServiceAccount"]["metadata"]["name"]
    assert spec["nodeSelector"] == values["nodeSelector"] and spec["tolerations"] == values["tolerations"], spec
    assert objects["DaemonSet"]["spec"]["selector"]["matchLabels"] == objects["DaemonSet"]["spec"]["template"]["metadata"]["labels"]


def check_account(objects):
    may = {(group, resource, verb) for rule in objects["ClusterRole"]["rules"] for group in rule["apiGroups"] for resource in rule["resources"]
           for verb in rule["verbs"]}
    slices = {("resource.k8s.io", "resourceslices", verb) for verb in ("list", "create", "update", "delete")}
    assert may == {("", "nodes", "get"), ("", "nodes", "patch"), ("", "pods", "list"), ("resource.k8s.io", "resourceclaims", "get"), *slices}, may
    (subject,) = objects["ClusterRoleBinding"]["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": objects["ServiceAccount"]["metadata"]["name"], "namespace": RELEASE["Namespace"]}
    assert objects["ClusterRoleBinding"]["roleRef"]["name"] == objects["ClusterRole"]["metadata"]["name"]


def check(chart, plugin, values, options, scratch):
    objects = rendered(chart, values)
    assert sorted(objects) == ["ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet", "ServiceAccount"], sorted(objects)
    check_plugin(objects, values, options)
    check_account(objects)
    assert objects["ConfigMap"]["data"]["kubernetes.toml"].rstrip("\n") == values["config"].rstrip("\n"), objects["ConfigMap"]
    (scratch / "kubernetes.toml").write_text(objects["ConfigMap"]["data"]["kubernetes.toml"])
    # It reads its configuration first, and only then misses the library.
    said = subprocess.run([plugin, "--config", scratch / "kubernetes.toml", "--library", "/nowhere/libcuda.so.1"], capture_output=True, text=True,
                          timeout=60, check=False).stderr
    assert "libcuda.so.1 of vgpud is not at /nowhere" in said, said
    return objects


def main():
    plugin, chart = sys.argv[1], pathlib.Path(sys.argv[2])
    usage = subprocess.run([plugin, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    options = set(re.findall(r"--[a-z-]+", usage))
    values = yaml.safe_load((chart / "values.yaml").read_text())
    described = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert {"apiVersion", "name", "version"} <= set(described), described
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        objects = check(chart, plugin, values, options, scratch)
        other = dict(values, deliver="mounts", kubeletDir="/data/kubelet", runtimeDir="/srv/vgpud", nodeSelector={"a": "b", "c": "d"},
                     tolerations=[{"operator": "Exists", "effect": "NoSchedule"}], config=values["config"] + '[resource."vgpud.dev/b"]\nprofile = "1/8"\n')
        check(chart, plugin, other, options, scratch)
    plain = {each["kind"]: each for each in yaml.safe_load_all((chart.parent / "vgpud.yaml").read_text())}
    assert plain == objects, f"vgpud.yaml is not what the chart makes with its own values: {json.dumps([plain, objects], indent=1)}"
    helm = shutil.which("helm")
    if helm:
        said = subprocess.run([helm, "template", "vgpud", chart, "--namespace", RELEASE["Namespace"]], capture_output=True, text=True, check=True,
                              timeout=60).stdout
        theirs = {each["kind"]: each for each in yaml.safe_load_all(said) if each}
        assert theirs == objects, json.dumps([theirs, objects], indent=1)
    print(f"chart: ok{'' if helm else ' (helm is not installed: its own rendering was not compared)'}")


main()
