#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Idempotency-Key costs.

    ./dev bench idempotency                  all cases
    ./dev bench idempotency replay first     only these

replay    CPU time of a replay, next to a 429 of ours for the same request
first     CPU time of a first request with a durable store, next to the same request without the feature, with 64
          connections: the thread that writes is counted
latency   what a first request takes longer than one without the feature over one connection, next to a write and
          fdatasync in the same folder
memory    octets of memory for a live key besides its answer, with a million of them

Each process has one thread for requests; the gateway has cpu 1, load generator and origin server share cpu 0. What is
compared takes turns, since the speed of the machine drifts; `ratio` is the median over the rounds.
"""

import argparse
import functools
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import gateway_bench
from gateway_bench import ADDRESS, ADMIN, GATEWAY, ROOT, median, program_line

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = ("nginx", "wrk", "openssl", "taskset")
CONFIG = f"""
listen: {ADDRESS}
admin: {ADMIN}
workers: 1
data: RUN/data
upstreams:
  origin: http://127.0.0.1:9000
policies:
  default: {{quota: 100000000, window: 10s, algorithm: sliding, partition: [header:x-api-key]}}
  tiny: {{quota: 1, window: 1d, algorithm: sliding, partition: [header:x-api-key]}}
routes:
  - {{match: {{path: /refused}}, upstream: origin, limits: [tiny]}}
  - {{match: {{path: /keyed}}, upstream: origin, limits: [default], idempotency: {{mode: required, keys-max: 1000000000, anonymous: allow}}}}
  - {{match: {{path: /**}}, upstream: origin, limits: [default]}}
"""
REPLAYED_KEYS = 1000
LIVE_KEYS = 1_000_000


class KeyBench(gateway_bench.Bench):
    """Runs with keys: a contestant is a path, and how many keys there are before they begin anew."""

    def __init__(self, *arguments):
        super().__init__(*arguments, CONFIG)
        self.loads = 0

    def restart_empty(self):
        """Without the keys of earlier runs, since the store has room for a million."""
        if GATEWAY in self.servers:
            self.servers.pop(GATEWAY).stop()
        for file in (self.run / "data").glob("idempotency.db*"):
            file.unlink()
        self.server(GATEWAY)

    def measure_once(self, contestant):
        before = outcomes()
        run = super().measure_once(contestant)
        others = {name: count - before.get(name, 0) for name, count in outcomes().items()
                  if name != contestant["outcome"] and count != before.get(name, 0)}
        if others:
            sys.exit(f"{contestant['name']}: requests became {others}, expected {contestant['outcome']}")
        return run

    def load(self, contestant, secs):
        self.loads += 1
        # Keys that begin anew are the same in each run.
        prefix = "again" if contestant["keys"] else f"run-{self.loads}"
        out = subprocess.run(
            ["taskset", "-c", "0", "wrk", "-t1", f"-c{self.arguments.conns}", f"-d{secs}s", "-s", HERE / "idempotency.lua",
             f"http://{ADDRESS}/", "--", contestant["path"], prefix, str(contestant["keys"])],
            capture_output=True, text=True, timeout=secs + 30, check=True).stdout
        run = json.loads(re.search(r"JSON (.*)", out).group(1))
        bad = run["sock_err"] + (run["status_err"] if contestant["expect"] < 400 else run["requests"] - run["status_err"])
        return {"requests": run["requests"], "secs": run["us"] / 1e6, "bad": bad, "p50": run["p50"], "p99": run["p99"]}


CONTESTANTS = {
    "replay": {"name": "replay", "server": GATEWAY, "path": "/keyed", "keys": REPLAYED_KEYS, "expect": 200, "outcome": "replayed"},
    "429": {"name": "429", "server": GATEWAY, "path": "/refused", "keys": REPLAYED_KEYS, "expect": 429, "outcome": None},
    "first": {"name": "first", "server": GATEWAY, "path": "/keyed", "keys": 0, "expect": 200, "outcome": "first"},
    "plain": {"name": "plain", "server": GATEWAY, "path": "/plain", "keys": 0, "expect": 200, "outcome": None},
}


def outcomes():
    """What became of requests with keys so far."""
    page = urllib.request.urlopen(f"http://{ADMIN}/metrics", timeout=10).read().decode()
    return {name: int(count)
            for name, count in re.findall(r'(?m)^tidegate_idempotency_total{[^}]*outcome="([^"]+)"} (\d+)$', page)}


def run_ratio(bench, name, peer, bar):
    """CPU time of one contestant, next to that of another."""
    runs = {each: [] for each in (name, peer)}
    bench.restart_empty()
    for each in runs:
        bench.load(CONTESTANTS[each], 2)  # warms up; what is replayed later runs now
    for number in range(bench.arguments.rounds):
        for each, taken in runs.items():
            run = bench.measure(CONTESTANTS[each])
            taken.append(run)
            print(f"  round {number + 1} {each:8} {run['busy']:7.2f} us, {run['rps']:6.0f} requests/s, "
                  f"others use {run['others']:.2f} cores", flush=True)
    values = {"cpu_us": median(runs[name], "busy"), "user_us": median(runs[name], "user"),
              f"{peer}_cpu_us": median(runs[peer], "busy"), "rps": median(runs[name], "rps"),
              "p50_us": median(runs[name], "p50"), "p99_us": median(runs[name], "p99"),
              "ratio": gateway_bench.ratios(runs[name], runs[peer], lambda run: run["busy"]), "bar": bar}
    counted = {each: bench.instructions(CONTESTANTS[each]) for each in runs}
    if None not in counted.values():
        values |= {"instructions": counted[name], "instructions_ratio": counted[name] / counted[peer]}
    row = (f"{name:8} {values['cpu_us']:.2f} us of CPU time, {peer} {values[f'{peer}_cpu_us']:.2f}; ratio {values['ratio']:.2f}, "
           f"bar {bar}  {verdict(values['ratio'], bar)}")
    return values, row


def verdict(value, bar):
    return "met" if value <= bar else "MISSED"


class Client:
    """One connection, one request at a time."""

    def __init__(self):
        host, port = ADDRESS.split(":")
        self.socket = socket.create_connection((host, int(port)), 10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, path, key):
        """Microseconds until the answer is there, which comes in one piece."""
        content = b'{"amount":12990}'
        request = (f"POST {path} HTTP/1.1\r\nHost: a\r\nX-API-Key: k\r\nIdempotency-Key: \"{key}\"\r\n"
                   f"Content-Length: {len(content)}\r\n\r\n").encode() + content
        begin = time.perf_counter_ns()
        self.socket.sendall(request)
        answer = self.socket.recv(65536)
        taken = (time.perf_counter_ns() - begin) / 1000
        if not answer.startswith(b"HTTP/1.1 200 "):
            sys.exit(f"{path} does not answer: {answer[:100]}")
        return taken


def time_sync(file):
    """Microseconds for a page more in the file, and fdatasync."""
    begin = time.perf_counter_ns()
    os.write(file, b"x" * 4096)
    os.fdatasync(file)
    return (time.perf_counter_ns() - begin) / 1000


def run_latency(bench):
    bench.restart(GATEWAY)
    client = Client()
    file = os.open(bench.run / "data" / "sync", os.O_CREAT | os.O_WRONLY, 0o600)
    rounds = []
    for number in range(bench.arguments.rounds):
        taken = {"plain": [], "first": [], "sync": []}
        for i in range(200):
            taken["plain"].append(client.post("/plain", "k"))
            taken["first"].append(client.post("/keyed", f"{number}-{i}"))
            taken["sync"].append(time_sync(file))
        rounds.append({name: statistics.median(each) for name, each in taken.items()})
        print(f"  round {number + 1} " + ", ".join(f"{name} {us:.0f} us" for name, us in rounds[-1].items()), flush=True)
    os.close(file)
    values = {"first_us": median(rounds, "first"), "plain_us": median(rounds, "plain"), "fdatasync_us": median(rounds, "sync"),
              "ratio": statistics.median((each["first"] - each["plain"]) / each["sync"] for each in rounds), "bar": 2.5}
    row = (f"latency  {values['first_us'] - values['plain_us']:.0f} us more over one connection, one fdatasync "
           f"{values['fdatasync_us']:.0f}; ratio {values['ratio']:.2f}, bar 2.5  {verdict(values['ratio'], 2.5)}")
    return values, row


CRC32C = [0] * 256
for _octet in range(256):
    _value = _octet
    for _ in range(8):
        _value = (_value >> 1) ^ (0x82F63B78 if _value & 1 else 0)
    CRC32C[_octet] = _value


def crc32c(octets):
    value = 0xFFFFFFFF
    for octet in octets:
        value = (value >> 8) ^ CRC32C[(value ^ octet) & 0xFF]
    return value ^ 0xFFFFFFFF


@functools.cache
def crc32c_of_content(content):
    return crc32c(content)


def moved(key, octets):
    """Content with its checksum as it stands behind `key`."""
    if octets is None:
        return None
    value = crc32c(key)
    turned = ((value << 1) | (value >> 31)) & 0xFFFFFFFF
    return octets[:-4] + (crc32c_of_content(octets[:-4]) ^ turned).to_bytes(4, "little")


def run_memory(bench):
    """Real records, each copied under many keys, as the gateway finds them when it starts: without their answers."""
    bench.restart(GATEWAY)
    client = Client()
    for number in range(1000):
        client.post("/keyed", f"live-{number}")
    bench.servers.pop(GATEWAY).stop()
    file = bench.run / "data" / "idempotency.db"
    with sqlite3.connect(file) as database:
        database.execute("DELETE FROM record WHERE id NOT IN (SELECT id FROM record ORDER BY id DESC LIMIT 1000)")
        database.execute("UPDATE store SET records = 1000")
    database.close()
    bench.restart(GATEWAY)
    before = bench.memory(GATEWAY)
    bench.servers.pop(GATEWAY).stop()
    with sqlite3.connect(file) as database:
        database.create_function("moved", 2, moved, deterministic=True)
        database.execute(
            "WITH RECURSIVE times(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM times WHERE n < ?), "
            "copies(lookup, record, response) AS MATERIALIZED ("
            # Eight octets of the lookup key stand for the scope, which all of them share.
            "SELECT CAST(randomblob(16) || substr(lookup, 17, 8) || randomblob(8) AS BLOB), record, response "
            "FROM record, times) "
            "INSERT INTO record (lookup, record, response) "
            "SELECT lookup, moved(lookup, record), moved(lookup, response) FROM copies",
            (LIVE_KEYS // 1000,))
        database.execute("UPDATE store SET records = (SELECT count(*) FROM record)")
    database.close()
    bench.restart(GATEWAY)
    after = bench.memory(GATEWAY)
    bench.servers.pop(GATEWAY).stop()
    file.unlink()
    file.with_name(file.name + ".commits").unlink()
    values = {"bytes": (after - before) / (LIVE_KEYS - 1000), "keys": LIVE_KEYS, "bar": 200}
    row = (f"memory   {values['bytes']:.0f} octets for a live key; bar 200  {verdict(values['bytes'], 200)}")
    return values, row


CASES = {
    "replay": lambda bench: run_ratio(bench, "replay", "429", 1.25),
    "first": lambda bench: run_ratio(bench, "first", "plain", 2.5),
    "latency": run_latency,
    "memory": run_memory,
}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench idempotency", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("-s", "--secs", type=int, default=3, help="of one run (%(default)s)")
    parser.add_argument("-r", "--rounds", type=int, default=5, help="median of so many (%(default)s)")
    parser.add_argument("-c", "--conns", type=int, default=64, help="connections (%(default)s)")
    parser.add_argument("--tries", type=int, default=2, help="when others use the machine (%(default)s)")
    parser.add_argument("--quiet", type=int, default=5, help="seconds to wait for a quiet machine before another try "
                        "(%(default)s)")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "release" / "tidegate")
    arguments = parser.parse_args()
    for each in arguments.cases:
        if each not in CASES:
            parser.error(f"there is no case '{each}'; there are: {', '.join(CASES)}")
    arguments.binary = arguments.binary.absolute()
    if lacks := list(gateway_bench.missing(arguments.binary, TOOLS)):
        print("bench idempotency: skipped; missing: " + "; ".join(lacks))
        return 0
    # Not in /tmp, which may be in memory: what is measured is a disk.
    with tempfile.TemporaryDirectory(prefix="bench.", dir=arguments.binary.parent) as folder:
        bench = KeyBench(gateway_bench.load_shared(folder), arguments, pathlib.Path(folder))
        lines, rows = [], []
        try:
            bench.server("upstream")
            for name, run in CASES.items():
                if arguments.cases and name not in arguments.cases:
                    continue
                print(name, flush=True)
                values, row = run(bench)
                lines.append(program_line(name, values, "idempotency"))
                rows.append(row)
        finally:
            bench.stop()
    print("\n" + "\n".join(rows) + "\n\n" + "\n".join(lines))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    sys.exit(main())
