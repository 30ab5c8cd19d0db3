#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the SCIM directory costs over HTTP, with all its threads on one core.

    ./dev bench scim                      all cases, at 10,000 and 1,000,000 users
    ./dev bench scim --users 10000        only with so many
    ./dev bench scim page eq              only these cases

page         pages of 100 in the order of creation, for each second of CPU time; `ratio` is the dearest of the depths
             0, half and 99 % by the cheapest
page-sorted  the same sorted by userName, at random positions
eq           one user by userName
post         users that are created and on the disk, over 64 connections; and over one, next to fdatasync
export       all users in pages of 500; `ratio` is CPU time of reading the same rows in SQLite by CPU time of the export

The directory is on cpu 1, whoever asks on cpu 0. Names of cases are those of the largest number of users; with fewer,
the number is behind the name.
"""

import argparse
import json
import os
import pathlib
import random
import re
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

import gateway_bench
from gateway_bench import ADDRESS, GATEWAY, ROOT, program_line
from idempotency_bench import time_sync

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = ("wrk", "openssl", "taskset")
TOKEN = "bench"
CONFIG = f"""
listen: {ADDRESS}
workers: 1
data: RUN/data
stores: {{directory: "sqlite:RUN/data/directory.db"}}
policies:
  default: {{quota: 100000000, window: 10s, algorithm: sliding, partition: [principal]}}
routes:
  - match: {{path: /scim/v2/**}}
    service: scim
    limits: [default]
    auth: {{bearer-tokens: [{{name: bench, sha256: 1b32c28cb38c05480eccc1bd60ff97029b57a05c96718b96dad7e9d84894f549}}]}}
"""
PAGE = 100
DEPTHS = {"start": 0.0, "half": 0.5, "end": 0.99}


class Walker:
    """One connection that follows cursors."""

    def __init__(self):
        host, port = ADDRESS.split(":")
        self.socket = socket.create_connection((host, int(port)), 30)
        self.room = bytearray(1 << 20)

    def get(self, path):
        """The response's content, or as much of it as comes first, and how long all of it is."""
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
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


class Directory(gateway_bench.Bench):
    def __init__(self, *arguments):
        super().__init__(*arguments, CONFIG)
        self.settings[GATEWAY]["probe"] = f"http://{ADDRESS}/scim/v2/ServiceProviderConfig"
        self.posted = 0

    def cpu_seconds(self):
        return self.shared.cpu(self.processes(GATEWAY))[2] / 1e6

    def wrk(self, conns, secs, *script):
        """A run, with the CPU time of the directory."""
        before = self.cpu_seconds()
        out = subprocess.run(["taskset", "-c", "0", "wrk", "-t1", f"-c{conns}", f"-d{secs}s", "-s", HERE / "scim.lua",
                              f"http://{ADDRESS}/", "--", *map(str, script)],
                             capture_output=True, text=True, timeout=secs + 60, check=True).stdout
        run = json.loads(re.search(r"JSON (.*)", out).group(1))
        if run["sock_err"] or run["status_err"]:
            sys.exit(f"{script}: {run['status_err']} unexpected responses, {run['sock_err']} failures")
        cpu = self.cpu_seconds() - before
        return {"per_cpu_s": run["requests"] / cpu, "cpu_us": cpu / run["requests"] * 1e6,
                "rps": run["requests"] / run["us"] * 1e6, "p50_us": run["p50"], "p99_us": run["p99"],
                "requests": run["requests"]}

    def post(self, conns, secs):
        run = self.wrk(conns, secs, "post", TOKEN, self.posted)
        self.posted += run["requests"] + conns  # those that were under way at the end are there too
        return run

    def get(self, paths):
        """The median of the rounds."""
        return self.get_in_turn({"": paths})[""]

    def get_in_turn(self, paths):
        """The same for several, by name. They take turns: what else the machine does is in all of them."""
        runs = {name: [] for name in paths}
        file = self.run / "paths"
        for _ in range(self.arguments.rounds):
            for name, of in paths.items():
                file.write_text("\n".join(of) + "\n")
                runs[name].append(self.wrk(8, self.arguments.secs, "get", TOKEN, file))
        return {name: {key: statistics.median(run[key] for run in all) for key in all[0]} for name, all in runs.items()}

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


def run_page(bench, sorted_by=None, bar=10_000):
    depths, picked = page_paths(bench, sorted_by)
    values = {"per_cpu_s": bench.get(picked)["per_cpu_s"]}
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
    """As scim.lua makes it."""
    given = ("ada", "grace", "edsger", "barbara", "donald", "radia", "ken", "frances", "dennis", "lynn")
    family = ("lovelace", "hopper", "dijkstra", "liskov", "knuth", "perlman", "thompson", "allen", "ritchie", "conway", "hamilton")
    mixed = n * 2654435761 % 4294967296
    return f"{given[mixed % 10]}.{family[mixed % 11]}.{mixed:08x}@example.com"


def run_post(bench):
    # After each 131,072 all wait for a commit, for up to a second: a run is long enough to have one.
    runs = [bench.post(64, 3 * bench.arguments.secs) for _ in range(bench.arguments.rounds)]
    values = {key: statistics.median(run[key] for run in runs) for key in ("per_cpu_s", "cpu_us", "rps", "p50_us", "p99_us")}
    alone = [bench.post(1, bench.arguments.secs)["rps"] for _ in range(bench.arguments.rounds)]
    values["alone_rps"] = statistics.median(alone)
    file = os.open(bench.run / "data" / "sync", os.O_CREAT | os.O_WRONLY, 0o600)
    values["fdatasync_us"] = statistics.median(time_sync(file) for _ in range(500))
    os.close(file)
    values |= {"bar": 25_000, "alone_bar": 2_500}
    return values, (f"{values['rps']:.0f} users a second over 64 connections, bar 25000  {at_least(values['rps'], 25_000)}; over one "
                    f"{values['alone_rps']:.0f}, bar 2500  {at_least(values['alone_rps'], 2_500)}; one fdatasync "
                    f"{values['fdatasync_us']:.0f} us")


def run_export(bench):
    """Last of all cases: the directory is closed for reading its file."""
    bench.rest()
    before, memory = bench.cpu_seconds(), []
    pages = 0

    def see(_):
        nonlocal pages
        pages += 1
        if pages % 200 == 100:
            # Pages of the file that are mapped are the system's, also when they still have to be written.
            memory.append(bench.memory(GATEWAY, "Anonymous"))

    begin = time.perf_counter()
    octets = Walker().walk("count=500", see)
    wall, cpu, users = time.perf_counter() - begin, bench.cpu_seconds() - before, bench.users()
    bench.servers.pop(GATEWAY).stop()
    rows, row_cpu = read_rows(bench.run / "data" / "directory.db")
    bench.restart(GATEWAY)
    if rows < users:
        sys.exit(f"{users} users were exported, and there are {rows} rows")
    values = {"per_cpu_s": users / cpu, "users": users, "octets": octets, "secs": wall, "rows_per_cpu_s": rows / row_cpu,
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


def at_least(value, bar):
    return "met" if value >= bar else "MISSED"


def at_most(value, bar):
    return "met" if value <= bar else "MISSED"


CASES = {
    "page": lambda bench: run_page(bench),
    "page-sorted": lambda bench: run_page(bench, "userName", 4_000),
    "eq": run_eq,
    "post": run_post,
    "export": run_export,
}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench scim", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("-s", "--secs", type=int, default=2, help="of one run (%(default)s)")
    parser.add_argument("-r", "--rounds", type=int, default=3, help="median of so many (%(default)s)")
    parser.add_argument("--users", type=int, nargs="+", default=[10_000, 1_000_000], help="at least so many, in rising "
                        "order (%(default)s)")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "release" / "tidegate")
    arguments = parser.parse_args()
    for each in arguments.cases:
        if each not in CASES:
            parser.error(f"there is no case '{each}'; there are: {', '.join(CASES)}")
    arguments.binary = arguments.binary.absolute()
    if lacks := list(gateway_bench.missing(arguments.binary, TOOLS)):
        print("bench scim: skipped; missing: " + "; ".join(lacks))
        return 0
    # Not in /tmp, which may be in memory: what is measured is a disk.
    with tempfile.TemporaryDirectory(prefix="bench.", dir=arguments.binary.parent) as folder:
        bench = Directory(gateway_bench.load_shared(folder), arguments, pathlib.Path(folder))
        lines, rows = [], []
        try:
            bench.server(GATEWAY)
            for users in arguments.users:
                print(f"{users} users", flush=True)
                bench.fill(users)
                for name, run in CASES.items():
                    if arguments.cases and name not in arguments.cases:
                        continue
                    print(name, flush=True)
                    values, row = run(bench)
                    case = name if users == arguments.users[-1] else f"{name}-{users}"
                    lines.append(program_line(case, values, "scim"))
                    rows.append(f"{case:18} {row}")
        finally:
            bench.stop()
    print("\n" + "\n".join(rows) + "\n\n" + "\n".join(lines))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    sys.exit(main())
