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
        self._unread = b""
        self.events = []
        self._read(60)
        self.command("qmp_capabilities")

    def close(self):
        self._socket.close()

    def command(self, name, **arguments):
        """The answer; RuntimeError with QEMU's words when it refuses."""
        self._socket.settimeout(60)
        self._socket.sendall(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = self._read(60)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise RuntimeError(f"{name}: {answer['error']['desc']}")

    def wait_event(self, name, timeout, unless=lambda: False):
        """True when the event has come, False as soon as `unless`; TimeoutError."""
        deadline = time.monotonic() + timeout
        while not any(event["event"] == name for event in self.events):
            if unless():
                return False
            if time.monotonic() >= deadline:
                raise TimeoutError(f"no event {name} within {timeout} s")
            try:
                self._read(min(0.2, timeout))
            except TimeoutError:
                pass
        self.events = [event for event in self.events if event["event"] != name]
        return True

    def _read(self, timeout):
        """The next answer or event; TimeoutError, after which the next call goes on."""
        self._socket.settimeout(timeout)
        while b"\n" not in self._unread:
            data = self._socket.recv(65536)
            if not data:
                raise RuntimeError("QEMU has closed its machine protocol")
            self._unread += data
        line, self._unread = self._unread.split(b"\n", 1)
        answer = json.loads(line)
        if "event" in answer:
            self.events.append(answer)
        return answer
