# SPDX-License-Identifier: Apache-2.0
"""A small honest API server: one node with labels, its pods with annotations, for who has the token."""
import http.server
import json
import threading
import urllib.parse

TOKEN, NODE = "a token", "node-1"
NODE_PATH, PODS_PATH = f"/api/v1/nodes/{NODE}", "/api/v1/pods"


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
            elif self.command != "GET":
                return self._answer(405, {"kind": "Status", "message": "not allowed"})
            if url.path == NODE_PATH:
                return self._answer(200, {"kind": "Node", "metadata": {"name": NODE, "labels": api.labels}})
            if url.path == PODS_PATH and query.get("fieldSelector") == [f"spec.nodeName={NODE}"]:
                return self._answer(200, {"kind": "PodList", "items": [
                    {"metadata": dict(zip(("namespace", "name"), pod.split("/")), annotations=annotations)}
                    for pod, annotations in api.annotations.items()]})
        return self._answer(404, {"kind": "Status", "message": f"there is no {self.path}"})

    do_GET = do_PATCH = _handle

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


class Api:
    def __init__(self):
        self.lock = threading.Lock()
        self.labels, self.annotations, self.patches = {"vgpud.dev/of-an-earlier": "x", "other.dev/kept": "y"}, {}, 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.server.api = self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def annotate(self, pod, weight):
        with self.lock:
            self.annotations[pod] = {} if weight is None else {"vgpud.dev/weight": weight}

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
