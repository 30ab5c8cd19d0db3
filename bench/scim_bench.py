#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the SCIM directory costs over HTTP, with all its threads on one core.

    ./dev bench scim                      all cases, at 10,000 and 1,000,000 users
    ./dev bench scim --users 10000        only with so many
    ./dev bench scim page eq              only these cases

page         pages of 100 in the order of creation, for each second of CPU time; `ratio` is the
             dearest of the depths 0, half and 99 % by the cheapest
page-sorted  the same sorted by userName, at random positions
eq           one user by userName
post         users that are created and on the disk, over 64 connections for 60 s, with the longest
             waits and how long the log gets; and over one, next to fdatasync
mixed        pages are read while users are created: memory of the gateway
export       all users in pages of 500; `ratio` is CPU time of reading the same rows in SQLite by CPU
             time of the export

Names of cases are those of the largest number of users; with fewer, the number is behind the name.
`longest_us` is the longest that a response was waited for.
"""

import os
import random
import re
import sqlite3
import statistics
import sys
import threading
import time
import urllib.parse

import load
from load import GATEWAY, address, at_least, at_most, time_sync

TOOLS = ("wrk", "taskset")
TOKEN = "bench"
FIELDS = f"Host: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
CONFIG = """
listen: @gateway@
workers: 1
data: @RUN@/data
stores: {directory: "sqlite:@RUN@/data/directory.db"}
policies:
  default: {quota: 100000000, window: 10s, algorithm: sliding, partition: [principal]}
routes:
  - match: {path: /scim/v2/**}
    service: scim
    limits: [default]
    auth: {bearer-tokens: [{name: bench, sha256: 1b32c28cb38c05480eccc1bd60ff97029b57a05c96718b96dad7e9d84894f549}]}
"""
PAGE = 100
DEPTHS = {"start": 0.0, "half": 0.5, "end": 0.99}


class Walker:
    """One connection that follows cursors."""

    def __init__(self):
        self.socket = load.connect(address("gateway"), 30)
        self.room = bytearray(1 << 20)

    def get(self, path):
        """The response's content, or as much of it as comes first, and how long all of it is."""
        self.socket.sendall(request(path).encode())
        got, head_end = 0, -1
        while head_end < 0:
            got += self.take(got)
            head_end = self.room.find(b"\r\n\r\n", 0, got)
        head = bytes(self.room[:head_end])
        if not head.startswith(b"HTTP/1.1 200 "):
            sys.exit(f"{path} is answered with {bytes(self.room[:got])!r}")
        length = int(re.search(rb"(?i)content-length: (\d+)", head).group(1))
        begin = bytes(self.room[head_end + 4:got])
        left = length - (got - head_end - 4)
        tail = begin
        while left > 0:
            size = self.socket.recv_into(self.room, min(left, len(self.room)))
            if size == 0:
                sys.exit("the connection was closed in a response")
            left -= size
            tail = bytes(self.room[max(0, size - 1000):size])
        return begin[:2000] + tail[-1000:], length

    def take(self, at):
        size = self.socket.recv_into(memoryview(self.room)[at:])
        if size == 0:
            sys.exit("the connection was closed")
        return size

    def walk(self, query, each):
        """Calls `each` with every cursor, the first one empty; how many octets came."""
        cursor, octets = "", 0
        while True:
            each(cursor)
            text, length = self.get(f"/scim/v2/Users?{query}&cursor={cursor}")
            octets += length
            found = re.search(rb'"nextCursor":"([^"]+)"', text)
            if not found:
                return octets
            cursor = found.group(1).decode()


def request(path):
    return f"GET {path} HTTP/1.1\r\n{FIELDS}\r\n"


class Directory(load.Bench):
    def __init__(self, arguments, run):
        super().__init__(arguments, run, CONFIG)
        self.posted = 0

    def cpu_seconds(self):
        return self.server(GATEWAY).cpu() / 1e6

    def wrk(self, conns, secs, *script):
        """A run, with the CPU time of the directory."""
        before = self.cpu_seconds()
        run = load.wrk(f"http://{address('gateway')}/", conns, secs, 200, *script)
        if run["bad"]:
            sys.exit(f"{script[0]}: {run['bad']} of {run['requests']} responses were not the expected ones")
        cpu = self.cpu_seconds() - before
        return {"per_cpu_s": run["requests"] / cpu, "cpu_us": cpu / run["requests"] * 1e6, "rps": run["requests"] / run["secs"],
                **{f"{key}_us": run[key] for key in ("p50", "p99", "p999", "longest")}, "requests": run["requests"]}

    def post(self, conns, secs):
        file = self.run / "post"
        file.write_text(f"POST /scim/v2/Users HTTP/1.1\r\n{FIELDS}Content-Type: application/scim+json\r\n"
                        "Content-Length: @N@\r\n\r\n", newline="")
        run = self.wrk(conns, secs, "users", file, self.posted)
        self.posted += run["requests"] + conns  # those that were under way at the end are there too
        return run

    def get(self, paths):
        """The median of the rounds."""
        return self.get_in_turn({"": paths})[""]

    def get_in_turn(self, paths):
        """The same for several, by name. They take turns, since the speed of the machine drifts."""
        runs = {name: [] for name in paths}
        for _ in range(self.arguments.rounds):
            for name, of in paths.items():
                runs[name].append(self.wrk(8, self.arguments.secs, *self.turns(map(request, of))))
        return {name: {key: (max if key == "longest_us" else statistics.median)(run[key] for run in all) for key in all[0]}
                for name, all in runs.items()}

    def rest(self):
        """Waits until what was written before is in the file and nothing is done any more."""
        before = None
        while (now := self.cpu_seconds()) != before:
            before = now
            time.sleep(0.3)

    def users(self):
        text, _ = Walker().get("/scim/v2/Users?count=0")
        return int(re.search(rb'"totalResults":(\d+)', text).group(1))

    def fill(self, users):
        while (there := self.users()) < users:
            run = self.post(64, 1 if users - there < 50_000 else 5)
            print(f"  {self.users()} users, {run['rps']:.0f} more a second", flush=True)


def page_paths(bench, sorted_by):
    """Paths of pages at each depth, and at many places."""
    query = f"count={PAGE}" + (f"&sortBy={sorted_by}" if sorted_by else "")
    cursors = []
    Walker().walk(query, cursors.append)
    paths = [f"/scim/v2/Users?{query}&cursor={cursor}" for cursor in cursors]
    depths = {}
    for name, part in DEPTHS.items():
        at = int(part * (len(paths) - 2))
        depths[name] = paths[at:at + 1]
    picked = random.Random(1).sample(paths[:-1], min(500, len(paths) - 1))
    return depths, picked


def run_page(bench, sorted_by=None, bar=9_000):
    depths, picked = page_paths(bench, sorted_by)
    values = bench.get(picked)
    costs = {name: run["cpu_us"] for name, run in bench.get_in_turn(depths).items()}
    values |= {f"{name}_us": cost for name, cost in costs.items()}
    values["ratio"] = max(costs.values()) / min(costs.values())
    values |= {"bar": bar, "ratio_bar": 1.2}
    return values, (f"{values['per_cpu_s']:.0f} pages for a second of CPU time, bar {bar}  {at_least(values['per_cpu_s'], bar)}; "
                    f"from start to end within {values['ratio']:.2f}, bar 1.2  {at_most(values['ratio'], 1.2)}")


def run_eq(bench):
    names = [user_name(n) for n in random.Random(2).sample(range(1, bench.posted), 300)]
    paths = ["/scim/v2/Users?filter=" + urllib.parse.quote(f'userName eq "{name}"') for name in names]
    values = bench.get(paths)
    values["bar"] = 60
    return values, f"{values['cpu_us']:.1f} us of CPU time for a user, bar 60  {at_most(values['cpu_us'], 60)}"


def user_name(n):
    """As load.lua makes it."""
    given = ("ada", "grace", "edsger", "barbara", "donald", "radia", "ken", "frances", "dennis", "lynn")
    family = ("lovelace", "hopper", "dijkstra", "liskov", "knuth", "perlman", "thompson", "allen", "ritchie", "conway", "hamilton")
    mixed = n * 2654435761 % 4294967296
    return f"{given[mixed % 10]}.{family[mixed % 11]}.{mixed:08x}@example.com"


def run_post(bench):
    with LogWatch(bench) as log:
        values = bench.post(64, bench.arguments.post_secs)
    values["log_mib"] = log.longest / 2**20
    alone = [bench.post(1, bench.arguments.secs)["rps"] for _ in range(bench.arguments.rounds)]
    values["alone_rps"] = statistics.median(alone)
    file = os.open(bench.run / "data" / "sync", os.O_CREAT | os.O_WRONLY, 0o600)
    values["fdatasync_us"] = statistics.median(time_sync(file) for _ in range(500))
    os.close(file)
    bars = {"p99_us": 40_000, "p999_us": 100_000, "longest_us": 250_000}
    values |= {"bar": 4_000, "alone_bar": 1_200, "log_mib_bar": 256} | {f"{key}_bar": bar for key, bar in bars.items()}
    waits = ", ".join(f"{key[:-3]} {values[key] / 1000:.0f} ms of {bar / 1000:.0f}  {at_most(values[key], bar)}"
                      for key, bar in bars.items())
    return values, (f"{values['rps']:.0f} users a second over 64 connections, bar 4000  {at_least(values['rps'], 4_000)}; {waits}; log "
                    f"{values['log_mib']:.0f} MiB of 256  {at_most(values['log_mib'], 256)}; over one "
                    f"{values['alone_rps']:.0f}, bar 1200  {at_least(values['alone_rps'], 1_200)}; one fdatasync "
                    f"{values['fdatasync_us']:.0f} us")


class LogWatch(threading.Thread):
    """How long the log of the directory gets, and how much memory the gateway has of its own."""

    def __init__(self, bench):
        super().__init__(daemon=True)
        self.bench, self.longest, self.memory, self.over = bench, 0, 0, threading.Event()

    def run(self):
        log = self.bench.run / "data" / "directory.db-wal"
        while not self.over.wait(0.05):
            self.longest = max(self.longest, log.stat().st_size if log.exists() else 0)
            # Pages of the file that are mapped are the system's.
            own = [re.search(r"RssAnon:\s+(\d+)", (each / "status").read_text()).group(1)
                   for each in self.bench.server(GATEWAY).processes()]
            self.memory = max(self.memory, sum(map(int, own)) * 1024)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def run_mixed(bench):
    _, picked = page_paths(bench, None)
    script = bench.turns(map(request, picked))
    with LogWatch(bench) as watch:
        reads = []
        reader = threading.Thread(target=lambda: reads.append(bench.wrk(8, 5 * bench.arguments.secs, *script)))
        reader.start()
        writes = bench.post(16, 5 * bench.arguments.secs)
        reader.join()
    if not reads:
        sys.exit("no page was read")
    values = {"memory": watch.memory / 1e6, "bar": 200, "log_mib": watch.longest / 2**20}
    for what, run in (("page", reads[0]), ("post", writes)):
        values |= {f"{what}_{key}": run[key] for key in ("rps", "p99_us", "longest_us")}
    return values, (f"{values['memory']:.0f} MB of its own while {values['page_rps']:.0f} pages and {values['post_rps']:.0f} POSTs a "
                    f"second, bar 200  {at_most(values['memory'], 200)}")


def run_export(bench):
    """Last of all cases: the directory is closed for reading its file."""
    bench.rest()
    before, memory, times = bench.cpu_seconds(), [], []

    def see(_):
        times.append(time.perf_counter())
        if len(times) % 200 == 100:
            # Pages of the file that are mapped are the system's, also before they are written.
            memory.append(bench.server(GATEWAY).memory("Anonymous"))

    octets = Walker().walk("count=500", see)
    times.append(time.perf_counter())
    cpu, users = bench.cpu_seconds() - before, bench.users()
    waits = sorted(end - begin for begin, end in zip(times, times[1:]))
    bench.stop(GATEWAY)
    rows, row_cpu = read_rows(bench.run / "data" / "directory.db")
    bench.restart(GATEWAY)
    if rows < users:
        sys.exit(f"{users} users were exported, and there are {rows} rows")
    values = {"per_cpu_s": users / cpu, "users": users, "octets": octets, "secs": times[-1] - times[0],
              "p99_us": waits[len(waits) * 99 // 100] * 1e6, "longest_us": waits[-1] * 1e6, "rows_per_cpu_s": rows / row_cpu,
              "ratio": row_cpu / rows / (cpu / users), "bar": 0.5,
              "memory_growth": max(memory) - min(memory) if memory else 0}
    return values, (f"{values['per_cpu_s']:.0f} users for a second of CPU time, the rows alone {values['rows_per_cpu_s']:.0f}; ratio "
                    f"{values['ratio']:.2f}, bar 0.5  {at_least(values['ratio'], 0.5)}; memory moved by {values['memory_growth']} octets")


def read_rows(file):
    """Reads every text in a loop of SQLite itself; how many there were, and the CPU time."""
    database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    best = None
    for _ in range(3):
        begin = time.process_time()
        rows, _ = database.execute("SELECT count(*), sum(length(CAST(text AS TEXT))) FROM resource").fetchone()
        taken = time.process_time() - begin
        best = taken if best is None else min(best, taken)
    database.close()
    return rows, best


CASES = {
    "page": lambda bench: run_page(bench),
    "page-sorted": lambda bench: run_page(bench, "userName", 3_500),
    "eq": run_eq,
    "post": run_post,
    "mixed": run_mixed,
    "export": run_export,
}


def run_cases(bench):
    bench.server(GATEWAY)
    for users in bench.arguments.users:
        print(f"{users} users", flush=True)
        bench.fill(users)
        for name in bench.arguments.cases:
            print(name, flush=True)
            values, row = CASES[name](bench)
            case = name if users == bench.arguments.users[-1] else f"{name}-{users}"
            yield case, values, f"{case:18} {row}"


def main():
    parser = load.parser_of("scim", __doc__, CASES, secs=2, rounds=3)
    parser.add_argument("--post-secs", type=int, default=60, help="of the run with 64 connections (%(default)s)")
    parser.add_argument("--users", type=int, nargs="+", default=[10_000, 1_000_000], help="at least so many, in rising "
                        "order (%(default)s)")
    arguments = load.parse(parser, CASES, TOOLS)
    # Not in /tmp, which may be in memory: what is measured is a disk.
    load.run_cases("scim", lambda run: Directory(arguments, run), run_cases, arguments.binary.parent)


if __name__ == "__main__":
    main()
