# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes of one node on this machine, of what build-kubernetes made: etcd, kube-apiserver, kube-scheduler, containerd and kubelet,
everything in one directory. Only for a process that has mounts and process numbers of its own (own_namespaces): kubelet has fixed places."""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tools" / "lib"))
sys.path.insert(0, str(REPO / "tests" / "restart"))

import bed  # noqa: E402
import image  # noqa: E402
from vgpuguest import paths, process  # noqa: E402

PARTS = paths.CACHE / "kubernetes"
IMAGE = "vgpud.test/program:1"
NAME = "node"
TOKEN = "administrator-of-a-test"
IN_NAMESPACES = "VGPUD_KUBERNETES_NAMESPACES"
PODS = "/api/v1/namespaces/default/pods"

_CONTAINERD = """\
version = 2
root = "{dir}/containerd"
state = "/run/containerd"
[grpc]
  address = "{dir}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{parts}/packages/usr/sbin/runc"
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "{dir}/cni"
    bin_dir = "{dir}/cni"
"""

_KUBELET = {
    "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1", "address": "127.0.0.1", "readOnlyPort": 0,
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}}, "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "cgroupfs", "cgroupsPerQOS": False, "enforceNodeAllocatable": [], "failSwapOn": False, "resolvConf": "",
    "makeIPTablesUtilChains": False, "hairpinMode": "none", "nodeStatusUpdateFrequency": "1s", "syncFrequency": "2s",
    "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1Mi", "imagefs.available": "1Mi"}, "imageGCHighThresholdPercent": 100}


def missing():
    """Why there can be no Kubernetes here, or ""."""
    if os.geteuid() != 0:
        return "kubelet and containers need root, and this is not root"
    if not (paths.BUILD / "integrations" / "kubernetes" / "vgpud-kubernetes").exists():
        return "vgpud-kubernetes is not built: ninja -C build"
    for name in ("unshare", "openssl", image.BUSYBOX):
        if shutil.which(name) is None:
            return f"{name} is not installed"
    return ""


def own_namespaces():
    """Starts this program again where what it mounts and starts is nobody else's, and ends with it."""
    if os.environ.get(IN_NAMESPACES):
        for place in ("/run", "/var/lib", "/var/log"):
            subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
        return
    os.environ[IN_NAMESPACES] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable,
                          *sys.argv])


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Node:
    def __init__(self, directory, program):
        self.dir, self.program = directory, program
        self.ports = dict(zip(("etcd", "peer", "api", "scheduler", "kubelet", "health"), _free_ports(6)))
        self.children = {}
        self.context = None

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))

    def spawn(self, name, program, *words):
        self.children[name] = process.spawn([program, *words], self.path(f"log/{name}"), env={
            "PATH": f"{PARTS}/packages/usr/bin:{PARTS}/packages/usr/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "HOME": self.dir})

    def kill(self, name):
        self.children[name].kill()
        self.children[name].wait()

    def start(self):
        for name in ("log", "cni", "containerd", "certificates"):
            os.mkdir(self.path(name))
        self._start_containers()
        self._start_api()
        self.start_kubelet()
        bed.wait_until(self.is_ready, "the node is ready", 300)

    def _start_containers(self):
        # Pods here have the node's network, so nothing of it is ever run; containerd wants it to be there.
        self.write("cni/10-none.conf", {"cniVersion": "0.3.1", "name": "none", "type": "none"})
        self.write("containerd.toml", _CONTAINERD.format(dir=self.dir, image=IMAGE, parts=PARTS))
        self.spawn("containerd", PARTS / "packages/usr/bin/containerd", "--config", self.path("containerd.toml"))
        bed.wait_until(lambda: os.path.exists(self.path("containerd.sock")), "containerd listens", 60)
        image.write(self.path("image.tar"), IMAGE, self.program)
        subprocess.run([PARTS / "packages/usr/bin/ctr", "--address", self.path("containerd.sock"), "--namespace", "k8s.io", "images", "import",
                        "--snapshotter", "native", self.path("image.tar")], check=True, stdout=subprocess.DEVNULL, timeout=120)

    def _start_api(self):
        key, etcd = self.path("accounts.key"), f"http://127.0.0.1:{self.ports['etcd']}"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True, timeout=60)
        self.write("token", TOKEN)
        self.write("tokens.csv", f"{TOKEN},administrator,1,system:masters\n")
        peer = f"http://127.0.0.1:{self.ports['peer']}"
        self.spawn("etcd", PARTS / "packages/usr/bin/etcd", "--data-dir", "/run/etcd", "--listen-client-urls", etcd, "--advertise-client-urls",
                   etcd, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}")
        self.spawn("api", PARTS / "bin/kube-apiserver", "--etcd-servers", etcd, "--bind-address=127.0.0.1", "--service-cluster-ip-range=10.99.0.0/24",
                   f"--secure-port={self.ports['api']}", f"--cert-dir={self.path('certificates')}", f"--token-auth-file={self.path('tokens.csv')}",
                   "--service-account-issuer=https://vgpud.test", f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
                   "--authorization-mode=AlwaysAllow", "--endpoint-reconciler-type=none", "--allow-privileged",
                   # There is no controller manager, which would take the taint away, nor accounts for pods.
                   "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition")
        bed.wait_until(self._answers, "the API server answers", 300)
        self.write("kubeconfig", {
            "kind": "Config", "apiVersion": "v1", "current-context": "it", "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": self.url(), "certificate-authority": self.certificate()}}],
            "users": [{"name": "it", "user": {"token": TOKEN}}]})
        self.spawn("scheduler", PARTS / "bin/kube-scheduler", f"--kubeconfig={self.path('kubeconfig')}", "--leader-elect=false", "--port=0",
                   "--bind-address=127.0.0.1", f"--secure-port={self.ports['scheduler']}", f"--cert-dir={self.path('certificates')}")

    def start_kubelet(self):
        self.write("kubelet.json", {**_KUBELET, "port": self.ports["kubelet"], "healthzPort": self.ports["health"]})
        self.spawn("kubelet", PARTS / "bin/kubelet", f"--config={self.path('kubelet.json')}", f"--kubeconfig={self.path('kubeconfig')}",
                   "--container-runtime=remote", f"--container-runtime-endpoint=unix://{self.path('containerd.sock')}",
                   f"--hostname-override={NAME}", f"--cert-dir={self.path('certificates')}", "--runtime-request-timeout=5m")

    def url(self):
        return f"https://127.0.0.1:{self.ports['api']}"

    def certificate(self):
        return self.path("certificates/apiserver.crt")

    def _answers(self):
        try:
            self.context = self.context or ssl.create_default_context(cafile=self.certificate())
            self.ask("GET", "/api/v1/namespaces/default")
            return True
        except (OSError, urllib.error.URLError, ssl.SSLError):
            return False

    def ask(self, method, path, body=None, kind="application/json"):
        """The API server's answer."""
        request = urllib.request.Request(f"{self.url()}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": kind})
        with urllib.request.urlopen(request, timeout=30, context=self.context) as answer:
            return json.load(answer)

    def described(self):
        return self.ask("GET", f"/api/v1/nodes/{NAME}")

    def is_ready(self):
        try:
            conditions = self.described()["status"].get("conditions", [])
        except urllib.error.HTTPError:
            return False
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def allocatable(self, resource):
        return int(self.described()["status"].get("allocatable", {}).get(resource, -1))

    def run(self, name, resources, *command, node=None, choose=None):
        """A pod. `node`: of this node, without asking the scheduler; `choose`: labels that its node must have."""
        container = {"name": "program", "image": IMAGE, "imagePullPolicy": "Never", "command": [image.PROGRAM, *command],
                     "resources": {"limits": {key: str(value) for key, value in resources.items()}}}
        spec = {"hostNetwork": True, "restartPolicy": "Never", "enableServiceLinks": False, "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 1, "tolerations": [{"operator": "Exists"}], "containers": [container]}
        if node:
            spec["nodeName"] = node
        if choose:
            spec["nodeSelector"] = choose
        self.ask("POST", PODS, {"kind": "Pod", "apiVersion": "v1", "spec": spec, "metadata": {"name": name}})

    def annotate(self, name, annotations):
        self.ask("PATCH", f"{PODS}/{name}", {"metadata": {"annotations": annotations}}, kind="application/merge-patch+json")

    def why_unscheduled(self, name):
        """What the scheduler says; empty: nothing yet."""
        return " ".join(each.get("message", "") for each in self.pod(name)["status"].get("conditions", []) if each.get("reason") == "Unschedulable")

    def pod(self, name):
        return self.ask("GET", f"{PODS}/{name}")

    def wait_for(self, name, *phases, seconds=120):
        """The pod, as soon as it is in one of these."""
        end = time.monotonic() + seconds
        while (pod := self.pod(name))["status"]["phase"] not in phases:
            if time.monotonic() > end:
                raise AssertionError(f"{name} did not become {phases} within {seconds} s: {pod['status']}")
            time.sleep(0.2)
        return pod

    def output(self, name):
        """What the pod's program wrote."""
        files = pathlib.Path("/var/log/pods").glob(f"default_{name}_*/program/*.log")
        return "".join(line.split(" ", 3)[3] for path in sorted(files) for line in path.read_text().splitlines(True))

    def delete(self, name):
        self.ask("DELETE", f"{PODS}/{name}")

        def gone():
            try:
                self.pod(name)
                return False
            except urllib.error.HTTPError as error:
                return error.code == 404
        bed.wait_until(gone, f"the pod {name} is gone", 120)

    def stop(self):
        for name in ("kubelet", "scheduler", "api", "etcd", "containerd"):
            if name in self.children:
                process.stop(self.children[name], 10)
        for path in sorted(pathlib.Path("/sys/fs/cgroup").glob("**/k8s.io/**/"), reverse=True):
            with contextlib.suppress(OSError):  # somebody else's
                path.rmdir()

    def logs(self, lines=15):
        return "".join(f"--- {path.name}\n{process.tail(path, lines)}" for path in sorted(pathlib.Path(self.path("log")).iterdir()))
