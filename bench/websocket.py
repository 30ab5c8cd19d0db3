# SPDX-License-Identifier: Apache-2.0
"""WebSocket connections through a server under test, with both ends here: the client and the echo server behind it.

What passes after the 101 means nothing to a proxy, so the echo server sends back what it gets, frame by frame.
"""

import select
import socket
import sys
import time

import load

FRAME = b"\x81\xfd\0\0\0\0" + b"x" * 125  # a text of 125 octets, masked with zeros
REQUEST = ("GET /socket HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: key-000001\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").encode()
SWITCHED = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")


def read_head(connection):
    """What came up to the end of a head, octet by octet: what is behind it is not ours yet."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        octet = connection.recv(1)
        if not octet:
            sys.exit(f"closed after {head!r}")
        head += octet
    return head


class Sockets:
    """Open connections through `at` to the echo server, which listens where its configuration says."""

    def __init__(self, at, echo_at):
        self.at = at
        host, port = echo_at.split(":")
        self.listener = socket.create_server((host, int(port)), backlog=4096)
        self.pairs = []

    def open(self, count):
        for _ in range(count):
            client = load.connect(self.at)
            client.sendall(REQUEST)
            server, _ = self.listener.accept()
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            read_head(server)
            server.sendall(SWITCHED)
            head = read_head(client)
            if not head.startswith(b"HTTP/1.1 101"):
                sys.exit(f"no upgrade: {head!r}")
            self.pairs.append((client, server))

    def close(self):
        for pair in self.pairs:
            for each in pair:
                each.close()
        self.pairs.clear()
        self.listener.close()

    def echo(self, secs):
        """Each client sends a frame and waits for it: the microseconds that each took, and the seconds of all."""
        poll = select.epoll()
        ends = {}
        for client, server in self.pairs:
            for each, other in ((client, True), (server, False)):
                each.setblocking(False)
                ends[each.fileno()] = (each, other)
                poll.register(each.fileno(), select.EPOLLIN)
        begin = time.perf_counter()
        sent, taken = {}, []
        for client, _ in self.pairs:
            sent[client.fileno()] = time.perf_counter()
            client.send(FRAME)
        waiting, ended = len(self.pairs), False
        while waiting:
            for number, _ in poll.poll():
                end, is_client = ends[number]
                if end.recv(65536) != FRAME:
                    sys.exit("a frame was changed, or a connection closed")
                if not is_client:
                    end.send(FRAME)
                    continue
                now = time.perf_counter()
                taken.append((now - sent[number]) * 1e6)
                if ended:
                    waiting -= 1
                else:
                    sent[number] = now
                    end.send(FRAME)
            ended = ended or time.perf_counter() - begin >= secs
        poll.close()
        for pair in self.pairs:
            for each in pair:
                each.settimeout(10)
        return sorted(taken), time.perf_counter() - begin
