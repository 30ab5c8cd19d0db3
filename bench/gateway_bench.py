#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time per request of the gateway, next to nginx with limit_req and HAProxy with stick tables.

    ./dev bench gateway                      all cases
    ./dev bench gateway 429-h1 proxied-h2c   only these
    ./dev bench gateway -s 5 -r 7 ...        seven rounds of five seconds each
    ./dev bench gateway --instructions       instructions and allocations of a request, by callgrind; also of POST with
                                             and without an Idempotency-Key

The gateway has one policy as its peers have, and says RateLimit and RateLimit-Policy. In each round
gateway and peer take turns, since the speed of the machine drifts: `ratio` is the median over the
rounds of gateway / peer, each divided by what load generator and origin server cost in that run.
`raw_ratio` is without that division. `longest_us` is the longest that a response was waited for.

Instructions are the same on a busy machine; with --binary two versions can be compared.
"""

import contextlib
import resource
import subprocess
import sys
import time

import instructions
import load
import websocket
from load import GATEWAY, address, at_most, median, ratio_of

TOOLS = ("nginx", "haproxy", "wrk", "h2load", "openssl", "taskset")
CONFIG = """
listen:
  - @gateway@
  - {address: "@gateway-tls@", tls: {certificate: @RUN@/cert.pem, key: @RUN@/key.pem}}
admin: @admin@
workers: 1
data: @RUN@/data
upstreams:
  origin: http://@origin@
  origin-h2: {servers: ["http://@origin-h2@"], http2: true}
  socket: http://@websocket@
policies:
  default: {quota: 100000000, window: 10s, algorithm: sliding, partition: [header:x-api-key]}
  tiny: {quota: 1, window: 1d, algorithm: sliding, partition: [header:x-api-key]}
http: {idle-timeout: 1h}
routes:
  - {match: {path: /refused}, upstream: origin, limits: [tiny]}
  - {match: {path: /h2}, upstream: origin-h2, limits: [default]}
  - {match: {path: /socket}, upstream: socket, limits: [default], upgrade: [websocket]}
  - match: {path: /rules/**}
    upstream: origin
    limits: [default]
    cors: {origins: ["https://app.example.com"]}
    request: {set: {X-Gateway: bench}}
    response: {set: {X-Frame-Options: DENY}}
    rewrite: {strip-prefix: /rules}
  - {match: {path: /**}, upstream: origin, limits: [default]}
"""

# Where keys are while instructions are counted.
STORES = {"memory": "memory", "sqlite": "sqlite:@RUN@/keys.db"}
KEYED_ROUTE = """
  - match: {path: /keyed}
    upstream: origin
    limits: [default]
    idempotency: {mode: required, anonymous: allow}
"""

# What is asked of the gateway; the ratio and its bar are those to the first peer.
CASES = {
    "proxied-h1": {"kind": "h1", "path": "/", "expect": 200, "peers": ("nginx-limit", "haproxy-limit"),
                   "bars": {"bar": 0.85, "user_bar": 2.2, "syscalls_bar": 4.6}},
    "429-h1": {"kind": "h1", "path": "/refused", "expect": 429, "peers": ("nginx-429", "haproxy-429"),
               "bars": {"bar": 0.88, "user_bar": 1.1, "syscalls_bar": 2.4}},
    "proxied-h2c": {"kind": "h2", "path": "/", "expect": 200, "peers": ("haproxy-limit-h2c",), "bars": {"bar": 0.88}},
    "429-h2c": {"kind": "h2", "path": "/refused", "expect": 429, "peers": ("haproxy-429-h2c",), "bars": {"bar": 0.78}},
    "proxied-h2tls": {"kind": "h2", "path": "/", "expect": 200, "peers": ("haproxy-limit-h2tls",), "bars": {"bar": 0.95}},
    "h1-to-h2": {"kind": "h1", "path": "/h2", "expect": 200, "peers": ("haproxy-h1-to-h2",), "bars": {"bar": 0.95}},
    "h2-to-h2": {"kind": "h2", "path": "/h2", "expect": 200, "peers": ("haproxy-h2-to-h2",), "bars": {"bar": 0.95}},
    "new-connection": {"kind": "h1-close", "path": "/", "expect": 200, "peers": ("nginx-limit", "haproxy-limit"), "bars": {"bar": 1.0}},
    "body-1m": {"kind": "h1", "path": "/large", "peer_path": "/large", "expect": 200, "peers": ("haproxy-limit", "nginx-limit"),
                "bars": {"bar": 0.95}},
}
# What CORS, two header rules and a rewritten path cost beside a route without them.
RULES_CASES = {
    "rules-h1": {"kind": "h1", "path": "/rules/", "bar": 1.05},
    "rules-h2c": {"kind": "h2", "path": "/rules/", "bar": 1.05},
}
ORIGIN_FIELD = "Origin: https://app.example.com"
LARGE = 1_000_000  # octets of /large of the origin server
# Requests with content, whose instructions are counted.
POST_CASES = {
    "proxied-post": {"kind": "post", "path": "/", "expect": 200},
    "429-post": {"kind": "post", "path": "/refused", "expect": 429},
    "replay": {"kind": "post", "path": "/keyed", "expect": 200, "store": "memory"},
    "first": {"kind": "new-keys", "path": "/keyed", "expect": 200, "store": "memory"},
    "first-sqlite": {"kind": "new-keys", "path": "/keyed", "expect": 200, "store": "sqlite"},
}
COUNTED = {name: case for name, case in (CASES | POST_CASES).items()
           if not name.endswith(("tls", "to-h2")) and name not in ("new-connection", "body-1m")}
# Octets of memory for a connection that has had one response and says nothing.
IDLE_CASES = {
    "idle-h1": {"kind": "h1", "bar": 512, "peer": "nginx-limit"},
    "idle-h2": {"kind": "h2", "bar": 8192, "peer": "haproxy-limit-h2c"},
}
# WebSocket: what an echo of 125 octets costs beside nginx, and octets of memory for one that says
# nothing.
SOCKET_CASES = {
    "websocket-echo": {"bar": 1.0},
    "idle-tunnel": {"bar": 2048},
}
SOCKETS = 64
IDLE_SOCKETS = 1_000
IDLE_CONNECTIONS = 10_000
PEER_IDLE_CONNECTIONS = 2_000  # nginx may have 4,096, those to the origin server among them


class GatewayBench(load.Bench):
    def __init__(self, arguments, run):
        # While instructions are counted no window begins, after which a request would cost less.
        config = CONFIG.replace("window: 10s", "window: 1d") if arguments.instructions else CONFIG
        super().__init__(arguments, run, config)
        for store, where in STORES.items():
            keyed = config.replace("routes:\n", f"stores: {{idempotency: {where}}}\nroutes:{KEYED_ROUTE}")
            self.add_gateway(store, keyed, "gateway")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                        "-subj", "/CN=localhost", "-keyout", run / "key.pem", "-out", run / "cert.pem"],
                       check=True, capture_output=True)
        run.chmod(0o755)  # a worker of nginx is another user than root
        (run / "large").write_bytes(b"x" * LARGE)
        (run / "both.pem").write_text((run / "cert.pem").read_text() + (run / "key.pem").read_text())

    def idle_octets(self, server, at, kind, count):
        def connect():
            made = load.connect(address(at))
            if not ask(made, kind):
                sys.exit(f"{server} does not answer")
            return made

        tested = self.restart(server)
        open_ones = [connect() for _ in range(100)]  # what is taken once is not the connections'
        before = tested.memory()
        open_ones += [connect() for _ in range(count)]
        time.sleep(2)  # what is given back when nothing happens is given back by now
        after = tested.memory()
        for each in open_ones:
            each.close()
        return (after - before) / count


def ask(connection, kind):
    """True when a response is there."""
    client = instructions.CLIENTS[kind]("/")
    connection.sendall(client.next())
    received = b""
    while piece := connection.recv(65536):
        received += piece
        if client.is_response(received, 200):
            return True
    return False


def contestant(name, server, at, case):
    scheme = "https" if at.endswith("tls") else "http"
    path = case["path"] if server == GATEWAY else case.get("peer_path", "/")
    return {"name": name, "server": server, "kind": case["kind"], "url": f"{scheme}://{address(at)}{path}", "expect": case["expect"]}


def run_case(bench, name, case):
    ours = contestant(GATEWAY, GATEWAY, "gateway-tls" if name.endswith("tls") else "gateway", case)
    contestants = [ours, *(contestant(peer, peer.split("-")[0], peer, case) for peer in case["peers"])]
    for each in contestants:
        bench.server(each["server"])
        bench.load(each, 1)  # warms up
    runs = bench.measure_in_turns(contestants)
    own, first = runs[GATEWAY], runs[case["peers"][0]]
    values = {"cpu_us": median(own, "cpu"), "user_us": median(own, "user")}
    if (calls := bench.system_calls(ours)) is not None:
        values["syscalls"] = calls
    values |= load.speed(own)
    for each in contestants[1:]:
        values[f"{each['server']}_cpu_us"] = median(runs[each["name"]], "cpu")
    values["ratio"] = ratio_of(own, first, lambda run: run["cpu"] / run["around"])
    values["raw_ratio"] = ratio_of(own, first)
    values |= case["bars"]
    others = max(run["others"] for each in runs.values() for run in each)
    peer = contestants[1]["server"]
    row = (f"{name:14} {values['cpu_us']:7.2f} {values['user_us']:6.2f} {values.get('syscalls', float('nan')):9.2f} "
           f"{values['rps']:8.0f} {values['p50_us']:7.0f} {values['p99_us']:7.0f} {values['longest_us']:10.0f}  "
           f"{peer + ' %.2f' % values[peer + '_cpu_us']:14} {values['ratio']:5.2f} {values['bar']:5.2f}  "
           f"{at_most(values['ratio'], values['bar'])}")
    if others >= 0.1:
        row += f", but others used up to {others:.1f} cores"
    return values, row


def run_rules(bench, name, case):
    """Both are sent the origin of a page, so that they differ in what is done with it only."""
    runs = bench.measure_in_turns([
        {"name": each, "server": GATEWAY, "kind": case["kind"], "url": f"http://{address('gateway')}{path}", "expect": 200,
         "more": ORIGIN_FIELD} for each, path in (("rules", case["path"]), ("plain", "/"))])
    values = {"cpu_us": median(runs["rules"], "cpu"), "plain_cpu_us": median(runs["plain"], "cpu"), **load.speed(runs["rules"]),
              "ratio": ratio_of(runs["rules"], runs["plain"]), "bar": case["bar"]}
    return values, (f"{name:14} {values['cpu_us']:7.2f} us with CORS, two header rules and a rewrite, {values['plain_cpu_us']:.2f} without; "
                    f"p99 {values['p99_us']:.0f} us, longest {values['longest_us']:.0f}; ratio {values['ratio']:.3f} bar {case['bar']:.2f}  "
                    f"{at_most(values['ratio'], case['bar'])}")


def run_idle(bench, name, case):
    peer = case["peer"].split("-")[0]
    values = {"bytes": bench.idle_octets(GATEWAY, "gateway", case["kind"], IDLE_CONNECTIONS), "bar": case["bar"],
              f"{peer}_bytes": bench.idle_octets(peer, case["peer"], case["kind"], PEER_IDLE_CONNECTIONS)}
    return values, (f"{name:14} {values['bytes']:.0f} octets of memory for an idle connection, {peer} {values[peer + '_bytes']:.0f}; "
                    f"bar {case['bar']}  {at_most(values['bytes'], case['bar'])}")


@contextlib.contextmanager
def sockets_through(at):
    made = websocket.Sockets(address(at), address("websocket"))
    try:
        yield made
    finally:
        made.close()


def run_echo(bench, name, case):
    """They take turns; `around` is what this process uses for both ends."""
    runs = {GATEWAY: [], "nginx": []}
    for number in range(bench.arguments.rounds):
        for server, at in ((GATEWAY, "gateway"), ("nginx", "nginx-limit")):
            tested = bench.server(server)
            with sockets_through(at) as sockets:
                sockets.open(SOCKETS)
                sockets.echo(0.5)  # warms up
                before, own = tested.cpu(), time.process_time()
                taken, secs = sockets.echo(bench.arguments.secs)
                count = len(taken)
                runs[server].append({"cpu": (tested.cpu() - before) / count, "rps": count / secs,
                                     "around": (time.process_time() - own) * 1e6 / count, "p50": taken[count // 2],
                                     "p99": taken[count * 99 // 100], "longest": taken[-1]})
            run = runs[server][-1]
            print(f"  round {number + 1} {server:22} {run['cpu']:6.2f} us, {run['rps']:6.0f} messages/s", flush=True)
    own, peer = runs[GATEWAY], runs["nginx"]
    values = {"cpu_us": median(own, "cpu"), "nginx_cpu_us": median(peer, "cpu"), **load.speed(own),
              "ratio": ratio_of(own, peer, lambda run: run["cpu"] / run["around"]), "raw_ratio": ratio_of(own, peer), **case}
    return values, (f"{name:14} {values['cpu_us']:7.2f} us for a message and its echo, nginx {values['nginx_cpu_us']:.2f}; "
                    f"p99 {values['p99_us']:.0f} us, longest {values['longest_us']:.0f}; ratio {values['ratio']:.2f} bar {case['bar']:.2f}  {at_most(values['ratio'], case['bar'])}")


def run_idle_tunnel(bench, name, case):
    def octets(server, at):
        tested = bench.restart(server)
        with sockets_through(at) as sockets:
            sockets.open(100)  # what is taken once is not theirs
            before = tested.memory()
            sockets.open(IDLE_SOCKETS)
            return (tested.memory() - before) / IDLE_SOCKETS

    values = {"bytes": octets(GATEWAY, "gateway"), "bar": case["bar"], "nginx_bytes": octets("nginx", "nginx-limit")}
    return values, (f"{name:14} {values['bytes']:.0f} octets of memory for an idle tunnel, nginx {values['nginx_bytes']:.0f}; "
                    f"bar {case['bar']}  {at_most(values['bytes'], case['bar'])}")


def allow_descriptors(count):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        return False
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    return True


def throughput_cases(bench):
    bench.server("origin")
    for name in bench.arguments.cases:
        print(name, flush=True)
        if name in CASES:
            yield name, *run_case(bench, name, CASES[name])
        elif name in RULES_CASES:
            yield name, *run_rules(bench, name, RULES_CASES[name])
        elif name == "websocket-echo":
            yield name, *run_echo(bench, name, SOCKET_CASES[name])
        elif name == "idle-tunnel" and allow_descriptors(4 * IDLE_SOCKETS):
            yield name, *run_idle_tunnel(bench, name, SOCKET_CASES[name])
        elif name in IDLE_CASES and allow_descriptors(IDLE_CONNECTIONS + 1000):
            yield name, *run_idle(bench, name, IDLE_CASES[name])
        else:
            print(f"{name}: skipped; the system allows too few open files")


def instruction_cases(bench):
    for name in bench.arguments.cases:
        case = COUNTED[name]
        # HPACK allocates where a value is new: when the seconds in a field change, not each time.
        counted, allocations = instructions.count(bench, case.get("store", GATEWAY), case["path"], case["kind"],
                                                  bench.arguments.requests, case["expect"])
        yield (name, {"instructions": round(counted), "allocations": allocations},
               f"{name:14} {round(counted):7} instructions {allocations:5.2f} allocations" +
               (f", bar 0  {at_most(round(allocations, 1), 0)}" if name in CASES else ""))


def main():
    counts = "--instructions" in sys.argv
    names = [*COUNTED] if counts else [*CASES, *RULES_CASES, *SOCKET_CASES, *IDLE_CASES]
    parser = load.parser_of("gateway", __doc__, names, secs=3, rounds=5, conns=64, keys=1000, tries=3, quiet=20)
    parser.add_argument("--instructions", action="store_true", help="count instructions by callgrind and nothing else")
    parser.add_argument("--requests", type=int, default=100, help="that a long block has more than a short one (%(default)s)")
    arguments = load.parse(parser, names, ("valgrind", "vgdb", "openssl") if counts else TOOLS, 1 if counts else 2)
    heading = "" if counts else (f"{'case':14} {'cpu us':>7} {'user':>6} {'sys calls':>9} {'req/s':>8} {'p50 us':>7} {'p99 us':>7} "
                                 f"{'longest us':>10}  {'peer cpu us':14} {'ratio':>5} {'bar':>5}")
    load.run_cases("gateway", lambda run: GatewayBench(arguments, run), instruction_cases if counts else throughput_cases,
                   heading=heading)


if __name__ == "__main__":
    main()
