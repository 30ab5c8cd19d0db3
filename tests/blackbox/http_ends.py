# SPDX-License-Identifier: Apache-2.0
"""Both ends of an HTTP/1.1 implementation, on plain sockets: what is sent is sent byte by byte as a case says it."""

import collections
import re
import socket
import threading

PATIENCE = 20  # seconds; far more than anything takes


class Closed(Exception):
    """The other end closed where it should not have."""


class Message:
    """A request or a response."""

    def __init__(self, start_line, fields):
        self.start_line = start_line
        self.fields = fields  # (name, value) in order
        self.body = b""
        self.interim = []  # 1xx responses before it

    @property
    def status(self):
        return int(self.start_line.split(" ")[1])

    @property
    def target(self):
        return self.start_line.split(" ")[1]

    @property
    def method(self):
        return self.start_line.split(" ")[0]

    def all(self, name):
        return [value for each, value in self.fields if each.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        return ", ".join(values) if values else None


class Connection:
    """Reads messages from a socket."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(PATIENCE)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.sock.sendall(data)

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes; the other end gets a RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()

    def more(self):
        try:
            data = self.sock.recv(65536)
        except ConnectionError:
            data = b""
        self.pending += data
        return bool(data)

    def line(self):
        while b"\r\n" not in self.pending:
            if not self.more():
                raise Closed
        line, _, self.pending = self.pending.partition(b"\r\n")
        return line.decode("latin-1")

    def exactly(self, count):
        while len(self.pending) < count:
            if not self.more():
                raise Closed
        data, self.pending = self.pending[:count], self.pending[count:]
        return data

    def head(self):
        start_line, fields = self.line(), []
        while line := self.line():
            name, _, value = line.partition(":")
            fields.append((name, value.strip()))
        return Message(start_line, fields)

    def content(self, message, until_close):
        if "chunked" in (message.get("Transfer-Encoding") or "").lower():
            body = b""
            while size := int(self.line().split(";")[0], 16):
                body += self.exactly(size)
                self.line()
            while self.line():
                pass
            return body
        if message.get("Content-Length") is not None:
            return self.exactly(int(message.get("Content-Length")))
        while until_close and self.more():
            pass
        body, self.pending = (self.pending, b"") if until_close else (b"", self.pending)
        return body

    def request(self, on_head):
        """The next one, asked for with 100 where the other end waits for that; None at the end."""
        try:
            message = self.head()
            on_head(message)
            if (message.get("Expect") or "").lower() == "100-continue":
                self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            message.body = self.content(message, False)
            return message
        except (Closed, OSError):
            return None

    def response(self):
        interim = []
        while (message := self.head()).status < 200:
            interim.append(message)
        message.interim = interim
        if message.status not in (204, 304):
            message.body = self.content(message, True)
        return message


def answer(status=201, body=b"done", fields=()):
    """The bytes of a response with a Content-Length."""
    lines = [f"HTTP/1.1 {status} Status", *fields]
    if status not in (204, 304):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (b"" if status in (204, 304) else body)


class Origin:
    """The server behind the implementation. A request belongs to the case whose token is in its target; what it does
    is counted and answered by the plan of that token."""

    TOKEN = re.compile(r"case-[0-9a-f]{16}")

    def __init__(self, host, port):
        self.address = (host, port)
        self.lock = threading.Condition()
        self.seen = collections.defaultdict(list)
        self.heads = collections.Counter()  # also of what never became a request
        self.plans = {}
        self.connections = set()
        self.listener = None
        self.start()

    @property
    def url(self):
        return f"http://{self.address[0]}:{self.address[1]}"

    def start(self):
        self.listener = socket.create_server(self.address, backlog=1024)
        self.address = self.listener.getsockname()[:2]
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def stop(self):
        """Refuses connections from here on, and ends those that there are."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            for each in self.connections:
                try:
                    each.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # is closed already

    def accept(self, listener):
        while True:
            try:
                connection = Connection(listener.accept()[0])
            except OSError:
                return
            connection.sock.settimeout(None)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with self.lock:
            self.connections.add(connection)
        try:
            while (request := connection.request(self.note_head)) is not None:
                token = self.token_of(request)
                with self.lock:
                    self.seen[token].append(request)
                    number = len(self.seen[token])
                    self.lock.notify_all()
                plan = self.plans.get(token, lambda *_: answer())
                reply = plan(number, request, connection)
                if reply is None:
                    break
                connection.send(reply)
        except OSError:
            pass  # the implementation has gone
        finally:
            with self.lock:
                self.connections.discard(connection)
            connection.close()

    def token_of(self, request):
        found = self.TOKEN.search(request.target)
        return found.group() if found else ""

    def note_head(self, request):
        with self.lock:
            self.heads[self.token_of(request)] += 1

    def count(self, token):
        with self.lock:
            return len(self.seen[token])

    def wait_for(self, token, count=1):
        """Until so many requests have come; false when they do not."""
        with self.lock:
            return self.lock.wait_for(lambda: len(self.seen[token]) >= count, PATIENCE)
