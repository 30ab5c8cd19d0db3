#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to share quotas by Redis.

    ./dev bench shared                 all cases
    ./dev bench shared lease           only this one

lease   CPU time of the gateway for a request whose quota is counted by lease, next to one with
        quotas in memory
exact   decisions a second through the gateway, each taken by Redis, next to the same question sent
        to the same Redis over one connection, one after the other: what there would be without batches

A request is answered by the gateway itself, so that nothing but the decision differs. Redis is on
cpu 0. What is compared takes turns, since the speed of the machine drifts; ratios are medians over the
rounds. `longest_us` is the longest that a response was waited for.
"""

import os
import re
import statistics
import subprocess
import sys
import time
import urllib.request

import load
from load import address, at_least, at_most, ratio_of, speed

TOOLS = ("redis-server", "redis-cli", "wrk", "taskset")
WAYS = ("memory", "exact", "lease")
KEYS = 100
CONFIG = """
listen: @WAY@
admin: @WAY-admin@
workers: 1
data: @RUN@/data-WAY
stores: {quota: "STORE"}
policies:
  default: {quota: 1000000000, window: 1m, algorithm: sliding, partition: [header:x-api-key]COUNTING}
routes:
  - {match: {path: /**}, service: echo, limits: [default]}
"""


class SharedBench(load.Bench):
    def __init__(self, arguments, run):
        super().__init__(arguments, run, None)
        self.commands["redis"] = (["redis-server", "--port", address("redis").split(":")[1], "--save", "", "--appendonly", "no",
                                   "--bind", "127.0.0.1"], 0, "redis")
        for way in WAYS:
            store, counting = ("memory", "") if way == "memory" else ("redis://@redis@", f", counting: {way}")
            self.add_gateway(way, CONFIG.replace("WAY", way).replace("STORE", store).replace("COUNTING", counting), way)

    def load(self, way, secs):
        """What a request took, and what it cost the gateway."""
        before = self.server(way).cpu()
        run = load.wrk(f"http://{address(way)}/", self.arguments.conns, secs, 200, *self.turns(load.gets("/", KEYS)))
        if run["bad"]:
            sys.exit(f"{way}: {run['bad']} of {run['requests']} requests were not answered with 200")
        return {**run, "rps": run["requests"] / run["secs"], "cpu": (self.server(way).cpu() - before) / run["requests"]}


def decisions(way):
    return load.metrics("tidegate_quota_store_decisions_total", "by", f"{way}-admin")


def round_trips(way):
    page = urllib.request.urlopen(f"http://{address(f'{way}-admin')}/metrics", timeout=10).read().decode()
    return float(re.search(r"(?m)^tidegate_quota_store_round_trips_total (\S+)$", page)[1])


def asked_by_gateway():
    """A question of the gateway to Redis, as the gateway wrote it."""
    port = address("redis").split(":")[1]
    with subprocess.Popen(["redis-cli", "-p", port, "monitor"], stdout=subprocess.PIPE, text=True) as monitor:
        monitor.stdout.readline()  # OK
        urllib.request.urlopen(urllib.request.Request(f"http://{address('exact')}/", headers={"x-api-key": "key-1"}))
        for line in monitor.stdout:
            if re.search(r'"(EVALSHA|FCALL)"', line, re.I) and "lua]" not in line:
                monitor.kill()
                words = re.findall(r'"((?:[^"\\]|\\.)*)"', line.split("] ", 1)[1])
                return [word.encode().decode("unicode_escape").encode("latin-1") for word in words]
    sys.exit("the gateway asked nothing")


def ask_one_by_one(question, secs):
    """The same question over one connection, each after the last answer: how many a second."""
    asked = b"*%d\r\n" % len(question) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in question)
    os.sched_setaffinity(0, {1})
    with load.connect(address("redis")) as to:
        count, end = 0, time.monotonic() + secs
        while time.monotonic() < end:
            to.sendall(asked)
            to.recv(65536)  # which is short, and comes in one piece
            count += 1
    os.sched_setaffinity(0, set(range(os.cpu_count())))
    return count / secs


def run_lease(bench):
    runs = {way: [] for way in WAYS}
    for number in range(bench.arguments.rounds):
        for way, taken in runs.items():
            taken.append(bench.load(way, bench.arguments.secs))
            print(f"  round {number + 1} {way:7} {taken[-1]['cpu']:6.2f} us, {taken[-1]['rps']:7.0f} requests/s", flush=True)
    values = {}
    for way in ("lease", "memory", "exact"):
        prefix = "" if way == "lease" else f"{way}_"
        values |= {f"{prefix}cpu_us": load.median(runs[way], "cpu")}
        values |= {f"{prefix}{key}": value for key, value in speed(runs[way]).items()}
    values["ratio"] = ratio_of(runs["lease"], runs["memory"])
    by = decisions("lease")
    return values, (f"lease   {values['cpu_us']:.2f} us of CPU time, in memory {values['memory_cpu_us']:.2f}; asked Redis for "
                    f"{by['store']} of {sum(by.values())} decisions; ratio {values['ratio']:.3f}, bar 1.15  "
                    f"{at_most(values['ratio'], 1.15)}")


def run_exact(bench):
    question = asked_by_gateway()
    runs = []
    for number in range(bench.arguments.rounds):
        trips, asked = round_trips("exact"), decisions("exact")["store"]
        run = bench.load("exact", bench.arguments.secs)
        run["batch"] = (decisions("exact")["store"] - asked) / (round_trips("exact") - trips)
        run["alone"] = ask_one_by_one(question, bench.arguments.secs)
        runs.append(run)
        print(f"  round {number + 1} {run['rps']:7.0f} decisions/s through the gateway, {run['batch']:.1f} in a round trip; "
              f"{run['alone']:7.0f} one by one", flush=True)
    values = {**speed(runs), "one_by_one_rps": load.median(runs, "alone"), "per_round_trip": load.median(runs, "batch"),
              "speedup": statistics.median(run["rps"] / run["alone"] for run in runs)}
    return values, (f"exact   {values['rps']:.0f} decisions/s, one by one {values['one_by_one_rps']:.0f}; speed-up "
                    f"{values['speedup']:.2f}, bar 3  {at_least(values['speedup'], 3)}")


CASES = {"lease": run_lease, "exact": run_exact}


def run_cases(bench):
    for each in ("redis", *WAYS):
        bench.server(each)
    for way in WAYS:
        bench.load(way, 1)  # warms up
    for name in bench.arguments.cases:
        print(name, flush=True)
        yield name, *CASES[name](bench)


def main():
    parser = load.parser_of("shared", __doc__, CASES, secs=3, rounds=5, conns=64)
    arguments = load.parse(parser, CASES, TOOLS)
    load.run_cases("shared", lambda run: SharedBench(arguments, run), run_cases)


if __name__ == "__main__":
    main()
