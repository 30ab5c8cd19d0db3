#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time per request of the gateway, next to nginx with limit_req and HAProxy with stick tables.

    ./dev bench gateway                      all cases
    ./dev bench gateway 429-h1 proxied-h2c   only these
    ./dev bench gateway -s 5 -r 7 ...        seven rounds of five seconds each

Load generator, origin server and the configurations of the peers are those of ../shared/bench/gateway. Each
process has one thread; the gateway or peer under test has cpu 1 for itself, load generator and origin server
share cpu 0. The gateway has one policy as its peers have, and says RateLimit and RateLimit-Policy. In each
round gateway and peer take turns, since the speed of the machine drifts: `ratio` is the median over the
rounds of gateway / peer, each divided by what load generator and origin server cost in the same run.
`raw_ratio` is without that division.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "bench" / "gateway"
TOOLS = ("nginx", "haproxy", "wrk", "h2load", "openssl", "taskset")

ADDRESS = "127.0.0.1:9301"
TLS_ADDRESS = "127.0.0.1:9302"
ADMIN = "127.0.0.1:9303"
CONFIG = f"""
listen:
  - {ADDRESS}
  - {{address: "{TLS_ADDRESS}", tls: {{certificate: RUN/cert.pem, key: RUN/key.pem}}}}
admin: {ADMIN}
workers: 1
data: RUN/data
upstreams:
  origin: http://127.0.0.1:9000
policies:
  default: {{quota: 100000000, window: 10s, algorithm: sliding, partition: [header:x-api-key]}}
  tiny: {{quota: 1, window: 1d, algorithm: sliding, partition: [header:x-api-key]}}
http: {{idle-timeout: 1h}}
routes:
  - {{match: {{path: /refused}}, upstream: origin, limits: [tiny]}}
  - {{match: {{path: /**}}, upstream: origin, limits: [default]}}
"""

# What is asked of the gateway; the peer that the ratio is made with and its bar; bars of the gateway alone.
CASES = {
    "proxied-h1": {"kind": "h1", "url": f"http://{ADDRESS}/", "expect": 200, "bar": 0.85,
                   "peers": {"nginx": "nginx-limit", "haproxy": "haproxy-limit"},
                   "user_bar": 2.2, "syscalls_bar": 4.6},
    "429-h1": {"kind": "h1", "url": f"http://{ADDRESS}/refused", "expect": 429, "bar": 0.88,
               "peers": {"nginx": "nginx-429", "haproxy": "haproxy-429"},
               "user_bar": 1.1, "syscalls_bar": 2.4},
    "proxied-h2c": {"kind": "h2", "url": f"http://{ADDRESS}/", "expect": 200, "bar": 0.88,
                    "peers": {"haproxy": "haproxy-limit-h2c"}},
    "429-h2c": {"kind": "h2", "url": f"http://{ADDRESS}/refused", "expect": 429, "bar": 0.78,
                "peers": {"haproxy": "haproxy-429-h2c"}},
    "proxied-h2tls": {"kind": "h2", "url": f"https://{TLS_ADDRESS}/", "expect": 200, "bar": 0.95,
                      "peers": {"haproxy": "haproxy-limit-h2tls"}},
}
# Octets of memory for a connection that has had one response and says nothing.
IDLE_CASES = {
    "idle-h1": {"kind": "h1", "bar": 512, "peer": "nginx", "of": "nginx-limit"},
    "idle-h2": {"kind": "h2", "bar": 8192, "peer": "haproxy", "of": "haproxy-limit-h2c"},
}
IDLE_CONNECTIONS = 10_000
PEER_IDLE_CONNECTIONS = 2_000  # nginx may have 4,096, those to the origin server among them
GATEWAY = "tidegate"


def load_shared(run):
    """The shared bench as a module; its scratch files go to `run`."""
    os.environ["BENCH_RUN"] = str(run)
    spec = importlib.util.spec_from_file_location("gateway_bench_shared", SHARED / "bench.py")
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


class Bench:
    """Servers that stay up for the whole run, and runs against them."""

    def __init__(self, shared, arguments, run, gateway_config=CONFIG):
        self.shared = shared
        self.arguments = arguments
        self.run = run
        shared.prepare()
        config = json.loads((SHARED / "contestants.json").read_text())
        self.contestants = {each["name"]: each for each in config["contestants"]}
        (run / "tidegate.yaml").write_text(gateway_config.replace("RUN", str(run)))
        config["servers"][GATEWAY] = {
            "cmd": [str(arguments.binary), "serve", "-c", str(run / "tidegate.yaml")],
            "cpu": 1, "probe": f"http://{ADDRESS}/"}
        self.settings = config["servers"]
        self.servers = {}

    def server(self, name):
        """Starts it when it is not there yet."""
        if name not in self.servers:
            self.servers[name] = self.shared.Server(name, self.settings[name])
        return self.servers[name]

    def restart(self, name):
        """Without the memory that earlier runs have left to it."""
        if name in self.servers:
            self.servers.pop(name).stop()
        return self.server(name)

    def processes(self, name):
        return self.shared.tree(self.server(name).p.pid)

    def stop(self):
        for each in self.servers.values():
            each.stop()

    def load(self, contestant, secs):
        return self.shared.load(contestant, secs, self.arguments)

    def measure_once(self, contestant):
        """One run: what it cost for each request, in microseconds. Ends the program when a response is not what is expected:
        a refusal is not the work that is measured."""
        shared = self.shared
        counted = answered_by_status() if contestant["server"] == GATEWAY else {}
        tested = self.processes(contestant["server"])
        origin = self.processes("upstream")
        user_0, system_0, busy_0, _ = shared.cpu(tested)
        origin_0, machine_0, load_0 = shared.cpu(origin)[2], shared.machine()[0], shared.children()
        run = self.load(contestant, self.arguments.secs)
        user_1, system_1, busy_1, _ = shared.cpu(tested)
        origin_1, machine_1, load_1 = shared.cpu(origin)[2], shared.machine()[0], shared.children()
        if not run or not run["requests"]:
            sys.exit(f"{contestant['name']} answered nothing")
        count = run["requests"]
        others = {}
        if contestant["server"] == GATEWAY:
            others = {status: number - counted.get(status, 0) for status, number in answered_by_status().items()
                      if status not in (contestant["expect"], CLIENT_HAS_GONE) and number != counted.get(status, 0)}
        # Peers whose limit fills up again while they run let a request a second of each key through.
        allowed = 0 if contestant["server"] == GATEWAY else count // 10
        if run["bad"] > allowed or others:
            sys.exit(f"{contestant['name']}: {run['bad']} of {count} responses were not the expected {contestant['expect']}"
                     + "".join(f"; {number} times {status}" for status, number in others.items()))
        own = (busy_1 - busy_0) + (origin_1 - origin_0) + (load_1 - load_0)
        return {
            "cpu": (user_1 - user_0 + system_1 - system_0) / count, "user": (user_1 - user_0) / count,
            "busy": (busy_1 - busy_0) / count,
            "others": max(0, (machine_1 - machine_0 - own) / 1e6 / run["secs"]),
            "around": (origin_1 - origin_0 + load_1 - load_0) / count,
            "rps": count / run["secs"], "p50": run["p50"], "p99": run["p99"]}

    def measure(self, contestant):
        """The least disturbed of a few tries."""
        best = None
        for _ in range(self.arguments.tries):
            if best is not None:
                self.shared.wait_quiet(secs=self.arguments.quiet)
            run = self.measure_once(contestant)
            if best is None or run["others"] < best["others"]:
                best = run
            if best["others"] < 0.1:
                break
        return best

    def system_calls(self, contestant):
        """How many the gateway makes for each request: counted by perf, or where it may not by strace, which
        slows the gateway down so much that one call tells of more at once than it otherwise would."""
        process = str(self.server(GATEWAY).p.pid)
        for count in (self.count_by_perf, self.count_by_strace):
            calls = count(process, contestant)
            if calls is not None:
                return calls
        return None

    def instructions(self, contestant):
        """How many the gateway executes for each request, in user space; None where perf cannot count them."""
        return self.count_by_perf(str(self.server(GATEWAY).p.pid), contestant, "instructions:u")

    def count_by_perf(self, process, contestant, event="raw_syscalls:sys_enter"):
        if shutil.which("perf") is None:
            return None
        log = self.run / "perf.csv"
        tracer = subprocess.Popen(["perf", "stat", "-x,", "-o", log, "-e", event, "-p", process],
                                  stderr=subprocess.DEVNULL)
        found, requests = self.load_under(tracer, log, contestant, r"(?m)^(\d+),")
        return int(found.group(1)) / requests if found else None

    def count_by_strace(self, process, contestant):
        if shutil.which("strace") is None:
            return None
        log = self.run / "strace.txt"
        tracer = subprocess.Popen(["strace", "-f", "-c", "-o", log, "-p", process],
                                  stderr=subprocess.DEVNULL)
        found, requests = self.load_under(tracer, log, contestant, r"(?m)^100\.00 +\S+ +\S+ +(\d+) .*total$")
        return int(found.group(1)) / requests if found else None

    def load_under(self, tracer, log, contestant, pattern):
        try:
            time.sleep(0.5)  # for the tracer to attach
            requests = self.load(contestant, 2)["requests"]
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait(10)
        return re.search(pattern, log.read_text() if log.exists() else ""), requests

    def memory(self, name, kind="Private_Dirty"):
        """Memory of its own, in octets."""
        total = 0
        for process in self.processes(name):
            rollup = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
            total += int(re.search(rf"(?m)^{kind}: +(\d+) kB", rollup).group(1)) * 1024
        return total

    def idle_octets(self, name, url, kind, count):
        host, port = re.match(r"http://([^:/]+):(\d+)/", url).groups()
        ask = {"h1": ask_h1, "h2": ask_h2}[kind]

        def connect():
            made = socket.create_connection((host, int(port)), timeout=10)
            if not ask(made):
                sys.exit(f"{name} does not answer")
            return made

        self.restart(name)
        open_ones = [connect() for _ in range(100)]  # what is taken once is not the connections'
        before = self.memory(name)
        open_ones += [connect() for _ in range(count)]
        time.sleep(2)  # what is given back when nothing happens is given back by now
        after = self.memory(name)
        for each in open_ones:
            each.close()
        return (after - before) / count


CLIENT_HAS_GONE = 499  # a load generator that ends leaves its last requests


def answered_by_status():
    """How often the gateway has answered with each status so far."""
    counts = {}
    page = urllib.request.urlopen(f"http://{ADMIN}/metrics", timeout=10).read().decode()
    for status, count in re.findall(r'(?m)^tidegate_requests_total{[^}]*status="(\d+)"} (\d+)$', page):
        counts[int(status)] = counts.get(int(status), 0) + int(count)
    return counts


def ask_h1(connection):
    connection.sendall(b"GET / HTTP/1.1\r\nHost: a.example\r\nX-API-Key: idle\r\n\r\n")
    return connection.recv(65536).startswith(b"HTTP/1.1 ")


def ask_h2(connection):
    """The preface, empty SETTINGS and a GET without any compression; true when stream 1 has ended."""
    fields = b"\x82\x86\x84\x41\x09a.example\x40\x09x-api-key\x04idle"
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + frame(1, 5, 1, fields))
    received = b""
    while piece := connection.recv(65536):
        received += piece
        while len(received) >= 9 and len(received) >= (end := 9 + int.from_bytes(received[:3], "big")):
            kind, flags, stream = received[3], received[4], int.from_bytes(received[5:9], "big")
            received = received[end:]
            if kind == 4 and not flags & 1:
                connection.sendall(frame(4, 1, 0))
            if kind in (0, 1) and stream == 1 and flags & 1:
                return True
    return False


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def ratios(ours, peers, value):
    return statistics.median(value(own) / value(peer) for own, peer in zip(ours, peers))


def run_case(bench, name, case):
    """The line for programs and the row for people."""
    ours = {"name": f"{GATEWAY}-{name}", "server": GATEWAY, **case}
    contestants = {GATEWAY: ours, **{peer: bench.contestants[of] for peer, of in case["peers"].items()}}
    runs = {each: [] for each in contestants}
    for each in contestants.values():
        bench.server(each["server"])
        bench.shared.load(each, 1, bench.arguments)  # warms up
    for number in range(bench.arguments.rounds):
        for who, contestant in contestants.items():
            run = bench.measure(contestant)
            runs[who].append(run)
            print(f"  round {number + 1} {contestant['name']:22} {run['cpu']:6.2f} us, {run['rps']:6.0f} requests/s, "
                  f"others use {run['others']:.2f} cores", flush=True)
    first = next(iter(case["peers"]))
    values = {"cpu_us": median(runs[GATEWAY], "cpu"), "user_us": median(runs[GATEWAY], "user")}
    calls = bench.system_calls(ours)
    if calls is not None:
        values["syscalls"] = calls
    values |= {"rps": median(runs[GATEWAY], "rps"), "p50_us": median(runs[GATEWAY], "p50"),
               "p99_us": median(runs[GATEWAY], "p99")}
    for peer in case["peers"]:
        values[f"{peer}_cpu_us"] = median(runs[peer], "cpu")
    values["ratio"] = ratios(runs[GATEWAY], runs[first], lambda run: run["cpu"] / run["around"])
    values["raw_ratio"] = ratios(runs[GATEWAY], runs[first], lambda run: run["cpu"])
    values["bar"] = case["bar"]
    for key in ("user_bar", "syscalls_bar"):
        if key in case:
            values[key] = case[key]
    others = max(run["others"] for each in runs.values() for run in each)
    row = (f"{name:14} {values['cpu_us']:7.2f} {values['user_us']:6.2f} {values.get('syscalls', float('nan')):9.2f} "
           f"{values['rps']:8.0f} {values['p50_us']:7.0f} {values['p99_us']:7.0f}  "
           f"{first + ' %.2f' % values[first + '_cpu_us']:14} {values['ratio']:5.2f} {case['bar']:5.2f}  "
           f"{'met' if values['ratio'] <= case['bar'] else 'MISSED'}")
    if others >= 0.1:
        row += f", but others used up to {others:.1f} cores"
    return program_line(name, values), row


def run_idle(bench, name, case):
    peer = case["peer"]
    values = {"bytes": bench.idle_octets(GATEWAY, f"http://{ADDRESS}/", case["kind"], IDLE_CONNECTIONS),
              "bar": case["bar"],
              f"{peer}_bytes": bench.idle_octets(peer, bench.contestants[case["of"]]["url"], case["kind"],
                                                 PEER_IDLE_CONNECTIONS)}
    row = (f"{name:14} {values['bytes']:.0f} octets of memory for an idle connection, "
           f"{peer} {values[peer + '_bytes']:.0f}; bar {case['bar']}  "
           f"{'met' if values['bytes'] <= case['bar'] else 'MISSED'}")
    return program_line(name, values), row


def program_line(name, values, suite="gateway"):
    return f"bench {suite}/{name} " + " ".join(f"{key}={value:.6g}" for key, value in values.items())


def missing(binary, tools=TOOLS):
    """What is needed and not there."""
    if not (SHARED / "bench.py").exists():
        yield f"the load generator's files: {SHARED}"
    for tool in tools:
        if shutil.which(tool) is None:
            yield f"the program {tool}"
    if not os.access(binary, os.X_OK):
        yield f"{binary}: ./dev build release"
    if (os.cpu_count() or 1) < 2:
        yield "a second cpu"


def allow_descriptors(count):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        return False
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    return True


def main():
    names = [*CASES, *IDLE_CASES]
    parser = argparse.ArgumentParser(prog="./dev bench gateway", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(names))
    parser.add_argument("-s", "--secs", type=int, default=3, help="of one run (%(default)s)")
    parser.add_argument("-r", "--rounds", type=int, default=5, help="median of so many (%(default)s)")
    parser.add_argument("-c", "--conns", type=int, default=64, help="connections of HTTP/1.1 (%(default)s)")
    parser.add_argument("-k", "--keys", type=int, default=1000, help="values of X-API-Key (%(default)s)")
    parser.add_argument("--tries", type=int, default=3, help="when others use the machine (%(default)s)")
    parser.add_argument("--quiet", type=int, default=20, help="seconds to wait for a quiet machine before "
                        "another try (%(default)s)")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "release" / "tidegate")
    arguments = parser.parse_args()
    arguments.fixed = 0
    for each in arguments.cases:
        if each not in names:
            parser.error(f"there is no case '{each}'; there are: {', '.join(names)}")
    lacks = list(missing(arguments.binary.absolute()))
    if lacks:
        print("bench gateway: skipped; missing: " + "; ".join(lacks))
        return 0
    arguments.binary = arguments.binary.absolute()
    wanted = [name for name in names if not arguments.cases or name in arguments.cases]
    if not allow_descriptors(IDLE_CONNECTIONS + 1000):
        print("idle connections: skipped; the system allows too few open files")
        wanted = [name for name in wanted if name not in IDLE_CASES]

    with tempfile.TemporaryDirectory(prefix="tidegate-bench.") as folder:
        bench = Bench(load_shared(folder), arguments, pathlib.Path(folder))
        lines, rows = [], []
        try:
            bench.server("upstream")
            for name in wanted:
                print(name, flush=True)
                line, row = (run_case(bench, name, CASES[name]) if name in CASES
                             else run_idle(bench, name, IDLE_CASES[name]))
                lines.append(line)
                rows.append(row)
        finally:
            bench.stop()
    print(f"\n{'case':14} {'cpu us':>7} {'user':>6} {'sys calls':>9} {'req/s':>8} {'p50 us':>7} {'p99 us':>7}  "
          f"{'peer cpu us':14} {'ratio':>5} {'bar':>5}")
    print("\n".join(rows) + "\n\n" + "\n".join(lines))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    sys.exit(main())
