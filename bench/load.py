# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of the whole program share: servers, load, and what it costs.

Each process has one thread for requests. What is measured has cpu 1 for itself; load generator and
origin server share cpu 0. All listen on free ports of the loopback interface.
"""

import argparse
import contextlib
import functools
import json
import os
import pathlib
import random
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

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
GATEWAY = "tidegate"
CLIENT_HAS_GONE = 499  # a load generator that ends leaves its last requests
TICKS = os.sysconf("SC_CLK_TCK")
# Below those that the system gives to clients.
PORTS = iter(random.sample(range(20_000, 30_000), 1000))


@functools.cache
def address(name):
    """Where the server that is called so listens."""
    for port in PORTS:
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return f"127.0.0.1:{port}"
    sys.exit("there is no free port")


def connect(to, timeout=10):
    made = socket.create_connection(to.split(":"), timeout)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def answers(at):
    try:
        with connect(at) as to:
            to.sendall(b"GET / HTTP/1.0\r\n\r\n")  # which Redis answers, too
            return bool(to.recv(1))
    except OSError:
        return False


class Server:
    """A process that answers at an address until it is stopped; on one cpu when that is given."""

    def __init__(self, name, command, cpu, at, run):
        log = run / f"{name}.log"
        with log.open("w") as out:
            self.process = subprocess.Popen([*(["taskset", "-c", str(cpu)] if cpu is not None else []), *command],
                                            cwd=run, stdout=out, stderr=subprocess.STDOUT)
        for _ in range(300):
            if answers(at):
                return
            if self.process.poll() is not None:
                sys.exit(f"{name} exited: {log.read_text()}")
            time.sleep(0.1)
        self.stop()
        sys.exit(f"{name} does not answer at {at}")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def processes(self):
        """Its process and those below it."""
        found = [pathlib.Path(f"/proc/{self.process.pid}")]
        for each in found:
            for task in (each / "task").iterdir():
                found += [pathlib.Path(f"/proc/{child}") for child in (task / "children").read_text().split()]
        return found

    def cpu(self):
        """Microseconds of CPU time that it has used so far."""
        return sum(int((task / "schedstat").read_text().split()[0])
                   for each in self.processes() for task in (each / "task").iterdir()) / 1e3

    def user(self):
        """About how many of them in user space."""
        return sum(int((each / "stat").read_text().rpartition(")")[2].split()[11]) for each in self.processes()) / TICKS * 1e6

    def memory(self, kind="Private_Dirty"):
        """Memory of its own, in octets."""
        return sum(int(re.search(rf"(?m)^{kind}: +(\d+) kB", (each / "smaps_rollup").read_text())[1]) * 1024
                   for each in self.processes())


def machine():
    """Microseconds that all cpus were busy."""
    user, nice, system, _, _, irq, softirq = map(int, pathlib.Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / TICKS * 1e6


def wait_quiet(secs):
    """Until less than an eighth of one cpu is in use for a second, but not longer than `secs`."""
    end = time.monotonic() + secs
    while time.monotonic() < end:
        before = machine()
        time.sleep(1)
        if machine() - before < 125_000:
            return


def wrk(url, conns, secs, expect, *script):
    """A run of the load generator for HTTP/1.1; `load.lua` has the scripts."""
    out = subprocess.run(["taskset", "-c", "0", "wrk", "-t1", f"-c{conns}", f"-d{secs}s", "-s", HERE / "load.lua", url, "--",
                          *map(str, script)], capture_output=True, text=True, timeout=secs + 60, check=True).stdout
    return read_wrk(out, expect)


def read_wrk(out, expect):
    """Latencies are in microseconds; `longest` is the longest that a response was waited for; `bad`
    are failures and responses that are not of the kind of `expect`."""
    run = json.loads(re.search(r"(?m)^JSON (.*)$", out)[1])
    refused = run.pop("refused")
    run["bad"] = run.pop("failed") + (refused if expect < 400 else run["requests"] - refused)
    return run


def h2load(run, url, secs, expect, *options):
    """The same by the load generator for HTTP/2."""
    log = run / "h2load.log"
    log.unlink(missing_ok=True)
    subprocess.run(["taskset", "-c", "0", "h2load", "-t1", f"-D{secs}", "-H", "x-api-key: key-000001", f"--log-file={log}",
                    *map(str, options), url], capture_output=True, timeout=secs + 60, check=True)
    return read_h2load(log.read_text(), secs, expect)


def read_h2load(log, secs, expect):
    """Each line has the time, the status and the microseconds of a response."""
    lines = [line.split("\t") for line in log.splitlines()]
    taken = sorted(int(line[2]) for line in lines)
    if not taken:
        sys.exit("h2load got no response")
    return {"requests": len(taken), "secs": secs, "bad": sum(line[1] != str(expect) for line in lines),
            "p50": taken[len(taken) // 2], "p99": taken[len(taken) * 99 // 100], "p999": taken[len(taken) * 999 // 1000],
            "longest": taken[-1]}


def metrics(name, label, at="admin"):
    """What the gateway has counted so far under this name, by the values of this label."""
    counts = {}
    page = urllib.request.urlopen(f"http://{address(at)}/metrics", timeout=10).read().decode()
    for value, count in re.findall(rf'(?m)^{name}{{(?:[^}}]*,)?{label}="([^"]*)"[^}}]*}} (\d+)$', page):
        counts[value] = counts.get(value, 0) + int(count)
    return counts


def grown(before, after):
    return {key: count - before.get(key, 0) for key, count in after.items() if count != before.get(key, 0)}


def gets(path, keys, more=""):
    """Requests with so many values of X-API-Key, and with these lines."""
    return [f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: key-{key:06}\r\n{more}\r\n" for key in range(1, keys + 1)]


class Bench:
    """Servers that stay up for the whole run, and runs against them."""

    def __init__(self, arguments, run, config):
        self.arguments = arguments
        self.run = run
        self.servers = {}
        self.commands = {"origin": (["nginx", "-p", run, "-e", "stderr", "-c", "origin.conf"], 0, "origin"),
                         "nginx": (["nginx", "-p", run, "-e", "stderr", "-c", "nginx.conf"], 1, "nginx-limit"),
                         "haproxy": (["haproxy", "-db", "-f", "haproxy.cfg"], 1, "haproxy-limit")}
        for file in (HERE / "gateway").iterdir():
            self.write(file.name, file.read_text())
        if config:
            self.add_gateway(GATEWAY, config, "gateway")

    def write(self, name, text):
        """A file in the folder of this run; names between @ become addresses."""
        text = re.sub(r"@([a-z0-9-]+)@", lambda found: address(found[1]), text.replace("@RUN@", str(self.run)))
        (self.run / name).write_text(text)
        return self.run / name

    def add_gateway(self, name, config, at):
        self.commands[name] = ([self.arguments.binary, "serve", "-c", self.write(f"{name}.yaml", config)], 1, at)

    def server(self, name):
        """Starts it when it is not there yet."""
        if name not in self.servers:
            command, cpu, at = self.commands[name]
            self.servers[name] = Server(name, command, cpu, address(at), self.run)
        return self.servers[name]

    def stop(self, name):
        if name in self.servers:
            self.servers.pop(name).stop()

    def restart(self, name):
        """Without the memory that earlier runs have left to it."""
        self.stop(name)
        return self.server(name)

    def turns(self, requests):
        """The arguments of a script that sends them in turn."""
        file = self.run / "requests"
        file.write_bytes("\x1e".join(requests).encode())
        return "turns", file

    def load(self, contestant, secs):
        """A contestant has a name, a server, a kind (h1, h1-close or h2), a url and the status to expect, and it may have a
        field that is sent."""
        arguments = self.arguments
        url, field = contestant["url"], contestant.get("more")
        if contestant["kind"] == "h2":
            return h2load(self.run, url, secs, contestant["expect"], "-c16", "-m8", *(["-H", field] if field else []))
        path = "/" + url.split("/", 3)[3]
        # wrk makes a new connection after a response that closes its own.
        more = ("Connection: close\r\n" if contestant["kind"] == "h1-close" else "") + (f"{field}\r\n" if field else "")
        return wrk(url, arguments.conns, secs, contestant["expect"], *self.turns(gets(path, arguments.keys, more)))

    def measure_once(self, contestant):
        """One run: what it cost for each request, in microseconds. Ends the program when a response
        is not what is expected: a refusal is not the work that is measured."""
        tested, origin = self.server(contestant["server"]), self.server("origin")
        is_ours = contestant["server"] == GATEWAY

        def look():
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return {"cpu": tested.cpu(), "user": tested.user(), "machine": machine(),
                    "around": origin.cpu() + (used.ru_utime + used.ru_stime) * 1e6}

        counted = metrics("tidegate_requests_total", "status") if is_ours else {}
        before = look()
        run = self.load(contestant, self.arguments.secs)
        used = {key: value - before[key] for key, value in look().items()}
        count = run["requests"]
        if not count:
            sys.exit(f"{contestant['name']} answered nothing")
        others = grown(counted, metrics("tidegate_requests_total", "status")) if is_ours else {}
        others = {status: number for status, number in others.items()
                  if int(status) not in (contestant["expect"], CLIENT_HAS_GONE)}
        # Peers whose limit fills up again let a request a second of each key through.
        if run["bad"] > (0 if is_ours else count // 10) or others:
            sys.exit(f"{contestant['name']}: {run['bad']} of {count} responses were not the expected {contestant['expect']}"
                     + "".join(f"; {number} times {status}" for status, number in others.items()))
        return {"cpu": used["cpu"] / count, "user": used["user"] / count, "around": used["around"] / count,
                "others": max(0, (used["machine"] - used["cpu"] - used["around"]) / 1e6 / run["secs"]),
                "rps": count / run["secs"], **{key: run[key] for key in ("p50", "p99", "longest")}}

    def measure(self, contestant):
        """The least disturbed of a few tries."""
        best = None
        for _ in range(self.arguments.tries):
            if best is not None:
                wait_quiet(self.arguments.quiet)
            run = self.measure_once(contestant)
            if best is None or run["others"] < best["others"]:
                best = run
            if best["others"] < 0.1:
                break
        return best

    def measure_in_turns(self, contestants):
        """The runs of each contestant, by name. They take turns, since the machine's speed drifts."""
        runs = {each["name"]: [] for each in contestants}
        for number in range(self.arguments.rounds):
            for each in contestants:
                run = self.measure(each)
                runs[each["name"]].append(run)
                print(f"  round {number + 1} {each['name']:22} {run['cpu']:6.2f} us, {run['rps']:6.0f} requests/s, "
                      f"others use {run['others']:.2f} cores", flush=True)
        return runs

    def count_by_perf(self, contestant, event):
        """How often it happens in the gateway for each request; None where perf cannot tell."""
        log = self.run / "perf.csv"
        return self.count_under(["perf", "stat", "-x,", "-o", log, "-e", event, "-p"], log, contestant, r"(?m)^(\d+),")

    def system_calls(self, contestant):
        """How many the gateway makes for each request: counted by perf, or where it may not by
        strace, which slows the gateway down so much that one call tells of more at once."""
        calls = self.count_by_perf(contestant, "raw_syscalls:sys_enter")
        if calls is not None:
            return calls
        log = self.run / "strace.txt"
        return self.count_under(["strace", "-f", "-c", "-o", log, "-p"], log, contestant,
                                r"(?m)^100\.00 +\S+ +\S+ +(\d+) .*total$")

    def count_under(self, command, log, contestant, pattern):
        if shutil.which(command[0]) is None:
            return None
        tracer = subprocess.Popen([*command, str(self.server(GATEWAY).process.pid)], stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.5)  # for the tracer to attach
            requests = self.load(contestant, 2)["requests"]
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait(10)
        found = re.search(pattern, log.read_text() if log.exists() else "")
        return int(found[1]) / requests if found else None


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def ratio_of(ours, peers, value=lambda run: run["cpu"]):
    """The median over the rounds, so that both were measured at the same time."""
    return statistics.median(value(own) / value(peer) for own, peer in zip(ours, peers))


def speed(runs):
    """How many requests a second, and beside it how long they took."""
    return {"rps": median(runs, "rps"), "p50_us": median(runs, "p50"), "p99_us": median(runs, "p99"),
            "longest_us": max(run["longest"] for run in runs)}


def at_most(value, bar):
    return "met" if value <= bar else "MISSED"


def at_least(value, bar):
    return "met" if value >= bar else "MISSED"


def time_sync(file):
    """Microseconds for a page more in the file, and fdatasync."""
    begin = time.perf_counter_ns()
    os.write(file, b"x" * 4096)
    os.fdatasync(file)
    return (time.perf_counter_ns() - begin) / 1000


def parser_of(suite, doc, cases, **defaults):
    """The options that all benchmarks have; those in `defaults` only where they are given."""
    parser = argparse.ArgumentParser(prog=f"./dev bench {suite}", description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(cases))
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "release" / "tidegate",
                        help="the program to measure (build/release/tidegate)")
    for name, text in (("secs", "of one run"), ("rounds", "median of so many"), ("conns", "connections of HTTP/1.1"),
                       ("keys", "values of X-API-Key"), ("tries", "when others use the machine"),
                       ("quiet", "seconds to wait for a quiet machine before another try")):
        if name in defaults:
            short = [f"-{name[0]}"] if name in ("secs", "rounds", "conns", "keys") else []
            parser.add_argument(*short, f"--{name}", type=int, default=defaults[name], help=f"{text} (%(default)s)")
    return parser


def parse(parser, cases, tools, cpus=2):
    """The arguments, with the cases to run. Ends the program when it cannot measure."""
    arguments = parser.parse_args()
    for each in arguments.cases:
        if each not in cases:
            parser.error(f"there is no case '{each}'; there are: {', '.join(cases)}")
    arguments.cases = [name for name in cases if not arguments.cases or name in arguments.cases]
    arguments.binary = arguments.binary.absolute()
    lacks = [f"the program {tool}" for tool in tools if shutil.which(tool) is None]
    if not os.access(arguments.binary, os.X_OK):
        lacks.append(f"{arguments.binary}: ./dev build release")
    if (os.cpu_count() or 1) < cpus:
        lacks.append("a second cpu")
    if lacks:
        sys.exit(f"{parser.prog[len('./dev '):]} needs " + "; ".join(lacks))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    return arguments


def run_cases(suite, make_bench, cases, folder=None, heading=""):
    """`cases` yields the name, the values and the row for people of each case of the bench."""
    lines, rows = [], []
    with tempfile.TemporaryDirectory(prefix="tidegate-bench.", dir=folder) as run:
        bench = make_bench(pathlib.Path(run))
        try:
            for name, values, row in cases(bench):
                lines.append(f"bench {suite}/{name} " + " ".join(f"{key}={value:.6g}" for key, value in values.items()))
                rows.append(row)
        finally:
            for name in list(bench.servers):
                bench.stop(name)
    print("\n" + "\n".join([*([heading] if heading else []), *rows]) + "\n\n" + "\n".join(lines))
