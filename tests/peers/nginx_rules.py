# SPDX-License-Identifier: Apache-2.0
"""The rules of routes beside what nginx is told in its own words: the same requests through both, to one server that
answers with what it got.

What each adds by itself is not compared:
- requests: nginx adds nothing with `proxy_http_version 1.1` and an empty Connection; Tidegate adds X-Forwarded-For,
  -Host and -Proto, and Via;
- responses: nginx puts its own Server and Date in the place of those of the upstream; Tidegate passes both on.
  Neither is asked for the same text in the content of a redirect or a refusal.
"""

import contextlib
import json
import pathlib
import socket
import socketserver
import subprocess
import tempfile
import threading
from typing import NamedTuple

ADDED_TO_REQUESTS = {"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "via", "connection"}
ADDED_TO_RESPONSES = {"server", "date", "connection", "transfer-encoding", "content-length"}
# With the status that the query asks for: `status=404`.
SAID_BY_SERVER = [("X-Powered-By", "php"), ("Cache-Control", "public"), ("Vary", "Accept"), ("X-A", "1"), ("X-A", "2"),
                  ("Content-Type", "application/json")]


class Rule(NamedTuple):
    """Both are of all paths below /NAME; `{n}` is that name, `{o}` the URL of the server."""
    name: str
    nginx: str     # in a `location`
    tidegate: str  # options of a route
    requests: list
    kind: str = "passed"    # passed, answered, redirected, refused
    compared: tuple = ()    # fields of requests that are not compared otherwise
    location: str = "/{n}"  # of nginx
    match: str = "/{n}/**"


def get(target, *lines, method="GET", content=""):
    length = [f"Content-Length: {len(content)}"] if content else []
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: a.example", "Connection: close", *length, *lines, "", content])


PASS = "proxy_pass {o};"
RULES = [
    # Paths.
    Rule("strip", "proxy_pass {o}/;", "rewrite: {{strip-prefix: /{n}}}", [get("/strip/a/b?c=d"), get("/strip/")],
         location="/{n}/"),
    Rule("swap", "proxy_pass {o}/api/;", "rewrite: {{strip-prefix: /{n}, add-prefix: /api}}",
         [get("/swap/a?b"), get("/swap/"), get("/swap/a/b/")], location="/{n}/"),
    Rule("add", "proxy_pass {o}/api/{n}/;", "rewrite: {{add-prefix: /api}}", [get("/add/a"), get("/add/")],
         location="/{n}/"),
    Rule("whole", "proxy_pass {o}/;", "rewrite: {{strip-prefix: /{n}}}", [get("/whole"), get("/whole?a=b")],
         location="= /{n}"),
    Rule("wholeadd", "proxy_pass {o}/api;", "rewrite: {{strip-prefix: /{n}, add-prefix: /api}}", [get("/wholeadd?a")],
         location="= /{n}"),
    Rule("one", "rewrite ^/{n}/([^/]+)$ /users/$1 break; " + PASS, 'rewrite: {{path: "/users/{{1}}"}}',
         [get("/one/anna"), get("/one/anna?a=b")], match="/{n}/*"),
    Rule("two", "rewrite ^/{n}/([^/]+)/posts/([^/]+)$ /p/$2/of/$1 break; " + PASS,
         'rewrite: {{path: "/p/{{2}}/of/{{1}}"}}', [get("/two/anna/posts/7?x")], match="/{n}/*/posts/*"),
    Rule("rest", "rewrite ^/{n}/(.*)$ /store/$1 break; " + PASS, 'rewrite: {{path: "/store/{{**}}"}}',
         [get("/rest/a/b/c"), get("/rest/a/"), get("/rest/"), get("/rest/a?b=c&d")]),
    Rule("both", "rewrite ^/{n}/([^/]+)/(.*)$ /$1/all/$2 break; " + PASS, 'rewrite: {{path: "/{{1}}/all/{{**}}"}}',
         [get("/both/x/a/b")], match="/{n}/*/**"),
    Rule("fixed", "rewrite ^ /index.html break; " + PASS, "rewrite: {{path: /index.html}}",
         [get("/fixed/a/b"), get("/fixed/a?q")]),
    Rule("space", "proxy_pass {o}/;", "rewrite: {{strip-prefix: /{n}}}", [get("/space/a%20b/%C3%A9?q=%20+")],
         location="/{n}/"),
    Rule("dots", "proxy_pass {o}/;", "rewrite: {{strip-prefix: /{n}}}", [get("/dots/x/../a"), get("/x/../dots/./b")],
         location="/{n}/"),
    Rule("content", "proxy_pass {o}/in/;", "rewrite: {{strip-prefix: /{n}, add-prefix: /in}}",
         [get("/content/a", method="POST", content="text"), get("/content/a", method="PUT", content="x" * 1000)],
         location="/{n}/"),

    # Fields of requests.
    Rule("set", "proxy_set_header X-A new; " + PASS, "request: {{set: {{X-A: new}}}}",
         [get("/set", "X-A: old"), get("/set", "x-a: 1", "X-a: 2"), get("/set")]),
    Rule("host", "proxy_set_header Host internal.example; " + PASS, "request: {{set: {{Host: internal.example}}}}",
         [get("/host")]),
    Rule("basic", 'proxy_set_header Authorization "Basic eDp5"; ' + PASS,
         'request: {{set: {{Authorization: "Basic eDp5"}}}}', [get("/basic", "Authorization: Bearer t"), get("/basic")]),
    Rule("drop", 'proxy_set_header X-Internal ""; ' + PASS, "request: {{remove: [X-Internal]}}",
         [get("/drop", "X-Internal: yes", "X-Other: stays"), get("/drop")]),
    Rule("cookies", 'proxy_set_header Cookie ""; ' + PASS, "request: {{remove: [Cookie]}}", [get("/cookies", "Cookie: a=b")]),
    Rule("agent", "proxy_set_header User-Agent tide; " + PASS, "request: {{set: {{User-Agent: tide}}}}",
         [get("/agent", "User-Agent: curl/8"), get("/agent")]),
    Rule("proto", "proxy_set_header X-Forwarded-Proto https; " + PASS, "request: {{set: {{X-Forwarded-Proto: https}}}}",
         [get("/proto", "X-Forwarded-Proto: gopher"), get("/proto")], compared=("x-forwarded-proto",)),
    Rule("hide", 'proxy_set_header X-Forwarded-For ""; ' + PASS, "request: {{remove: [X-Forwarded-For]}}",
         [get("/hide", "X-Forwarded-For: 9.9.9.9")], compared=("x-forwarded-for",)),
    Rule("quoted", "proxy_set_header X-A 'a \"b\", c; d'; " + PASS, "request: {{set: {{X-A: 'a \"b\", c; d'}}}}",
         [get("/quoted")]),
    Rule("several", 'proxy_set_header A 1; proxy_set_header B 2; proxy_set_header C ""; ' + PASS,
         "request: {{set: {{A: '1', B: '2'}}, remove: [C]}}", [get("/several", "C: 3", "b: 0", "D: 4")]),

    # Fields of responses.
    Rule("added", "add_header X-B new always; " + PASS, "response: {{add: {{X-B: new}}}}",
         [get("/added"), get("/added?status=404"), get("/added?status=500"), get("/added", method="HEAD")]),
    Rule("nocontent", "add_header X-B new always; " + PASS, "response: {{add: {{X-B: new}}}}", [get("/nocontent?status=204")]),
    Rule("unmodified", "add_header X-B new always; " + PASS, "response: {{set: {{X-B: new}}}}",
         [get("/unmodified?status=304")]),
    Rule("hidden", "proxy_hide_header X-Powered-By; " + PASS, "response: {{remove: [X-Powered-By]}}",
         [get("/hidden"), get("/hidden?status=403")]),
    Rule("replaced", "proxy_hide_header Cache-Control; add_header Cache-Control no-store always; " + PASS,
         "response: {{set: {{Cache-Control: no-store}}}}", [get("/replaced"), get("/replaced?status=404")]),
    Rule("lines", "proxy_hide_header X-A; add_header X-A 3 always; " + PASS, "response: {{set: {{X-A: '3'}}}}",
         [get("/lines")]),
    Rule("vary", "add_header Vary Origin always; " + PASS, "response: {{add: {{Vary: Origin}}}}", [get("/vary")]),
    Rule("security", "add_header X-Content-Type-Options nosniff always; add_header X-Frame-Options DENY always; " + PASS,
         "response: {{set: {{X-Content-Type-Options: nosniff, X-Frame-Options: DENY}}}}",
         [get("/security"), get("/security?status=502")]),

    # Redirects.
    Rule("moved", "return 301 https://example.com/;", 'redirect: {{to: "https://example.com/", status: 301}}',
         [get("/moved/a")], kind="redirected"),
    Rule("elsewhere", "rewrite ^/{n}/(.*)$ https://example.com/$1 redirect;",
         'redirect: {{to: "https://example.com/{{**}}", status: 302}}', [get("/elsewhere/a/b?c=d"), get("/elsewhere/")],
         kind="redirected"),
    Rule("forever", "return 308 https://example.com/x$is_args$args;",
         'redirect: {{to: "https://example.com/x"}}', [get("/forever/a?b"), get("/forever/a", method="POST", content="x")],
         kind="redirected"),
    Rule("local", "rewrite ^/{n}/(.*)$ /new/$1 permanent;", 'redirect: {{to: "/new/{{**}}", status: 301}}',
         [get("/local/a?b"), get("/local/a", method="HEAD")], kind="redirected"),
    Rule("see", "return 303 /done$is_args$args;", 'redirect: {{to: /done, status: 303}}', [get("/see/a"), get("/see/?a=b")],
         kind="redirected"),
    Rule("again", "add_header X-B new always; return 307 https://example.com$request_uri;",
         'redirect: {{to: "https://example.com/{n}/{{**}}", status: 307}}, response: {{set: {{X-B: new}}}}',
         [get("/again/a/b?c")], kind="redirected"),

    # Fixed answers.
    Rule("ok", 'default_type text/plain; return 200 "ok";', 'respond: {{status: 200, content-type: text/plain, body: ok}}',
         [get("/ok"), get("/ok/a?b"), get("/ok", method="HEAD"), get("/ok", method="POST", content="x")], kind="answered"),
    Rule("gone", 'default_type text/html; return 410 "<p>gone</p>";',
         'respond: {{status: 410, content-type: text/html, body: "<p>gone</p>"}}', [get("/gone/a")], kind="answered"),
    Rule("closed", 'default_type application/json; add_header Cache-Control no-store always; return 503 "{{\\"open\\":false}}";',
         'respond: {{status: 503, content-type: application/json, body: \'{{"open":false}}\'}}, '
         'response: {{set: {{Cache-Control: no-store}}}}', [get("/closed")], kind="answered"),
    Rule("empty", "return 204;", "respond: {{status: 204}}", [get("/empty")], kind="answered"),

    # Refusals.
    Rule("denied", "deny 127.0.0.0/8; allow all; " + PASS, "deny: [127.0.0.0/8]", [get("/denied")], kind="refused"),
    Rule("allowed", "allow 10.0.0.0/8; deny all; " + PASS, "allow: [10.0.0.0/8]", [get("/allowed")], kind="refused"),
    Rule("large", "client_max_body_size 10; " + PASS, "max-body: 10",
         [get("/large", method="POST", content="x" * 11), get("/large", method="POST", content="x" * 10)], kind="refused"),
    Rule("slow", "proxy_read_timeout 1s; " + PASS, "timeout: 1s", [get("/slow?wait")], kind="refused"),
]


class Answer(NamedTuple):
    status: int
    fields: list  # of names in lower case and values, in order of both
    content: str


def read(connection):
    """A message up to its end, or that of the connection."""
    octets = b""
    while True:
        head, end, content = octets.partition(b"\r\n\r\n")
        if end:
            lines = head.decode("latin-1").split("\r\n")
            fields = sorted((name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:]))
            if len(content) >= int(dict(fields).get("content-length", "0")):
                return lines[0], fields, content.decode("latin-1")
        more = connection.recv(65536)
        if not more:
            return "", [], ""
        octets += more


def exchange(port, request):
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(request.encode("latin-1"))
        octets = b"".join(iter(lambda: client.recv(65536), b""))
    head, _, content = octets.decode("latin-1").partition("\r\n\r\n")
    lines = head.split("\r\n")
    fields = sorted((name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:]))
    if ("transfer-encoding", "chunked") in fields:
        content = content.partition("\r\n")[2].rpartition("\r\n0\r\n")[0]
    return Answer(int(lines[0].split(" ")[1]), fields, content)


@contextlib.contextmanager
def echoing_server():
    """Gives its port, and a list of the requests that it got."""
    seen = []
    stopping = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            while True:
                line, fields, content = read(self.request)
                if not line:
                    return
                seen.append((line, fields, content))
                method, target, _ = line.split(" ")
                if target.endswith("?wait"):
                    stopping.wait(20)
                    return
                status = target.partition("status=")[2] or "200"
                text = "" if status in ("204", "304") else json.dumps([method, target])
                said = [f"{name}: {value}" for name, value in SAID_BY_SERVER]
                said += [f"Content-Length: {len(text)}"] if text else []
                head = "\r\n".join([f"HTTP/1.1 {status} Said", *said, "", ""])
                self.request.sendall((head + ("" if method == "HEAD" else text)).encode())

    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1], seen
        finally:
            stopping.set()
            server.shutdown()
            thread.join()


def nginx_locations(origin):
    common = "proxy_http_version 1.1; proxy_redirect off; absolute_redirect off;\n"
    parts = []
    for rule in RULES:
        names = {"n": rule.name, "o": origin}
        own = rule.nginx.format(**names)
        # One proxy_set_header in a location takes the place of all that stand around it.
        host = "" if "proxy_set_header Host" in own else "proxy_set_header Host $http_host; "
        parts.append(f"location {rule.location.format(**names)} {{ "
                     f"proxy_set_header Connection \"\"; {host}{own} }}")
    return common + "\n".join(parts)


def tidegate_config(rules, here, admin, https_redirect, origin):
    routes = []
    for rule in rules:
        options = rule.tidegate.format(n=rule.name)
        handler = "" if options.startswith(("redirect:", "respond:")) else "upstream: api, "
        routes.append(f"  - {{match: {{path: \"{rule.match.format(n=rule.name)}\"}}, {handler}{options}}}\n")
    return (f'listen: ["127.0.0.1:{here}", {{address: "127.0.0.1:{https_redirect}", redirect-to-https: true}}]\n'
            f'admin: "{admin}"\nupstreams: {{api: "{origin}"}}\nroutes:\n' + "".join(routes))


def comparable(rule, answer, seen):
    """What has to be equal; texts of refusals and of redirects are each program's own."""
    if rule.kind == "refused":
        return answer.status, None, None, None
    own_content = rule.kind == "redirected"
    hidden = ADDED_TO_RESPONSES | ({"content-type"} if own_content else set())
    fields = [field for field in answer.fields if field[0] not in hidden]
    upstream = None
    if rule.kind == "passed":
        hidden_of_request = ADDED_TO_REQUESTS - set(rule.compared)
        upstream = [(line, [field for field in got if field[0] not in hidden_of_request], content)
                    for line, got, content in seen]
    return answer.status, fields, None if own_content else answer.content, upstream


def run(peers, context):
    """`peers` is the program that this is a part of."""
    here, https_redirect, admin = peers.free_port(), peers.free_port(), f"127.0.0.1:{peers.free_port()}"
    with contextlib.ExitStack() as stack:
        port, seen = stack.enter_context(echoing_server())
        origin = f"http://127.0.0.1:{port}"
        nginx = stack.enter_context(peers.nginx(nginx_locations(origin)))
        nginx_to_https = stack.enter_context(peers.nginx("absolute_redirect off; return 308 https://$host$request_uri;"))
        config = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()), "tidegate.yaml")
        config.write_text(tidegate_config(RULES, here, admin, https_redirect, origin), encoding="utf-8")
        stack.enter_context(peers.serving(context, config, admin))

        differences = []
        count = 0
        for rule in RULES:
            for request in rule.requests:
                count += 1
                both = []
                for through in (nginx, here):
                    seen.clear()
                    answer = exchange(through, request)
                    both.append(comparable(rule, answer, list(seen)))
                if both[0] != both[1]:
                    differences.append(f"{rule.name}: {request.splitlines()[0]}\n  nginx    {both[0]}\n  Tidegate {both[1]}")
        for target in ("/", "/a/../b?c=%64", "//evil.example/", "/a%2Fb"):
            count += 1
            both = [exchange(through, get(target)) for through in (nginx_to_https, https_redirect)]
            both = [(answer.status, dict(answer.fields).get("location")) for answer in both]
            if both[0] != both[1]:
                differences.append(f"redirect-to-https of {target}: nginx {both[0]}, Tidegate {both[1]}")
    peers.expect(not differences, f"{len(differences)} of {count} requests differ:\n" + "\n".join(differences))
    print(f"{len(RULES)} rules and a listener, {count} requests: equal through nginx and through Tidegate")
