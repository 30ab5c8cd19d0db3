#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a configuration with 100,000 routes costs.

    ./dev bench config                   all cases
    ./dev bench config check             only this one

check       `tidegate check` of a file with 100,000 routes: seconds, and peak memory. Also of the same
            routes in a hundred included files
request     CPU time of a request that the last of 100,000 routes takes, next to one that the last of
            ten takes. Two gateways take turns, since the speed of the machine drifts; `ratio` is the
            median over the rounds of 100,000 / 10
"""

import os
import subprocess
import sys
import time

import load
from load import GATEWAY, address, at_most, median, ratio_of

TOOLS = ("nginx", "wrk", "taskset")
MANY = 100_000
FEW = 10
FILES = 100
CASES = {"check": {"bar": 3}, "request": {"bar": 1.05}}

HEAD = """
listen: @gateway@
admin: @admin@
workers: 1
data: @RUN@/data
upstreams:
  origin: http://@origin@
policies:
  default: {quota: 100000000, window: 10s, algorithm: sliding, partition: [header:x-api-key]}
"""


def route(number):
    return (f"  - match:\n      path: /service-{number % 1000}/resource-{number // 1000}/**\n      methods: [GET, POST]\n"
            "    upstream: origin\n    limits: [default]\n")


def routes(numbers):
    return "routes:\n" + "".join(map(route, numbers))


def path_of_last(count):
    """As long for both gateways."""
    return f"/service-{(count - 1) % 1000:03}/resource-{(count - 1) // 1000:02}/x"


def last_route(count):
    return f"  - {{match: {{path: {path_of_last(count)[:-1]}**}}, upstream: origin, limits: [default]}}\n"


class ConfigBench(load.Bench):
    def __init__(self, arguments, run):
        super().__init__(arguments, run, HEAD + routes(range(FEW)))
        for count in (FEW, MANY):
            self.add_gateway(f"routes-{count}", HEAD + routes(range(count - 1)) + last_route(count), "gateway")
        folder = run / "included"
        folder.mkdir()
        for number in range(FILES):
            part = range(number * MANY // FILES, (number + 1) * MANY // FILES)
            (folder / f"{number:03}.yaml").write_text(routes(part))
        self.files = {"one": self.write("one.yaml", HEAD + routes(range(MANY))),
                      "included": self.write("many.yaml", HEAD + "include: included/*.yaml\n")}

    def check(self, file):
        """Seconds and peak memory in MiB."""
        begin = time.monotonic()
        process = subprocess.Popen([self.arguments.binary, "check", "--no-files", file], stdout=subprocess.PIPE)
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        secs = time.monotonic() - begin
        process.stdout.close()
        if status != 0 or not said.endswith(b": ok\n"):
            sys.exit(f"expected {file} to be ok, got {said[:300]!r}")
        return secs, usage.ru_maxrss / 1024


def run_check(bench, name, case):
    taken = {which: [bench.check(file) for _ in range(bench.arguments.rounds)] for which, file in bench.files.items()}
    values = {"routes": MANY}
    for which, runs in taken.items():
        values |= {f"{which}_secs": sorted(secs for secs, _ in runs)[len(runs) // 2], f"{which}_mib": max(mib for _, mib in runs)}
    values |= case
    slowest = max(values["one_secs"], values["included_secs"])
    return values, (f"{name:8} {values['one_secs']:.2f} s and {values['one_mib']:.0f} MiB for {MANY} routes, "
                    f"{values['included_secs']:.2f} s and {values['included_mib']:.0f} MiB in {FILES} included files; "
                    f"bar {case['bar']} s  {at_most(slowest, case['bar'])}")


def run_request(bench, name, case):
    runs = {FEW: [], MANY: []}
    for number in range(bench.arguments.rounds):
        for count, own in runs.items():
            bench.commands[GATEWAY] = bench.commands[f"routes-{count}"]
            bench.restart(GATEWAY)
            contestant = {"name": f"{count} routes", "server": GATEWAY, "kind": "h1",
                          "url": f"http://{address('gateway')}{path_of_last(count)}", "expect": 200}
            bench.load(contestant, 1)  # warms up
            own.append(bench.measure(contestant))
            print(f"  round {number + 1} {count:6} routes {own[-1]['cpu']:6.2f} us, others use {own[-1]['others']:.2f} cores", flush=True)
    values = {"cpu_us": median(runs[MANY], "cpu"), "few_cpu_us": median(runs[FEW], "cpu"), **load.speed(runs[MANY]),
              "ratio": ratio_of(runs[MANY], runs[FEW]), **case}
    return values, (f"{name:8} {values['cpu_us']:.2f} us for a request at the last of {MANY} routes, {values['few_cpu_us']:.2f} at the last "
                    f"of {FEW}; ratio {values['ratio']:.3f} bar {case['bar']:.2f}  {at_most(values['ratio'], case['bar'])}")


def cases(bench):
    for name in bench.arguments.cases:
        print(name, flush=True)
        if name == "check":
            yield name, *run_check(bench, name, CASES[name])
        else:
            bench.server("origin")
            yield name, *run_request(bench, name, CASES[name])


def main():
    parser = load.parser_of("config", __doc__, [*CASES], secs=3, rounds=5, conns=64, keys=1000, tries=3, quiet=20)
    arguments = load.parse(parser, [*CASES], TOOLS)
    load.run_cases("config", lambda run: ConfigBench(arguments, run), cases)


if __name__ == "__main__":
    main()
