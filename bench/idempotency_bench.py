#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Idempotency-Key costs.

    ./dev bench idempotency                  all cases
    ./dev bench idempotency replay first     only these

replay    CPU time of a replay, next to a 429 of ours for the same request
first     CPU time of a first request with a durable store, next to the same request without the
          feature, with 64 connections: the thread that writes is counted
latency   what a first request takes longer than one without the feature over one connection, next to
          a write and fdatasync in the same folder
memory    octets of memory for a live key besides its answer, with a million of them

What is compared takes turns, since the speed of the machine drifts; `ratio` is the median over the
rounds. `longest_us` is the longest that a response was waited for.
"""

import functools
import os
import sqlite3
import statistics
import sys
import time

import load
from load import GATEWAY, address, at_most, median, metrics, ratio_of, time_sync

TOOLS = ("nginx", "wrk", "taskset")
CONFIG = """
listen: @gateway@
admin: @admin@
workers: 1
data: @RUN@/data
upstreams:
  origin: http://@origin@
policies:
  default: {quota: 100000000, window: 10s, algorithm: sliding, partition: [header:x-api-key]}
  tiny: {quota: 1, window: 1d, algorithm: sliding, partition: [header:x-api-key]}
routes:
  - {match: {path: /refused}, upstream: origin, limits: [tiny]}
  - match: {path: /keyed}
    upstream: origin
    limits: [default]
    idempotency: {mode: required, keys-max: 1000000000, anonymous: allow}
  - {match: {path: /**}, upstream: origin, limits: [default]}
"""
CONTENT = '{"currency":"EUR","amount":12990,"items":[{"sku":"A-1001","qty":2}],"customer":"cus_55d0e2"}'
REPLAYED_KEYS = 1000
LIVE_KEYS = 1_000_000


class KeyBench(load.Bench):
    """Runs with keys: a contestant is a path, and how many keys there are before they come again;
    0: they never do."""

    def __init__(self, arguments, run):
        super().__init__(arguments, run, CONFIG)
        self.loads = 0

    def restart_empty(self):
        """Without the keys of earlier runs, since the store has room for a million."""
        self.stop(GATEWAY)
        for file in (self.run / "data").glob("idempotency.db*"):
            file.unlink()
        self.server(GATEWAY)

    def measure_once(self, contestant):
        before = None
        while before != (before := metrics("tidegate_idempotency_total", "outcome")):
            time.sleep(0.1)  # the last requests of the run before end
        run = super().measure_once(contestant)
        others = load.grown(before, metrics("tidegate_idempotency_total", "outcome"))
        others.pop(contestant["outcome"], None)
        if others:
            sys.exit(f"{contestant['name']}: requests became {others}, expected {contestant['outcome']}")
        return run

    def load(self, contestant, secs):
        path, keys = contestant["path"], contestant["keys"]
        if keys:
            script = self.turns([request(path, f"again-{number}") for number in range(1, keys + 1)])
        else:
            self.loads += 1
            (self.run / "requests").write_text(request(path, f"run-{self.loads}-@N@"), newline="")
            script = "count", self.run / "requests"
        return load.wrk(f"http://{address('gateway')}/", self.arguments.conns, secs, contestant["expect"], *script)


def request(path, key):
    return (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: key-1\r\nAuthorization: Bearer key-1\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(CONTENT)}\r\nIdempotency-Key: \"{key}\"\r\n\r\n{CONTENT}")


CONTESTANTS = {
    name: {"name": name, "server": GATEWAY, "path": path, "keys": keys, "expect": expect, "outcome": outcome}
    for name, path, keys, expect, outcome in (
        ("replay", "/keyed", REPLAYED_KEYS, 200, "replayed"), ("429", "/refused", REPLAYED_KEYS, 429, None),
        ("first", "/keyed", 0, 200, "first"), ("plain", "/plain", 0, 200, None))}


def run_ratio(bench, name, peer, bar):
    """CPU time of one contestant, next to that of another."""
    contestants = [CONTESTANTS[name], CONTESTANTS[peer]]
    bench.restart_empty()
    for each in contestants:
        bench.load(each, 2)  # warms up; what is replayed later runs now
    runs = bench.measure_in_turns(contestants)
    values = {"cpu_us": median(runs[name], "cpu"), "user_us": median(runs[name], "user"),
              f"{peer}_cpu_us": median(runs[peer], "cpu"), **load.speed(runs[name]),
              "ratio": ratio_of(runs[name], runs[peer]), "bar": bar}
    counted = [bench.count_by_perf(each, "instructions:u") for each in contestants]
    if None not in counted:
        values |= {"instructions": counted[0], "instructions_ratio": counted[0] / counted[1]}
    return values, (f"{name:8} {values['cpu_us']:.2f} us of CPU time, {peer} {values[f'{peer}_cpu_us']:.2f}; "
                    f"ratio {values['ratio']:.2f}, bar {bar}  {at_most(values['ratio'], bar)}")


class Client:
    """One connection, one request at a time."""

    def __init__(self):
        self.socket = load.connect(address("gateway"))

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
           f"{values['fdatasync_us']:.0f}; ratio {values['ratio']:.2f}, bar 2.5  {at_most(values['ratio'], 2.5)}")
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
    """Real records, each copied under many keys, as the gateway finds them when it starts: without
    their answers."""
    bench.restart(GATEWAY)
    client = Client()
    for number in range(1000):
        client.post("/keyed", f"live-{number}")
    bench.stop(GATEWAY)
    file = bench.run / "data" / "idempotency.db"
    with sqlite3.connect(file) as database:
        database.execute("DELETE FROM record WHERE id NOT IN (SELECT id FROM record ORDER BY id DESC LIMIT 1000)")
        # What the table says counts when it knows of more commits than any row.
        database.execute("UPDATE store SET records = 1000, commits = commits + 1000000")
    database.close()
    before = bench.restart(GATEWAY).memory()
    bench.stop(GATEWAY)
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
    after = bench.restart(GATEWAY).memory()
    bench.stop(GATEWAY)
    file.unlink()
    file.with_name(file.name + ".commits").unlink()
    values = {"bytes": (after - before) / (LIVE_KEYS - 1000), "keys": LIVE_KEYS, "bar": 200}
    row = (f"memory   {values['bytes']:.0f} octets for a live key; bar 200  {at_most(values['bytes'], 200)}")
    return values, row


CASES = {
    "replay": lambda bench: run_ratio(bench, "replay", "429", 1.25),
    "first": lambda bench: run_ratio(bench, "first", "plain", 2.5),
    "latency": run_latency,
    "memory": run_memory,
}


def run_cases(bench):
    bench.server("origin")
    for name in bench.arguments.cases:
        print(name, flush=True)
        yield name, *CASES[name](bench)


def main():
    parser = load.parser_of("idempotency", __doc__, CASES, secs=3, rounds=5, conns=64, tries=2, quiet=5)
    arguments = load.parse(parser, CASES, TOOLS)
    # Not in /tmp, which may be in memory: what is measured is a disk.
    load.run_cases("idempotency", lambda run: KeyBench(arguments, run), run_cases, arguments.binary.parent)


if __name__ == "__main__":
    main()
