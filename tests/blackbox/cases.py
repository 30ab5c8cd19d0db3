# SPDX-License-Identifier: Apache-2.0
"""What the suites of this folder share: a register of cases, and the run through them."""

import socket
import sys
import time
import traceback
import urllib.parse

from http_ends import PATIENCE

# By name, in the order in which they run: what a careful implementation does, and a function that
# asks.
CASES = {}


class NotApplicable(Exception):
    """Why a case says nothing about this implementation."""


def case(name, what):
    """Registers a case; `what` says what a careful implementation does."""
    def register(function):
        assert name not in CASES, f"two cases are called {name}"
        CASES[name] = (what, function)
        return function
    return register


def unseen(name, what, why, shown_by):
    """A case that cannot be seen from outside, and the tests of Tidegate that show it."""
    def function(_):
        raise NotApplicable(f"{why}; Tidegate shows it by {shown_by}")
    case(name, what)(function)


def check(holds, otherwise):
    if not holds:
        raise AssertionError(otherwise)


def await_answer(base_url, is_gone=lambda: False):
    """Until something accepts connections there."""
    url = urllib.parse.urlsplit(base_url)
    port = url.port or (443 if url.scheme == "https" else 80)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection((url.hostname, port), PATIENCE).close()
            return
        except OSError:
            if time.monotonic() > end or is_gone():
                sys.exit(f"nothing answers at {base_url}")
            time.sleep(0.02)


def run_case(bench, name):
    what, function = CASES[name]
    try:
        function(bench)
        return "pass", what
    except NotApplicable as why:
        return "n/a", f"{what}: {why}"
    except AssertionError as otherwise:
        return "FAIL", f"{what}: {otherwise}"
    except Exception as error:  # an answer without what the case looks at, or none at all
        lines = ", ".join(str(each.lineno) for each in traceback.extract_tb(error.__traceback__)[1:])
        return "FAIL", f"{what}: {error!r} in lines {lines}"


def run_cases(bench, names):
    """Runs the cases of `names`, prints a line for each, and returns the exit status."""
    counts = {"pass": 0, "FAIL": 0, "n/a": 0}
    for name in names:
        verdict, text = run_case(bench, name)
        counts[verdict] += 1
        print(f"{name:4} {verdict:5} {text}", flush=True)
    print(f"{counts['pass']} passed, {counts['FAIL']} failed, {counts['n/a']} not applicable")
    return 1 if counts["FAIL"] else 0
