#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many users of the host who abuse vgpud's control socket, all at once, played by one process.

usage: crowd.py SOCKET --users FIRST:COUNT --abuses NAME,... [--pace SECONDS]   until its standard input ends; as root

Whoever connects is known to vgpud by what the kernel says: this process is each user in turn while it connects for them. Each user commits
each abuse, a step per `pace`; 0 is as fast as this one process can. At the end it prints what came of it, as JSON."""
import argparse
import collections
import contextlib
import heapq
import itertools
import json
import os
import random
import resource
import select
import socket
import sys
import time

_READ = select.EPOLLIN | select.EPOLLHUP
_DEAF = select.EPOLLHUP
_LOOKS = ["/v1/vfs", "/v1/stats", "/v1/gpu", "/metrics", "/v1/topo", "/v1/profiles", "/v1/vfs/good", "/v1/trace?last_us=1000000"]


def request(method, path, body=None):
    text = b"" if body is None else json.dumps(body).encode()
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text


class Connection:
    def __init__(self, owner, deaf=False):
        self.owner, self.deaf = owner, deaf
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        if deaf:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.head = b""  # how the answer begins
        self.open = False
        os.setresuid(-1, owner.uid, -1)
        try:
            self.socket.connect(owner.crowd.path)
            self.open = True
        except OSError:  # the kernel's queue is full
            self.socket.close()
        finally:
            os.setresuid(-1, 0, -1)
        if self.open:
            owner.crowd.add(self)
        owner.count("connected" if self.open else "queue full")

    def send(self, data):
        with contextlib.suppress(OSError):
            self.socket.send(data, socket.MSG_NOSIGNAL)
        return self

    def ready(self):
        try:
            data = b"" if self.deaf else self.socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            if not self.head:
                self.owner.count(data[9:12].decode(errors="replace"))  # its status
                self.head = data[:12]
            self.owner.answered(self, data)
        else:
            self.close()
            self.owner.ended()

    def close(self):
        if self.open:
            self.owner.crowd.drop(self)
            self.socket.close()
            self.open = False


class Abuse:
    """One abuse by one user."""
    most = 1  # connections at a time
    deaf = False

    def __init__(self, crowd, uid):
        self.crowd, self.uid = crowd, uid
        self.held = []
        self.numbers = itertools.count()

    def count(self, what):
        self.crowd.counts[f"{type(self).__name__.lower()}: {what}"] += 1

    def step(self):
        self.held = [connection for connection in self.held if connection.open]
        if len(self.held) < self.most:
            connection = Connection(self, self.deaf)
            if connection.open:
                self.held.append(connection)
                self.begin(connection)
        for connection in self.held:
            self.go_on(connection)

    def begin(self, connection):
        pass

    def go_on(self, connection):
        pass

    def answered(self, connection, data):
        pass

    def ended(self):
        pass


class Idle(Abuse):
    """Holds connections without a whole request."""
    most = 20

    def begin(self, connection):
        connection.send(b"GET /v1/")


class Trickle(Abuse):
    """A request that comes byte by byte."""
    most = 4

    def begin(self, connection):
        connection.send(b"GET /v1/vfs HTTP/1.1\r\nX-Long: ")

    def go_on(self, connection):
        connection.send(b"x")


class Bodies(Abuse):
    """Requests with the largest body there may be, but for its last byte."""
    most = 4

    def begin(self, connection):
        connection.send(b"POST /v1/vfs HTTP/1.1\r\nHost: x\r\nContent-Length: 65536\r\n\r\n" + b"[" * 65535)


class Knock(Abuse):
    """Connects and leaves, with and without a request."""

    def step(self):
        for number in range(8):
            connection = Connection(self)
            if number % 2:
                connection.send(request("GET", "/v1/vfs"))
            connection.close()


class Hammer(Abuse):
    """Asks whatever there is to ask, several requests at a time."""
    most = 2

    def go_on(self, connection):
        connection.send(b"".join(request("GET", random.choice(_LOOKS)) for _ in range(4)))


class Deaf(Abuse):
    """Asks for all that there is, and takes nothing of the answers."""
    most = 4
    deaf = True

    def begin(self, connection):
        # libevent reads what follows when the first one is answered.
        first = ["/v1/report?from=%s&to=%s" % (self.crowd.first_day, self.crowd.last_day), "/v1/trace?last_us=600000000", "/v1/stats"]
        connection.send(b"".join(request("GET", path) for path in [first[next(self.numbers) % 3], *first]))


class Queue(Abuse):
    """New VFs that wait for room, of which there is none."""
    most = 12

    def begin(self, connection):
        connection.send(request("POST", "/v1/vfs?queue=1", {"name": f"q{self.uid}-{next(self.numbers)}", "vram_bytes": 60 << 20,
                                                            "host_memory_bytes": 16 << 20}))


class Churn(Abuse):
    """Makes a VF and destroys it, over and over."""

    def __init__(self, crowd, uid):
        super().__init__(crowd, uid)
        self.name = None

    def go_on(self, connection):
        if self.name is None:
            self.name = f"c{self.uid}-{next(self.numbers)}"
            connection.send(request("POST", "/v1/vfs", {"name": self.name, "vram_bytes": 1 << 20, "host_memory_bytes": 16 << 20}))

    def answered(self, connection, data):
        if self.name is not None and data.startswith(b"HTTP/1.1"):
            connection.send(request("DELETE", f"/v1/vfs/{self.name}"))
            self.name = None

    def ended(self):
        self.name = None


class Shout(Abuse):
    """What could write lines into the log: resets, what is not HTTP, names with lines of vgpud and terminal commands."""

    def go_on(self, connection):
        name = f"s{self.uid}"
        connection.send(b"".join([
            request("POST", "/v1/vfs", {"name": name, "vram_bytes": 1 << 20, "host_memory_bytes": 16 << 20}),
            request("POST", f"/v1/vfs/{name}/reset"), request("POST", "/v1/vfs", {"name": "x\nvgpud: error: vf=good: parked"}),
            request("PATCH", "/v1/gpus/\x1b[2J", {}), b"NONSENSE\r\n\r\n"]))


ABUSES = {kind.__name__.lower(): kind for kind in (Idle, Trickle, Bodies, Knock, Hammer, Deaf, Queue, Churn, Shout)}


class Crowd:
    def __init__(self, path, users, abuses, pace):
        self.path, self.pace = path, pace
        self.poll = select.epoll()
        self.by_fd = {}
        self.counts = collections.Counter()
        self.first_day, self.last_day = (time.strftime("%Y-%m-%d", time.gmtime(time.time() - days * 86400)) for days in (399, 0))
        everybody = [ABUSES[name](self, uid) for uid in users for name in abuses]
        random.shuffle(everybody)
        self.due = [(pace * number / len(everybody), number, abuse) for number, abuse in enumerate(everybody)]

    def add(self, connection):
        self.by_fd[connection.socket.fileno()] = connection
        self.poll.register(connection.socket.fileno(), _DEAF if connection.deaf else _READ)

    def drop(self, connection):
        self.poll.unregister(connection.socket.fileno())
        del self.by_fd[connection.socket.fileno()]

    def listen(self, until):
        """Hears what has come; waits for it no longer than until then. True: it is over."""
        for fd, _ in self.poll.poll(max(0.0, until - time.monotonic())):
            if fd == sys.stdin.fileno():
                return True
            if fd in self.by_fd:
                self.by_fd[fd].ready()
        return False

    def run(self):
        self.poll.register(sys.stdin.fileno(), select.EPOLLIN | select.EPOLLHUP)
        begin = time.monotonic()
        while not self.listen(begin + self.due[0][0]):
            now = time.monotonic() - begin
            for _ in range(64):
                if self.due[0][0] > now:
                    break
                at, number, abuse = self.due[0]
                abuse.step()
                # Who is late is not made up for.
                heapq.heapreplace(self.due, (max(at, now) + self.pace, number, abuse))
        used = resource.getrusage(resource.RUSAGE_SELF)
        self.counts["cpu ms"] = int((used.ru_utime + used.ru_stime) * 1e3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("socket")
    parser.add_argument("--users", required=True, metavar="FIRST:COUNT")
    parser.add_argument("--abuses", default=",".join(ABUSES))
    parser.add_argument("--pace", type=float, default=0.25)
    options = parser.parse_args()
    first, count = map(int, options.users.split(":"))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.setgroups([])
    crowd = Crowd(options.socket, range(first, first + count), options.abuses.split(","), options.pace)
    crowd.run()
    print(json.dumps(crowd.counts))


if __name__ == "__main__":
    main()
