# SPDX-License-Identifier: Apache-2.0
"""Instructions that the gateway executes for one request, counted by callgrind.

This program is both the client and the origin server, and sends only while the gateway sleeps: so
the gateway does the same work in the same order each time, however busy the machine is.
"""

import re
import select
import socket
import subprocess
import sys
import time

import load
from load import address

WARM_UP = 500
# Short and long blocks of requests take turns, so many of each. The second least of a kind has
# nothing of what comes with time, such as a new second; their difference has nothing of what a dump
# costs.
BLOCKS = 12
FEW = 20
# Of more than a thousand requests a second the gateway does not rank the partition of each.
PAUSE = 1 / 800
BODY = (b'{"id":"ord_7f3c9a41","status":"confirmed","currency":"EUR","amount":12990,"items":[{"sku":"A-1001","qty":2}],'
        b'"created":"2025-03-18T09:00:00Z"}')
RESPONSE = (b"HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Tue, 18 Mar 2025 09:00:00 GMT\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\nConnection: keep-alive\r\n\r\n" % len(BODY)) + BODY


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def frames_in(octets):
    """Kind, flags and stream of each; what is left of the last is lost."""
    while len(octets) >= 9 and len(octets) >= (end := 9 + int.from_bytes(octets[:3], "big")):
        yield octets[3], octets[4], int.from_bytes(octets[5:9], "big")
        octets = octets[end:]


class ClientHttp1:
    def __init__(self, path):
        self.request = f"GET {path} HTTP/1.1\r\nHost: a.example\r\nX-API-Key: key-000001\r\n\r\n".encode()

    def next(self):
        return self.request

    def is_response(self, octets, expect):
        return octets.startswith(b"HTTP/1.1 %d " % expect)


class ClientPost(ClientHttp1):
    """Sends content with an Idempotency-Key: always the same, so that all but the first are replays."""

    def __init__(self, path):
        super().__init__(path)
        self.path = path
        self.number = 0

    def next(self):
        return (f"POST {self.path} HTTP/1.1\r\nHost: a.example\r\nX-API-Key: key-000001\r\nAuthorization: Bearer key-000001\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n"
                f"Idempotency-Key: \"key-{self.number:08}\"\r\n\r\n").encode() + BODY


class ClientNewKeys(ClientPost):
    """The same, each with a key of its own."""

    def next(self):
        self.number += 1
        return super().next()


class ClientHttp2:
    """Sends names and values of fields once, and then their numbers in HPACK's table."""

    def __init__(self, path):
        def literal(start, *texts):
            return start + b"".join(bytes((len(text),)) + text.encode() for text in texts)

        # Settings, and a window of the connection that never ends.
        self.start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + frame(4, 1, 0) + frame(8, 0, 0, b"\x7f\x00\x00\x00")
        self.fields = b"\x82\x86" + literal(b"\x41", "a.example") + literal(b"\x44", path) + literal(b"\x40", "x-api-key", "key-000001")
        self.stream = -1

    def next(self):
        self.stream += 2
        sent = self.start + frame(1, 5, self.stream, self.fields)
        self.start, self.fields = b"", b"\x82\x86\xc0\xbf\xbe"
        return sent

    def is_response(self, octets, _):
        """The status is checked by what the gateway has counted."""
        return any(kind in (0, 1) and flags & 1 and stream == self.stream for kind, flags, stream in frames_in(octets))


CLIENTS = {"h1": ClientHttp1, "h2": ClientHttp2, "post": ClientPost, "new-keys": ClientNewKeys}


ALLOCATIONS = {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign"}


def read_callgrind(dump):
    """Instructions, and calls that allocate memory."""
    names, called, allocations = {}, None, 0
    for kind, number, name, count in re.findall(r"(?m)^(?:(c?fn)=\((\d+)\)(?: (\S*))?|calls=(\d+) ).*$", dump):
        if count:
            allocations += int(count) if names[called] in ALLOCATIONS else 0
            continue
        if name:
            names[number] = name.partition("'")[0]
        called = number if kind == "cfn" else called
    return int(re.search(r"(?m)^totals: (\d+)$", dump)[1]), allocations


class Counter:
    """A gateway under callgrind, with one connection to it and one from it."""

    def __init__(self, bench, gateway, path, kind):
        self.run = bench.run
        self.vgdb = f"--vgdb-prefix={self.run}/vgdb"
        self.dumps = 0
        self.next = 0
        command, _, _ = bench.commands[gateway]
        out = self.run / "callgrind.out"
        for old in self.run.glob("callgrind.out*"):
            old.unlink()
        host, port = address("origin").split(":")
        self.listener = socket.create_server((host, int(port)))
        self.accepted = []
        # The origin server does not answer yet.
        bench.commands["callgrind"] = (["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", self.vgdb, *command],
                                       None, "admin")
        self.gateway = bench.restart("callgrind")
        self.client = CLIENTS[kind](path)
        self.connection = load.connect(address("gateway"))

    def close(self):
        for each in (self.connection, self.listener, *self.accepted):
            each.close()

    def settle(self):
        """Waits until all threads of the gateway sleep."""
        tasks = self.gateway.processes()[0] / "task"
        quiet = 0
        while quiet < 2:
            states = {(task / "stat").read_text().rpartition(") ")[2][0] for task in tasks.iterdir()}
            quiet = quiet + 1 if states == {"S"} else 0

    def serve(self):
        """Answers what the gateway has sent to the origin server."""
        while ready := select.select([self.listener, *self.accepted], [], [], 0)[0]:
            for each in ready:
                if each is self.listener:
                    self.accepted.append(self.listener.accept()[0])
                elif not (octets := each.recv(65536)):  # replays need no connection, so it was idle
                    self.accepted.remove(each)
                    each.close()
                elif octets.endswith((b"\r\n\r\n", BODY)):
                    each.sendall(RESPONSE)
                else:
                    sys.exit(f"the gateway sent no whole request: {octets[-300:]!r}")
            self.settle()

    def ask(self, expect):
        time.sleep(max(0, self.next - time.monotonic()))
        self.next = time.monotonic() + PAUSE
        self.connection.sendall(self.client.next())
        end = time.monotonic() + 10
        # A thread of the gateway that waits for its turn with callgrind sleeps, too.
        while not select.select([self.connection], [], [], 0)[0] and time.monotonic() < end:
            self.settle()
            self.serve()
        octets = self.connection.recv(1 << 20)
        if expect and not self.client.is_response(octets, expect):
            sys.exit(f"expected a response with {expect}, got {octets[:300]!r}")

    def dump(self):
        """Instructions and allocations since the last time."""
        self.dumps += 1
        subprocess.run(["vgdb", self.vgdb, f"--pid={self.gateway.process.pid}", "dump"], check=True, capture_output=True, timeout=60)
        self.settle()
        return read_callgrind((self.run / f"callgrind.out.{self.dumps}").read_text())

    def count(self, requests, expect):
        for _ in range(WARM_UP):
            self.ask(None)  # the first that is limited is not refused yet
        before = load.metrics("tidegate_requests_total", "status")
        self.settle()
        self.dump()
        taken = {FEW: [], FEW + requests: []}
        for size in BLOCKS * list(taken):
            for _ in range(size):
                self.ask(expect)
            taken[size].append(self.dump())
        counted = load.grown(before, load.metrics("tidegate_requests_total", "status"))
        if counted != {str(expect): BLOCKS * sum(taken)}:
            sys.exit(f"expected {BLOCKS * sum(taken)} responses with {expect}, the gateway counted {counted}")
        # Of instructions and of allocations each.
        few, many = ([sorted(each)[1] for each in zip(*dumps)] for dumps in taken.values())
        return tuple((more - less) / requests for less, more in zip(few, many))


def count(bench, gateway, path, kind, requests, expect):
    counter = Counter(bench, gateway, path, kind)
    try:
        return counter.count(requests, expect)
    finally:
        counter.close()
        bench.stop("callgrind")
