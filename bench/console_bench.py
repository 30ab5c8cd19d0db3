#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an open console costs the gateway.

    ./dev bench console                  both cases
    ./dev bench console overview         only this one

overview    CPU time of a request while one page is open, next to the same without one: the page
            reads one event a second
policies    the same while the page shows the policies: it asks for them and for the hottest
            partitions every two seconds besides

Load is wrk as fast as it goes, or h2load with --fixed, through a gateway with ten routes and ten
policies to the origin server; `rps` says how fast that was, `p99_us` and `longest_us` how long
responses took in all of it. The reader of events is on cpu 0. The load goes on all the time; under it
the page is opened and closed, and what the gateway uses for each request is measured for a while with
it and for a while without it, in turns, since the speed of the machine drifts. `ratio` is the median
over the rounds of open / closed, `error` its standard error. `event_us` is what an event takes of the
gateway when nothing else happens, with everything that the system does for it.
"""

import contextlib
import http.client
import os
import statistics
import sys
import socket
import threading
import time

import load
from load import GATEWAY, address, at_most, median

TOOLS = ("nginx", "wrk", "h2load", "taskset")
BAR = 1.02
ROUTES = 10


def config():
    """Ten routes with a policy each; the last of them takes the load."""
    policies = "\n".join(
        f"  policy-{i}: {{quota: 100000000, window: 10s, algorithm: sliding, partition: [header:x-api-key]}}" for i in range(ROUTES))
    routes = "\n".join(
        f"  - {{name: route-{i}, match: {{path: {'/**' if i == ROUTES - 1 else f'/v{i}/**'}}}, upstream: origin, limits: [policy-{i}]}}"
        for i in range(ROUTES))
    return ("listen: @gateway@\nadmin: @admin@\nworkers: 1\ndata: @RUN@/data\nupstreams:\n  origin: http://@origin@\n"
            f"policies:\n{policies}\nroutes:\n{routes}\n")


def ask(path):
    with contextlib.closing(http.client.HTTPConnection(address("admin"), timeout=10)) as to:
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
        self.stream = load.connect(address("admin"))
        self.stream.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {address('admin')}\r\n\r\n".encode())
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


class ConsoleBench(load.Bench):
    def load(self, secs):
        url, arguments = f"http://{address('gateway')}/", self.arguments
        if arguments.fixed:
            return load.h2load(self.run, url, secs, 200, "--h1", f"-c{arguments.conns}", f"--rps={arguments.fixed / arguments.conns}")
        return load.wrk(url, arguments.conns, secs, 200, *self.turns(load.gets("/", arguments.keys)))


def cost_of_an_event(bench, secs):
    """What the gateway uses for an event while it has no requests, in microseconds."""
    def used(wait):
        before = bench.server(GATEWAY).cpu()
        time.sleep(wait)
        return bench.server(GATEWAY).cpu() - before

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
    return sum(load.metrics("tidegate_requests_total", "status").values())


def window(bench, secs):
    """What the gateway uses for a request, in microseconds, and how many it answers in a second."""
    tested = bench.server(GATEWAY)
    count, begin, busy = answered(), time.monotonic(), tested.cpu()
    time.sleep(secs)
    used, end = tested.cpu() - busy, time.monotonic()
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
        self.result = self.bench.load(self.secs)


def run_case(bench, name, event_us, event_octets):
    arguments = bench.arguments
    around = 0.6  # to open the page and to ask for counts, at most
    runs = {"open": [], "closed": []}
    under = Load(bench, int(2 + arguments.rounds * 2 * (arguments.secs + around)))
    under.start()
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
        if not under.is_alive():
            sys.exit(f"the load ended in round {number + 1}")
        print(f"  round {number + 1:3} {runs['open'][-1]['busy']:7.3f} us with the page, {runs['closed'][-1]['busy']:7.3f} without, "
              f"{runs['open'][-1]['rps']:6.0f} requests/s", flush=True)
    under.join()
    if under.result is None or under.result["bad"]:
        sys.exit("the load failed" if under.result is None else f"{under.result['bad']} responses were not the expected 200")
    each = [own["busy"] / peer["busy"] for own, peer in zip(runs["open"], runs["closed"])]
    ratio = statistics.median(each)
    # Of a median of values that lie as chance has them; the middle half of those is 1.349 standard
    # deviations wide.
    quarters = statistics.quantiles(each, n=4)
    error = 1.2533 * (quarters[2] - quarters[0]) / 1.349 / len(each) ** 0.5
    values = {"cpu_us": median(runs["open"], "busy"), "closed_us": median(runs["closed"], "busy"), "ratio": ratio, "error": error,
              "bar": BAR, "rps": median(runs["open"], "rps"), "closed_rps": median(runs["closed"], "rps"),
              "p99_us": under.result["p99"], "longest_us": under.result["longest"], "rounds": len(each),
              "event_us": event_us, "event_bytes": event_octets}
    row = (f"{name:9} {values['cpu_us']:.3f} us of CPU time for a request at {values['rps']:.0f} requests/s, {values['closed_us']:.3f} "
           f"without the page; ratio {ratio:.4f} +- {error:.4f}, bar {BAR}  {at_most(ratio, BAR)}")
    # What the bar is about is known as console/open.
    return "open" if name == "overview" else name, values, row


def run_cases(bench):
    bench.server("origin")
    bench.server(GATEWAY)
    bench.load(2)  # warms up
    event_us, event_octets = cost_of_an_event(bench, max(bench.arguments.secs, 5))
    print(f"an event takes {event_us:.0f} us and {event_octets:.0f} octets, with {ROUTES} routes and {ROUTES} policies", flush=True)
    for name in bench.arguments.cases:
        print(name, flush=True)
        yield run_case(bench, name, event_us, event_octets)


def main():
    parser = load.parser_of("console", __doc__, ASKS, secs=2, rounds=60, conns=64, keys=1000)
    parser.add_argument("--fixed", type=int, default=0, metavar="RATE", help="so many requests a second, by h2load; left out: as "
                        "many as wrk can send")
    arguments = load.parse(parser, ASKS, TOOLS)
    os.sched_setaffinity(0, {0})  # the reader of events
    load.run_cases("console", lambda run: ConsoleBench(arguments, run, config()), run_cases)


if __name__ == "__main__":
    main()
