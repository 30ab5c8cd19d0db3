# SPDX-License-Identifier: Apache-2.0
"""Cases of gRPC: clients and servers of others on both sides of a gateway."""

import contextlib
import functools
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def peer(context, language):
    if language == "js":
        return ["node", str(context.folder / "grpc_peer.mjs")]
    return [python_with_grpc(), str(HERE / "grpc_peer.py")]


@functools.cache
def python_with_grpc():
    """That of the distribution, which has its packages, or the one that runs this."""
    for python in ("/usr/bin/python3", sys.executable):
        with contextlib.suppress(OSError):
            if subprocess.run([python, "-c", "import grpc"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return python
    return None


@contextlib.contextmanager
def server(run, context, language, *certificate):
    """Starts one; gives its port and what it has printed since."""
    process = subprocess.Popen([*peer(context, language), "server", *certificate], stdout=subprocess.PIPE, text=True,
                               cwd=context.folder)
    try:
        port = process.stdout.readline().strip()
        run.expect(port.isdigit(), "the server of gRPC does not start")
        yield int(port), process.stdout
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def between(run, context, language, tls):
    """A gateway before a server; gives what a client needs, and what the server prints."""
    admin, here = f"127.0.0.1:{run.free_port()}", run.free_port()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        files = [f"{folder}/cert.pem", f"{folder}/key.pem"]
        if tls:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", files[1], "-out", files[0]],
                           check=True, capture_output=True)
        port, printed = stack.enter_context(server(run, context, language, *(files if tls else [])))
        scheme = "https" if tls else "http"
        trusted = f", tls: {{ca: {files[0]}, server-name: localhost}}" if tls else ""
        shown = f", tls: {{certificate: {files[0]}, key: {files[1]}}}" if tls else ""
        config = pathlib.Path(folder, "tidegate.yaml")
        config.write_text(f"""
listen: {{address: "127.0.0.1:{here}"{shown}}}
admin: "{admin}"
http: {{max-body: 5MiB}}
upstreams:
  api: {{servers: ["{scheme}://127.0.0.1:{port}"], http2: true{trusted}}}
  away: {{servers: ["http://127.0.0.1:{run.free_port()}"], http2: true}}
policies: {{p: {{quota: 1, window: 1h}}}}
routes:
  - {{match: {{path: /limited/**}}, upstream: api, limits: [p]}}
  - match: {{path: /guarded/**}}
    upstream: api
    auth: {{bearer-tokens: [{{name: a, sha256: "{hashlib.sha256(b'reads').hexdigest()}", read-only: true}}]}}
  - {{match: {{path: /away/**}}, upstream: away}}
  - {{match: {{path: /peer.Peer/Count}}, upstream: api, idempotency: {{mode: required, anonymous: allow}}}}
  - {{match: {{path: /peer.Peer/**}}, upstream: api}}
  - {{match: {{path: /grpc.health.v1.Health/**}}, upstream: api}}
""", encoding="utf-8")
        stack.enter_context(run.serving(context, config, admin))
        yield [f"127.0.0.1:{here}", *(files[:1] if tls else [])], printed


def asked(run, context, language, what, target):
    done = subprocess.run([*peer(context, language), what, *target], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=100, check=False, cwd=context.folder)
    run.expect(done.returncode == 0, f"the client in {language} fails", done)
    return json.loads(done.stdout)


def call_all(run, context, client, behind, tls):
    with between(run, context, behind, tls) as (target, printed):
        seen = asked(run, context, client, "client", target)
        unary = seen.pop("unary")
        run.expect({name: unary[name] for name in ("code", "answer", "initial", "trailing", "binary")} ==
                   {"code": 0, "answer": "hello", "initial": "this", "trailing": "end", "binary": "0001ff"}, f"unary: {unary}")
        failed = seen.pop("fail")
        run.expect((failed["code"], failed["details"]) == (9, "not now: caf\u00e9"), f"fail: {failed}")
        run.expect(seen == {"large": True, "clientStream": "1000000", "serverStream": [100, True], "bidi": 50,
                            "deadline": 4, "cancel": 1, "parallel": 50}, f"{seen}")
        for _ in range(2):  # by its deadline, and by its client
            run.expect(printed.readline() == "cancelled\n", "the server was not told that a call is cancelled")


def refuse_all(run, context, client, tls):
    with between(run, context, "js", tls) as (target, _):
        seen = asked(run, context, client, "refusals", target)
        codes = {name: each["code"] for name, each in seen.items()}
        run.expect(codes == {"quota": 8, "unauthenticated": 16, "forbidden": 7, "noRoute": 12, "away": 14, "tooLate": 4, "tooLarge": 8}, f"{seen}")
        run.expect(str(seen["quota"]["ratelimit"]).startswith('"p";r=0') and int(seen["quota"]["pushback"]) > 0, f"{seen['quota']}")
        run.expect(all(each["details"] for each in seen.values()), f"a refusal says nothing: {seen}")


def repeat_calls(run, context, client, tls):
    """A unary call with a key runs once, and its retry gets the first answer with its trailers."""
    with between(run, context, "js", tls) as (target, _):
        seen = asked(run, context, client, "keys", target)
        first = {"code": 0, "answer": "1"}
        run.expect(seen == {"first": first, "replay": first | {"replayed": "true"}, "second": {"code": 0, "answer": "2"},
                            "reused": {"code": 3}, "malformed": {"code": 3}, "missing": {"code": 3}}, f"{seen}")


def ask_health(run, context, client, tls):
    with between(run, context, "js", tls) as (target, _):
        seen = asked(run, context, client, "health", target)
        run.expect(seen == {"before": "SERVING", "after": "NOT_SERVING", "watched": ["SERVING", "NOT_SERVING"]}, f"{seen}")


def serve_files(run, context):
    """nghttpd behind the gateway: many requests at once, by both protocols, and a large file."""
    if shutil.which("nghttpd") is None or shutil.which("h2load") is None:
        run.skip("there is no nghttpd; install the packages nghttp2-server and nghttp2-client")
    admin, here, port = f"127.0.0.1:{run.free_port()}", run.free_port(), run.free_port()
    with tempfile.TemporaryDirectory() as folder:
        large = bytes(range(256)) * 16_384
        pathlib.Path(folder, "large").write_bytes(large)
        pathlib.Path(folder, "small").write_text("small", encoding="utf-8")
        config = pathlib.Path(folder, "tidegate.yaml")
        config.write_text(f"""
listen: "127.0.0.1:{here}"
admin: "{admin}"
upstreams: {{files: {{servers: ["http://127.0.0.1:{port}"], http2: true}}}}
routes: [{{match: {{path: /**}}, upstream: files}}]
""", encoding="utf-8")
        with subprocess.Popen(["nghttpd", "--no-tls", "-d", folder, "-a", "127.0.0.1", str(port)]) as process:
            try:
                run.wait_for_port(process, port)
                with run.serving(context, config, admin):
                    for protocol in ("--http1.1", "--http2-prior-knowledge"):
                        got = subprocess.run(["curl", "-sS", "--max-time", "30", protocol, f"http://127.0.0.1:{here}/large"],
                                             stdout=subprocess.PIPE, timeout=60, check=False)
                        run.expect(got.stdout == large, f"the large file by {protocol}: {len(got.stdout)} octets")
                    for protocol in ("-p", "h2c"), ("--h1",):
                        load = subprocess.run(["h2load", "-n", "2000", "-c", "10", "-m", "10" if protocol[0] == "-p" else "1", *protocol,
                                               f"http://127.0.0.1:{here}/small"], stdout=subprocess.PIPE, text=True, timeout=90, check=False)
                        run.expect("2000 succeeded, 0 failed" in load.stdout and "2000 2xx" in load.stdout, load.stdout)
            finally:
                process.kill()


def add_to(run):
    """Adds the cases to those of the script `run`."""
    def add(name, function, *rest):
        def one(context):
            if python_with_grpc() is None:
                run.skip("there is no grpcio; install the package python3-grpcio")
            function(run, context, *rest)
        run.CASES[name] = one

    for tls in (False, True):
        way = "over_tls" if tls else "in_clear_text"
        for client, behind in (("js", "python"), ("python", "js")):
            add(f"grpc_calls_of_{client}_reach_a_server_in_{behind}_{way}", call_all, client, behind, tls)
    run.CASES["nghttpd_serves_files_by_http2_behind_the_gateway"] = lambda context: serve_files(run, context)
    for client in ("js", "python"):
        for tls in (False, True):
            way = "over_tls" if tls else "in_clear_text"
            add(f"grpc_clients_in_{client}_understand_refusals_{way}", refuse_all, client, tls)
            add(f"grpc_clients_in_{client}_check_and_watch_health_{way}", ask_health, client, tls)
        add(f"grpc_calls_of_{client}_with_a_key_run_once", repeat_calls, client, False)
