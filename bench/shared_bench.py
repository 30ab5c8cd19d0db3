#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to share quotas by Redis.

    ./dev bench shared                 all cases
    ./dev bench shared lease           only this one

lease   CPU time of the gateway for a request whose quota is counted by lease, next to one with quotas in memory
exact   decisions a second through the gateway, each taken by Redis, next to the same question sent to the same
        Redis over one connection, one after the other: what there would be without batches

A request is answered by the gateway itself, so that nothing but the decision differs. The gateway has one thread on cpu 1;
Redis and the load generator share cpu 0. What is compared takes turns, since the speed of the machine drifts; ratios are
medians over the rounds.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TOOLS = ("redis-server", "redis-cli", "wrk", "taskset")
WAYS = ("memory", "exact", "lease")
KEYS = 100


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def wait_for(port):
    for _ in range(200):
        with socket.socket() as to:
            if to.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"nobody listens on port {port}")


class Process:
    """Something that runs on one cpu until it is stopped."""

    def __init__(self, cpu, command, port):
        self.port = port
        self.process = subprocess.Popen(["taskset", "-c", str(cpu), *command], stdout=subprocess.DEVNULL,
                                        start_new_session=True)
        wait_for(port)

    def cpu_us(self):
        """Microseconds that all of its threads have used."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
        return total / 1000

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Gateway(Process):
    def __init__(self, binary, run, way, redis):
        port, self.admin = free_port(), free_port()
        store = "memory" if way == "memory" else f"redis://127.0.0.1:{redis.port}"
        counting = "" if way == "memory" else f", counting: {way}"
        config = run / f"{way}.yaml"
        config.write_text(f"""
listen: 127.0.0.1:{port}
admin: 127.0.0.1:{self.admin}
workers: 1
data: {run}/data
stores: {{quota: "{store}"}}
policies:
  default: {{quota: 1000000000, window: 1m, algorithm: sliding, partition: [header:x-api-key]{counting}}}
routes:
  - {{match: {{path: /**}}, service: echo, limits: [default]}}
""")
        super().__init__(1, [str(binary), "serve", "-c", str(config)], port)

    def metric(self, name):
        text = urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=10).read().decode()
        return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.M).group(1))


def load(gateway, connections, secs):
    """One run of the load generator: what a request took, and what it cost the gateway."""
    before = gateway.cpu_us()
    out = subprocess.run(
        ["taskset", "-c", "0", "wrk", "-t1", f"-c{connections}", f"-d{secs}s", "-s", HERE / "shared.lua",
         f"http://127.0.0.1:{gateway.port}/", "--", str(KEYS)],
        capture_output=True, text=True, timeout=secs + 30, check=True).stdout
    cost = gateway.cpu_us() - before
    run = json.loads(re.search(r"JSON (.*)", out).group(1))
    if run["status_err"] or run["sock_err"]:
        sys.exit(f"{run['status_err'] + run['sock_err']} requests were not answered with 200")
    return {"rps": run["requests"] / (run["us"] / 1e6), "cpu": cost / run["requests"], "p50": run["p50"], "p99": run["p99"]}


def asked_by(gateway, redis):
    """A question of the gateway to Redis, as the gateway wrote it."""
    with subprocess.Popen(["redis-cli", "-p", str(redis.port), "monitor"], stdout=subprocess.PIPE, text=True) as monitor:
        monitor.stdout.readline()  # OK
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{gateway.port}/", headers={"x-api-key": "key-1"}))
        for line in monitor.stdout:
            if re.search(r'"(EVALSHA|FCALL)"', line, re.I) and "lua]" not in line:
                monitor.kill()
                words = re.findall(r'"((?:[^"\\\\]|\\\\.)*)"', line.split("] ", 1)[1])
                return [word.encode().decode("unicode_escape").encode("latin-1") for word in words]
    sys.exit("the gateway asked nothing")


def ask_one_by_one(redis, question, secs_at_most):
    """The same question over one connection, each after the answer to the last: how many a second."""
    asked = b"*%d\r\n" % len(question) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in question)
    os.sched_setaffinity(0, {1})
    with socket.create_connection(("127.0.0.1", redis.port), 10) as to:
        to.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        count, end = 0, time.monotonic() + secs_at_most
        while time.monotonic() < end:
            to.sendall(asked)
            to.recv(65536)  # which is short, and comes in one piece
            count += 1
    os.sched_setaffinity(0, set(range(os.cpu_count())))
    return count / secs_at_most


def program_line(name, values):
    return f"bench shared/{name} " + " ".join(f"{key}={value:.6g}" for key, value in values.items())


def run_lease(gateways, arguments):
    runs = {way: [] for way in WAYS}
    for number in range(arguments.rounds):
        for way, taken in runs.items():
            taken.append(load(gateways[way], arguments.connections, arguments.secs))
            print(f"  round {number + 1} {way:7} {taken[-1]['cpu']:6.2f} us, {taken[-1]['rps']:7.0f} requests/s", flush=True)
    median = {way: {key: statistics.median(run[key] for run in taken) for key in taken[0]} for way, taken in runs.items()}
    ratio = statistics.median(ours["cpu"] / peer["cpu"] for ours, peer in zip(runs["lease"], runs["memory"]))
    for way in WAYS:
        print(f"{way:7} {median[way]['cpu']:6.2f} us of CPU time, {median[way]['rps']:7.0f} decisions/s, "
              f"p50 {median[way]['p50']:.0f} us, p99 {median[way]['p99']:.0f} us")
    lease = gateways["lease"]
    asked = lease.metric('tidegate_quota_store_decisions_total{by="store"}')
    here = lease.metric('tidegate_quota_store_decisions_total{by="gateway"}')
    print(f"lease   asked Redis for {asked:.0f} of {asked + here:.0f} decisions; ratio {ratio:.3f}, bar 1.15  "
          f"{'met' if ratio <= 1.15 else 'MISSED'}")
    print(program_line("lease", {"cpu_us": median["lease"]["cpu"], "memory_cpu_us": median["memory"]["cpu"],
                                 "exact_cpu_us": median["exact"]["cpu"], "rps": median["lease"]["rps"],
                                 "memory_rps": median["memory"]["rps"], "p50_us": median["lease"]["p50"],
                                 "memory_p50_us": median["memory"]["p50"], "exact_p50_us": median["exact"]["p50"],
                                 "ratio": ratio}), flush=True)


def run_exact(gateways, redis, arguments):
    gateway = gateways["exact"]
    question = asked_by(gateway, redis)
    runs = []
    for number in range(arguments.rounds):
        trips, asked = (gateway.metric("tidegate_quota_store_round_trips_total"),
                        gateway.metric('tidegate_quota_store_decisions_total{by="store"}'))
        ours = load(gateway, arguments.connections, arguments.secs)
        batch = ((gateway.metric('tidegate_quota_store_decisions_total{by="store"}') - asked)
                 / (gateway.metric("tidegate_quota_store_round_trips_total") - trips))
        alone = ask_one_by_one(redis, question, arguments.secs)
        runs.append((ours["rps"], alone, ours["rps"] / alone, batch))
        print(f"  round {number + 1} {ours['rps']:7.0f} decisions/s through the gateway, {batch:.1f} in a round trip; "
              f"{alone:7.0f} one by one", flush=True)
    rps, alone, speedup, batch = (statistics.median(column) for column in zip(*runs))
    print(f"exact   {rps:.0f} decisions/s, one by one {alone:.0f}; speed-up {speedup:.2f}, bar 3  "
          f"{'met' if speedup >= 3 else 'MISSED'}")
    print(program_line("exact", {"rps": rps, "one_by_one_rps": alone, "per_round_trip": batch, "speedup": speedup}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="lease, exact; all when left out")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/tidegate")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--secs", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    arguments = parser.parse_args()
    if unknown := set(arguments.cases) - {"lease", "exact"}:
        parser.error(f"there is no case {', '.join(sorted(unknown))}")
    lacking = [f"the program {tool}" for tool in TOOLS if shutil.which(tool) is None]
    if not os.access(arguments.binary, os.X_OK):
        lacking.append(f"{arguments.binary}: ./dev build release")
    if (os.cpu_count() or 1) < 2:
        lacking.append("a second cpu")
    if lacking:
        sys.exit("bench shared needs " + "; ".join(lacking))
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as folder:
        run = pathlib.Path(folder)
        port = free_port()
        started = [Process(0, ["redis-server", "--port", str(port), "--dir", folder, "--save", "", "--appendonly", "no",
                               "--bind", "127.0.0.1"], port)]
        redis = started[0]
        try:
            gateways = {}
            for way in WAYS:
                gateways[way] = Gateway(arguments.binary, run, way, redis)
                started.append(gateways[way])
                load(gateways[way], arguments.connections, 1)
            cases = arguments.cases or ["lease", "exact"]
            if "lease" in cases:
                run_lease(gateways, arguments)
            if "exact" in cases:
                run_exact(gateways, redis, arguments)
        finally:
            for each in reversed(started):
                each.stop()


if __name__ == "__main__":
    main()
