#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an open console costs the gateway.

    ./dev bench console                  both cases
    ./dev bench console overview         only this one

overview    CPU time of a request while one page is open, next to the same without one: the page reads one event a second
policies    the same while the page shows the policies: it asks for them and for the hottest partitions every two seconds besides

Load is wrk as fast as it goes, or h2load with --fixed, through a gateway with ten routes and ten policies to the origin server of
../shared/bench/gateway; `rps` says how fast that was. The gateway has one thread, on cpu 1, which serves the console too;
load generator, origin server and the reader of events share cpu 0. The load goes on all the time; under it the page is opened and
closed, and what the gateway uses for each request is measured for a while with it and for a while without it, one after the other, in turns,
since the speed of the machine drifts. `ratio` is the median over the rounds of open / closed, `error` its standard error. `event_us` is what an
event takes of the gateway when nothing else happens, with everything that the system does for it.
"""

import argparse
import contextlib
import http.client
import os
import pathlib
import re
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time

import gateway_bench
from gateway_bench import ADDRESS, GATEWAY, ROOT, median, program_line

TOOLS = ("nginx", "wrk", "h2load", "openssl", "taskset")
ADMIN = "127.0.0.1:9303"
BAR = 1.02
ROUTES = 10


def config():
    """Ten routes with a policy each; the last of them takes the load."""
    policies = "\n".join(
        f"  policy-{i}: {{quota: 100000000, window: 10s, algorithm: sliding, partition: [header:x-api-key]}}" for i in range(ROUTES))
    routes = "\n".join(
        f"  - {{name: route-{i}, match: {{path: {'/**' if i == ROUTES - 1 else f'/v{i}/**'}}}, upstream: origin, limits: [policy-{i}]}}"
        for i in range(ROUTES))
    return (f"listen: {ADDRESS}\nadmin: {ADMIN}\nworkers: 1\ndata: RUN/data\nupstreams:\n  origin: http://127.0.0.1:9000\n"
            f"policies:\n{policies}\nroutes:\n{routes}\n")


def ask(path):
    with contextlib.closing(http.client.HTTPConnection(ADMIN, timeout=10)) as to:
        to.request("GET", path)
        answer = to.getresponse()
        content = answer.read()
        if answer.status != 200:
            sys.exit(f"{path} is answered {answer.status}: {content[:200]!r}")
        return content


class Page:
    """Does what the page in a browser asks of the gateway, until it is closed."""

    def __init__(self, asks_every_2nd=()):
        self.asks = asks_every_2nd
        self.events = 0
        self.octets = 0
        ask("/")
        host, port = ADMIN.split(":")
        self.stream = socket.create_connection((host, int(port)), timeout=10)
        self.stream.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {ADMIN}\r\n\r\n".encode())
        self.failure = None
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        try:
            for line in self.stream.makefile("rb"):
                self.octets += len(line)
                if line.startswith(b"data: "):
                    self.events += 1
                    for path in self.asks if self.events % 2 == 0 else ():
                        ask(path)
        except OSError as failure:
            self.failure = failure

    def close(self):
        self.stream.shutdown(socket.SHUT_RDWR)
        self.thread.join(15)
        self.stream.close()
        if self.failure or self.events == 0:
            sys.exit(f"the page saw {self.events} events: {self.failure}")


ASKS = {"overview": (), "policies": ("/api/v1/policies", "/api/v1/partitions?limit=20")}
LOAD = {"name": "load", "server": GATEWAY, "kind": "h1", "url": f"http://{ADDRESS}/", "expect": 200}


def cost_of_an_event(bench, secs):
    """What the gateway uses for an event while nobody asks it anything else, in microseconds."""
    def used(wait):
        before = bench.shared.cpu(bench.processes(GATEWAY))[2]
        time.sleep(wait)
        return bench.shared.cpu(bench.processes(GATEWAY))[2] - before

    alone = used(secs)
    page = Page()
    try:
        time.sleep(0.5)
        events = page.events
        octets = page.octets
        cost = used(secs)
        seen = max(page.events - events, 1)
        return max(cost - alone, 0) / seen, (page.octets - octets) / seen
    finally:
        page.close()


def answered():
    """How many requests were answered so far."""
    return sum(int(count) for count in re.findall(rb"(?m)^tidegate_requests_total{[^}]*} (\d+)$", ask("/metrics")))


def window(bench, secs):
    """What the gateway uses for a request, in microseconds, and how many it answers in a second."""
    tested = bench.processes(GATEWAY)
    count, begin, busy = answered(), time.monotonic(), bench.shared.cpu(tested)[2]
    time.sleep(secs)
    used, end = bench.shared.cpu(tested)[2] - busy, time.monotonic()
    count = answered() - count
    if count == 0:
        sys.exit("nothing was answered")
    return {"busy": used / count, "rps": count / (end - begin)}


class Load(threading.Thread):
    """Requests for so many seconds."""

    def __init__(self, bench, secs):
        super().__init__(daemon=True)
        self.bench, self.secs, self.result = bench, secs, None

    def run(self):
        self.result = self.bench.load(LOAD, self.secs)


def run_case(bench, name, event_us, event_octets):
    arguments = bench.arguments
    around = 0.6  # to open the page and to ask for counts, at most
    runs = {"open": [], "closed": []}
    load = Load(bench, int(2 + arguments.rounds * 2 * (arguments.secs + around)))
    load.start()
    time.sleep(2)
    for number in range(arguments.rounds):
        for which in ("open", "closed") if number % 2 == 0 else ("closed", "open"):
            page = Page(ASKS[name]) if which == "open" else None
            try:
                time.sleep(0.3)
                runs[which].append(window(bench, arguments.secs))
            finally:
                if page:
                    page.close()
        if not load.is_alive():
            sys.exit(f"the load ended in round {number + 1}")
        print(f"  round {number + 1:3} {runs['open'][-1]['busy']:7.3f} us with the page, {runs['closed'][-1]['busy']:7.3f} without, "
              f"{runs['open'][-1]['rps']:6.0f} requests/s", flush=True)
    load.join()
    each = [own["busy"] / peer["busy"] for own, peer in zip(runs["open"], runs["closed"])]
    ratio = statistics.median(each)
    # Of a median of values that lie as chance has them; the middle half of those is 1.349 standard deviations wide.
    quarters = statistics.quantiles(each, n=4)
    error = 1.2533 * (quarters[2] - quarters[0]) / 1.349 / len(each) ** 0.5
    values = {"cpu_us": median(runs["open"], "busy"), "closed_us": median(runs["closed"], "busy"), "ratio": ratio, "error": error,
              "bar": BAR, "rps": median(runs["open"], "rps"), "closed_rps": median(runs["closed"], "rps"), "rounds": len(each),
              "event_us": event_us, "event_bytes": event_octets}
    if load.result is None or load.result["bad"]:
        sys.exit("the load failed" if load.result is None else f"{load.result['bad']} responses were not the expected 200")
    row = (f"{name:9} {values['cpu_us']:.3f} us of CPU time for a request at {values['rps']:.0f} requests/s, {values['closed_us']:.3f} "
           f"without the page; ratio {ratio:.4f} +- {error:.4f}, bar {BAR}  {'met' if ratio <= BAR else 'MISSED'}")
    # What the bar is about is known as console/open.
    return program_line("open" if name == "overview" else name, values, "console"), row


def main():
    parser = argparse.ArgumentParser(prog="./dev bench console", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(ASKS))
    parser.add_argument("-s", "--secs", type=int, default=2, help="with the page, and without it, in a round (%(default)s)")
    parser.add_argument("-r", "--rounds", type=int, default=60, help="median of so many (%(default)s)")
    parser.add_argument("-c", "--conns", type=int, default=64, help="connections (%(default)s)")
    parser.add_argument("-k", "--keys", type=int, default=1000, help="values of X-API-Key (%(default)s)")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "release" / "tidegate")
    parser.add_argument("--fixed", type=int, default=0, metavar="RATE", help="so many requests a second, by h2load; left out: as "
                        "many as wrk can send")
    arguments = parser.parse_args()
    for each in arguments.cases:
        if each not in ASKS:
            parser.error(f"there is no case '{each}'; there are: {', '.join(ASKS)}")
    arguments.binary = arguments.binary.absolute()
    if lacks := list(gateway_bench.missing(arguments.binary, TOOLS)):
        print("bench console: skipped; missing: " + "; ".join(lacks))
        return 0
    os.sched_setaffinity(0, {0})  # the reader of events
    with tempfile.TemporaryDirectory(prefix="tidegate-bench.") as folder:
        bench = gateway_bench.Bench(gateway_bench.load_shared(folder), arguments, pathlib.Path(folder), config())
        lines, rows = [], []
        try:
            bench.server("upstream")
            bench.server(GATEWAY)
            bench.load(LOAD, 2)  # warms up
            event_us, event_octets = cost_of_an_event(bench, max(arguments.secs, 5))
            for name in ASKS:
                if not arguments.cases or name in arguments.cases:
                    print(name, flush=True)
                    line, row = run_case(bench, name, event_us, event_octets)
                    lines.append(line)
                    rows.append(row)
        finally:
            bench.stop()
    print(f"\nan event takes {event_us:.0f} us and {event_octets:.0f} octets, with {ROUTES} routes and {ROUTES} policies")
    print("\n".join(rows) + "\n\n" + "\n".join(lines))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    sys.exit(main())
