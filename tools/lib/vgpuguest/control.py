# SPDX-License-Identifier: Apache-2.0
"""vgpud's control API: HTTP over its Unix socket. Standard library only, and no other file of ours: gpu-check's bundle has a copy."""
import contextlib
import http.client
import json
import os
import socket
import struct


def connect(path, timeout):
    """A connection to the control socket there, or to the one for this user alone. While its queue is full this waits, as vgpuctl does; Python's
    own time-out would refuse at once."""
    with contextlib.suppress(OSError):
        return _connect(os.path.join(os.path.dirname(path), "own.sock"), timeout)
    return _connect(path, timeout)


def _connect(path, timeout):
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(timeout), int(timeout % 1 * 1e6)))
        connection.connect(path)
        connection.settimeout(timeout)
    except BlockingIOError as error:
        connection.close()
        raise TimeoutError(f"{path}: the queue of those who connect was full for {timeout} s") from error
    except OSError:
        connection.close()
        raise
    return connection


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = connect(self._path, self.timeout)


def ask(path, method, target, body=None, timeout=10):
    """(status, text) of the answer on the control socket `path`. `body`: bytes are sent as they are, all else as JSON. Each wait ends after
    `timeout` seconds with OSError; http.client.HTTPException: that was no HTTP."""
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body)
    with contextlib.closing(_UnixConnection(path, timeout)) as connection:
        connection.request(method, target, sent, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")
