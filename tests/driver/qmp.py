# SPDX-License-Identifier: Apache-2.0
"""QEMU's machine protocol, as far as these tests need it."""
import json
import socket
import time


class Qmp:
    def __init__(self, path, timeout=30):
        self._socket = socket.socket(socket.AF_UNIX)
        deadline = time.monotonic() + timeout
        while True:
            try:
                self._socket.connect(path)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        self._lines = self._socket.makefile("r")
        self.events = []
        self._read()
        self.command("qmp_capabilities")

    def close(self):
        self._socket.close()

    def command(self, name, **arguments):
        """The answer; RuntimeError with QEMU's words when it refuses."""
        self._socket.settimeout(60)
        self._socket.sendall(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = self._read()
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise RuntimeError(f"{name}: {answer['error']['desc']}")

    def wait_event(self, name, timeout):
        """Returns when the event has come; TimeoutError."""
        deadline = time.monotonic() + timeout
        while not any(event["event"] == name for event in self.events):
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no event {name} within {timeout} s")
            self._socket.settimeout(left)
            try:
                self._read()
            except socket.timeout:
                pass
        self.events = [event for event in self.events if event["event"] != name]

    def _read(self):
        line = self._lines.readline()
        if not line:
            raise RuntimeError("QEMU has closed its machine protocol")
        answer = json.loads(line)
        if "event" in answer:
            self.events.append(answer)
        return answer
