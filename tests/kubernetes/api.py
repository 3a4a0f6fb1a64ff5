# SPDX-License-Identifier: Apache-2.0
"""A small honest API server: one node with labels, its pods with annotations, claims and resource slices, for who has the token."""
import http.server
import json
import re
import threading
import urllib.parse

TOKEN, NODE = "a token", "node-1"
NODE_PATH, PODS_PATH = f"/api/v1/nodes/{NODE}", "/api/v1/pods"
NODE_UID = "9a1e-node"
RESOURCES = "/apis/resource.k8s.io/v1"
SLICES_PATH = f"{RESOURCES}/resourceslices"
CLAIM_PATH = re.compile(rf"{RESOURCES}/namespaces/([a-z0-9.-]+)/resourceclaims/([a-z0-9.-]+)")


class _Handler(http.server.BaseHTTPRequestHandler):
    def _answer(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _handle(self):
        api, url = self.server.api, urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with api.lock:
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                return self._answer(401, {"kind": "Status", "message": "who are you?"})
            if url.path == NODE_PATH and self.command == "PATCH" and self.headers["Content-Type"] == "application/merge-patch+json":
                for name, value in json.loads(body)["metadata"]["labels"].items():
                    api.labels.pop(name, None)
                    if value is not None:
                        api.labels[name] = value
                api.patches += 1
            elif url.path.startswith(SLICES_PATH) and self.command in ("POST", "PUT", "DELETE"):
                return self._answer(*api.change_slice(self.command, url.path[len(SLICES_PATH) + 1:], body))
            elif self.command != "GET":
                return self._answer(405, {"kind": "Status", "message": "not allowed"})
            if url.path == NODE_PATH:
                return self._answer(200, {"kind": "Node", "metadata": {"name": NODE, "uid": NODE_UID, "labels": api.labels}})
            if url.path == PODS_PATH and query.get("fieldSelector") == [f"spec.nodeName={NODE}"]:
                return self._answer(200, {"kind": "PodList", "items": [
                    {"metadata": dict(zip(("namespace", "name"), pod.split("/")), annotations=annotations)}
                    for pod, annotations in api.annotations.items()]})
            if url.path == SLICES_PATH and query.get("fieldSelector") == [f"spec.nodeName={NODE},spec.driver=vgpud.dev"]:
                api.looks += 1
                return self._answer(200, {"kind": "ResourceSliceList", "items": list(api.slices.values())})
            if (match := CLAIM_PATH.fullmatch(url.path)) and f"{match[1]}/{match[2]}" in api.claims:
                return self._answer(200, api.claims[f"{match[1]}/{match[2]}"])
        return self._answer(404, {"kind": "Status", "message": f"there is no {self.path}"})

    do_GET = do_PATCH = do_POST = do_PUT = do_DELETE = _handle

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


def why_not(slice_, name):
    """What of the published rules a slice breaks; "": none."""
    spec = slice_["spec"]
    rules = {
        "apiVersion and kind": slice_["apiVersion"] == "resource.k8s.io/v1" and slice_["kind"] == "ResourceSlice",
        "its name": re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", slice_["metadata"]["name"]) and name in (None, slice_["metadata"]["name"]),
        "its owner": slice_["metadata"]["ownerReferences"][0]["uid"] == NODE_UID,
        "its pool": spec["driver"] == "vgpud.dev" and spec["nodeName"] == NODE == spec["pool"]["name"] and spec["pool"]["generation"] > 0,
        "its devices": 0 < len(spec["devices"]) <= 128,
    }
    for device in spec["devices"]:
        rules[f"the name {device['name']}"] = re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", device["name"])
        for key, value in device["attributes"].items():
            ((kind, text),) = value.items()
            rules[f"the attribute {key}"] = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,31}", key) and \
                {"string": lambda text: 0 < len(text) <= 64, "int": lambda text: isinstance(text, int),
                 "version": lambda text: re.fullmatch(r"\d+\.\d+\.\d+", text)}[kind](text)
        for key, value in device["capacity"].items():
            rules[f"the capacity {key}"] = re.fullmatch(r"\d+([KMGT]i)?", value["value"])
    return ", ".join(what for what, holds in rules.items() if not holds)


class Api:
    def __init__(self):
        self.lock = threading.Lock()
        self.labels, self.annotations, self.patches = {"vgpud.dev/of-an-earlier": "x", "other.dev/kept": "y"}, {}, 0
        self.claims, self.slices = {}, {}  # {NAMESPACE/NAME: object}, {name: object}
        self.looks, self.changes, self.problems = 0, 0, []  # at slices; of them; what a real one would refuse
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.server.api = self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def annotate(self, pod, weight):
        with self.lock:
            self.annotations[pod] = {} if weight is None else {"vgpud.dev/weight": weight}

    def claim(self, name, uid, results, *configs, namespace="team"):
        """An allocated claim. `results`: (request, device); `configs`: (source, requests, parameters)."""
        with self.lock:
            self.claims[f"{namespace}/{name}"] = {
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "namespace": namespace, "uid": uid},
                "status": {"allocation": {"devices": {
                    "results": [{"request": request, "driver": "vgpud.dev", "pool": NODE, "device": device} for request, device in results],
                    "config": [{"source": source, "requests": requests, "opaque": {"driver": "vgpud.dev", "parameters": parameters}}
                               for source, requests, parameters in configs]}}}}

    def devices(self):
        """{name: device} of the slices that count: those with the highest generation, if all of them are there."""
        with self.lock:
            pools = [each["spec"]["pool"] for each in self.slices.values()]
            newest = [each["spec"] for each in self.slices.values() if each["spec"]["pool"]["generation"] == max(pool["generation"] for pool in pools)]
            if any(spec["pool"]["resourceSliceCount"] != len(newest) for spec in newest):
                return None
            return {device["name"]: device for spec in newest for device in spec["devices"]}

    def change_slice(self, command, name, body):
        self.changes += 1
        if command == "DELETE":
            return (200, {"kind": "Status"}) if self.slices.pop(name, None) else (404, {"kind": "Status", "message": f"there is no {name}"})
        slice_ = json.loads(body)
        why = why_not(slice_, name if command == "PUT" else None)
        old = self.slices.get(slice_["metadata"]["name"])
        if (old is None) == (command == "PUT"):
            why = why or "it is there already, or not at all"
        if old is not None and old["metadata"]["resourceVersion"] != slice_["metadata"].get("resourceVersion"):
            return 409, {"kind": "Status", "message": "the object has been modified"}
        if why:
            self.problems.append(why)
            return 422, {"kind": "Status", "message": why}
        slice_["metadata"]["resourceVersion"] = str(self.changes)
        self.slices[slice_["metadata"]["name"]] = slice_
        return 201 if old is None else 200, slice_

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
