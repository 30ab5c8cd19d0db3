#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a SCIM 2.0 server do what RFC 7643, RFC 7644 and RFC 9865 say, and what deployed clients need? Asked from outside.

    tests/blackbox/scim.py --base-url http://127.0.0.1:8080/scim/v2 --token TOKEN

README.md beside this file says what the options are. What the cases make they remove.
"""

import argparse
import importlib
import sys

from cases import CASES, await_answer, run_cases
from scim_bench import REQUIREMENTS, Bench

for area in ("scim_resources", "scim_queries", "scim_changes", "scim_clients"):
    importlib.import_module(area)  # which registers its cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="such as P3, or a requirement such as RFC7644-3.5.2-L1805; all cases when none is named")
    parser.add_argument("--requirements", action="store_true", help="print which cases look at which requirement, and end")
    parser.add_argument("--base-url", metavar="URL", help="what /Users and /Groups follow")
    parser.add_argument("--token", default="", help="a bearer token that may read and write")
    parser.add_argument("--other-token", metavar="TOKEN", help="one of another tenant, or another one of the same")
    parser.add_argument("--read-only-token", metavar="TOKEN", help="one of the same tenant that may only read")
    parser.add_argument("--me", metavar="USERNAME", help="whom /Me is for with the token")
    parser.add_argument("--max-body", type=int, default=1 << 20, help="octets that a request may have (%(default)s)")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=URL",
                        help="the same data with other settings: unique-group-names, small-pages, strict-count, cursor-only, expiry, refuse-unknown")
    arguments = parser.parse_args()
    if arguments.requirements:
        for each in sorted(REQUIREMENTS):
            print(each, *REQUIREMENTS[each])
        return 0
    if not arguments.base_url:
        parser.error("--base-url is needed")
    for each in arguments.cases:
        if each not in CASES and each not in REQUIREMENTS:
            parser.error(f"there is no case '{each}'")
    wanted = {name for each in arguments.cases for name in REQUIREMENTS.get(each, [each])}
    await_answer(arguments.base_url)
    return run_cases(Bench(arguments), [each for each in CASES if not wanted or each in wanted])


if __name__ == "__main__":
    sys.exit(main())
